//! Conflicts of transactions, and those that the side with the lower priority won (figure 7 of the TxLinux paper).

use super::Subject;
use crate::experiment::statistics::Estimate;
use crate::report::figure::Figure;
use crate::report::kernels::charts::{Axis, by_workload, legend, plain};
use crate::report::kernels::{Data, GroupData, sentences, table_of_groups};
use crate::report::table::{Column, Show, Table};
use concord_machine::result::{ConflictKind, KindTotals, ResultDocument};

pub struct Conflicts;

const NOTE: &str = "Conflicts are those of two transactions. Asymmetric ones are those of a transaction with an access outside any, \
                    which always wins; a compare-and-swap outside any asks the contention manager, and is granted the lock or \
                    refused. The kernel sets a conflict priority at each switch. A conflict inverts priorities when the side with \
                    the lower priority goes on, and policies when the other side alone is real-time. Lost cycles are those of \
                    attempts; back-off after them is apart.";

fn of(kind: ConflictKind, value: fn(&KindTotals) -> u64) -> impl Fn(&ResultDocument) -> u64 {
    move |run| value(&run.conflicts_of(kind))
}

fn sum(value: fn(&KindTotals) -> u64) -> impl Fn(&ResultDocument) -> u64 {
    move |run| run.conflict_kinds.values().map(value).sum()
}

/// The share of a value among the conflicts of two transactions.
fn share(group: &GroupData, value: fn(&KindTotals) -> u64) -> Option<Estimate> {
    group.share(of(ConflictKind::Transactions, value), of(ConflictKind::Transactions, |totals| totals.count))
}

fn inversions(group: &GroupData) -> Option<Estimate> {
    share(group, |totals| totals.inversions)
}

impl Subject<Data<'_>> for Conflicts {
    fn table(&self, data: &Data) -> Option<Table> {
        let title = format!("Conflicts and priority inversions under {}", data.contention_manager());
        let columns = vec![
            Column::new("conflicts", "conflicts", Show::Mean),
            Column::new("asymmetric", "asymmetric", Show::Mean),
            Column::new("granted", "granted", Show::Mean).on_page(),
            Column::new("refused", "refused", Show::Mean),
            Column::new("lost_cycles", "lost (million cycles)", Show::Millions),
            Column::new("backoff_cycles", "back-off (million cycles)", Show::Millions).on_page(),
            Column::new("conflicts_lost_share", "lost to conflicts (% of lost)", Show::Percent).on_page(),
            Column::new("asymmetric_lost_share", "to asymmetric ones (%)", Show::Percent).on_page(),
            Column::new("inversions", "inversions", Show::Mean).on_page(),
            Column::new("inversion_share", "inversions (% of conflicts)", Show::Percent),
            Column::new("policy_inversions", "policy inversions", Show::Mean).on_page(),
            Column::new("policy_inversion_share", "policy inversions (% of conflicts)", Show::Percent).on_page(),
        ];
        Some(table_of_groups(data, ("conflicts", &title, NOTE), columns, |group| {
            let mean = |value: &dyn Fn(&ResultDocument) -> u64| group.mean(|run| value(run) as f64).into();
            let count = |kind| mean(&of(kind, |totals| totals.count));
            let lost =
                |kind| group.share(of(kind, |totals| totals.lost_cycles), sum(|totals| totals.lost_cycles)).into();
            let inverted = |value: fn(&KindTotals) -> u64| mean(&of(ConflictKind::Transactions, value));
            vec![
                count(ConflictKind::Transactions),
                count(ConflictKind::Asymmetric),
                count(ConflictKind::Granted),
                count(ConflictKind::Refused),
                mean(&sum(|totals| totals.lost_cycles)),
                mean(&sum(|totals| totals.backoff_cycles)),
                lost(ConflictKind::Transactions),
                lost(ConflictKind::Asymmetric),
                inverted(|totals| totals.inversions),
                inversions(group).into(),
                inverted(|totals| totals.policy_inversions),
                share(group, |totals| totals.policy_inversions).into(),
            ]
        }))
    }

    fn sentence(&self, data: &Data) -> Option<String> {
        let what = format!("Conflicts that {} decides against the kernel's priorities", data.contention_manager());
        sentences::shares(data, 0, (&what, "inverts"), inversions).or(Some("No transaction has a conflict".to_owned()))
    }

    fn figure(&self, data: &Data) -> Figure {
        let axis = Axis::share("inverted conflicts (%)");
        let charts = by_workload(data, "Priority inversions", axis, 0, |group, kernel| {
            Some(plain(group, "inversions", inversions(group)?, Show::Percent, kernel))
        });
        Figure { legend: legend(data, 0), charts }
    }
}
