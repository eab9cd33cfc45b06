//! Kernel time and elapsed time.

use super::Subject;
use crate::report::figure::Figure;
use crate::report::kernels::charts::{Axis, by_workload, legend, plain};
use crate::report::kernels::judgement::{Judged, Quantity, elapsed_time, kernel_time};
use crate::report::kernels::{Data, GroupData, sentences, table_of_groups};
use crate::report::table::{Cell, Column, Show, Table};

pub struct Time;

const TITLE: &str = "Kernel time and elapsed time";
const NOTE: &str = "Kernel time is the cycles that all harts together spend in supervisor mode. Elapsed time is the cycles from the \
                    begin to the end of the region of interest. Values are means over the seeds, ± half the 95% confidence interval. Violations \
                    are those of the two times that are more than 1% above locks in the mean, or whose whole interval is above zero; \
                    the table of gains and costs names the kernel with locks.";

/// The times of a group in which it breaks the rule; none where it is a baseline.
fn violations(data: &Data, group: &GroupData) -> Option<u64> {
    let judged = data.judged().into_iter().find(|judged| std::ptr::eq(judged.group, group))?;
    Some(judged.violations())
}

impl Subject<Data<'_>> for Time {
    fn table(&self, data: &Data) -> Option<Table> {
        let change = format!("against {} (%)", data.first_kernel());
        let columns = vec![
            Column::new("kernel_cycles", "kernel time (million cycles)", Show::Millions),
            Column::new("kernel_change", &change, Show::Change),
            Column::new("elapsed_cycles", "elapsed (million cycles)", Show::Millions),
            Column::new("elapsed_change", &change, Show::Change),
            Column::new("violations", "violations", Show::Count).on_page(),
        ];
        let table = table_of_groups(data, ("time", TITLE, NOTE), columns, |group| {
            vec![
                group.mean(kernel_time).into(),
                data.change(group, kernel_time).into(),
                group.mean(elapsed_time).into(),
                data.change(group, elapsed_time).into(),
                violations(data, group).map_or(Cell::None, Cell::Count),
            ]
        });
        let violations = data.judged().iter().map(Judged::violations).sum();
        Some(Table { violations: Some(violations), ..table })
    }

    fn sentence(&self, data: &Data) -> Option<String> {
        sentences::changes(data, "Kernel time", kernel_time)
    }

    fn figure(&self, data: &Data) -> Figure {
        let from = data.first_compared();
        let quantities: [(&str, Quantity); 2] = [("Kernel time", kernel_time), ("Elapsed time", elapsed_time)];
        let mut charts = Vec::new();
        for (what, value) in quantities {
            charts.extend(if from == 0 {
                by_workload(data, what, Axis::new("million cycles"), 0, |group, kernel| {
                    Some(plain(group, what, group.mean(value)?, Show::Millions, kernel))
                })
            } else {
                by_workload(data, what, Axis::new("change against the first kernel (%)"), from, |group, kernel| {
                    Some(plain(group, what, data.change(group, value)?, Show::Change, kernel))
                })
            });
        }
        Figure { legend: legend(data, from), charts }
    }
}
