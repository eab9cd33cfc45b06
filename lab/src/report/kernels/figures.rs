//! The figures of the page: which charts stand above a table, and what is seen in them.

use super::data::{Data, GroupData};
use super::seen;
use super::tables::{concurrency_of, io_sites_of, spin_share};
use crate::experiment::statistics::Estimate;
use crate::report::chart::{Bar, Category, Chart, Segment};
use crate::report::figure::{Figure, Key, NO_RANGE, class, drawable, key};
use crate::report::table::{Show, grouped, shown};
use concord_machine::result::ResultDocument;
use std::collections::{BTreeMap, BTreeSet};

/// The figure above the table of this name; none where the table stands alone.
pub fn figures(data: &Data, table: &str) -> Option<Figure> {
    match table {
        "time" => Some(time(data)),
        "modes" => Some(modes(data)),
        "synchronization" => Some(synchronization(data)),
        "spinlocks" => Some(Figure { seen: seen::spinlocks(data), legend: Vec::new(), charts: Vec::new() }),
        "conversion" => Some(conversion(data)),
        "concurrency" => Some(concurrency(data)),
        "restarts" => Some(restarts(data)),
        "io" => Some(io(data)),
        "conflicts" => Some(conflicts(data)),
        "locks" => Some(Figure { seen: seen::locks(data), legend: Vec::new(), charts: Vec::new() }),
        _ => None,
    }
}

/// A legend of the kernels from one on.
fn kernels(data: &Data, from: usize) -> Vec<Key> {
    let kernels = data.plan.description.variants.iter().enumerate().skip(from);
    kernels.map(|(index, kernel)| key(&class(index), &kernel.name)).collect()
}

/// The first kernel of charts that compare the others with it: a kernel alone is shown itself.
fn first_compared(data: &Data) -> usize {
    usize::from(data.plan.description.variants.len() > 1)
}

/// What the pointer is told of a value: what it is of, the value, the runs behind it.
fn hover(group: &GroupData, what: &str, value: &str) -> String {
    let runs: Vec<String> = group.runs.iter().map(|(run, _)| format!("seed {} is run {}", run.seed, run.id)).collect();
    format!("{}\n{what}: {value}\n{}", group.group.title, runs.join("\n"))
}

/// Sets of groups with one hart count, and that count.
fn by_harts<'a, 'b>(data: &'b Data<'a>) -> Vec<(usize, Vec<&'b [GroupData<'a>]>)> {
    let of = |harts: &usize| (*harts, data.sets().filter(|set| set[0].group.harts == *harts).collect());
    data.plan.description.harts.iter().map(of).collect()
}

/// A chart for each hart count with a category for each workload, whose bars `bar` makes of the kernels from one on.
fn by_workload(
    data: &Data,
    title: &str,
    y_label: &str,
    from: usize,
    bar: impl Fn(&GroupData, usize) -> Option<Bar>,
) -> Vec<Chart> {
    let category = |set: &&[GroupData]| Category {
        label: set[0].group.case_title(),
        bars: set.iter().enumerate().skip(from).filter_map(|(kernel, group)| bar(group, kernel)).collect(),
    };
    let chart = |(harts, sets): (usize, Vec<&[GroupData]>)| Chart {
        title: format!("{title}, {harts} harts"),
        x_label: "workload",
        y_label: y_label.to_owned(),
        categories: sets.iter().map(category).collect(),
        range: NO_RANGE,
    };
    drawable(by_harts(data).into_iter().map(chart).collect())
}

/// A bar of one value.
fn plain(group: &GroupData, what: &str, estimate: Estimate, show: Show, class: String) -> Bar {
    let text = shown(&estimate, show);
    let unit = if show == Show::Millions { " million cycles" } else { "%" };
    let scaled = estimate.scaled(if show == Show::Millions { 1e-6 } else { 100.0 });
    let segment = Segment { value: scaled.mean, class, hover: hover(group, what, &format!("{text}{unit}")) };
    Bar { segments: vec![segment], interval: scaled.interval() }
}

fn time(data: &Data) -> Figure {
    let from = first_compared(data);
    let mut charts = Vec::new();
    for (what, value) in [
        ("Kernel time", (|run| run.kernel_cycles() as f64) as fn(&ResultDocument) -> f64),
        ("Elapsed time", |run| run.region_cycles as f64),
    ] {
        charts.extend(if from == 0 {
            by_workload(data, what, "million cycles", 0, |group, kernel| {
                Some(plain(group, what, group.mean(value)?, Show::Millions, class(kernel)))
            })
        } else {
            by_workload(data, what, "change against the first kernel (%)", from, |group, kernel| {
                Some(plain(group, what, data.change(group, value)?, Show::Change, class(kernel)))
            })
        });
    }
    Figure { seen: seen::time(data), legend: kernels(data, from), charts }
}

