//! Where transactions win, where they tie, and what they cost: the first thing that a report says.

use super::Subject;
use crate::experiment::statistics::Estimate;
use crate::report::chart::{Bar, Category, Chart, Segment};
use crate::report::figure::{Figure, class, drawable, key};
use crate::report::group::Compared;
use crate::report::kernels::charts::hover_of;
use crate::report::kernels::judgement::{Judged, TIMES, Verdict};
use crate::report::kernels::{Data, GroupData};
use crate::report::table::{Cell, Column, Show, Table, grouped, shown};

pub struct Summary;

const TITLE: &str = "Gains and costs";
const NOTE: &str = "Changes of elapsed time and of kernel time, most gained first. Against locks means against the kernel with locks \
                    (linux, and those whose names begin with linux-) that takes the least elapsed time there; the table names it. A \
                    change is a win where its interval lies wholly below zero, a cost where it lies wholly above, and otherwise a tie.";
/// Workloads that a sentence about one kernel names on each side, and one about several.
const NAMED_MAX: usize = 4;
const NAMED_AMONG_KERNELS_MAX: usize = 1;

/// A workload, with its number of harts where there are several.
fn place(data: &Data, group: &GroupData) -> String {
    if data.harts().len() == 1 { group.workload.clone() } else { format!("{}, {} harts", group.workload, group.harts) }
}

fn bare(change: &Estimate) -> String {
    let sign = if change.mean < 0.0 { "" } else { "+" };
    format!("{sign}{}%", grouped(change.mean * 100.0, 1))
}

/// Parts of a sentence, the last one behind "and".
fn joined(parts: &[String], before_last: &str) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [others @ .., last] => format!("{}{before_last}{last}", others.join(", ")),
    }
}

/// The mean change of elapsed time of the kernels that are judged there.
fn order(judged: &[Judged]) -> f64 {
    let changes: Vec<f64> = judged.iter().filter_map(|judged| Some(judged.change(TIMES[0].2)?.mean)).collect();
    changes.iter().sum::<f64>() / changes.len().max(1) as f64
}

/// The sets with kernels that are judged, most gained first.
fn sorted<'a, 'b>(data: &'b Data<'a>) -> Vec<Vec<Judged<'a, 'b>>> {
    let mut sets: Vec<Vec<Judged>> = data.sets().map(|set| data.judged_of(set)).collect();
    sets.retain(|set| set.iter().any(|judged| judged.change(TIMES[0].2).is_some()));
    sets.sort_by(|a, b| order(a).total_cmp(&order(b)));
    sets
}

/// One side of the sentence: how many workloads, and the first of them.
fn side(verb: &str, mut changes: Vec<(String, Estimate)>, named_max: usize) -> String {
    if changes.is_empty() {
        return format!("{verb} in none");
    }
    let more = changes.len().saturating_sub(named_max);
    changes.truncate(named_max);
    let named: Vec<String> = changes.iter().map(|(place, change)| format!("{place} ({})", bare(change))).collect();
    match more {
        0 => format!("{verb} in {}", joined(&named, " and ")),
        more => format!("{verb} in {} and {more} more", named.join(", ")),
    }
}

/// What a kernel does to one time.
fn of_time(data: &Data, judged: &[&Judged], named_max: usize, time: usize) -> Option<String> {
    let mut changes: Vec<(String, Estimate)> = Vec::new();
    for judged in judged {
        changes.extend(judged.change(TIMES[time].2).map(|change| (place(data, judged.group), change)));
    }
    changes.sort_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
    let of = |verdict| changes.iter().filter(|(_, change)| Verdict::of(change) == verdict).cloned().collect::<Vec<_>>();
    let mut costs = of(Some(Verdict::Cost));
    costs.reverse();
    let untold = of(None);
    let mut parts = vec![
        side("wins", of(Some(Verdict::Win)), named_max),
        side("ties", of(Some(Verdict::Tie)), named_max),
        side("loses", costs, named_max),
    ];
    if untold.len() == changes.len() {
        parts.clear();
    }
    if !untold.is_empty() {
        parts.push(side("is known from one seed alone", untold, named_max));
    }
    (!changes.is_empty()).then(|| format!("in {} it {}", TIMES[time].1, joined(&parts, ", and ")))
}

