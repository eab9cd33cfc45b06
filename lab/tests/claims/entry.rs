//! Entries: one for each figure that a page states, and one for each table that a page shows.

use crate::recorded::{Filter, Recorded};
use crate::value::{Kind, Show, Value};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Which of several rows gives the figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Take {
    Least,
    Greatest,
    Sum,
    Mean,
}

/// What a figure is divided by. Names that are left out, and columns that `row` does not name, are those of the figure.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Divisor {
    pub run: Option<String>,
    pub table: Option<String>,
    pub column: Option<String>,
    #[serde(default)]
    pub row: Filter,
    /// Only the columns of `row` choose the divisor's row.
    #[serde(default)]
    pub own_row: bool,
}

/// A claim: a figure out of a recorded table, a figure that was written down with the command that gives it, or a statement with the
/// test that holds it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Claim {
    /// Pages with placeholders name the figure by it.
    pub id: String,
    pub says: String,
    /// Pages without placeholders that state the figure.
    pub pages: Vec<String>,

    /// Where the figure is recorded.
    pub run: Option<String>,
    pub table: Option<String>,
    pub row: Filter,
    pub column: Option<String>,
    pub over: Option<Divisor>,
    /// Where several rows match.
    pub take: Option<Take>,
    /// How it is shown.
    pub show: Kind,
    pub decimals: Option<usize>,
    pub unit: Option<String>,
    /// The interval is left out.
    pub without_interval: bool,
    /// The range, in the unit that is shown, in which the figure has to lie for the pages' sentences to be true.
    pub between: Option<[f64; 2]>,
    /// For the pages' sentences to be true, the interval has to contain zero.
    pub includes_zero: bool,

    /// A figure that no table holds, and the command that gives it.
    pub value: Option<String>,
    pub command: Option<String>,

    /// What holds a statement that has no figure.
    pub held_by: Option<String>,
}

/// A table of a page: a row for each different combination of its keys.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageTable {
    pub id: String,
    pub run: String,
    /// The recorded table whose rows are the rows here.
    pub rows: String,
    #[serde(default, rename = "where")]
    pub filter: Filter,
    /// The columns that tell rows apart, and their headings.
    pub keys: Vec<String>,
    pub headings: Vec<String>,
    /// What the page calls a key's values.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    pub columns: Vec<PageColumn>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PageColumn {
    pub heading: String,
    /// Instead of the table whose rows are shown.
    pub run: Option<String>,
    pub table: Option<String>,
    pub column: String,
    #[serde(default, rename = "where")]
    pub filter: Filter,
    #[serde(default)]
    pub show: Kind,
    pub decimals: Option<usize>,
    #[serde(default)]
    pub without_interval: bool,
}

/// A number of a page that is no measurement.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotMeasured {
    /// `*` for all pages.
    pub page: String,
    /// The number with enough of the words around it to be told from others.
    pub text: String,
    pub why: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct File {
    claim: Vec<Claim>,
    table: Vec<PageTable>,
    not_measured: Vec<NotMeasured>,
}

/// All entries.
#[derive(Debug, Default)]
pub struct Claims {
    /// By the name of their file, in its order.
    pub groups: BTreeMap<String, Vec<Claim>>,
    pub tables: BTreeMap<String, PageTable>,
    pub not_measured: Vec<NotMeasured>,
}

