//! The figures: which charts stand above a table, and what is seen in them.

use super::data::{Data, Group, in_order};
use super::tables::{ABORTS, Counters, HEAD, RESTARTS, STEALS, groups_of, heading};
use crate::experiment::statistics::Estimate;
use crate::report::chart::{Bar, Category, Chart, Segment};
use crate::report::figure::{Figure, Key, NO_RANGE, class, drawable, key};
use crate::report::table::{RunLink, Show, grouped, shown};

/// What the pointer is told of the value of a quantity.
fn hover(data: &Data, group: &Group, quantity: &str, what: &str, value: &str) -> String {
    let link = |link: RunLink| match data.machine {
        Some(_) => format!("seed {} is run {}", link.seed, link.id),
        None => link.id,
    };
    let runs: Vec<String> = group.links(quantity).into_iter().map(link).collect();
    format!("{}\n{what}: {value}\n{}", group.title(data.threads_noun()), runs.join("\n"))
}

/// A legend of the subjects of some groups.
fn legend(data: &Data, groups: &[Group]) -> Vec<Key> {
    let is_there = |index: &usize| groups.iter().any(|group| group.subject_index == *index);
    let subjects = data.subjects().into_iter().enumerate();
    subjects.filter(|(index, _)| is_there(index)).map(|(index, name)| key(&class(index), name)).collect()
}

/// Charts of a main quantity. Locks are seen over numbers of threads, libraries over workloads.
pub fn times(data: &Data, main: (&'static str, &'static str)) -> Figure {
    let groups = groups_of(data, main);
    let main_name = format!("{}_{}", main.0, main.1);
    let bar = |group: &Group| {
        let estimate = group.mean(&main_name)?;
        let value = format!("{} {}", shown(&estimate, Show::Decimal), main.1);
        let segment = Segment {
            value: estimate.mean,
            class: class(group.subject_index),
            hover: hover(data, group, &main_name, &main.0.replace('_', " "), &value),
        };
        Some(Bar { segments: vec![segment], interval: estimate.interval() })
    };
    let threads = |group: &Group| format!("{} {}", group.threads, data.threads_noun());
    let over_threads = data.nouns.plots_harts;
    let chart_of = |group: &Group| if over_threads { group.case.to_owned() } else { threads(group) };
    let category_of = |group: &Group| if over_threads { group.threads.to_string() } else { group.case.to_owned() };
    let chart = |title: String| {
        let inside: Vec<&Group> = groups.iter().filter(|group| chart_of(group) == title).collect();
        let category = |label: String| Category {
            bars: inside.iter().filter(|group| category_of(group) == label).filter_map(|group| bar(group)).collect(),
            label,
        };
        Chart {
            x_label: if over_threads { data.threads_noun() } else { &data.nouns.case },
            y_label: heading(&main_name),
            categories: in_order(inside.iter().map(|group| category_of(group))).into_iter().map(category).collect(),
            range: NO_RANGE,
            title,
        }
    };
    let titles = in_order(groups.iter().map(chart_of));
    Figure {
        seen: seen(data, &groups, &main_name, main.1),
        legend: legend(data, &groups),
        charts: drawable(titles.into_iter().map(chart).collect()),
    }
}

/// Who was fastest and who slowest where most threads were at work.
fn seen(data: &Data, groups: &[Group], main_name: &str, unit: &str) -> String {
    let most = groups.iter().map(|group| group.threads).max().unwrap_or_default();
    let sentence = |case: &str| {
        let inside = groups.iter().filter(|group| group.case == case && group.threads == most);
        let mut means: Vec<(&str, f64)> =
            inside.filter_map(|group| Some((group.subject, group.mean(main_name)?.mean))).collect();
        means.sort_by(|a, b| a.1.total_cmp(&b.1));
        let ((fastest, least), (slowest, longest)) = (*means.first()?, *means.last()?);
        let ratio = longest / least;
        Some(match means.len() {
            1 => format!("{case}: {fastest} takes {} {unit}", grouped(least, 2)),
            _ => format!(
                "{case}: {fastest} takes {} {unit}, {slowest} {} times as long",
                grouped(least, 2),
                grouped(ratio, 1)
            ),
        })
    };
    let cases = in_order(groups.iter().map(|group| group.case));
    let sentences: Vec<String> = cases.into_iter().filter_map(sentence).collect();
    let noun = if most == 1 { data.threads_noun().trim_end_matches('s') } else { data.threads_noun() };
    format!("On {most} {noun}, {}", sentences.join("; "))
}

/// The figure of a table of counters; none where the table stands alone.
pub fn counters(data: &Data, counters: &Counters) -> Option<Figure> {
    match counters.name {
        name if name == STEALS.name => Some(steals(data)),
        name if name == ABORTS.name => Some(by_cause(data, &ABORTS, "aborts of attempts (%)")),
        name if name == RESTARTS.name => Some(by_cause(data, &RESTARTS, "restarts of commits (%)")),
        _ => None,
    }
}

