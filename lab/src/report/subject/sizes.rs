//! The sizes of committed transactions ("TxLinux", SOSP 2007, section 7: 51 instructions and 449 cycles in the mean).

use super::Subject;
use crate::report::kernels::{Data, table_of_groups};
use crate::report::table::{Cell, Column, Show, Table, grouped};
use concord_abi::htm::Cause;
use concord_machine::accounting::sizes::{Distribution, TransactionSizes};
use concord_machine::result::ResultDocument;

pub struct Sizes;

const TITLE: &str = "Sizes of committed transactions";
const NOTE: &str = "Instructions and cycles are those of the attempt that committed, without its suspensions. A granule is the unit in \
                    which sets are kept. The depth is the greatest number of transactions that were nested. Overflow restarts are those \
                    of sets that outgrew the first-level cache, as a share of the cycles that restarts cost.";

/// A dimension: its name in columns and headings, and its values.
type Dimension = (&'static str, fn(&TransactionSizes) -> &Distribution);

const DIMENSIONS: [Dimension; 4] = [
    ("instructions", |sizes| &sizes.instructions),
    ("cycles", |sizes| &sizes.cycles),
    ("granules", |sizes| &sizes.granules),
    ("depth", |sizes| &sizes.depth),
];

/// A value of a distribution: its name in columns and headings, and itself.
type Moment = (&'static str, &'static str, fn(&Distribution) -> f64);

const MOMENTS: [Moment; 3] = [
    ("mean", "mean", |distribution| distribution.mean),
    ("median", "median", |distribution| distribution.median as f64),
    ("percentile_99", "99%", |distribution| distribution.percentile_99 as f64),
];

fn overflow_cycles(run: &ResultDocument) -> u64 {
    run.sum_of_sections(|totals| totals.restart_cycles_of(Cause::Capacity))
}

fn restart_cycles(run: &ResultDocument) -> u64 {
    run.sum_of_sections(|totals| totals.restart_cycles.values().sum())
}

fn count(run: &ResultDocument) -> u64 {
    run.transaction_sizes.instructions.count
}

impl Subject<Data<'_>> for Sizes {
    fn table(&self, data: &Data) -> Option<Table> {
        if data.results().all(|run| count(run) == 0) {
            return None;
        }
        let mut columns = vec![Column::new("committed", "committed", Show::Mean)];
        for (dimension, _) in DIMENSIONS {
            for (index, (moment, heading, _)) in MOMENTS.iter().enumerate() {
                let heading = if index == 0 { format!("{dimension}, {heading}") } else { (*heading).to_owned() };
                let show = if dimension == "depth" { Show::Decimal } else { Show::Mean };
                let column = Column::new(&format!("{dimension}_{moment}"), &heading, show);
                // A line of text has room for three means, and for the largest of two.
                let is_large = *moment == "percentile_99" && matches!(dimension, "instructions" | "cycles");
                let is_printed = is_large || *moment == "mean" && dimension != "depth";
                columns.push(if is_printed { column } else { column.on_page() });
            }
        }
        columns.push(Column::new("overflowed_lines", "overflowed lines", Show::Mean).on_page());
        columns.push(Column::new("overflow_share", "overflow restarts (%)", Show::Percent).on_page());
        Some(table_of_groups(data, ("sizes", TITLE, NOTE), columns, |group| {
            let has_any = group.runs.iter().any(|run| count(run.result) > 0);
            let mut cells: Vec<Cell> = vec![group.mean(|run| count(run) as f64).into()];
            for (_, distribution) in DIMENSIONS {
                for (.., moment) in MOMENTS {
                    let value = group.mean(|run| moment(distribution(&run.transaction_sizes)));
                    cells.push(value.filter(|_| has_any).into());
                }
            }
            let lines = |run: &ResultDocument| run.sum_of_harts(|hart| hart.transactions.overflowed_lines);
            cells.push(group.mean(|run| lines(run) as f64).into());
            cells.push(group.share(overflow_cycles, restart_cycles).into());
            cells
        }))
    }

    fn sentence(&self, data: &Data) -> Option<String> {
        let mut parts = Vec::new();
        for (name, groups) in data.by_kernel(0) {
            let runs: Vec<&ResultDocument> =
                groups.iter().flat_map(|group| &group.runs).map(|run| run.result).collect();
            let all: u64 = runs.iter().map(|run| count(run)).sum();
            let mean = |distribution: fn(&TransactionSizes) -> &Distribution| {
                let sum: f64 =
                    runs.iter().map(|run| distribution(&run.transaction_sizes).mean * count(run) as f64).sum();
                grouped(sum / all.max(1) as f64, 0)
            };
            if all > 0 {
                let (instructions, cycles) = (mean(|sizes| &sizes.instructions), mean(|sizes| &sizes.cycles));
                parts.push(format!("{instructions} instructions and {cycles} cycles on {name}"));
            }
        }
        (!parts.is_empty()).then(|| format!("The mean committed transaction has {}", parts.join("; ")))
    }
}