fn synchronization(data: &Data) -> Figure {
    let charts = by_workload(data, "Lost to synchronization", "kernel time lost (%)", 0, |group, kernel| {
        let spinning = group.share(ResultDocument::spin_cycles, ResultDocument::kernel_cycles)?;
        let restarts = group.share(ResultDocument::transaction_cycles, ResultDocument::kernel_cycles)?;
        let lost = group.share(|run| run.lost_cycles(), ResultDocument::kernel_cycles)?;
        let segment = |estimate: Estimate, what: &str, class: String| Segment {
            value: estimate.mean * 100.0,
            class,
            hover: hover(group, what, &format!("{}% of kernel time", shown(&estimate, Show::Percent))),
        };
        let segments = vec![
            segment(spinning, "spinning", class(kernel)),
            segment(restarts, "restarts", format!("{} light", class(kernel))),
        ];
        Some(Bar { segments, interval: lost.scaled(100.0).interval() })
    });
    let mut legend = Vec::new();
    for Key { class, name } in kernels(data, 0) {
        legend.push(key(&class, &format!("{name}, spinning")));
        legend.push(key(&format!("{class} light"), &format!("{name}, restarts")));
    }
    Figure { seen: seen::synchronization(data), legend, charts }
}

fn conversion(data: &Data) -> Figure {
    let from = first_compared(data);
    let mut charts = by_workload(data, "By count", "spinlock_t sections committed (%)", from, |group, kernel| {
        let estimate = spin_share(group, |section| section.totals.transactional, |section| section.totals.locked)?;
        Some(plain(group, "committed, by count", estimate, Show::Percent, class(kernel)))
    });
    charts.extend(by_workload(data, "By cycles", "spinlock_t sections committed (%)", from, |group, kernel| {
        let estimate =
            spin_share(group, |section| section.totals.transactional_cycles, |section| section.totals.hold_cycles)?;
        Some(plain(group, "committed, by cycles", estimate, Show::Percent, class(kernel)))
    }));
    for chart in &mut charts {
        // How much is left to convert is half of what is to be seen.
        chart.range = (0.0, 100.0);
    }
    Figure { seen: seen::conversion(data), legend: kernels(data, from), charts }
}

fn conflicts(data: &Data) -> Figure {
    let charts = by_workload(data, "Priority inversions", "inverted conflicts (%)", 0, |group, kernel| {
        let estimate = group.share(|run| run.conflict_totals.inversions, |run| run.conflict_totals.count)?;
        Some(plain(group, "inversions", estimate, Show::Percent, class(kernel)))
    });
    Figure { seen: seen::conflicts(data), legend: kernels(data, 0), charts }
}

/// A chart for each hart count and kernel, with a stacked bar for each workload.
fn by_kernel(data: &Data, y_label: &str, from: usize, segments: impl Fn(&GroupData) -> Vec<Segment>) -> Vec<Chart> {
    let mut charts = Vec::new();
    for (harts, sets) in by_harts(data) {
        for (index, kernel) in data.plan.description.variants.iter().enumerate().skip(from) {
            let category = |set: &&[GroupData]| {
                let segments = segments(&set[index]);
                let bar = (!segments.is_empty()).then_some(Bar { segments, interval: None });
                Category { label: set[index].group.case_title(), bars: bar.into_iter().collect() }
            };
            charts.push(Chart {
                title: format!("{}, {harts} harts", kernel.name),
                x_label: "workload",
                y_label: y_label.to_owned(),
                categories: sets.iter().map(category).collect(),
                range: NO_RANGE,
            });
        }
    }
    drawable(charts)
}

/// A mode's class, its name and its cycles.
type Mode = (&'static str, &'static str, fn(&ResultDocument) -> u64);

fn modes(data: &Data) -> Figure {
    let whole = ResultDocument::all_cycles;
    let modes: [Mode; 4] = [
        ("user", "user", ResultDocument::user_cycles),
        ("system", "system", ResultDocument::kernel_cycles),
        ("wait", "I/O wait", ResultDocument::io_wait_cycles),
        ("idle", "idle", ResultDocument::idle_cycles),
    ];
    let charts = by_kernel(data, "cycles of all harts (%)", 0, |group| {
        let segment = |(class, name, value): &Mode| {
            let estimate = group.share(value, whole)?;
            let hover = hover(group, name, &format!("{}%", shown(&estimate, Show::Percent)));
            Some(Segment { value: estimate.mean * 100.0, class: (*class).to_owned(), hover })
        };
        modes.iter().filter_map(segment).collect()
    });
    Figure { seen: seen::modes(data), legend: modes.iter().map(|(class, name, _)| key(class, name)).collect(), charts }
}