/// Sums over the measurements of a group.
fn sum(group: &Group, counter: &str) -> f64 {
    group.values(counter).iter().sum()
}

/// A counter as per cent of another, over all measurements of a group.
fn percent(group: &Group, part: &str, whole: &str) -> f64 {
    sum(group, part) / sum(group, whole).max(1.0) * 100.0
}

/// Steals by position: a chart for each number of threads.
fn steals(data: &Data) -> Figure {
    let groups = STEALS.groups(data);
    let positions = STEALS.counted(&groups);
    let label = |counter: &String| counter.strip_prefix("steals_").map_or("new", |position| position).to_owned();
    let chart = |(case, threads): (&str, u64)| {
        let inside: Vec<&Group> =
            groups.iter().filter(|group| (group.case, group.threads) == (case, threads)).collect();
        let bar = |counter: &str, group: &Group| {
            let whole = STEALS.wholes[0];
            let value = format!("{} of {} locks taken", grouped(sum(group, counter), 0), grouped(sum(group, whole), 0));
            let segment = Segment {
                value: percent(group, counter, whole),
                class: class(group.subject_index),
                hover: hover(data, group, counter, &counter.replace('_', " "), &value),
            };
            Bar { segments: vec![segment], interval: None }
        };
        let category = |counter: &String| Category {
            label: label(counter),
            bars: inside.iter().map(|group| bar(counter, group)).collect(),
        };
        Chart {
            title: format!("{case}, {threads} {}", data.threads_noun()),
            x_label: "position in the queue",
            y_label: "of locks taken (%)".to_owned(),
            categories: positions.iter().map(category).collect(),
            range: NO_RANGE,
        }
    };
    let places = in_order(groups.iter().map(|group| (group.case, group.threads)));
    let out_of_turn: Vec<&String> = positions.iter().filter(|counter| *counter != HEAD).collect();
    let share =
        |group: &Group| out_of_turn.iter().map(|counter| percent(group, counter, STEALS.wholes[0])).sum::<f64>();
    let most = groups.iter().max_by(|a, b| share(a).total_cmp(&share(b)));
    let seen = most.map_or_else(String::new, |group| {
        format!(
            "Up to {}% of locks are taken out of turn ({})",
            grouped(share(group), 1),
            group.title(data.threads_noun())
        )
    });
    Figure { seen, legend: legend(data, &groups), charts: drawable(places.into_iter().map(chart).collect()) }
}

/// Stacked bars of causes: a chart for each case and number of threads.
fn by_cause(data: &Data, counters: &Counters, y_label: &str) -> Figure {
    let groups = counters.groups(data);
    let causes = counters.counted(&groups);
    let whole = counters.wholes[0];
    let name = |cause: &str| cause.split_once('_').map_or(cause, |(_, name)| name).replace('_', " ");
    let chart = |(case, threads): (&str, u64)| {
        let category = |group: &Group| {
            let segment = |(index, cause): (usize, &String)| {
                let estimate = group.mean(cause).filter(|estimate: &Estimate| estimate.mean > 0.0)?;
                let value = format!(
                    "{} of {} {}",
                    shown(&estimate, Show::Mean),
                    grouped(sum(group, whole), 0),
                    whole.replace('_', " ")
                );
                Some(Segment {
                    value: percent(group, cause, whole),
                    class: class(index + 1),
                    hover: hover(data, group, cause, &name(cause), &value),
                })
            };
            let segments: Vec<Segment> = causes.iter().enumerate().filter_map(segment).collect();
            Category { label: group.subject.to_owned(), bars: vec![Bar { segments, interval: None }] }
        };
        let inside = groups.iter().filter(|group| (group.case, group.threads) == (case, threads));
        Chart {
            title: format!("{case}, {threads} {}", data.threads_noun()),
            x_label: &data.nouns.variant,
            y_label: y_label.to_owned(),
            categories: inside.map(category).collect(),
            range: NO_RANGE,
        }
    };
    let places = in_order(groups.iter().map(|group| (group.case, group.threads)));
    let count = |cause: &String| groups.iter().map(|group| sum(group, cause)).sum::<f64>();
    let all: f64 = causes.iter().map(count).sum();
    let most = causes.iter().max_by(|a, b| count(a).total_cmp(&count(b)));
    let seen = most.map_or_else(String::new, |cause| {
        let share = grouped(count(cause) / all * 100.0, 0);
        format!("The most frequent cause is {}, with {share}% of {}", name(cause), grouped(all, 0))
    });
    Figure {
        seen,
        legend: causes.iter().enumerate().map(|(index, cause)| key(&class(index + 1), &name(cause))).collect(),
        charts: drawable(places.into_iter().map(chart).collect()),
    }
}
