//! Who met whom: the pairs of call sites whose conflicts cost most, and the data that they met at.

use super::Subject;
use crate::experiment::statistics::{self, Estimate};
use crate::report::chart::Segment;
use crate::report::figure::{Figure, class, key};
use crate::report::kernels::charts::{Axis, by_kernel, hover_of};
use crate::report::kernels::data::function_of;
use crate::report::kernels::{Data, GroupData, sentences, table_of_rows};
use crate::report::table::{Cell, Column, Show, Table, shown};
use concord_machine::result::{ConflictResult, Rule, Winner};
use std::cmp::Reverse;
use std::collections::BTreeMap;

pub struct ConflictPairs;

const TITLE: &str = "The conflicts that cost most";
const NOTE: &str = "The requester's access finds the word in the transaction of the holder, whose first access to it is named. The loser's \
                    cycles since its begin or last restart are lost; its back-off after that is apart. A holder that had not written the word \
                    had read it. Means over the seeds; the share is of all cycles that conflicts \
                    cost. Objects of one type have one name and count together, and so do all words of which only the address is known.";

/// Pairs of a group that the table has.
const PAIRS_MAX: usize = 5;
/// Pairs of functions that have a colour of their own in the charts.
const COLOURS_MAX: usize = 7;
const NO_NAME: &str = "[no name]";
const OTHERS: &str = "all others";

/// What two conflicts share to be counted together over the seeds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    requester: String,
    holder: String,
    address: String,
    winner: Winner,
    rule: Rule,
    requester_is_transactional: bool,
    requester_writes: bool,
}

/// The conflicts of a pair, with the index of their run.
type Conflicts<'a> = Vec<(usize, &'a ConflictResult)>;

impl Pair {
    fn of(conflict: &ConflictResult) -> Pair {
        let has_name = !conflict.address.starts_with("0x");
        Pair {
            requester: conflict.requester.clone(),
            holder: conflict.holder.clone(),
            address: if has_name { conflict.address.clone() } else { NO_NAME.to_owned() },
            winner: conflict.winner,
            rule: conflict.rule,
            requester_is_transactional: conflict.requester_is_transactional,
            requester_writes: conflict.requester_writes,
        }
    }

    /// The two functions, in which every pair of their call sites counts together.
    fn functions(&self) -> String {
        format!("{} meets {}", function_of(&self.requester), function_of(&self.holder))
    }
}

fn lost_cycles(conflicts: &Conflicts) -> u64 {
    conflicts.iter().map(|(_, conflict)| conflict.totals.lost_cycles).sum()
}

/// The conflicts of a group by some key, the costliest first.
fn ranked<'a, K: Ord>(group: &GroupData<'a>, key: impl Fn(&ConflictResult) -> K) -> Vec<(K, Conflicts<'a>)> {
    let mut pairs = BTreeMap::<K, Conflicts>::new();
    for (index, run) in group.runs.iter().enumerate() {
        for conflict in &run.result.conflicts {
            pairs.entry(key(conflict)).or_default().push((index, conflict));
        }
    }
    let mut pairs: Vec<(K, Conflicts)> = pairs.into_iter().collect();
    // The keys are in order, and stay so among equals.
    pairs.sort_by_key(|(_, conflicts)| Reverse(lost_cycles(conflicts)));
    pairs
}

/// The mean over the runs of a group, which is nothing in a run without such a conflict.
fn mean(group: &GroupData, conflicts: &Conflicts, value: impl Fn(usize, &ConflictResult) -> f64) -> Option<Estimate> {
    let mut values = group.values(|_| 0.0);
    for (index, conflict) in conflicts {
        values[*index] += value(*index, conflict);
    }
    statistics::mean(&values)
}

/// The share of all cycles that the conflicts of a run cost.
fn share(group: &GroupData, conflicts: &Conflicts) -> Option<Estimate> {
    mean(group, conflicts, |index, conflict| {
        conflict.totals.lost_cycles as f64 / group.runs[index].result.conflict_totals.lost_cycles.max(1) as f64
    })
}

fn lost(group: &GroupData, conflicts: &Conflicts) -> Option<Estimate> {
    mean(group, conflicts, |_, conflict| conflict.totals.lost_cycles as f64)
}

/// The share of the conflicts in which the holder had written the word, over all runs.
fn holder_writes(group: &GroupData, conflicts: &Conflicts) -> Option<Estimate> {
    let sum = |value: fn(&ConflictResult) -> u64| conflicts.iter().map(|(_, conflict)| value(conflict)).sum::<u64>();
    let (writes, all) = (sum(|conflict| conflict.details.holder_writes), sum(|conflict| conflict.totals.count));
    (all > 0).then(|| Estimate { mean: writes as f64 / all as f64, half_width: None, runs: group.runs.len() })
}

