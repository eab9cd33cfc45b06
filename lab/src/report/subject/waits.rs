//! Waits for locks.

use super::Subject;
use crate::report::programs::Data;
use crate::report::programs::counters::Counters;
use crate::report::table::Table;

pub struct Waits;

const COUNTERS: Counters = Counters {
    name: "waits",
    title: "Waits",
    note: "Waits in a queue and without one, sleeps, and releases that woke a thread. Means over the runs.",
    wholes: &["acquisitions"],
    parts: &["queued", "unqueued", "halts", "kicks"],
};

impl Subject<Data<'_>> for Waits {
    fn table(&self, data: &Data) -> Option<Table> {
        COUNTERS.table(data)
    }

    fn is_printed(&self) -> bool {
        false
    }
}
