//! What a comparison shows: tables for the terminal and for other programs, and a page for the browser.
//!
//! A report is a list of [subjects](subject), each of which gives its table, its chart and its sentence. [`kernels`] has the data of
//! comparisons of kernels, [`programs`] that of locks and software transactions; `docs/how-to/report-subject.md` adds a subject.

pub mod chart;
pub mod figure;
pub mod group;
pub(crate) mod html;
pub mod kernels;
mod method;
pub mod programs;
pub mod subject;
pub mod table;

pub use table::Table;

use crate::experiment::Error;
use crate::experiment::plan::Plan;
use crate::experiment::schedule::CellOutcome;
use crate::experiment::store::{Store, pretty};
use figure::Figure;
use serde_json::{Value, json};
use std::path::PathBuf;
use subject::Subject;

/// The page's name in the folder of a comparison.
const PAGE: &str = "report.html";

/// The report of an experiment: of the quantities that the guests printed where their consoles are kept for that, and of the
/// machine's counters otherwise.
pub fn of(plan: &Plan, outcomes: &[Vec<CellOutcome>]) -> Report {
    if plan.cells().all(|(_, cell)| cell.start.keeps_console) {
        programs::report(&programs::Data::of_runs(plan, outcomes))
    } else {
        kernels::report(&kernels::Data::new(plan, outcomes))
    }
}

/// A table with what the page shows above it.
#[derive(Debug)]
struct Section {
    table: Table,
    /// Whether the table is printed, and open in the page.
    is_main: bool,
    /// The heading; the table's title where there is none.
    sentence: Option<String>,
    figure: Figure,
}

impl Section {
    fn of<D>(subject: &dyn Subject<D>, data: &D) -> Option<Section> {
        Some(Section {
            table: subject.table(data)?,
            is_main: subject.is_printed(),
            sentence: subject.sentence(data),
            figure: subject.figure(data),
        })
    }
}

/// A run that nothing may be concluded from.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Workload, number of harts, kernel and seed, or what takes their places.
    pub title: String,
    pub why: String,
    /// The last lines of the guest's console.
    pub console: Vec<String>,
}

/// A comparison's report.
#[derive(Debug)]
pub struct Report {
    title: String,
    /// What the comparison was made of: names and values, in HTML.
    inputs: Vec<(String, String)>,
    failures: Vec<Failure>,
    /// What the first screen of the page shows.
    summary: Option<Section>,
    sections: Vec<Section>,
    /// How the numbers came about, in HTML.
    method: String,
    /// What decides the comparison.
    plan: Value,
}

impl Report {
    /// Puts a subject before all others, unless the data has nothing about it.
    pub fn summarize<D>(&mut self, subject: &dyn Subject<D>, data: &D) {
        self.summary = Section::of(subject, data);
    }

    /// Appends a subject, unless the data has nothing about it.
    pub fn add<D>(&mut self, subject: &dyn Subject<D>, data: &D) {
        let Some(section) = Section::of(subject, data) else { return };
        self.sections.push(section);
        for table in subject.details(data) {
            self.sections.push(Section { table, is_main: false, sentence: None, figure: Figure::default() });
        }
    }

    /// The sentence of the summary and the main tables, as text of at most 80 columns wherever the names allow it.
    pub fn text(&self) -> String {
        let summary = self.summary.iter().filter_map(|section| section.sentence.as_deref()).map(table::paragraph);
        let printed = self.sections.iter().filter(|section| section.is_main && !section.table.rows.is_empty());
        summary.chain(printed.map(|section| section.table.text())).collect::<Vec<_>>().join("\n")
    }

    /// Writes `report.json`, a CSV file for each table, and the page, whose path is returned.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, store: &Store) -> Result<PathBuf, Error> {
        let tables: Vec<&Table> = self.summary.iter().chain(&self.sections).map(|section| &section.table).collect();
        for table in &tables {
            store.write(&format!("tables/{}.csv", table.name), &table.csv())?;
        }
        let document = json!({ "plan": self.plan, "tables": tables });
        store.write("report.json", &pretty(&document))?;
        store.write(PAGE, html::page(self).as_bytes())
    }
}
