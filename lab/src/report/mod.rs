//! What a comparison shows: tables for the terminal and for other programs, and a page for the browser.

mod chart;
mod data;
mod figures;
mod html;
mod seen;
mod table;
mod tables;

pub use data::Data;
pub use table::Table;

use crate::compare::Error;
use crate::compare::store::{Store, pretty};
use serde_json::json;
use std::path::PathBuf;

/// The page's name in the folder of a comparison.
const PAGE: &str = "report.html";

/// A table and how prominent it is.
#[derive(Debug)]
pub enum Part {
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

/// A comparison's report.
#[derive(Debug)]
pub struct Report<'a> {
    data: Data<'a>,
    parts: Vec<Part>,
}

impl<'a> Report<'a> {
    /// Works everything out.
    pub fn new(data: Data<'a>) -> Report<'a> {
        let mut parts = vec![Part::Main(tables::time(&data))];
        if data.has_sections() {
            parts.extend([
                Part::Main(tables::synchronization(&data)),
                Part::Main(tables::locks(&data)),
                Part::Main(tables::spinlocks(&data)),
                Part::Main(tables::conversion(&data)),
                Part::Main(tables::concurrency(&data)),
                Part::Main(tables::restarts_by_cause(&data)),
                Part::Detail(tables::restarts_by_site(&data)),
                Part::Main(tables::io(&data)),
                Part::Detail(tables::io_sites(&data)),
            ]);
        }
        parts.extend([Part::Main(tables::conflicts(&data)), Part::Main(tables::modes(&data))]);
        if data.has_sections() {
            parts.push(Part::Detail(tables::lock_addresses(&data)));
        }
        let failures = tables::failures(&data);
        if !failures.rows.is_empty() {
            parts.push(Part::Main(failures));
        }
        parts.push(Part::Detail(tables::runs(&data)));
        Report { data, parts }
    }

    /// The main tables as text.
    pub fn text(&self) -> String {
        let main = self.parts.iter().filter_map(|part| match part {
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
        let tables: Vec<&Table> = self.parts.iter().map(Part::table).collect();
        for table in &tables {
            store.write(&format!("tables/{}.csv", table.name), &table.csv())?;
        }
        let document = json!({ "plan": self.data.plan.description, "tables": tables });
        store.write("report.json", &pretty(&document))?;
        store.write(PAGE, html::page(self).as_bytes())
    }
}
