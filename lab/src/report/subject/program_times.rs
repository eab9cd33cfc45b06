//! One main quantity of locks or libraries: the time of a loop, of a section, of an uncontended pair or of an operation.

use super::Subject;
use super::fairness::ratio_of;
use crate::experiment::measurement::unit_of;
use crate::experiment::statistics::{self, Estimate};
use crate::report::chart::{Bar, Category, Chart, Segment};
use crate::report::figure::{Figure, class, drawable};
use crate::report::group::{Compared, in_order};
use crate::report::programs::{Data, Group, hover_of, legend};
use crate::report::table::{Cell, Column, Show, Table, grouped, shown};
use crate::system::check_lines::{LATENCY, LOOP_TIME, OPERATION_TIME, SECTION_TIME};

/// The quantity, and the unit of its time.
pub struct Times(pub (&'static str, &'static str));

/// The title and the note of the table of a main quantity.
fn words(main: &str) -> (&'static str, &'static str) {
    match main {
        LOOP_TIME => (
            "The loop of lock and unlock",
            "All threads at once take and release the lock in a loop, with nothing between. The time of a thread is that of its loop, for \
             one pair: a ns here is a ms of a million pairs. Mean, deviation, least and most are over the threads of a run.",
        ),
        SECTION_TIME => (
            "Sections of all threads",
            "The time of a section is that from one critical section to the next, of any thread, with all threads at once.",
        ),
        LATENCY => (
            "Uncontended pairs",
            "The latency is the time of a pair of lock and unlock on one thread, with nothing between.",
        ),
        OPERATION_TIME => (
            "Operations",
            "The time of an operation is that from the end of one operation to the end of the next, of any thread, with all threads at once.",
        ),
        _ => ("", ""),
    }
}

/// The work of the least served thread as a share of that of the most served one. In a loop of so many rounds the work of a thread in
/// a given time is the inverse of its time.
fn fairness(group: &Group) -> Option<Estimate> {
    let of = |name: &str| group.values(name);
    let sections = ratio_of(&of("sections_least"), &of("sections_most"));
    let unit = group.samples.first()?.measurement.unit;
    sections.or_else(|| ratio_of(&of(&format!("thread_least_{unit}")), &of(&format!("thread_most_{unit}"))))
}

/// Whether a quantity is a time, or a ratio of times.
fn is_time(name: &str) -> bool {
    name.starts_with("ratio") || unit_of(name).is_some()
}

/// A quantity's heading, with its unit.
fn heading(name: &str) -> String {
    match unit_of(name) {
        Some(unit) => format!("{} ({unit})", name[..name.len() - unit.len() - 1].replace('_', " ")),
        None => name.replace('_', " "),
    }
}

impl Times {
    fn name(&self) -> String {
        format!("{}_{}", self.0.0, self.0.1)
    }

    fn groups<'a>(&self, data: &'a Data) -> Vec<Group<'a>> {
        data.groups(|measurement| (measurement.main, measurement.unit) == self.0)
    }
}