fn sentence(data: &Data) -> Option<String> {
    let judged = data.judged();
    let kernels: Vec<usize> = (0..data.kernels().len()).collect();
    let kernels: Vec<usize> =
        kernels.into_iter().filter(|kernel| judged.iter().any(|judged| judged.kernel == *kernel)).collect();
    let named_max = if kernels.len() == 1 { NAMED_MAX } else { NAMED_AMONG_KERNELS_MAX };
    let of_kernel = |kernel: &usize| {
        let judged: Vec<&Judged> = judged.iter().filter(|judged| judged.kernel == *kernel).collect();
        let times: Vec<String> = (0..TIMES.len()).filter_map(|time| of_time(data, &judged, named_max, time)).collect();
        (!times.is_empty()).then(|| format!("{}: {}", data.kernels()[*kernel], times.join("; ")))
    };
    let parts: Vec<String> = kernels.iter().filter_map(of_kernel).collect();
    (!parts.is_empty()).then(|| format!("Against {}, {}", data.baseline_names(), parts.join("; ")))
}

impl Subject<Data<'_>> for Summary {
    fn table(&self, data: &Data) -> Option<Table> {
        let mut columns = vec![Column::new("baseline", "against", Show::Text)];
        for (name, heading, _) in TIMES {
            columns.push(Column::new(&format!("{name}_change"), &format!("{heading} (%)"), Show::Change));
            columns.push(Column::new(&format!("{name}_verdict"), "which is a", Show::Text));
        }
        let row = |judged: &Judged| {
            let mut cells: Vec<Cell> = vec![judged.baseline.kernel.into()];
            for (.., value) in TIMES {
                let change = judged.change(value);
                cells.push(change.into());
                cells.push(
                    change.and_then(|change| Verdict::of(&change)).map_or(Cell::None, |verdict| verdict.name().into()),
                );
            }
            judged.group.row(cells)
        };
        let rows: Vec<Vec<Cell>> = sorted(data).iter().flatten().map(row).collect();
        (!rows.is_empty()).then(|| Table {
            name: "verdict".to_owned(),
            title: TITLE.to_owned(),
            note: NOTE.to_owned(),
            columns: data.headings().columns(columns),
            rows,
            group_columns: 2,
            violations: None,
        })
    }

    fn is_printed(&self) -> bool {
        false
    }

    fn sentence(&self, data: &Data) -> Option<String> {
        sentence(data)
    }

    fn figure(&self, data: &Data) -> Figure {
        let bar = |judged: &Judged, time: usize| {
            let (_, name, value) = TIMES[time];
            let change = judged.change(value)?;
            let what = format!("{name} against {}", judged.baseline.kernel);
            let hover = hover_of(judged.group, &what, &format!("{}%", shown(&change, Show::Change)));
            let change = change.scaled(100.0);
            let segment = Segment { value: change.mean, class: colour(judged.kernel, time), hover };
            Some(Bar { segments: vec![segment], interval: change.interval() })
        };
        let sets = sorted(data);
        let category = |set: &Vec<Judged>| Category {
            label: place(data, set[0].group),
            bars: set
                .iter()
                .flat_map(|judged| (0..TIMES.len()).filter_map(|time| bar(judged, time)).collect::<Vec<_>>())
                .collect(),
        };
        let chart = Chart {
            title: format!("Change against {}", data.baseline_names()),
            x_label: "workload",
            y_label: "change (%)".to_owned(),
            categories: sets.iter().map(category).collect(),
            range: (0.0, 0.0),
            is_share: false,
        };
        let mut legend = Vec::new();
        for (kernel, name) in data.kernels().iter().enumerate() {
            if sets.iter().flatten().any(|judged| judged.kernel == kernel) {
                legend.extend(
                    (0..TIMES.len()).map(|time| key(&colour(kernel, time), &format!("{name}, {}", TIMES[time].1))),
                );
            }
        }
        Figure { legend, charts: drawable(vec![chart]) }
    }
}

/// A kernel's colour, lighter for its second time.
fn colour(kernel: usize, time: usize) -> String {
    if time == 0 { class(kernel) } else { format!("{} light", class(kernel)) }
}
