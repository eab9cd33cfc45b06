//! How many harts were in a critical section at once (figure 5 of the TxLinux paper).

use super::Subject;
use crate::report::figure::Figure;
use crate::report::kernels::charts::{Axis, counts, legend};
use crate::report::kernels::{Data, GroupData, table_of_groups};
use crate::report::table::{Cell, Column, Show, Table, grouped};
use concord_machine::result::ResultDocument;
use std::collections::BTreeMap;

pub struct Concurrency;

const TITLE: &str = "Critical sections by maximum concurrency";
const NOTE: &str = "A critical section is a call site that takes a lock. Its concurrency is the number of harts in sections of the same \
                    lock when one more enters, itself included; the mean is over all executions. Columns with numbers of harts count the sections that have this maximum over all seeds.";

/// A bin: the name of its column, its heading, and the least and the greatest concurrency.
type Bin = (&'static str, &'static str, u64, u64);

const BINS: [Bin; 7] = [
    ("at_most_1", "1", 1, 1),
    ("at_most_2", "2", 2, 2),
    ("at_most_4", "3-4", 3, 4),
    ("at_most_8", "5-8", 5, 8),
    ("at_most_16", "9-16", 9, 16),
    ("at_most_32", "17-32", 17, 32),
    ("at_most_64", "33-64", 33, 64),
];

/// The number of critical sections by the most harts that were ever in one at once, over all runs of some groups.
fn concurrency_of(groups: &[&GroupData]) -> BTreeMap<u64, u64> {
    let mut most = BTreeMap::<(&str, &str), u64>::new();
    let sections = groups.iter().flat_map(|group| &group.runs).flat_map(|run| &run.result.sections);
    for section in sections.filter(|section| section.totals.executions() > 0) {
        let most = most.entry((&section.site, &section.kind)).or_default();
        // The hart that enters is in the section too.
        *most = (*most).max(section.totals.concurrency_max as u64).max(1);
    }
    let mut histogram = BTreeMap::new();
    for most in most.into_values() {
        *histogram.entry(most).or_default() += 1;
    }
    histogram
}

/// Executions of all sections.
fn executions(run: &ResultDocument) -> u64 {
    run.sum_of_sections(|totals| totals.concurrency.iter().sum())
}

/// The sum over all executions of the harts in sections of the same lock, each execution's own included.
fn harts_in_sections(run: &ResultDocument) -> u64 {
    run.sum_of_sections(|totals| (1..).zip(&totals.concurrency).map(|(harts, count)| harts * count).sum())
}

/// Executions that found another hart in a section of the same lock.
fn meetings(run: &ResultDocument) -> u64 {
    run.sum_of_sections(|totals| totals.concurrency.iter().skip(1).sum())
}

impl Subject<Data<'_>> for Concurrency {
    fn table(&self, data: &Data) -> Option<Table> {
        if !data.has_sections() {
            return None;
        }
        let harts_max = data.harts().iter().copied().max().unwrap_or(1) as u64;
        let bins: Vec<Bin> = BINS.into_iter().filter(|(_, _, least, _)| *least <= harts_max).collect();
        let mut columns = vec![
            Column::new("sections", "critical sections", Show::Count),
            Column::new("concurrent", "with more than 1 hart", Show::Count),
            Column::new("concurrency_max", "most harts", Show::Count),
            Column::new("concurrency_mean", "mean harts", Show::Decimal).on_page(),
            Column::new("met_share", "executions that met another hart (%)", Show::Percent).on_page(),
        ];
        columns.extend(bins.iter().map(|(name, heading, ..)| Column::new(name, heading, Show::Count)));
        Some(table_of_groups(data, ("concurrency", TITLE, NOTE), columns, |group| {
            let histogram = concurrency_of(&[group]);
            let count = |least: u64, most: u64| -> u64 { histogram.range(least..=most).map(|(_, count)| count).sum() };
            let mut cells: Vec<Cell> = vec![
                count(1, u64::MAX).into(),
                count(2, u64::MAX).into(),
                histogram.keys().max().copied().unwrap_or(0).into(),
                group.share(harts_in_sections, executions).into(),
                group.share(meetings, executions).into(),
            ];
            cells.extend(bins.iter().map(|(_, _, least, most)| Cell::from(count(*least, *most))));
            cells
        }))
    }

    fn sentence(&self, data: &Data) -> Option<String> {
        let mut parts = Vec::new();
        for (name, groups) in data.by_kernel(0) {
            let histogram = concurrency_of(&groups);
            let all: u64 = histogram.values().sum();
            let concurrent: u64 = histogram.range(2..).map(|(_, count)| count).sum();
            if let Some((most, _)) = histogram.last_key_value() {
                let share = concurrent as f64 / all as f64 * 100.0;
                parts.push(format!("on {name} {share:.0}% of {}, with up to {most} harts", grouped(all as f64, 0)));
            }
        }
        Some(match parts.as_slice() {
            [] => "No critical section was executed".to_owned(),
            parts => format!("Critical sections with more than one hart in them at once: {}", parts.join("; ")),
        })
    }

    fn figure(&self, data: &Data) -> Figure {
        let charts = counts(
            data,
            "most harts in the section at once",
            Axis::new("critical sections"),
            |harts| (1..=harts).map(|most| most.to_string()).collect(),
            |groups, harts| {
                let histogram = concurrency_of(groups);
                (1..=harts as u64).map(|most| histogram.get(&most).copied().unwrap_or(0)).collect()
            },
        );
        Figure { legend: legend(data, 0), charts }
    }
}