fn restarts(data: &Data) -> Figure {
    let causes: BTreeSet<&String> = data
        .groups
        .iter()
        .flat_map(|group| &group.runs)
        .flat_map(|(_, run)| &run.sections)
        .flat_map(|section| section.totals.restarts.iter())
        .filter_map(|(cause, count)| (*count > 0).then_some(cause))
        .collect();
    // Colours of kernels, from the second on: here they stand for causes.
    let classes: BTreeMap<&String, String> =
        causes.iter().enumerate().map(|(index, cause)| (*cause, class(index + 1))).collect();
    let charts = by_kernel(data, "kernel time lost to restarts (%)", 0, |group| {
        let segment = |cause: &&String| {
            let cycles = |run: &ResultDocument| -> u64 {
                run.sections.iter().filter_map(|section| section.totals.restart_cycles.get(*cause)).sum()
            };
            let estimate = group.share(cycles, ResultDocument::kernel_cycles).filter(|estimate| estimate.mean > 0.0)?;
            let hover = hover(group, cause, &format!("{}% of kernel time", shown(&estimate, Show::Percent)));
            Some(Segment { value: estimate.mean * 100.0, class: classes[*cause].clone(), hover })
        };
        causes.iter().filter_map(segment).collect()
    });
    let legend = classes.iter().map(|(cause, class)| key(class, cause)).collect();
    Figure { seen: seen::restarts(data), legend, charts }
}

/// A chart for each hart count that counts things of all workloads by kernel.
fn counts(
    data: &Data,
    title: &str,
    x_label: &'static str,
    y_label: &str,
    labels: impl Fn(usize) -> Vec<String>,
    count: impl Fn(&[&GroupData], usize) -> Vec<u64>,
) -> Vec<Chart> {
    let mut charts = Vec::new();
    for (harts, sets) in by_harts(data) {
        let of_kernel = |index: usize| -> Vec<u64> {
            let groups: Vec<&GroupData> = sets.iter().map(|set| &set[index]).collect();
            count(&groups, harts)
        };
        let kernels: Vec<(usize, &str, Vec<u64>)> = data
            .plan
            .description
            .variants
            .iter()
            .enumerate()
            .map(|(index, kernel)| (index, kernel.name.as_str(), of_kernel(index)))
            .filter(|(.., counts)| counts.iter().any(|count| *count > 0))
            .collect();
        let last = kernels.iter().filter_map(|(.., counts)| counts.iter().rposition(|count| *count > 0)).max();
        let Some(last) = last else { continue };
        let category = |(place, label): (usize, String)| Category {
            bars: kernels
                .iter()
                .map(|(index, name, counts)| Bar {
                    segments: vec![Segment {
                        value: counts[place] as f64,
                        class: class(*index),
                        hover: format!(
                            "{name}, {harts} harts\n{x_label}: {label}\n{} {y_label}",
                            grouped(counts[place] as f64, 0)
                        ),
                    }],
                    interval: None,
                })
                .collect(),
            label,
        };
        charts.push(Chart {
            title: format!("{title}, {harts} harts"),
            x_label,
            y_label: y_label.to_owned(),
            categories: labels(harts).into_iter().take(last + 1).enumerate().map(category).collect(),
            range: NO_RANGE,
        });
    }
    drawable(charts)
}

fn concurrency(data: &Data) -> Figure {
    let charts = counts(
        data,
        "All workloads",
        "most harts in the section at once",
        "critical sections",
        |harts| (1..=harts).map(|most| most.to_string()).collect(),
        |groups, harts| {
            let histogram = concurrency_of(groups);
            (1..=harts as u64).map(|most| histogram.get(&most).copied().unwrap_or(0)).collect()
        },
    );
    Figure { seen: seen::concurrency(data), legend: kernels(data, 0), charts }
}

/// Bins of the shares of executions that restart for I/O.
const IO_BINS: usize = 10;

fn io(data: &Data) -> Figure {
    let charts = counts(
        data,
        "All workloads",
        "executions that restart for I/O (%)",
        "call sites",
        |_| (0..IO_BINS).map(|bin| format!("{}-{}", bin * 10, bin * 10 + 10)).collect(),
        |groups, _| {
            let mut bins = vec![0; IO_BINS];
            for site in groups.iter().flat_map(|group| io_sites_of(group)) {
                bins[((site.share() * IO_BINS as f64) as usize).min(IO_BINS - 1)] += 1;
            }
            bins
        },
    );
    Figure { seen: seen::io(data), legend: kernels(data, 0), charts }
}
