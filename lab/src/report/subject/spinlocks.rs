//! Acquisitions of spinlocks and the loops of waiting for them (table 6 of the TxLinux paper).

use super::Subject;
use crate::report::kernels::data::{KIND_RAW, KIND_SPIN};
use crate::report::kernels::{Data, sentences, table_of_groups};
use crate::report::table::{Cell, Column, Show, Table};
use concord_machine::accounting::critical_sections::report::SectionTotals;
use concord_machine::result::ResultDocument;

pub struct Spinlocks;

const TITLE: &str = "Spinlocks: acquisitions and loops";
const NOTE: &str = "Only sections that take their lock count, of spinlock_t and of raw_spinlock_t. A test loop reads a lock that another \
                    hart holds; a test&set loop is an atomic attempt after the first.";

/// A quantity: the name of its column, that of its change, its heading and its value.
type Quantity = (&'static str, &'static str, &'static str, fn(&SectionTotals) -> u64);

const QUANTITIES: [Quantity; 3] = [
    ("acquires", "acquires_change", "acquires", |totals| totals.locked),
    ("test_loops", "test_loops_change", "test loops", |totals| totals.test_loops),
    ("test_and_set_loops", "test_and_set_loops_change", "test&set loops", |totals| totals.test_and_set_loops),
];

fn sum(run: &ResultDocument, value: fn(&SectionTotals) -> u64) -> f64 {
    run.sections_of(&[KIND_SPIN, KIND_RAW]).map(|section| value(&section.totals)).sum::<u64>() as f64
}

impl Subject<Data<'_>> for Spinlocks {
    fn table(&self, data: &Data) -> Option<Table> {
        if !data.has_sections() {
            return None;
        }
        let columns = QUANTITIES.into_iter().enumerate().flat_map(|(index, (name, change_name, heading, _))| {
            let count = Column::new(name, heading, Show::Count);
            let change = format!("{heading} against {} (%)", data.first_kernel());
            // A line of text has room for every change, and for one of the numbers.
            let count = if index == 0 { count } else { count.on_page() };
            [count, Column::new(change_name, &change, Show::Change)]
        });
        Some(table_of_groups(data, ("spinlocks", TITLE, NOTE), columns.collect(), |group| {
            let cells = |(.., value): Quantity| -> [Cell; 2] {
                let of_run = |run: &ResultDocument| sum(run, value);
                [group.mean(of_run).into(), data.change(group, of_run).into()]
            };
            QUANTITIES.into_iter().flat_map(cells).collect()
        }))
    }

    fn sentence(&self, data: &Data) -> Option<String> {
        sentences::changes(data, "The number of spinlocks taken as locks", |run| sum(run, |totals| totals.locked))
    }
}
