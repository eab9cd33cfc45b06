//! The work of the least and of the most served hart.

use super::Subject;
use crate::experiment::statistics::{self, Estimate};
use crate::report::kernels::{Data, GroupData, sentences, table_of_groups};
use crate::report::table::{Cell, Column, Show, Table};
use concord_machine::result::{HartResult, ResultDocument};

pub struct Fairness;

const TITLE: &str = "Work of the least and of the most served hart";
const NOTE: &str = "Critical sections that a hart executed, as locks or as transactions, and the cycles in which it was busy, of the hart \
                    with the least and of the one with the most. Their ratio is 100% where all harts are served alike. Work that is \
                    not the same on each hart differs by itself, so kernels are to be compared with each other.";

/// Work of a hart: the beginning of the names of its columns, its heading, how it is shown, and its value.
type Work = (&'static str, &'static str, Show, fn(&HartResult) -> u64);

const WORKS: [Work; 2] = [
    ("sections", "sections", Show::Mean, |hart| hart.sections_count),
    ("busy", "busy (million cycles)", Show::Millions, HartResult::busy_cycles),
];

fn least(run: &ResultDocument, work: fn(&HartResult) -> u64) -> u64 {
    run.harts.iter().map(work).min().unwrap_or(0)
}

fn most(run: &ResultDocument, work: fn(&HartResult) -> u64) -> u64 {
    run.harts.iter().map(work).max().unwrap_or(0)
}

fn ratio(group: &GroupData, work: fn(&HartResult) -> u64) -> Option<Estimate> {
    group.share(|run| least(run, work), |run| most(run, work))
}

impl Subject<Data<'_>> for Fairness {
    fn table(&self, data: &Data) -> Option<Table> {
        if data.results().all(|run| most(run, WORKS[0].3) == 0) {
            return None;
        }
        let mut columns = Vec::new();
        for (name, heading, show, _) in WORKS {
            columns.push(Column::new(&format!("{name}_least"), &format!("least {heading}"), show));
            columns.push(Column::new(&format!("{name}_most"), &format!("most {heading}"), show));
            columns.push(Column::new(&format!("{name}_ratio"), "least of most (%)", Show::Percent));
        }
        Some(table_of_groups(data, ("fairness", TITLE, NOTE), columns, |group| {
            let of = |(.., work): Work| -> [Cell; 3] {
                [
                    group.mean(|run| least(run, work) as f64).into(),
                    group.mean(|run| most(run, work) as f64).into(),
                    ratio(group, work).into(),
                ]
            };
            WORKS.into_iter().flat_map(of).collect()
        }))
    }

    fn is_printed(&self) -> bool {
        false
    }

    fn sentence(&self, data: &Data) -> Option<String> {
        let what = "Sections of the least served hart, as a share of those of the most served one";
        sentences::shares(data, 0, (what, "has"), |group| ratio(group, WORKS[0].3))
    }
}

/// The ratio of the work of two harts, of several runs: 1 where all are served alike.
pub fn ratio_of(least: &[f64], most: &[f64]) -> Option<Estimate> {
    let pairs = least.iter().zip(most).filter(|(_, most)| **most > 0.0);
    statistics::mean(&pairs.map(|(least, most)| least / most).collect::<Vec<f64>>())
}
