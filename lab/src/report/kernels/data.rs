//! The finished runs of a comparison, and the values of one quantity over the seeds of a group.

use crate::experiment::cell::Cell as Run;
use crate::experiment::plan::{Group, Plan};
use crate::experiment::schedule::CellOutcome;
use crate::experiment::statistics::{self, Estimate};
use concord_machine::accounting::critical_sections::report::SectionResult;
use concord_machine::result::ResultDocument;
use std::collections::BTreeMap;

/// The kinds of spinlocks, as results name them.
pub const KIND_SPIN: &str = "spin";
pub const KIND_RAW: &str = "raw";

/// A whole comparison.
#[derive(Debug)]
pub struct Data<'a> {
    pub plan: &'a Plan,
    /// As in the plan.
    pub groups: Vec<GroupData<'a>>,
}

/// The runs of one workload on one kernel and number of harts.
#[derive(Debug)]
pub struct GroupData<'a> {
    pub group: &'a Group,
    /// Those that did their work, by seed.
    pub runs: Vec<(&'a Run, &'a ResultDocument)>,
    /// The others, with what went wrong, what there is of a result, and the last lines of the console.
    pub failures: Vec<Failure<'a>>,
}

/// A run that nothing may be concluded from.
#[derive(Debug)]
pub struct Failure<'a> {
    pub run: &'a Run,
    pub why: String,
    /// None where the boot failed.
    pub result: Option<&'a ResultDocument>,
    pub console: &'a [String],
}

impl<'a> Data<'a> {
    /// Puts the outcomes of a plan's runs beside the plan.
    pub fn new(plan: &'a Plan, outcomes: &'a [Vec<CellOutcome>]) -> Data<'a> {
        let of_group = |(group, outcomes): (&'a Group, &'a Vec<CellOutcome>)| {
            let mut data = GroupData { group, runs: Vec::new(), failures: Vec::new() };
            for (run, outcome) in group.cells.iter().zip(outcomes) {
                match outcome {
                    CellOutcome::Made(file) => match plan.system.read(file).err() {
                        None => data.runs.push((run, &file.result)),
                        Some(why) => {
                            let (result, console) = (Some(&file.result), file.result.console.as_slice());
                            data.failures.push(Failure { run, why, result, console });
                        }
                    },
                    CellOutcome::NotBooted { why, console } => {
                        data.failures.push(Failure { run, why: why.clone(), result: None, console });
                    }
                }
            }
            data
        };
        Data { plan, groups: plan.groups.iter().zip(outcomes).map(of_group).collect() }
    }

    /// The group that a group is compared with.
    pub fn baseline(&self, group: &GroupData) -> &GroupData<'a> {
        &self.groups[group.group.baseline]
    }

    /// Whether a group is what others are compared with.
    pub fn is_baseline(&self, group: &GroupData) -> bool {
        std::ptr::eq(self.baseline(group).group, group.group)
    }

    /// By what part a quantity's mean is above the first kernel's.
    pub fn change(&self, group: &GroupData, value: impl Fn(&ResultDocument) -> f64) -> Option<Estimate> {
        if self.is_baseline(group) {
            return None;
        }
        statistics::change(&self.baseline(group).values(&value), &group.values(&value))
    }

    /// The groups that are compared with each other: one for each kernel.
    pub fn sets(&self) -> impl Iterator<Item = &[GroupData<'a>]> {
        self.groups.chunks(self.plan.description.variants.len())
    }

    /// Whether any run has critical sections to speak of.
    pub fn has_sections(&self) -> bool {
        self.groups.iter().flat_map(|group| &group.runs).any(|(_, run)| !run.sections.is_empty())
    }
}

impl GroupData<'_> {
    /// One quantity of every run, by seed.
    pub fn values(&self, value: impl Fn(&ResultDocument) -> f64) -> Vec<f64> {
        self.runs.iter().map(|(_, run)| value(run)).collect()
    }

    /// The mean of one quantity over the seeds.
    pub fn mean(&self, value: impl Fn(&ResultDocument) -> f64) -> Option<Estimate> {
        statistics::mean(&self.values(value))
    }

    /// The mean of a quantity's share of another, each run's own; none where the whole is nothing in any run.
    pub fn share(
        &self,
        part: impl Fn(&ResultDocument) -> u64,
        whole: impl Fn(&ResultDocument) -> u64,
    ) -> Option<Estimate> {
        let is_nothing = self.runs.iter().any(|(_, run)| whole(run) == 0);
        if is_nothing { None } else { self.mean(|run| part(run) as f64 / whole(run) as f64) }
    }

    /// The critical sections of every run under a name, with one record for each run that has any.
    pub fn sections_by<K: Ord>(&self, name: impl Fn(&SectionResult) -> K) -> BTreeMap<K, Vec<(usize, &SectionResult)>> {
        let mut named: BTreeMap<K, Vec<(usize, &SectionResult)>> = BTreeMap::new();
        for (index, (_, run)) in self.runs.iter().enumerate() {
            for section in &run.sections {
                named.entry(name(section)).or_default().push((index, section));
            }
        }
        named
    }

    /// The mean over all runs of a quantity of some sections, which is nothing in a run that has none of them.
    pub fn mean_of(
        &self,
        sections: &[(usize, &SectionResult)],
        value: impl Fn(&SectionResult) -> u64,
    ) -> Option<Estimate> {
        let mut values = vec![0.0; self.runs.len()];
        for (index, section) in sections {
            values[*index] += value(section) as f64;
        }
        statistics::mean(&values)
    }
}
