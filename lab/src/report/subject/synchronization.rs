//! The share of kernel time lost to synchronization (figure 4 of the TxLinux paper).

use super::Subject;
use crate::experiment::statistics::Estimate;
use crate::report::chart::{Bar, Segment};
use crate::report::figure::{Figure, class, key};
use crate::report::kernels::charts::{Axis, by_workload, hover_of};
use crate::report::kernels::{Data, sentences, table_of_groups};
use crate::report::table::{Column, Show, Table, shown};
use concord_machine::accounting::critical_sections::report::SectionTotals;
use concord_machine::result::ResultDocument;

pub struct Synchronization;

const TITLE: &str = "Kernel time lost to synchronization";
const NOTE: &str = "Spinning is the time in which a hart waits for a lock that another hart holds. Restarts are the attempts of \
                    transactions that did not commit, their back-off, and the time in which transactions wait for each other. No cycle \
                    is in both. Acquiring lasts from the first access to a lock's word until the hart has the lock or its transaction has \
                    tested the word: it has the spinning in it, and the misses on locks that nobody holds. Queued for lines is the time in which accesses of all kinds wait for a line that other \
                    harts want too; it lies in the others and beside them. Each value is a share of the \
                    kernel time of its run.";

fn lost(run: &ResultDocument) -> f64 {
    run.lost_cycles() as f64
}

impl Subject<Data<'_>> for Synchronization {
    fn table(&self, data: &Data) -> Option<Table> {
        if !data.has_sections() {
            return None;
        }
        let columns = vec![
            Column::new("lost_share", "lost (% of kernel time)", Show::Percent),
            Column::new("spin_share", "spinning (%)", Show::Percent).on_page(),
            Column::new("restart_share", "restarts (%)", Show::Percent),
            Column::new("acquire_share", "acquiring (%)", Show::Percent),
            Column::new("queued_share", "queued for lines (%)", Show::Percent),
            Column::new("queued_requests", "queued requests", Show::Mean).on_page(),
            Column::new("acquire_cycles", "acquiring (million cycles)", Show::Millions).on_page(),
            Column::new("acquire_mean", "acquiring (cycles a section)", Show::Decimal).on_page(),
            Column::new("lost_with_acquiring_share", "restarts and acquiring (%)", Show::Percent).on_page(),
            Column::new(
                "lost_with_acquiring_change",
                &format!("these against {} (%)", data.first_kernel()),
                Show::Change,
            )
            .on_page(),
            Column::new("lost_cycles", "lost (million cycles)", Show::Millions).on_page(),
            Column::new("lost_change", &format!("cycles against {} (%)", data.first_kernel()), Show::Change).on_page(),
        ];
        Some(table_of_groups(data, ("synchronization", TITLE, NOTE), columns, |group| {
            let share = |cycles: fn(&ResultDocument) -> u64| group.share(cycles, ResultDocument::kernel_cycles);
            vec![
                share(ResultDocument::lost_cycles).into(),
                share(ResultDocument::spin_cycles).into(),
                share(ResultDocument::transaction_cycles).into(),
                share(ResultDocument::acquiring_cycles).into(),
                share(ResultDocument::queued_cycles).into(),
                group.mean(|run| run.sum_of_harts(|hart| hart.queues.queued_requests) as f64).into(),
                group.mean(|run| run.acquiring_cycles() as f64).into(),
                group
                    .share(ResultDocument::acquiring_cycles, |run| run.sum_of_sections(SectionTotals::executions))
                    .into(),
                share(ResultDocument::lost_with_acquiring_cycles).into(),
                data.change(group, |run| run.lost_with_acquiring_cycles() as f64).into(),
                group.mean(lost).into(),
                data.change(group, lost).into(),
            ]
        }))
    }

    fn sentence(&self, data: &Data) -> Option<String> {
        sentences::shares(data, 0, ("Kernel time lost to synchronization", "loses"), |group| {
            group.share(ResultDocument::lost_cycles, ResultDocument::kernel_cycles)
        })
    }

    fn figure(&self, data: &Data) -> Figure {
        let charts =
            by_workload(data, "Lost to synchronization", Axis::share("kernel time lost (%)"), 0, |group, kernel| {
                let share = |cycles: fn(&ResultDocument) -> u64| group.share(cycles, ResultDocument::kernel_cycles);
                let segment = |estimate: Estimate, what: &str, class: String| Segment {
                    value: estimate.mean * 100.0,
                    class,
                    hover: hover_of(group, what, &format!("{}% of kernel time", shown(&estimate, Show::Percent))),
                };
                let segments = vec![
                    segment(share(ResultDocument::spin_cycles)?, "spinning", class(kernel)),
                    segment(share(ResultDocument::transaction_cycles)?, "restarts", format!("{} light", class(kernel))),
                ];
                Some(Bar { segments, interval: share(ResultDocument::lost_cycles)?.scaled(100.0).interval() })
            });
        let mut legend = Vec::new();
        for (index, name) in data.kernels().iter().enumerate() {
            legend.push(key(&class(index), &format!("{name}, spinning")));
            legend.push(key(&format!("{} light", class(index)), &format!("{name}, restarts")));
        }
        Figure { legend, charts }
    }
}
