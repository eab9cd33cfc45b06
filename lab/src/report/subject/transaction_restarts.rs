//! Restarts of software transactions, by cause.

use super::Subject;
use crate::report::figure::Figure;
use crate::report::programs::Data;
use crate::report::programs::counters::Counters;
use crate::report::table::Table;

pub struct TransactionRestarts;

const COUNTERS: Counters = Counters {
    name: "restarts",
    title: "Software transactions and their restarts, by cause",
    note: "Means over the runs.",
    wholes: &["commits", "cancels"],
    parts: &["restarts_"],
};

impl Subject<Data<'_>> for TransactionRestarts {
    fn table(&self, data: &Data) -> Option<Table> {
        COUNTERS.table(data)
    }

    fn sentence(&self, data: &Data) -> Option<String> {
        COUNTERS.most_frequent(data)
    }

    fn figure(&self, data: &Data) -> Figure {
        COUNTERS.by_cause(data, "restarts of commits (%)", false)
    }
}