impl Claims {
    /// Reads a folder of TOML files.
    ///
    /// # Errors
    /// Names the file and what is wrong in it.
    pub fn read(folder: &Path) -> Result<Claims, String> {
        let mut claims = Claims::default();
        let mut ids = BTreeSet::new();
        for path in crate::files(folder) {
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let wrong = |why: &str| format!("{}: {why}", path.display());
            let file: File = toml::from_str(&text).map_err(|error| wrong(&error.to_string()))?;
            for claim in &file.claim {
                claim.check_form().map_err(|why| wrong(&why))?;
                if !claim.id.is_empty() && !ids.insert(claim.id.clone()) {
                    return Err(wrong(&format!("two entries are called {:?}", claim.id)));
                }
            }
            for table in file.table {
                let id = table.id.clone();
                if claims.tables.insert(id.clone(), table).is_some() {
                    return Err(wrong(&format!("two tables are called {id:?}")));
                }
            }
            if let Some(declared) = file.not_measured.iter().find(|declared| declared.why.is_empty()) {
                return Err(wrong(&format!("{:?} of {} has no reason", declared.text, declared.page)));
            }
            claims.not_measured.extend(file.not_measured);
            claims.groups.insert(path.file_stem().unwrap().to_str().unwrap().to_owned(), file.claim);
        }
        Ok(claims)
    }

    pub fn entries(&self) -> impl Iterator<Item = &Claim> {
        self.groups.values().flatten()
    }

    /// Run and name of each recorded table that an entry or a page's table reads.
    pub fn cited_tables(&self) -> BTreeSet<(String, String)> {
        let mut cited = BTreeSet::new();
        for claim in self.entries() {
            if let (Some(run), Some(table)) = (&claim.run, &claim.table) {
                cited.insert((run.clone(), table.clone()));
                if let Some(over) = &claim.over {
                    cited.insert((
                        over.run.as_ref().unwrap_or(run).clone(),
                        over.table.as_ref().unwrap_or(table).clone(),
                    ));
                }
            }
        }
        for table in self.tables.values() {
            cited.insert((table.run.clone(), table.rows.clone()));
            for column in &table.columns {
                let run = column.run.as_ref().unwrap_or(&table.run).clone();
                cited.insert((run, column.table.as_ref().unwrap_or(&table.rows).clone()));
            }
        }
        cited
    }
}

impl Claim {
    /// Whether the entry is of exactly one of the three kinds.
    fn check_form(&self) -> Result<(), String> {
        let wrong = |why: &str| Err(format!("entry {:?} ({}): {why}", self.id, self.says));
        if self.says.is_empty() {
            return wrong("`says` is missing");
        }
        let kinds = [self.run.is_some(), self.value.is_some(), self.held_by.is_some()];
        if kinds.iter().filter(|is_kind| **is_kind).count() != 1 {
            return wrong("exactly one of `run`, `value` and `held-by` is wanted");
        }
        if self.held_by.is_none() && self.id.is_empty() {
            return wrong("a figure needs an `id`");
        }
        if self.run.is_some() && (self.table.is_none() || self.column.is_none()) {
            return wrong("`run` needs `table` and `column`");
        }
        if self.value.is_some() && self.command.is_none() {
            return wrong("`value` needs the `command` that gives it");
        }
        Ok(())
    }

    fn show(&self) -> Show {
        Show { kind: self.show, decimals: self.decimals, has_interval: !self.without_interval }
    }

    fn unit(&self) -> &str {
        self.unit.as_deref().unwrap_or(self.show.unit())
    }

    /// The number out of the recorded table; none for the other kinds of entries.
    ///
    /// # Errors
    /// Names the entry and the table that does not have it.
    pub fn value(&self, recorded: &Recorded) -> Result<Option<Value>, String> {
        let Some(run) = &self.run else { return Ok(None) };
        let wrong = |why: String| format!("entry {:?}: {why}", self.id);
        let (table, column) = (self.table.as_deref().unwrap_or(""), self.column.as_deref().unwrap_or(""));
        let value = look_up(recorded, run, table, &self.row, column, self.take).map_err(wrong)?;
        let Some(over) = &self.over else { return Ok(Some(value)) };
        let mut row = if over.own_row { Filter::new() } else { self.row.clone() };
        row.extend(over.row.clone());
        let divisor = look_up(
            recorded,
            over.run.as_deref().unwrap_or(run),
            over.table.as_deref().unwrap_or(table),
            &row,
            over.column.as_deref().unwrap_or(column),
            self.take,
        );
        let divisor = divisor.map_err(|why| format!("entry {:?}: divisor: {why}", self.id))?;
        Ok(Some(Value { mean: value.mean / divisor.mean, half_width: None }))
    }

