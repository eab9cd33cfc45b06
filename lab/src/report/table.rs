//! A table of a report, made once and written as text, CSV, JSON and HTML.

mod text;

use crate::experiment::statistics::Estimate;
use serde::Serialize;

/// A table.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// Its name as a file and as a place in the page.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// How to read it, in a sentence or two.
    pub note: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
    /// Columns from the first on that name a group of rows. Printed text has them in a line above the group.
    #[serde(skip)]
    pub group_columns: usize,
    /// What breaks the rule that a table of times states in its note: 0 if nothing does. Other tables have no rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub violations: Option<u64>,
}

/// A column.
#[derive(Clone, Debug, Serialize)]
pub struct Column {
    /// In JSON and CSV, with the unit of the numbers there.
    pub name: String,
    /// In text and HTML, with the unit of the numbers there.
    pub heading: String,
    pub show: Show,
    /// Whether printed text has it; the page and the files have every column.
    #[serde(skip)]
    pub is_printed: bool,
}

/// How numbers of a column are shown. CSV and JSON have them as they were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Show {
    Text,
    /// Whole numbers.
    Count,
    /// The same without the interval, which CSV and JSON have.
    Mean,
    /// Millions with two decimals.
    Millions,
    /// Per cent of a share.
    Percent,
    /// The same with its sign: a change.
    Change,
    /// Two decimals.
    Decimal,
    /// Links to runs.
    Runs,
}

/// A cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Cell {
    Text(String),
    Count(u64),
    Estimate(Estimate),
    Runs(Vec<RunLink>),
    /// Nothing was measured, or there is nothing to compare with.
    None,
}

/// A run behind a number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunLink {
    pub id: String,
    pub seed: u64,
    /// Relative to the folder of the comparison.
    pub file: String,
}

impl RunLink {
    /// Says which run or line it is.
    pub fn sentence(&self) -> String {
        if self.is_line() { self.id.clone() } else { format!("seed {} is run {}", self.seed, self.id) }
    }

    /// Whether it is a line of a file of measurements.
    fn is_line(&self) -> bool {
        self.id.starts_with("line ")
    }
}

impl From<Option<Estimate>> for Cell {
    fn from(estimate: Option<Estimate>) -> Cell {
        estimate.map_or(Cell::None, Cell::Estimate)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<u64> for Cell {
    fn from(count: u64) -> Cell {
        Cell::Count(count)
    }
}

impl Column {
    /// A column.
    pub fn new(name: &str, heading: &str, show: Show) -> Column {
        Column { name: name.to_owned(), heading: heading.to_owned(), show, is_printed: true }
    }

    /// The same, left out of printed text.
    pub fn on_page(self) -> Column {
        Column { is_printed: false, ..self }
    }
}

impl Cell {
    /// The cell as a person reads it.
    pub fn text(&self, show: Show) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Count(count) => grouped(*count as f64, 0),
            Cell::Estimate(estimate) => shown(estimate, show),
            Cell::Runs(runs) => runs.iter().map(|run| run.seed.to_string()).collect::<Vec<_>>().join(" "),
            Cell::None => String::from("-"),
        }
    }
}

/// An estimate with its interval, in the unit that a column shows.
pub fn shown(estimate: &Estimate, show: Show) -> String {
    let (factor, decimals) = match show {
        Show::Count | Show::Mean | Show::Text | Show::Runs => (1.0, 0),
        Show::Millions => (1e-6, 2),
        Show::Percent | Show::Change => (100.0, 2),
        Show::Decimal => (1.0, 2),
    };
    let scaled = estimate.scaled(factor);
    let mut text = grouped(scaled.mean, decimals);
    if show == Show::Change && !text.starts_with('-') {
        text.insert(0, '+');
    }
    if let Some(half_width) = scaled.half_width.filter(|_| show != Show::Mean) {
        text.push_str(" ± ");
        text.push_str(&grouped(half_width, decimals));
    }
    text
}

