//! Hardware transactions of the host and their aborts, by cause.

use super::Subject;
use crate::report::figure::Figure;
use crate::report::programs::Data;
use crate::report::programs::counters::Counters;
use crate::report::table::Table;

pub struct Aborts;

const COUNTERS: Counters = Counters {
    name: "aborts",
    title: "Hardware transactions and their aborts, by cause",
    note: "Means over the runs.",
    wholes: &["htm_attempts", "htm_commits"],
    parts: &["aborts_"],
};

impl Subject<Data<'_>> for Aborts {
    fn table(&self, data: &Data) -> Option<Table> {
        COUNTERS.table(data)
    }

    fn sentence(&self, data: &Data) -> Option<String> {
        COUNTERS.most_frequent(data)
    }

    fn figure(&self, data: &Data) -> Figure {
        COUNTERS.by_cause(data, "aborts of attempts (%)", true)
    }
}
