//! The report of a comparison of kernels.

pub mod charts;
pub mod data;
pub mod judgement;
pub mod sentences;

pub use data::{Data, GroupData};

use super::group::Compared;
use super::table::{Cell, Column, Table};
use super::{Report, method, subject};

/// Works everything out.
pub fn report(data: &Data) -> Report {
    let mut report = Report {
        title: data.title(),
        inputs: data.inputs(),
        failures: data.failures(),
        summary: None,
        sections: Vec::new(),
        method: method(),
        plan: data.plan(),
    };
    report.summarize(&*subject::summary_of_kernels(), data);
    subject::of_kernels().iter().for_each(|subject| report.add(&**subject, data));
    report
}

/// A table with a row for each group: what names the group, `cells`, and its runs.
pub fn table_of_groups(
    data: &Data,
    (name, title, note): (&str, &str, &str),
    columns: Vec<Column>,
    cells: impl Fn(&GroupData) -> Vec<Cell>,
) -> Table {
    table_of_rows(data, (name, title, note), columns, |group| vec![cells(group)])
}

/// A table with any number of rows for each group.
pub fn table_of_rows(
    data: &Data,
    (name, title, note): (&str, &str, &str),
    columns: Vec<Column>,
    rows: impl Fn(&GroupData) -> Vec<Vec<Cell>>,
) -> Table {
    let of_group =
        |group: &GroupData| -> Vec<Vec<Cell>> { rows(group).into_iter().map(|cells| group.row(cells)).collect() };
    Table {
        name: name.to_owned(),
        title: title.to_owned(),
        note: note.to_owned(),
        columns: data.headings().columns(columns),
        rows: data.groups.iter().flat_map(of_group).collect(),
        group_columns: 2,
        violations: None,
    }
}

/// How the numbers came about, in HTML.
fn method() -> String {
    format!(
        "<p>Each workload was booted once on each kernel and number of harts, in the functional gear, up to its region of interest. From \
         there each seed is a run of its own in the timed gear. The seed perturbs the latency of misses, so that the runs sample the ways in \
         which the same work can go (Alameldeen and Wood, HPCA 2003).</p>\n{}{}{}",
        method::intervals(),
        method::changes("kernel"),
        method::files()
    )
}
