//! The runs that every number comes from, and those that gave none.

use super::{Data, group_cells, group_columns, link, runs_column};
use crate::report::table::{Cell, Column, Show, Table};

/// Every run.
pub fn runs(data: &Data) -> Table {
    let mut columns = group_columns();
    columns.extend([
        Column::new("seed", "seed", Show::Count),
        Column::new("run", "run", Show::Text),
        Column::new("exit", "end", Show::Text),
        Column::new("instructions", "instructions", Show::Count),
        Column::new("kernel_cycles", "kernel time (cycles)", Show::Count),
        Column::new("elapsed_cycles", "elapsed (cycles)", Show::Count),
        Column::new("state", "final state (BLAKE3)", Show::Text),
        runs_column(),
    ]);
    let mut rows = Vec::new();
    for group in &data.groups {
        let failed = group.failures.iter().map(|failure| (failure.run, failure.result));
        let mut all: Vec<_> = group.runs.iter().map(|(run, result)| (*run, Some(*result))).chain(failed).collect();
        all.sort_by_key(|(run, _)| run.seed);
        for (run, result) in all {
            let mut row = group_cells(group);
            row.extend([run.seed.into(), run.id.as_str().into()]);
            match result {
                Some(result) => row.extend([
                    result.exit.name().into(),
                    result.instructions.into(),
                    result.kernel_cycles().into(),
                    result.region_cycles.into(),
                    result.digest.as_str().into(),
                    Cell::Runs(vec![link(run)]),
                ]),
                None => row.extend(["not booted".into(), Cell::None, Cell::None, Cell::None, Cell::None, Cell::None]),
            }
            rows.push(row);
        }
    }
    Table {
        name: "runs".to_owned(),
        title: "Runs".to_owned(),
        note: "A run's name is the digest of everything that decides it: kernel, root file system, command line, board, seed and machine. \
               The same command gives the same runs, down to the final state."
            .to_owned(),
        columns,
        rows,
    }
}

/// Runs that nothing may be concluded from.
pub fn failures(data: &Data) -> Table {
    let mut columns = group_columns();
    columns.extend([
        Column::new("seed", "seed", Show::Count),
        Column::new("why", "why", Show::Text),
        Column::new("console", "last line of the console", Show::Text),
        runs_column(),
    ]);
    let mut rows = Vec::new();
    for group in &data.groups {
        for failure in &group.failures {
            let mut row = group_cells(group);
            let link = failure.result.map_or(Cell::None, |_| Cell::Runs(vec![link(failure.run)]));
            let console = failure.console.iter().rev().find(|line| !line.trim().is_empty());
            row.extend([
                failure.run.seed.into(),
                failure.why.as_str().into(),
                console.map_or(Cell::None, |line| Cell::from(line.as_str())),
                link,
            ]);
            rows.push(row);
        }
    }
    Table {
        name: "failures".to_owned(),
        title: "Failed runs".to_owned(),
        note: "They are in no other table but that of the runs.".to_owned(),
        columns,
        rows,
    }
}
