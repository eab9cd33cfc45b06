//! Judging kernels against locks: which kernel a workload's gains are stated against, and when a change is a gain, a cost or a
//! violation.

use super::data::{Data, GroupData};
use crate::experiment::statistics::{self, Estimate};
use concord_machine::result::ResultDocument;

/// A time of a run, in cycles.
pub type Quantity = fn(&ResultDocument) -> f64;

/// Kernel time.
pub fn kernel_time(run: &ResultDocument) -> f64 {
    run.kernel_cycles() as f64
}

/// Elapsed time.
pub fn elapsed_time(run: &ResultDocument) -> f64 {
    run.region_cycles as f64
}

/// The times that kernels are judged by: the names of their columns, their names, and their values.
pub const TIMES: [(&str, &str, Quantity); 2] =
    [("elapsed", "elapsed time", elapsed_time), ("kernel", "kernel time", kernel_time)];

/// A mean change above this is a violation whatever its interval.
const CHANGE_MAX: f64 = 0.01;

/// What a change is beside the seeds' spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The interval lies wholly below zero.
    Win,
    /// The interval contains zero.
    Tie,
    /// The interval lies wholly above zero.
    Cost,
}

impl Verdict {
    /// None of a change without an interval.
    pub fn of(change: &Estimate) -> Option<Verdict> {
        let (low, high) = change.interval()?;
        Some(match (low > 0.0, high < 0.0) {
            (true, _) => Verdict::Cost,
            (_, true) => Verdict::Win,
            _ => Verdict::Tie,
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Verdict::Win => "win",
            Verdict::Tie => "tie",
            Verdict::Cost => "cost",
        }
    }
}

/// Whether a kernel is slower than the rule of no violations allows.
pub fn is_violation(change: &Estimate) -> bool {
    change.mean > CHANGE_MAX || Verdict::of(change) == Some(Verdict::Cost)
}

/// One workload and number of harts: the groups of a set, of which one is the baseline.
pub struct Judged<'a, 'b> {
    pub group: &'b GroupData<'a>,
    pub baseline: &'b GroupData<'a>,
    /// The place of the group's kernel among all.
    pub kernel: usize,
}

impl Judged<'_, '_> {
    /// The change against the baseline.
    pub fn change(&self, value: Quantity) -> Option<Estimate> {
        statistics::change(&self.baseline.values(value), &self.group.values(value))
    }

    /// The times in which it breaks the rule.
    pub fn violations(&self) -> u64 {
        TIMES.iter().filter(|(.., value)| self.change(*value).is_some_and(|change| is_violation(&change))).count()
            as u64
    }
}

/// A kernel whose spinlocks are locks.
fn has_locks(kernel: &str) -> bool {
    kernel == "linux" || kernel.starts_with("linux-")
}

/// The places of the kernels that others are judged against: those with locks, and otherwise the first.
fn baselines(kernels: &[&str]) -> Vec<usize> {
    let locks: Vec<usize> = (0..kernels.len()).filter(|index| has_locks(kernels[*index])).collect();
    // Kernels with locks alone are judged against the first of them.
    if locks.is_empty() || locks.len() == kernels.len() { vec![0] } else { locks }
}

impl<'a> Data<'a> {
    /// The names of the kernels that others are judged against.
    pub fn baseline_names(&self) -> String {
        let names: Vec<&str> = baselines(self.kernels()).into_iter().map(|index| self.kernels()[index]).collect();
        match names.as_slice() {
            [one] => (*one).to_owned(),
            many => format!("the better of {}", many.join(" and ")),
        }
    }

    /// Each kernel of a set that is judged. The baseline is the kernel with locks that takes the least elapsed time there.
    pub fn judged_of<'b>(&self, set: &'b [GroupData<'a>]) -> Vec<Judged<'a, 'b>> {
        let baselines = baselines(self.kernels());
        let mean = |index: usize| Some((set[index].mean(elapsed_time)?.mean, index));
        let best = baselines.iter().filter_map(|index| mean(*index)).min_by(|a, b| a.0.total_cmp(&b.0));
        let Some((_, best)) = best else { return Vec::new() };
        let judged = (0..set.len()).filter(|kernel| !baselines.contains(kernel));
        judged.map(|kernel| Judged { group: &set[kernel], baseline: &set[best], kernel }).collect()
    }

    /// Every kernel that is judged, on every workload and number of harts.
    pub fn judged(&self) -> Vec<Judged<'a, '_>> {
        self.sets().flat_map(|set| self.judged_of(set)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_with_locks_are_baselines() {
        for (kernels, expected) in [
            (&["linux", "txlinux-cx"][..], vec![0]),
            (&["linux", "linux-ticket", "txlinux-ss", "txlinux-cx"], vec![0, 1]),
            (&["txlinux-cx", "linux"], vec![1]),
            (&["linux", "linux-ticket"], vec![0]),
            (&["txlinux-ss", "mine"], vec![0]),
            (&["linux"], vec![0]),
        ] {
            assert_eq!(baselines(kernels), expected, "{kernels:?}");
        }
    }

    #[test]
    fn a_verdict_is_the_side_of_zero_on_which_the_interval_lies() {
        let change = |mean, half_width| Estimate { mean, half_width, runs: 3 };
        for (mean, half_width, verdict, violates) in [
            (-0.2, Some(0.1), Some(Verdict::Win), false),
            (0.005, Some(0.01), Some(Verdict::Tie), false),
            (0.02, Some(0.05), Some(Verdict::Tie), true),
            (0.005, Some(0.004), Some(Verdict::Cost), true),
            (0.0, Some(0.0), Some(Verdict::Tie), false),
            (-0.2, None, None, false),
            (0.011, None, None, true),
        ] {
            let change = change(mean, half_width);
            assert_eq!((Verdict::of(&change), is_violation(&change)), (verdict, violates), "{change:?}");
        }
    }
}
