//! How long the work took, and in which mode harts spent it.

use super::{Data, baseline, by_group, by_group_columns};
use crate::report::table::{Column, Show, Table};
use concord_machine::result::ResultDocument;

/// Kernel time and elapsed time, and their changes against the first kernel.
pub fn time(data: &Data) -> Table {
    let kernel = |run: &ResultDocument| run.kernel_cycles() as f64;
    let elapsed = |run: &ResultDocument| run.region_cycles as f64;
    let change = format!("against {} (%)", baseline(data));
    Table {
        name: "time".to_owned(),
        title: "Kernel time and elapsed time".to_owned(),
        note: "Kernel time: cycles in supervisor mode, of all harts together. Elapsed time: cycles from the begin to the end of the \
               region of interest. Means over the seeds, ± half the 95% confidence interval."
            .to_owned(),
        columns: by_group_columns(vec![
            Column::new("kernel_cycles", "kernel time (million cycles)", Show::Millions),
            Column::new("kernel_change", &change, Show::Change),
            Column::new("elapsed_cycles", "elapsed (million cycles)", Show::Millions),
            Column::new("elapsed_change", &change, Show::Change),
        ]),
        rows: by_group(data, |group| {
            vec![
                group.mean(kernel).into(),
                data.change(group, kernel).into(),
                group.mean(elapsed).into(),
                data.change(group, elapsed).into(),
            ]
        }),
    }
}

/// User, system, I/O wait and idle time (figure 3 of the paper).
pub fn modes(data: &Data) -> Table {
    let whole = ResultDocument::all_cycles;
    Table {
        name: "modes".to_owned(),
        title: "User, system, I/O wait and idle time".to_owned(),
        note: "Shares of the cycles of all harts. A hart waits for I/O when it is idle while a request to a disk is under way.".to_owned(),
        columns: by_group_columns(vec![
            Column::new("user_share", "user (%)", Show::Percent),
            Column::new("system_share", "system (%)", Show::Percent),
            Column::new("io_wait_share", "I/O wait (%)", Show::Percent),
            Column::new("idle_share", "idle (%)", Show::Percent),
        ]),
        rows: by_group(data, |group| {
            let modes =
                [ResultDocument::user_cycles, ResultDocument::kernel_cycles, ResultDocument::io_wait_cycles, ResultDocument::idle_cycles];
            modes.map(|mode| group.share(mode, whole).into()).into()
        }),
    }
}