fn cells(group: &GroupData, pair: &Pair, conflicts: &Conflicts) -> Vec<Cell> {
    vec![
        pair.requester.as_str().into(),
        pair.holder.as_str().into(),
        pair.address.as_str().into(),
        pair.winner.name().into(),
        pair.rule.name().into(),
        if pair.requester_is_transactional { "yes" } else { "no" }.into(),
        if pair.requester_writes { "writes" } else { "reads" }.into(),
        mean(group, conflicts, |_, conflict| conflict.totals.count as f64).into(),
        holder_writes(group, conflicts).into(),
        lost(group, conflicts).into(),
        mean(group, conflicts, |_, conflict| conflict.details.backoff_cycles as f64).into(),
        share(group, conflicts).into(),
    ]
}

impl Subject<Data<'_>> for ConflictPairs {
    fn table(&self, data: &Data) -> Option<Table> {
        if data.results().all(|run| run.conflicts.is_empty()) {
            return None;
        }
        let columns = vec![
            Column::new("requester", "requester", Show::Text),
            Column::new("holder", "holder", Show::Text),
            Column::new("address", "data", Show::Text),
            Column::new("winner", "winner", Show::Text).on_page(),
            Column::new("rule", "rule", Show::Text).on_page(),
            Column::new("is_transactional", "requester in a transaction", Show::Text).on_page(),
            Column::new("requester_access", "requester", Show::Text).on_page(),
            Column::new("conflicts", "conflicts", Show::Count).on_page(),
            Column::new("holder_writes_share", "holder had written (%)", Show::Percent).on_page(),
            Column::new("lost_cycles", "lost (million cycles)", Show::Millions).on_page(),
            Column::new("backoff_cycles", "back-off (million cycles)", Show::Millions).on_page(),
            Column::new("lost_share", "of all lost (%)", Show::Percent),
        ];
        let rows = |group: &GroupData| -> Vec<Vec<Cell>> {
            let pairs = ranked(group, Pair::of).into_iter().take(PAIRS_MAX);
            pairs.map(|(pair, conflicts)| cells(group, &pair, &conflicts)).collect()
        };
        // The kernel names the group too: the line has no room for it beside two call sites.
        let table = table_of_rows(data, ("conflict_pairs", TITLE, NOTE), columns, rows);
        Some(Table { group_columns: 3, ..table })
    }

    fn sentence(&self, data: &Data) -> Option<String> {
        let costliest = |group: &GroupData| {
            let (pair, conflicts) = ranked(group, Pair::of).into_iter().next()?;
            let share = share(group, &conflicts)?.mean * 100.0;
            let cycles = lost(group, &conflicts)?.mean;
            let Pair { requester, holder, address, .. } = pair;
            let place = format!("{}, {}", group.kernel, sentences::place(group));
            Some((cycles, format!("{requester} meets {holder} at {address}, {share:.0}% of all lost cycles ({place})")))
        };
        let most = data.groups.iter().filter_map(costliest).max_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(format!("The costliest conflict: {}", most.1))
    }

    fn figure(&self, data: &Data) -> Figure {
        let mut costs = BTreeMap::<String, f64>::new();
        for group in &data.groups {
            for (functions, conflicts) in ranked(group, |conflict| Pair::of(conflict).functions()) {
                *costs.entry(functions).or_default() += lost(group, &conflicts).map_or(0.0, |lost| lost.mean);
            }
        }
        let mut names: Vec<(String, f64)> = costs.into_iter().collect();
        names.sort_by(|a, b| b.1.total_cmp(&a.1));
        let has_others = names.len() > COLOURS_MAX;
        let mut names: Vec<String> = names.into_iter().take(COLOURS_MAX).map(|(name, _)| name).collect();
        let name_of = |conflict: &ConflictResult| {
            let functions = Pair::of(conflict).functions();
            names.iter().position(|name| *name == functions).unwrap_or(COLOURS_MAX)
        };
        let charts = by_kernel(data, Axis::new("lost to conflicts (million cycles)"), |group| {
            let mut pairs = ranked(group, name_of);
            pairs.sort_by_key(|(index, _)| *index);
            let segment = |(index, conflicts): &(usize, Conflicts)| {
                let (lost, share) = (lost(group, conflicts)?, share(group, conflicts)?);
                let (cycles, share) = (shown(&lost, Show::Millions), shown(&share, Show::Percent));
                let name = names.get(*index).map_or(OTHERS, String::as_str);
                let hover = hover_of(group, name, &format!("{cycles} million cycles, {share}% of all lost"));
                (lost.mean > 0.0).then(|| Segment { value: lost.mean * 1e-6, class: class(*index), hover })
            };
            pairs.iter().filter_map(segment).collect()
        });
        if has_others {
            names.push(OTHERS.to_owned());
        }
        Figure { legend: names.iter().enumerate().map(|(index, name)| key(&class(index), name)).collect(), charts }
    }
}
