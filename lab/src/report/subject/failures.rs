//! The runs that nothing may be concluded from.

use super::Subject;
use crate::report::group::{Compared, RunRow};
use crate::report::table::{Cell, Column, Show, Table};

pub struct Failures;

impl<D: Compared> Subject<D> for Failures {
    fn table(&self, data: &D) -> Option<Table> {
        let row = |run: RunRow| {
            let (why, console) = run.failure?;
            let last = console.iter().rev().find(|line| !line.trim().is_empty());
            let cells = [run.link.seed.into(), why.into(), last.map_or(Cell::None, |line| Cell::from(line.as_str()))];
            let has_file = run.result.is_some();
            Some(run.group.row(cells, if has_file { vec![run.link] } else { Vec::new() }))
        };
        let rows: Vec<Vec<Cell>> = data.all_runs().into_iter().filter_map(row).collect();
        let columns = [
            Column::new("seed", "seed", Show::Count),
            Column::new("why", "why", Show::Text),
            Column::new("console", "last line of the console", Show::Text),
        ];
        (!rows.is_empty()).then(|| Table {
            name: "failures".to_owned(),
            title: "Failed runs".to_owned(),
            note: "Of the other tables only those of the runs and of the validation have failed runs.".to_owned(),
            columns: data.headings().columns(columns),
            rows,
            group_columns: 2,
            violations: None,
        })
    }
}
