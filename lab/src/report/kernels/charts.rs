//! The shapes of charts of comparisons of kernels.

use super::data::{Data, GroupData};
use crate::experiment::statistics::Estimate;
use crate::report::chart::{Bar, Category, Chart, Segment};
use crate::report::figure::{Key, class, drawable};
use crate::report::group::{self, hover};
use crate::report::table::{Show, grouped, shown};

/// A legend of the kernels from one on.
pub fn legend(data: &Data, from: usize) -> Vec<Key> {
    group::legend(data.kernels().iter().copied().enumerate().skip(from))
}

/// What the page says of a value under the pointer.
pub fn hover_of(group: &GroupData, what: &str, value: &str) -> String {
    hover(&group.title, what, value, &group.links())
}

/// What charts share.
#[derive(Clone, Copy)]
pub struct Axis<'a> {
    pub label: &'a str,
    /// Whether values are shares in per cent.
    pub is_share: bool,
}

impl<'a> Axis<'a> {
    pub fn new(label: &'a str) -> Axis<'a> {
        Axis { label, is_share: false }
    }

    /// An axis in per cent of a whole.
    pub fn share(label: &'a str) -> Axis<'a> {
        Axis { label, is_share: true }
    }

    fn chart(self, title: String, x_label: &'static str, categories: Vec<Category>) -> Chart {
        let (y_label, is_share) = (self.label.to_owned(), self.is_share);
        Chart { title, x_label, y_label, categories, range: (0.0, 0.0), is_share }
    }
}

/// A chart for each number of harts with a category for each workload, whose bars `bar` makes of the kernels from one on.
pub fn by_workload(
    data: &Data,
    title: &str,
    axis: Axis,
    from: usize,
    bar: impl Fn(&GroupData, usize) -> Option<Bar>,
) -> Vec<Chart> {
    let category = |set: &&[GroupData]| Category {
        label: set[0].workload.clone(),
        bars: set.iter().enumerate().skip(from).filter_map(|(kernel, group)| bar(group, kernel)).collect(),
    };
    let chart = |(harts, sets): (usize, Vec<&[GroupData]>)| {
        axis.chart(format!("{title}, {harts} harts"), "workload", sets.iter().map(category).collect())
    };
    drawable(data.by_harts().into_iter().map(chart).collect())
}

/// A bar of one value, in the unit that it is shown in.
pub fn plain(group: &GroupData, what: &str, estimate: Estimate, show: Show, kernel: usize) -> Bar {
    let (unit, factor) = if show == Show::Millions { (" million cycles", 1e-6) } else { ("%", 100.0) };
    let hover = hover_of(group, what, &format!("{}{unit}", shown(&estimate, show)));
    let scaled = estimate.scaled(factor);
    let segment = Segment { value: scaled.mean, class: class(kernel), hover };
    Bar { segments: vec![segment], interval: scaled.interval() }
}

/// A chart for each number of harts and kernel, with a stacked bar for each workload.
pub fn by_kernel(data: &Data, axis: Axis, segments: impl Fn(&GroupData) -> Vec<Segment>) -> Vec<Chart> {
    let mut charts = Vec::new();
    for (harts, sets) in data.by_harts() {
        for (index, kernel) in data.kernels().iter().enumerate() {
            let category = |set: &&[GroupData]| {
                let segments = segments(&set[index]);
                let bar = (!segments.is_empty()).then_some(Bar { segments, interval: None });
                Category { label: set[index].workload.clone(), bars: bar.into_iter().collect() }
            };
            let title = format!("{kernel}, {harts} harts");
            charts.push(axis.chart(title, "workload", sets.iter().map(category).collect()));
        }
    }
    drawable(charts)
}

/// A chart for each number of harts that counts things of all workloads by kernel: one category for each of `labels`.
pub fn counts(
    data: &Data,
    x_label: &'static str,
    axis: Axis,
    labels: impl Fn(usize) -> Vec<String>,
    count: impl Fn(&[&GroupData], usize) -> Vec<u64>,
) -> Vec<Chart> {
    let mut charts = Vec::new();
    for (harts, sets) in data.by_harts() {
        let of_kernel = |(index, name): (usize, &&str)| {
            let groups: Vec<&GroupData> = sets.iter().map(|set| &set[index]).collect();
            (index, (*name).to_owned(), count(&groups, harts))
        };
        let mut kernels: Vec<(usize, String, Vec<u64>)> = data.kernels().iter().enumerate().map(of_kernel).collect();
        kernels.retain(|(.., counts)| counts.iter().any(|count| *count > 0));
        let last = kernels.iter().filter_map(|(.., counts)| counts.iter().rposition(|count| *count > 0)).max();
        let Some(last) = last else { continue };
        let category = |(place, label): (usize, String)| {
            let bar = |(index, name, counts): &(usize, String, Vec<u64>)| {
                let value = counts[place] as f64;
                let hover = format!("{name}, {harts} harts\n{x_label}: {label}\n{} {}", grouped(value, 0), axis.label);
                Bar { segments: vec![Segment { value, class: class(*index), hover }], interval: None }
            };
            Category { bars: kernels.iter().map(bar).collect(), label }
        };
        let categories = labels(harts).into_iter().take(last + 1).enumerate().map(category).collect();
        charts.push(axis.chart(format!("All workloads, {harts} harts"), x_label, categories));
    }
    drawable(charts)
}
