//! The runs that every number comes from.

use super::Subject;
use crate::report::group::{Compared, RunRow};
use crate::report::table::{Cell, Column, Show, Table};

pub struct Runs;

const NOTE: &str = "The name of a run is the digest of everything that decides it: programs, command line, board, gear, seed and machine. \
                    The same command gives the same runs, down to the final state.";

impl<D: Compared> Subject<D> for Runs {
    fn table(&self, data: &D) -> Option<Table> {
        let row = |run: RunRow| {
            let mut cells: Vec<Cell> = vec![run.link.seed.into(), run.link.id.as_str().into()];
            match run.result {
                Some(result) => cells.extend([
                    result.exit.name().into(),
                    result.instructions.into(),
                    result.kernel_cycles().into(),
                    result.region_cycles.into(),
                    result.digest.as_str().into(),
                ]),
                None => cells.extend(["not booted".into(), Cell::None, Cell::None, Cell::None, Cell::None]),
            }
            let has_file = run.result.is_some();
            run.group.row(cells, if has_file { vec![run.link] } else { Vec::new() })
        };
        let rows: Vec<Vec<Cell>> = data.all_runs().into_iter().map(row).collect();
        let columns = [
            Column::new("seed", "seed", Show::Count),
            Column::new("run", "run", Show::Text),
            Column::new("exit", "end", Show::Text),
            Column::new("instructions", "instructions", Show::Count),
            Column::new("kernel_cycles", "kernel time (cycles)", Show::Count),
            Column::new("elapsed_cycles", "elapsed (cycles)", Show::Count),
            Column::new("state", "final state (BLAKE3)", Show::Text),
        ];
        (!rows.is_empty()).then(|| Table {
            name: "runs".to_owned(),
            title: "Runs".to_owned(),
            note: NOTE.to_owned(),
            columns: data.headings().columns(columns),
            rows,
            group_columns: 2,
            violations: None,
        })
    }

    fn is_printed(&self) -> bool {
        false
    }
}