    /// The figure as pages show it, with its unit.
    ///
    /// # Errors
    /// Names the entry and what it lacks.
    pub fn shown(&self, recorded: &Recorded) -> Result<String, String> {
        match self.value(recorded)? {
            Some(value) => Ok(self.show().number(value) + self.unit()),
            None => self.value.clone().ok_or_else(|| format!("entry {:?} has no figure", self.id)),
        }
    }

    /// The figure without its interval, with another number of decimals where that is wanted.
    ///
    /// # Errors
    /// Names the entry and what it lacks.
    pub fn mean(&self, recorded: &Recorded, decimals: Option<usize>) -> Result<String, String> {
        let value = self.value(recorded)?;
        let value = value.ok_or_else(|| format!("entry {:?}: a figure that no table holds has no mean", self.id))?;
        let show = Show { has_interval: false, decimals: decimals.or(self.decimals), ..self.show() };
        Ok(show.number(value) + self.unit())
    }

    /// Checks the range.
    ///
    /// # Errors
    /// Says by how much the figure lies outside of it.
    pub fn check(&self, recorded: &Recorded) -> Result<(), String> {
        let Some(value) = self.value(recorded)? else { return Ok(()) };
        if self.includes_zero && value.half_width.is_some_and(|half_width| value.mean.abs() > half_width) {
            let shown = self.shown(recorded)?;
            return Err(format!(
                "entry {:?}: {shown} is distinct from zero: rewrite the pages' sentences ({})",
                self.id, self.says
            ));
        }
        let Some([low, high]) = self.between else { return Ok(()) };
        let shown = self.show().scaled(value);
        if (low..=high).contains(&shown) {
            return Ok(());
        }
        Err(format!(
            "entry {:?}: {shown:.2} lies outside of {low} to {high}, for which the pages' sentences hold: rewrite them, \
             then the range ({})",
            self.id, self.says
        ))
    }

    /// Where the figure comes from, in a few words.
    pub fn source(&self) -> String {
        match (&self.run, &self.table, &self.command, &self.held_by) {
            (Some(run), Some(table), ..) => format!("`{run}`, `{table}`"),
            (_, _, Some(command), _) => format!("`{}`", command.replace('|', "\\|")),
            (_, _, _, Some(held_by)) => held_by.clone(),
            _ => String::new(),
        }
    }
}

/// The number of the one row that matches, or of several.
fn look_up(
    recorded: &Recorded,
    run: &str,
    table: &str,
    filter: &Filter,
    column: &str,
    take: Option<Take>,
) -> Result<Value, String> {
    let place = || format!("{run}/{table}.csv, {column} where {filter:?}");
    let table = recorded.table(run, table)?;
    let rows = table.matching(filter).map_err(|why| format!("{}: {why}", place()))?;
    let mut values = Vec::new();
    for row in &rows {
        values.extend(table.value(row, column).map_err(|why| format!("{}: {why}", place()))?);
    }
    let means = values.iter().map(|value| value.mean);
    let of_mean = |mean| Ok(Value { mean, half_width: None });
    match (take, values.as_slice()) {
        (_, []) => Err(format!("{}: no row has a number", place())),
        (None, [value]) => Ok(*value),
        (None, several) => Err(format!("{}: {} rows match, one is wanted", place(), several.len())),
        (Some(Take::Least), _) => of_mean(means.fold(f64::INFINITY, f64::min)),
        (Some(Take::Greatest), _) => of_mean(means.fold(f64::NEG_INFINITY, f64::max)),
        (Some(Take::Sum), _) => of_mean(means.sum()),
        (Some(Take::Mean), several) => of_mean(means.sum::<f64>() / several.len() as f64),
    }
}
