//! The tables of a comparison, each file one subject.

mod concurrency;
mod conflicts;
mod io;
mod locks;
mod restarts;
mod runs;
mod synchronization;
mod time;

pub use concurrency::{concurrency, concurrency_of};
pub use conflicts::conflicts;
pub use io::{io, io_sites, io_sites_of};
pub use locks::{lock_addresses, locks, ranked as ranked_locks};
pub use restarts::{restarts_by_cause, restarts_by_site};
pub use runs::{failures, runs};
pub use synchronization::{conversion, spin_share, spinlocks, synchronization};
pub use time::{modes, time};

use super::data::{Data, GroupData};
use crate::experiment::cell::Cell as Run;
use crate::experiment::store::RUNS;
use crate::report::table::{Cell, Column, RunLink, Show};

/// The columns that name a group.
fn group_columns() -> Vec<Column> {
    vec![
        Column::new("workload", "workload", Show::Text),
        Column::new("harts", "harts", Show::Count),
        Column::new("kernel", "kernel", Show::Text),
    ]
}

fn group_cells(group: &GroupData) -> Vec<Cell> {
    vec![group.group.case_title().into(), (group.group.harts as u64).into(), group.group.variant.as_str().into()]
}

/// The column of the runs that a row's numbers come from.
fn runs_column() -> Column {
    Column::new("runs", "seeds", Show::Runs)
}

fn runs_cell(group: &GroupData) -> Cell {
    Cell::Runs(group.runs.iter().map(|(run, _)| link(run)).collect())
}

fn link(run: &Run) -> RunLink {
    RunLink { id: run.id.clone(), seed: run.seed, file: format!("{RUNS}/{}", run.file_name) }
}

/// The name of the kernel that the others are compared with.
fn baseline<'a>(data: &'a Data) -> &'a str {
    &data.plan.description.variants[0].name
}

/// A table with a row for each group: what names it, `cells`, and its runs.
fn by_group(data: &Data, cells: impl Fn(&GroupData) -> Vec<Cell>) -> Vec<Vec<Cell>> {
    let row = |group: &GroupData| {
        let mut row = group_cells(group);
        row.extend(cells(group));
        row.push(runs_cell(group));
        row
    };
    data.groups.iter().map(row).collect()
}

/// The columns of such a table.
fn by_group_columns(columns: Vec<Column>) -> Vec<Column> {
    group_columns().into_iter().chain(columns).chain([runs_column()]).collect()
}

/// A function of the kernel without the place in it.
fn function_of(site: &str) -> &str {
    site.split_once('+').map_or(site, |(function, _)| function)
}
