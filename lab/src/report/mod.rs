//! What a comparison shows: tables for the terminal and for other programs, and a page for the browser.
//!
//! [`kernels`] reports on kernels, [`programs`] on locks and software transactions; the rest is what any report is made of.

mod chart;
mod figure;
mod html;
pub mod kernels;
mod method;
pub mod programs;
mod table;

pub use table::Table;

use crate::experiment::Error;
use crate::experiment::plan::Plan;
use crate::experiment::schedule::CellOutcome;
use crate::experiment::store::{Store, pretty};
use figure::Figure;
use serde_json::{Value, json};
use std::path::PathBuf;

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

/// A table and how prominent it is.
#[derive(Debug)]
enum Part {
    /// Printed, and open in the page.
    Main(Table),
    /// In the files, and folded in the page.
    Detail(Table),
}

impl Part {
    fn table(&self) -> &Table {
        match self {
            Part::Main(table) | Part::Detail(table) => table,
        }
    }
}

/// A table, and the figure that the page has above it.
#[derive(Debug)]
struct Section {
    part: Part,
    figure: Option<Figure>,
}

/// A run that nothing may be concluded from.
#[derive(Clone, Debug)]
struct Failure {
    /// What a person calls the run.
    title: String,
    why: String,
    /// The last lines of the guest's console.
    console: Vec<String>,
}

/// A comparison's report.
#[derive(Debug)]
pub struct Report {
    title: String,
    /// What the comparison was made of: names and values, in HTML.
    inputs: Vec<(String, String)>,
    failures: Vec<Failure>,
    sections: Vec<Section>,
    /// How the numbers came about, in HTML.
    method: String,
    /// What decides the comparison.
    plan: Value,
}

impl Report {
    /// The main tables as text.
    pub fn text(&self) -> String {
        let main = self.sections.iter().filter_map(|section| match &section.part {
            Part::Main(table) if !table.rows.is_empty() => Some(table.text()),
            _ => None,
        });
        main.collect::<Vec<_>>().join("\n")
    }

    /// Writes `report.json`, a CSV file for each table, and the page, whose path is returned.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, store: &Store) -> Result<PathBuf, Error> {
        let tables: Vec<&Table> = self.sections.iter().map(|section| section.part.table()).collect();
        for table in &tables {
            store.write(&format!("tables/{}.csv", table.name), &table.csv())?;
        }
        let document = json!({ "plan": self.plan, "tables": tables });
        store.write("report.json", &pretty(&document))?;
        store.write(PAGE, html::page(self).as_bytes())
    }
}
