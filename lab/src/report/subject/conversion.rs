//! The sections of `spinlock_t` that commit as transactions.

use super::Subject;
use crate::experiment::statistics::Estimate;
use crate::report::figure::Figure;
use crate::report::kernels::charts::{Axis, by_workload, legend, plain};
use crate::report::kernels::data::KIND_SPIN;
use crate::report::kernels::{Data, GroupData, sentences, table_of_groups};
use crate::report::table::{Column, Show, Table};
use concord_machine::accounting::critical_sections::report::SectionTotals;
use concord_machine::result::ResultDocument;

pub struct Conversion;

const TITLE: &str = "Sections of spinlock_t that committed as transactions";
const NOTE: &str = "By count: committed sections as a share of all. By cycles: cycles from the begin to the end of committed sections, as \
                    a share of those of all sections; a section inside another counts in both.";

fn sum(run: &ResultDocument, value: fn(&SectionTotals) -> u64) -> u64 {
    run.sections_of(&[KIND_SPIN]).map(|section| value(&section.totals)).sum()
}

/// The share of a part in that part and the rest.
fn share(group: &GroupData, part: fn(&SectionTotals) -> u64, rest: fn(&SectionTotals) -> u64) -> Option<Estimate> {
    group.share(|run| sum(run, part), |run| sum(run, part) + sum(run, rest))
}

fn by_count(group: &GroupData) -> Option<Estimate> {
    share(group, |totals| totals.transactional, |totals| totals.locked)
}

fn by_cycles(group: &GroupData) -> Option<Estimate> {
    share(group, |totals| totals.transactional_cycles, |totals| totals.hold_cycles)
}

impl Subject<Data<'_>> for Conversion {
    fn table(&self, data: &Data) -> Option<Table> {
        if !data.has_sections() {
            return None;
        }
        let columns = vec![
            Column::new("sections", "sections", Show::Count),
            Column::new("transactional_share", "by count (%)", Show::Percent),
            Column::new("transactional_cycles_share", "by cycles (%)", Show::Percent),
        ];
        Some(table_of_groups(data, ("conversion", TITLE, NOTE), columns, |group| {
            let sections = group.mean(|run| sum(run, SectionTotals::executions) as f64);
            vec![sections.into(), by_count(group).into(), by_cycles(group).into()]
        }))
    }

    fn sentence(&self, data: &Data) -> Option<String> {
        let what = ("Sections of spinlock_t that commit as transactions, by count", "commits");
        sentences::shares(data, data.first_compared(), what, by_count)
    }

    fn figure(&self, data: &Data) -> Figure {
        let from = data.first_compared();
        let axis = Axis::share("spinlock_t sections committed (%)");
        let mut charts = Vec::new();
        for (title, what, share) in [
            ("By count", "committed, by count", by_count as fn(&GroupData) -> Option<Estimate>),
            ("By cycles", "committed, by cycles", by_cycles),
        ] {
            charts.extend(by_workload(data, title, axis, from, |group, kernel| {
                Some(plain(group, what, share(group)?, Show::Percent, kernel))
            }));
        }
        for chart in &mut charts {
            // The part that is left to convert is half of what the chart shows.
            chart.range = (0.0, 100.0);
        }
        Figure { legend: legend(data, from), charts }
    }
}