impl Subject<Data<'_>> for Times {
    /// The quantity's mean and standard deviation, its change against the first subject, and the times beside it.
    fn table(&self, data: &Data) -> Option<Table> {
        let (groups, main_name) = (self.groups(data), self.name());
        let samples = groups.iter().flat_map(|group| &group.samples);
        let mut others = in_order(samples.flat_map(|sample| sample.measurement.quantities.keys().cloned()));
        others.retain(|name| *name != main_name && is_time(name));
        let baseline = data.subjects().first().copied().unwrap_or_default();
        let mut columns = vec![
            Column::new(&main_name, &heading(&main_name), Show::Decimal),
            Column::new("deviation_of_runs", &format!("deviation of runs ({})", self.0.1), Show::Decimal),
            Column::new("change", &format!("against {baseline} (%)"), Show::Change),
        ];
        let has_fairness = groups.iter().any(|group| fairness(group).is_some());
        if has_fairness {
            columns.push(Column::new("fairness", "least of most work (%)", Show::Percent).on_page());
        }
        columns.extend(others.iter().map(|name| Column::new(name, &heading(name), Show::Decimal).on_page()));
        let row = |group: &Group| {
            let values = group.values(&main_name);
            let base = groups
                .iter()
                .find(|other| (other.case, other.threads, other.subject) == (group.case, group.threads, baseline));
            let base = base.filter(|_| group.subject != baseline).map(|base| base.values(&main_name));
            let deviation = statistics::deviation(&values);
            let deviation = deviation.map(|mean| Estimate { mean, half_width: None, runs: values.len() });
            let change = base.and_then(|base| statistics::change(&base, &values));
            let mut cells: Vec<Cell> = vec![statistics::mean(&values).into(), deviation.into(), change.into()];
            if has_fairness {
                cells.push(fairness(group).into());
            }
            cells.extend(others.iter().map(|name| Cell::from(group.mean(name))));
            group.coordinates().row(cells, group.links(&main_name))
        };
        let (title, note) = words(self.0.0);
        Some(Table {
            name: self.0.0.to_owned(),
            title: title.to_owned(),
            note: format!("{note} Means over the runs, ± half the 95% confidence interval."),
            columns: data.headings().columns(columns),
            rows: groups.iter().map(row).collect(),
            group_columns: 2,
            violations: None,
        })
    }

    /// Names the fastest and the slowest subject at the largest number of threads.
    fn sentence(&self, data: &Data) -> Option<String> {
        let (groups, main_name, unit) = (self.groups(data), self.name(), self.0.1);
        let most = groups.iter().map(|group| group.threads).max()?;
        let sentence = |case: &str| {
            let inside = groups.iter().filter(|group| group.case == case && group.threads == most);
            let mut means: Vec<(&str, f64)> =
                inside.filter_map(|group| Some((group.subject, group.mean(&main_name)?.mean))).collect();
            means.sort_by(|a, b| a.1.total_cmp(&b.1));
            let ((fastest, least), (slowest, longest)) = (*means.first()?, *means.last()?);
            let first = format!("{case}: {fastest} takes {} {unit}", grouped(least, 2));
            let ratio = grouped(longest / least, 1);
            Some(if means.len() == 1 { first } else { format!("{first}, {slowest} {ratio} times as long") })
        };
        let cases = in_order(groups.iter().map(|group| group.case));
        let sentences: Vec<String> = cases.into_iter().filter_map(sentence).collect();
        let noun = data.headings().harts;
        let noun = if most == 1 { noun.trim_end_matches('s') } else { noun };
        Some(format!("On {most} {noun}, {}", sentences.join("; ")))
    }

    /// Locks are shown over numbers of threads, libraries over workloads.
    fn figure(&self, data: &Data) -> Figure {
        let (groups, main_name) = (self.groups(data), self.name());
        let bar = |group: &Group| {
            let estimate = group.mean(&main_name)?;
            let value = format!("{} {}", shown(&estimate, Show::Decimal), self.0.1);
            let hover = hover_of(data, group, &main_name, &self.0.0.replace('_', " "), &value);
            let segment = Segment { value: estimate.mean, class: class(group.subject_index), hover };
            Some(Bar { segments: vec![segment], interval: estimate.interval() })
        };
        let threads = |group: &Group| format!("{} {}", group.threads, data.headings().harts);
        let over_threads = data.plots_harts();
        let chart_of = |group: &Group| if over_threads { group.case.to_owned() } else { threads(group) };
        let category_of = |group: &Group| if over_threads { group.threads.to_string() } else { group.case.to_owned() };
        let chart = |title: String| {
            let inside: Vec<&Group> = groups.iter().filter(|group| chart_of(group) == title).collect();
            let category = |label: String| {
                let bars = inside.iter().filter(|group| category_of(group) == label).filter_map(|group| bar(group));
                Category { bars: bars.collect(), label }
            };
            Chart {
                x_label: if over_threads { data.headings().harts } else { data.case_noun() },
                y_label: heading(&main_name),
                categories: in_order(inside.iter().map(|group| category_of(group))).into_iter().map(category).collect(),
                range: (0.0, 0.0),
                is_share: false,
                title,
            }
        };
        let charts = in_order(groups.iter().map(chart_of)).into_iter().map(chart).collect();
        Figure { legend: legend(data, &groups), charts: drawable(charts) }
    }
}
