//! The subjects of reports, one file each, and the lists of those that each kind of report has.

mod aborts;
mod concurrency;
mod conflict_pairs;
mod conflicts;
mod conversion;
mod failures;
mod fairness;
mod io;
mod locks;
mod means;
mod modes;
mod program_times;
mod restarts;
mod runs;
mod sizes;
mod spinlocks;
mod steals;
mod synchronization;
mod time;
mod transaction_restarts;
mod validation;
mod verdict;
mod waits;

use super::figure::Figure;
use super::table::Table;
use super::{kernels, programs};

/// One subject of a report about data of one kind.
pub trait Subject<D> {
    /// The table; none where the data has nothing about the subject.
    fn table(&self, data: &D) -> Option<Table>;

    /// Whether the table is printed, and open in the page.
    fn is_printed(&self) -> bool {
        true
    }

    /// What the reader sees in the charts: the heading above them. Without it the heading is the table's title.
    fn sentence(&self, _data: &D) -> Option<String> {
        None
    }

    /// The charts above the table.
    fn figure(&self, _data: &D) -> Figure {
        Figure::default()
    }

    /// Further tables, which are in files and folded in the page.
    fn details(&self, _data: &D) -> Vec<Table> {
        Vec::new()
    }
}

/// What the report of a comparison of kernels says before all else.
pub fn summary_of_kernels<'a>() -> Box<dyn Subject<kernels::Data<'a>>> {
    Box::new(verdict::Summary)
}

/// The subjects of a comparison of kernels, in the order of the report.
pub fn of_kernels<'a>() -> Vec<Box<dyn Subject<kernels::Data<'a>>>> {
    vec![
        Box::new(time::Time),
        Box::new(means::Means),
        Box::new(synchronization::Synchronization),
        Box::new(locks::Locks),
        Box::new(spinlocks::Spinlocks),
        Box::new(conversion::Conversion),
        Box::new(concurrency::Concurrency),
        Box::new(sizes::Sizes),
        Box::new(restarts::Restarts),
        Box::new(io::Io),
        Box::new(conflicts::Conflicts),
        Box::new(conflict_pairs::ConflictPairs),
        Box::new(fairness::Fairness),
        Box::new(modes::Modes),
        Box::new(failures::Failures),
        Box::new(runs::Runs),
    ]
}

/// The subjects of a report on locks or software transactions, in the order of the report.
pub fn of_programs<'a>(data: &programs::Data) -> Vec<Box<dyn Subject<programs::Data<'a>>>> {
    let mut subjects: Vec<Box<dyn Subject<programs::Data<'a>>>> = vec![Box::new(validation::Validation)];
    for main in data.mains() {
        subjects.push(Box::new(program_times::Times(main)));
    }
    subjects.extend([
        Box::new(steals::Steals) as Box<dyn Subject<programs::Data<'a>>>,
        Box::new(aborts::Aborts),
        Box::new(transaction_restarts::TransactionRestarts),
        Box::new(waits::Waits),
        Box::new(failures::Failures),
        Box::new(runs::Runs),
    ]);
    subjects
}