/// A number with its digits in groups of three.
pub fn grouped(number: f64, decimals: usize) -> String {
    let plain = format!("{:.decimals$}", number.abs());
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let mut text = String::new();
    // What rounds to zero has no sign.
    if number < 0.0 && plain.bytes().any(|byte| (b'1'..=b'9').contains(&byte)) {
        text.push('-');
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if !fraction.is_empty() {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

/// A paragraph as text of at most 80 columns.
pub fn paragraph(text: &str) -> String {
    text::paragraph(text)
}

impl Table {
    /// The table for a terminal or a plain file: its title, the printed columns, and the note. It has at most 80 columns, unless
    /// numbers alone are wider.
    pub fn text(&self) -> String {
        text::of(self)
    }

    /// The table as CSV (RFC 4180): an estimate is three columns, the mean and the ends of its interval.
    pub fn csv(&self) -> Vec<u8> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let is_estimate = |index: usize| self.rows.iter().any(|row| matches!(row[index], Cell::Estimate(_)));
        let estimates: Vec<bool> = (0..self.columns.len()).map(is_estimate).collect();
        let mut header = Vec::new();
        for (column, is_estimate) in self.columns.iter().zip(&estimates) {
            header.push(column.name.clone());
            if *is_estimate {
                header.extend([format!("{}_low", column.name), format!("{}_high", column.name)]);
            }
        }
        writer.write_record(&header).expect("memory takes it");
        for row in &self.rows {
            let mut record = Vec::new();
            for (cell, is_estimate) in row.iter().zip(&estimates) {
                let text = match cell {
                    Cell::Text(text) => text.clone(),
                    Cell::Count(count) => count.to_string(),
                    Cell::Estimate(estimate) => estimate.mean.to_string(),
                    Cell::Runs(runs) => runs.iter().map(|run| run.id.as_str()).collect::<Vec<_>>().join(" "),
                    Cell::None => String::new(),
                };
                record.push(text);
                if *is_estimate {
                    let interval = if let Cell::Estimate(estimate) = cell { estimate.interval() } else { None };
                    let (low, high) =
                        interval.map_or_else(Default::default, |(low, high)| (low.to_string(), high.to_string()));
                    record.extend([low, high]);
                }
            }
            writer.write_record(&record).expect("every row has every column");
        }
        writer.into_inner().expect("memory takes it")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let estimate = |mean, half_width| Cell::Estimate(Estimate { mean, half_width, runs: 3 });
        Table {
            name: "times".to_owned(),
            title: "Times".to_owned(),
            note: "Of nothing.".to_owned(),
            group_columns: 2,
            violations: None,
            columns: vec![
                Column::new("workload", "workload", Show::Text),
                Column::new("harts", "harts", Show::Count),
                Column::new("kernel_cycles", "kernel time (million cycles)", Show::Millions),
                Column::new("change", "change (%)", Show::Change),
                Column::new("runs", "seeds", Show::Runs),
            ],
            rows: vec![
                vec![
                    "a, \"b\"".into(),
                    8.into(),
                    estimate(1_234_567_890.0, Some(4_000_000.0)),
                    Cell::None,
                    Cell::Runs(Vec::new()),
                ],
                vec![
                    "a, \"b\"".into(),
                    8.into(),
                    estimate(1e6, None),
                    estimate(-0.0312, Some(0.004)),
                    Cell::Runs(vec![
                        RunLink { id: "0f".to_owned(), seed: 1, file: "runs/a.json".to_owned() },
                        RunLink { id: "1f".to_owned(), seed: 2, file: "runs/b.json".to_owned() },
                    ]),
                ],
            ],
        }
    }

    #[test]
    fn text_is_for_people() {
        insta::assert_snapshot!(table().text());
    }

    #[test]
    fn csv_has_what_was_measured() {
        insta::assert_snapshot!(String::from_utf8(table().csv()).unwrap());
    }

    #[test]
    fn numbers_are_grouped_and_zero_has_no_sign() {
        for (number, decimals, text) in [
            (0.0, 0, "0"),
            (-0.001, 2, "0.00"),
            (1234.5, 1, "1,234.5"),
            (-1e6, 0, "-1,000,000"),
            (999.999, 2, "1,000.00"),
        ] {
            assert_eq!(grouped(number, decimals), text);
        }
        let change = |mean| shown(&Estimate { mean, half_width: None, runs: 1 }, Show::Change);
        assert_eq!([change(0.5), change(-0.5), change(0.0)], ["+50.00", "-50.00", "+0.00"]);
    }
}
