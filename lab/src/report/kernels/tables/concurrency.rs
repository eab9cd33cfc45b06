//! How many harts were in a critical section at once (figure 5).

use super::{Data, GroupData, by_group, by_group_columns};
use crate::report::table::{Cell, Column, Show, Table};
use std::collections::BTreeMap;

/// Bins of the table: least and greatest concurrency.
const BINS: [(u64, u64); 7] = [(1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 32), (33, 64)];
const NAMES: [(&str, &str); 7] = [
    ("at_most_1", "1"),
    ("at_most_2", "2"),
    ("at_most_4", "3-4"),
    ("at_most_8", "5-8"),
    ("at_most_16", "9-16"),
    ("at_most_32", "17-32"),
    ("at_most_64", "33-64"),
];

/// The number of critical sections by the most harts that were ever in one at once, over all runs of some groups. A critical section
/// is a call site and the kind of its lock.
pub fn concurrency_of(groups: &[&GroupData]) -> BTreeMap<u64, u64> {
    let mut most = BTreeMap::<(&str, &str), u64>::new();
    let runs = groups.iter().flat_map(|group| &group.runs);
    for section in runs.flat_map(|(_, run)| &run.sections).filter(|section| section.totals.executions() > 0) {
        let most = most.entry((&section.site, &section.kind)).or_default();
        // The hart that enters is there itself.
        *most = (*most).max(section.totals.concurrency_max as u64).max(1);
    }
    let mut histogram = BTreeMap::new();
    for most in most.into_values() {
        *histogram.entry(most).or_default() += 1;
    }
    histogram
}

/// Maximum concurrency of critical sections.
pub fn concurrency(data: &Data) -> Table {
    let harts_max = data.plan.description.harts.iter().copied().max().unwrap_or(1) as u64;
    let bins: Vec<usize> = (0..BINS.len()).filter(|index| BINS[*index].0 <= harts_max).collect();
    let mut columns = vec![
        Column::new("sections", "critical sections", Show::Count),
        Column::new("concurrent", "with more than 1 hart", Show::Count),
        Column::new("concurrency_max", "most harts", Show::Count),
    ];
    columns.extend(bins.iter().map(|index| Column::new(NAMES[*index].0, NAMES[*index].1, Show::Count)));
    Table {
        name: "concurrency".to_owned(),
        title: "Critical sections by maximum concurrency".to_owned(),
        note: "A critical section is a place of the kernel that takes a lock. Its concurrency is the number of harts in sections of the same \
               lock when one enters. Columns with numbers of harts count the sections whose maximum over all seeds it is."
            .to_owned(),
        columns: by_group_columns(columns),
        rows: by_group(data, |group| {
            let histogram = concurrency_of(&[group]);
            let count = |low: u64, high: u64| -> u64 { histogram.range(low..=high).map(|(_, count)| count).sum() };
            let mut cells: Vec<Cell> = vec![
                count(1, u64::MAX).into(),
                count(2, u64::MAX).into(),
                histogram.keys().max().copied().unwrap_or(0).into(),
            ];
            cells.extend(bins.iter().map(|index| Cell::from(count(BINS[*index].0, BINS[*index].1))));
            cells
        }),
    }
}
