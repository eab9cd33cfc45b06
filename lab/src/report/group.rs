//! What reports of kernels and of programs share: the columns that name a group, links to runs, legends and hover texts.

use super::figure::{Key, class, key};
use super::table::{Cell, Column, RunLink, Show};
use concord_machine::result::ResultDocument;

/// What a report calls the three coordinates of a group, and the runs behind a number.
#[derive(Clone, Copy, Debug)]
pub struct GroupHeadings {
    /// Workload or test.
    pub case: &'static str,
    /// Harts or threads.
    pub harts: &'static str,
    /// Kernel, lock or library: what is compared.
    pub subject: &'static str,
    /// Seeds, or lines of a file.
    pub runs: &'static str,
}

/// The coordinates of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coordinates {
    pub case: String,
    pub harts: u64,
    pub subject: String,
}

impl GroupHeadings {
    /// The columns that name a group.
    pub fn group_columns(&self) -> Vec<Column> {
        vec![
            Column::new(self.case, self.case, Show::Text),
            Column::new(self.harts, self.harts, Show::Count),
            Column::new(self.subject, self.subject, Show::Text),
        ]
    }

    /// The column of the runs that a row's numbers come from. The page alone shows it, with links.
    pub fn runs_column(&self) -> Column {
        Column::new("runs", self.runs, Show::Runs).on_page()
    }

    /// The columns of a table of groups: their names, these, and their runs.
    pub fn columns(&self, columns: impl IntoIterator<Item = Column>) -> Vec<Column> {
        self.group_columns().into_iter().chain(columns).chain([self.runs_column()]).collect()
    }
}

impl Coordinates {
    /// A row of a table of groups: the group's name, some cells, and the runs that they come from.
    pub fn row(&self, cells: impl IntoIterator<Item = Cell>, runs: Vec<RunLink>) -> Vec<Cell> {
        let name = [Cell::from(self.case.as_str()), self.harts.into(), self.subject.as_str().into()];
        name.into_iter().chain(cells).chain([Cell::Runs(runs)]).collect()
    }
}

/// One run of a comparison.
#[derive(Debug)]
pub struct RunRow<'a> {
    pub group: Coordinates,
    pub link: RunLink,
    /// None where the boot failed.
    pub result: Option<&'a ResultDocument>,
    /// Why nothing may be concluded from the run, and the last lines of its console.
    pub failure: Option<(&'a str, &'a [String])>,
}

/// Data that subjects of every kind of report read.
pub trait Compared {
    fn headings(&self) -> GroupHeadings;
    /// Every run, by group and then by seed; none where the numbers come from a file of measurements.
    fn all_runs(&self) -> Vec<RunRow<'_>>;
}

/// A legend of things with their places in the list of all.
pub fn legend<'a>(names: impl IntoIterator<Item = (usize, &'a str)>) -> Vec<Key> {
    names.into_iter().map(|(index, name)| key(&class(index), name)).collect()
}

/// What the page says of a value under the pointer: the group, the value, and the runs behind it.
pub fn hover(title: &str, what: &str, value: &str, runs: &[RunLink]) -> String {
    let runs: Vec<String> = runs.iter().map(RunLink::sentence).collect();
    format!("{title}\n{what}: {value}\n{}", runs.join("\n"))
}

/// Each value once, in the order of its first appearance.
pub fn in_order<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut kept = Vec::new();
    for one in all {
        if !kept.contains(&one) {
            kept.push(one);
        }
    }
    kept
}
