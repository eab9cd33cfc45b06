//! Kernel time and elapsed time.

use super::Subject;
use crate::report::figure::Figure;
use crate::report::kernels::charts::{Axis, by_workload, legend, plain};
use crate::report::kernels::{Data, sentences, table_of_groups};
use crate::report::table::{Column, Show, Table};
use concord_machine::result::ResultDocument;

pub struct Time;

const TITLE: &str = "Kernel time and elapsed time";
const NOTE: &str = "Kernel time is the cycles that all harts together spend in supervisor mode. Elapsed time is the cycles from the \
                    begin to the end of the region of interest. Values are means over the seeds, ± half the 95% confidence interval.";

type Quantity = fn(&ResultDocument) -> f64;

fn kernel(run: &ResultDocument) -> f64 {
    run.kernel_cycles() as f64
}

fn elapsed(run: &ResultDocument) -> f64 {
    run.region_cycles as f64
}

impl Subject<Data<'_>> for Time {
    fn table(&self, data: &Data) -> Option<Table> {
        let change = format!("against {} (%)", data.first_kernel());
        let columns = vec![
            Column::new("kernel_cycles", "kernel time (million cycles)", Show::Millions),
            Column::new("kernel_change", &change, Show::Change),
            Column::new("elapsed_cycles", "elapsed (million cycles)", Show::Millions),
            Column::new("elapsed_change", &change, Show::Change),
        ];
        Some(table_of_groups(data, ("time", TITLE, NOTE), columns, |group| {
            vec![
                group.mean(kernel).into(),
                data.change(group, kernel).into(),
                group.mean(elapsed).into(),
                data.change(group, elapsed).into(),
            ]
        }))
    }

    fn sentence(&self, data: &Data) -> Option<String> {
        sentences::changes(data, "Kernel time", kernel)
    }

    fn figure(&self, data: &Data) -> Figure {
        let from = data.first_compared();
        let quantities: [(&str, Quantity); 2] = [("Kernel time", kernel), ("Elapsed time", elapsed)];
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
