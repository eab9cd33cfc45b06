//! Recorded runs: the tables of `experiments/recorded/RUN/` and the `run.toml` beside them.

use crate::value::Value;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Rows are chosen by the text in some of their columns. A `*` at the end of a text stands for any rest: `d_move*` is a call site in
/// `d_move`, wherever the compiler put it.
pub type Filter = BTreeMap<String, String>;

/// How the tables of a run came about: the part of `run.toml` that pages show. `experiments/record` writes it.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Origin {
    pub declaration: Option<String>,
    pub command: String,
    /// The day.
    pub recorded: String,
    pub size: Option<String>,
    #[serde(default)]
    pub harts: Vec<u64>,
    pub seeds: Option<u64>,
    /// Digest of the simulator's source.
    pub machine: Option<String>,
    /// Digests of kernel images by the kernel's name.
    #[serde(default)]
    pub images: BTreeMap<String, String>,
}

/// A table, with all its cells as text.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

#[derive(Clone, Debug, Default)]
pub struct Run {
    pub origin: Origin,
    tables: BTreeMap<String, Table>,
}

/// All recorded runs by name.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    pub runs: BTreeMap<String, Run>,
}

impl Table {
    /// Reads CSV.
    ///
    /// # Errors
    /// Names the line that is not as long as the first one.
    pub fn parse(text: &str) -> Result<Table, String> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let columns = reader.headers().map_err(|error| error.to_string())?.iter().map(str::to_owned).collect();
        let mut rows = Vec::new();
        for record in reader.records() {
            rows.push(record.map_err(|error| error.to_string())?.iter().map(str::to_owned).collect());
        }
        Ok(Table { columns, rows })
    }

    fn index(&self, column: &str) -> Result<usize, String> {
        let index = self.columns.iter().position(|known| known == column);
        index.ok_or_else(|| format!("no column is called {column:?}; there are {}", self.columns.join(", ")))
    }

    /// The cell of a row in a column.
    ///
    /// # Errors
    /// If there is no such column.
    pub fn cell<'a>(&self, row: &'a [String], column: &str) -> Result<&'a str, String> {
        Ok(&row[self.index(column)?])
    }

    /// The rows whose columns have these texts.
    ///
    /// # Errors
    /// If there is no such column.
    pub fn matching(&self, filter: &Filter) -> Result<Vec<&Vec<String>>, String> {
        let wanted: Vec<(usize, &str)> = filter
            .iter()
            .map(|(column, text)| Ok((self.index(column)?, text.as_str())))
            .collect::<Result<_, String>>()?;
        let is_wanted = |cell: &str, text: &str| match text.strip_suffix('*') {
            Some(beginning) => cell.starts_with(beginning),
            None => cell == text,
        };
        let matches = |row: &&Vec<String>| wanted.iter().all(|(index, text)| is_wanted(&row[*index], text));
        Ok(self.rows.iter().filter(matches).collect())
    }

    /// The number in a cell; none where the cell is empty. Columns `X_low` and `X_high` are the interval of column `X`.
    ///
    /// # Errors
    /// If there is no such column, or no number in it.
    pub fn value(&self, row: &[String], column: &str) -> Result<Option<Value>, String> {
        let number = |column: &str| -> Result<Option<f64>, String> {
            let text = self.cell(row, column)?;
            if text.is_empty() {
                return Ok(None);
            }
            text.parse().map(Some).map_err(|_| format!("column {column:?}: {text:?} is no number"))
        };
        let Some(mean) = number(column)? else { return Ok(None) };
        let interval = if self.index(&format!("{column}_low")).is_ok() {
            number(&format!("{column}_low"))?.zip(number(&format!("{column}_high"))?)
        } else {
            None
        };
        Ok(Some(Value { mean, half_width: interval.map(|(low, high)| (high - low) / 2.0) }))
    }
}

impl Recorded {
    /// Reads a folder with a folder for each run.
    ///
    /// # Errors
    /// Names the file and what is wrong in it.
    pub fn read(folder: &Path) -> Result<Recorded, String> {
        let mut recorded = Recorded::default();
        for path in crate::files(folder) {
            let name = path.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
            let run = recorded.runs.entry(name).or_default();
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let wrong = |why: String| format!("{}: {why}", path.display());
            if path.file_name().unwrap() == "run.toml" {
                run.origin = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
            } else {
                let table = path.file_stem().unwrap().to_str().unwrap().to_owned();
                run.tables.insert(table, Table::parse(&text).map_err(wrong)?);
            }
        }
        for (name, run) in &recorded.runs {
            if run.origin.command.is_empty() {
                return Err(format!("experiments/recorded/{name}: there is no run.toml"));
            }
        }
        Ok(recorded)
    }

    /// # Errors
    /// If it is not recorded.
    pub fn table(&self, run: &str, table: &str) -> Result<&Table, String> {
        let found = self.runs.get(run).and_then(|run| run.tables.get(table));
        found.ok_or_else(|| format!("experiments/recorded/{run}/{table}.csv is missing; experiments/record makes it"))
    }

    /// Names of all tables, each after its run's.
    pub fn tables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.runs.iter().flat_map(|(name, run)| run.tables.keys().map(move |table| (name.as_str(), table.as_str())))
    }
}
