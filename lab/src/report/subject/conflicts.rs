//! Conflicts of transactions, and those that the side with the lower priority won (figure 7 of the TxLinux paper).

use super::Subject;
use crate::report::figure::Figure;
use crate::report::kernels::charts::{Axis, by_workload, legend, plain};
use crate::report::kernels::{Data, GroupData, sentences, table_of_groups};
use crate::report::table::{Column, Show, Table};

pub struct Conflicts;

const NOTE: &str = "The kernel sets a conflict priority at each switch. A conflict inverts priorities when the side with the lower \
                    priority goes on.";

fn inversions(group: &GroupData) -> Option<crate::experiment::statistics::Estimate> {
    group.share(|run| run.conflict_totals.inversions, |run| run.conflict_totals.count)
}

impl Subject<Data<'_>> for Conflicts {
    fn table(&self, data: &Data) -> Option<Table> {
        let title = format!("Conflicts and priority inversions under {}", data.contention_manager());
        let columns = vec![
            Column::new("conflicts", "conflicts", Show::Count),
            Column::new("lost_cycles", "lost (million cycles)", Show::Millions),
            Column::new("inversions", "inversions", Show::Count).on_page(),
            Column::new("inversion_share", "inversions (% of conflicts)", Show::Percent),
        ];
        Some(table_of_groups(data, ("conflicts", &title, NOTE), columns, |group| {
            vec![
                group.mean(|run| run.conflict_totals.count as f64).into(),
                group.mean(|run| run.conflict_totals.lost_cycles as f64).into(),
                group.mean(|run| run.conflict_totals.inversions as f64).into(),
                inversions(group).into(),
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
