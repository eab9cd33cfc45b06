//! The means of all workloads for each number of harts.

use super::Subject;
use crate::experiment::statistics::{self, Estimate};
use crate::report::chart::{Bar, Category, Chart, Segment};
use crate::report::figure::{Figure, class, drawable};
use crate::report::group::{Compared, Coordinates, hover, legend};
use crate::report::kernels::Data;
use crate::report::kernels::judgement::{Judged, Quantity, TIMES};
use crate::report::table::{Cell, Column, RunLink, Show, Table, shown};

pub struct Means;

const TITLE: &str = "Mean changes over all workloads";
const NOTE: &str = "Each workload has the same weight, and is compared with the kernel with locks that takes the least elapsed time in \
                    it. The intervals are of the seeds' spread alone. Violations are the workloads of which either time is more than 1% \
                    above locks in the mean, or its whole interval above zero, and each of the two means of all workloads that is above \
                    zero.";

/// A kernel on one number of harts, with all workloads that were finished.
struct Mean<'a, 'b> {
    harts: usize,
    kernel: usize,
    judged: Vec<Judged<'a, 'b>>,
}

impl Mean<'_, '_> {
    fn change(&self, value: Quantity) -> Option<Estimate> {
        let pairs: Vec<(Vec<f64>, Vec<f64>)> =
            self.judged.iter().map(|judged| (judged.baseline.values(value), judged.group.values(value))).collect();
        statistics::mean_change(&pairs)
    }

    fn violations(&self) -> u64 {
        let workloads = self.judged.iter().filter(|judged| judged.violations() > 0).count();
        let means = TIMES.iter().filter(|(.., value)| self.change(*value).is_some_and(|change| change.mean > 0.0));
        (workloads + means.count()) as u64
    }

    fn links(&self) -> Vec<RunLink> {
        self.judged.iter().flat_map(|judged| judged.group.links()).collect()
    }
}

fn means<'a, 'b>(data: &'b Data<'a>) -> Vec<Mean<'a, 'b>> {
    let mut means = Vec::new();
    for (harts, sets) in data.by_harts() {
        for kernel in 0..data.kernels().len() {
            let judged = sets.iter().flat_map(|set| data.judged_of(set));
            let judged: Vec<Judged> =
                judged.filter(|judged| judged.kernel == kernel && !judged.group.runs.is_empty()).collect();
            if !judged.is_empty() {
                means.push(Mean { harts, kernel, judged });
            }
        }
    }
    means
}

impl Subject<Data<'_>> for Means {
    fn table(&self, data: &Data) -> Option<Table> {
        let against = format!("against {}", data.baseline_names());
        let mut columns = vec![Column::new("workloads_count", "workloads", Show::Count)];
        columns.extend(TIMES.map(|(name, heading, _)| {
            Column::new(&format!("{name}_change"), &format!("{heading} {against} (%)"), Show::Change)
        }));
        columns.push(Column::new("violations", "violations", Show::Count));
        let means = means(data);
        let row = |mean: &Mean| {
            let mut cells: Vec<Cell> = vec![(mean.judged.len() as u64).into()];
            cells.extend(TIMES.map(|(.., value)| Cell::from(mean.change(value))));
            cells.push(mean.violations().into());
            let (case, subject) = ("all workloads".to_owned(), data.kernels()[mean.kernel].to_owned());
            Coordinates { case, harts: mean.harts as u64, subject }.row(cells, mean.links())
        };
        (!means.is_empty()).then(|| Table {
            name: "means".to_owned(),
            title: TITLE.to_owned(),
            note: NOTE.to_owned(),
            columns: data.headings().columns(columns),
            rows: means.iter().map(row).collect(),
            group_columns: 2,
            violations: Some(means.iter().map(Mean::violations).sum()),
        })
    }

    fn sentence(&self, data: &Data) -> Option<String> {
        let part = |mean: &Mean| {
            let of = |(_, name, value): &(&str, &str, Quantity)| {
                Some(format!("{name} by {}%", shown(&mean.change(*value)?, Show::Change)))
            };
            let times: Vec<String> = TIMES.iter().filter_map(of).collect();
            let kernel = data.kernels()[mean.kernel];
            (!times.is_empty()).then(|| format!("{kernel} changes {} on {} harts", times.join(" and "), mean.harts))
        };
        let parts: Vec<String> = means(data).iter().filter_map(part).collect();
        (!parts.is_empty()).then(|| format!("In the mean of all workloads, {}", parts.join("; ")))
    }

    /// A chart for each time, over the numbers of harts.
    fn figure(&self, data: &Data) -> Figure {
        let means = means(data);
        let bar = |mean: &Mean, name: &str, value: Quantity| {
            let change = mean.change(value)?;
            let title = format!("{}, {} harts, all workloads", data.kernels()[mean.kernel], mean.harts);
            let hover = hover(&title, name, &format!("{}%", shown(&change, Show::Change)), &[]);
            let change = change.scaled(100.0);
            let segment = Segment { value: change.mean, class: class(mean.kernel), hover };
            Some(Bar { segments: vec![segment], interval: change.interval() })
        };
        let chart = |(_, name, value): (&str, &str, Quantity)| {
            let category = |harts: &usize| Category {
                label: harts.to_string(),
                bars: means
                    .iter()
                    .filter(|mean| mean.harts == *harts)
                    .filter_map(|mean| bar(mean, name, value))
                    .collect(),
            };
            Chart {
                title: format!("Mean change of {name}"),
                x_label: "harts",
                y_label: "change (%)".to_owned(),
                categories: data.harts().iter().map(category).collect(),
                range: (0.0, 0.0),
                is_share: false,
            }
        };
        let kernels = data.kernels().iter().copied().enumerate();
        let is_there = |kernel: usize| means.iter().any(|mean| mean.kernel == kernel);
        Figure {
            legend: legend(kernels.filter(|(kernel, _)| is_there(*kernel))),
            charts: drawable(TIMES.map(chart).into()),
        }
    }
}
