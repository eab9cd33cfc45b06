//! Counters that programs print beside their times, and that a table shows together.

use super::data::{Data, Group};
use super::hover_of;
use crate::experiment::statistics::Estimate;
use crate::report::chart::{Bar, Category, Chart, Segment};
use crate::report::figure::{Figure, class, drawable, key};
use crate::report::group::{Compared, in_order};
use crate::report::table::{Cell, Column, Show, Table, grouped, shown};

/// Columns of counters that a line of text has room for.
const PRINTED_MAX: usize = 6;

/// Counters that a table shows together.
pub struct Counters {
    pub name: &'static str,
    pub title: &'static str,
    pub note: &'static str,
    /// Counters that the others are parts of.
    pub wholes: &'static [&'static str],
    /// The others: their names, or what their names begin with.
    pub parts: &'static [&'static str],
}

impl Counters {
    /// Those of the parts that counted anything, positions in their order.
    pub fn counted(&self, groups: &[Group]) -> Vec<String> {
        let is_part =
            |name: &str| self.parts.iter().any(|part| name == *part || part.ends_with('_') && name.starts_with(part));
        let quantities =
            groups.iter().flat_map(|group| &group.samples).flat_map(|sample| &sample.measurement.quantities);
        let counted = quantities.filter(|(name, count)| is_part(name) && **count > 0.0).map(|(name, _)| name.clone());
        let mut names = in_order(counted);
        names.sort_by_key(|name| {
            let part = self.parts.iter().position(|part| name.starts_with(part));
            let position = name.rsplit_once('_').and_then(|(_, number)| number.parse::<u64>().ok());
            (part, position, name.clone())
        });
        names
    }

    /// Groups in which any of the parts counted something.
    pub fn groups<'a>(&self, data: &'a Data) -> Vec<Group<'a>> {
        let mut groups = data.groups(|_| true);
        groups.retain(|group| !self.counted(std::slice::from_ref(group)).is_empty());
        groups
    }

    /// The table; none where nothing was counted.
    pub fn table(&self, data: &Data) -> Option<Table> {
        let groups = self.groups(data);
        let counted = self.counted(&groups);
        if counted.is_empty() {
            return None;
        }
        let names: Vec<&str> = self.wholes.iter().copied().chain(counted.iter().map(String::as_str)).collect();
        let column = |(index, name): (usize, &&str)| {
            let column = Column::new(name, &name.replace('_', " "), Show::Mean);
            if index < PRINTED_MAX { column } else { column.on_page() }
        };
        let columns = data.headings().columns(names.iter().enumerate().map(column));
        let row = |group: &Group| {
            let cells = names.iter().map(|name| Cell::from(group.mean(name)));
            group.coordinates().row(cells, group.links(&counted[0]))
        };
        Some(Table {
            name: self.name.to_owned(),
            title: self.title.to_owned(),
            note: self.note.to_owned(),
            columns,
            group_columns: 2,
            violations: None,
            rows: groups.iter().map(row).collect(),
        })
    }

    /// Each case and number of threads that has groups.
    pub fn places<'a>(groups: &[Group<'a>]) -> Vec<(&'a str, u64)> {
        in_order(groups.iter().map(|group| (group.case, group.threads)))
    }

    /// Stacked bars of the parts as shares of the first whole: a chart for each case and number of threads.
    pub fn by_cause(&self, data: &Data, y_label: &str, is_share: bool) -> Figure {
        let groups = self.groups(data);
        let causes = self.counted(&groups);
        let whole = self.wholes[0];
        let segment = |group: &Group, (index, cause): (usize, &String)| {
            let estimate = group.mean(cause).filter(|estimate: &Estimate| estimate.mean > 0.0)?;
            let all = grouped(sum(group, whole), 0);
            let value = format!("{} of {all} {}", shown(&estimate, Show::Mean), whole.replace('_', " "));
            let hover = hover_of(data, group, cause, &cause_name(cause), &value);
            Some(Segment { value: percent(group, cause, whole), class: class(index + 1), hover })
        };
        let category = |group: &Group| {
            let segments = causes.iter().enumerate().filter_map(|cause| segment(group, cause)).collect();
            Category { label: group.subject.to_owned(), bars: vec![Bar { segments, interval: None }] }
        };
        let chart = |(case, threads): (&str, u64)| {
            let inside = groups.iter().filter(|group| (group.case, group.threads) == (case, threads));
            Chart {
                title: format!("{case}, {threads} {}", data.headings().harts),
                x_label: data.subject_noun(),
                y_label: y_label.to_owned(),
                categories: inside.map(category).collect(),
                range: (0.0, 0.0),
                is_share,
            }
        };
        Figure {
            legend: causes
                .iter()
                .enumerate()
                .map(|(index, cause)| key(&class(index + 1), &cause_name(cause)))
                .collect(),
            charts: drawable(Counters::places(&groups).into_iter().map(chart).collect()),
        }
    }

    /// The most frequent cause.
    pub fn most_frequent(&self, data: &Data) -> Option<String> {
        let groups = self.groups(data);
        let causes = self.counted(&groups);
        let count = |cause: &String| groups.iter().map(|group| sum(group, cause)).sum::<f64>();
        let all: f64 = causes.iter().map(count).sum();
        let most = causes.iter().max_by(|a, b| count(a).total_cmp(&count(b)))?;
        let share = grouped(count(most) / all * 100.0, 0);
        Some(format!("The most frequent cause is {}, with {share}% of {}", cause_name(most), grouped(all, 0)))
    }
}

/// A cause without the name of what it is a cause of.
fn cause_name(counter: &str) -> String {
    counter.split_once('_').map_or(counter, |(_, name)| name).replace('_', " ")
}

/// Sums over the measurements of a group.
pub fn sum(group: &Group, counter: &str) -> f64 {
    group.values(counter).iter().sum()
}

/// A counter as per cent of another, over all measurements of a group.
pub fn percent(group: &Group, part: &str, whole: &str) -> f64 {
    sum(group, part) / sum(group, whole).max(1.0) * 100.0
}
