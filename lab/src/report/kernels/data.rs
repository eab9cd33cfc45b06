//! The finished runs of a comparison of kernels, and the values of one quantity over the seeds of a group. Subjects know of the plan
//! what this file tells them.

use crate::experiment::cell::Cell as Run;
use crate::experiment::plan::{Group, Plan};
use crate::experiment::schedule::CellOutcome;
use crate::experiment::statistics::{self, Estimate};
use crate::experiment::store::RUNS;
use crate::report::group::{Compared, Coordinates, GroupHeadings, RunRow};
use crate::report::html::escape;
use crate::report::table::{Cell, RunLink};
use crate::report::{Failure, method};
use concord_machine::accounting::critical_sections::report::{SectionResult, SectionTotals};
use concord_machine::result::ResultDocument;
use serde_json::Value;
use std::collections::BTreeMap;

/// The kinds of spinlocks, as results name them.
pub const KIND_SPIN: &str = "spin";
pub const KIND_RAW: &str = "raw";

/// A whole comparison.
#[derive(Debug)]
pub struct Data<'a> {
    plan: &'a Plan,
    kernels: Vec<&'a str>,
    /// By workload, then number of harts, then kernel.
    pub groups: Vec<GroupData<'a>>,
}

/// The runs of one workload on one kernel and number of harts.
#[derive(Debug)]
pub struct GroupData<'a> {
    /// With the coordinates by which its cases differ beside their workload.
    pub workload: String,
    pub harts: usize,
    pub kernel: &'a str,
    pub title: String,
    /// Those that did their work, by seed.
    pub runs: Vec<RunData<'a>>,
    failures: Vec<FailedRun<'a>>,
    index: usize,
    /// The index of the group with the same workload and harts on the first kernel.
    baseline: usize,
}

/// A run that did its work.
#[derive(Debug)]
pub struct RunData<'a> {
    pub link: RunLink,
    pub result: &'a ResultDocument,
}

/// A run that nothing may be concluded from.
#[derive(Debug)]
struct FailedRun<'a> {
    link: RunLink,
    title: String,
    why: String,
    /// None where the boot failed.
    result: Option<&'a ResultDocument>,
    console: &'a [String],
}

/// The critical sections under one name, each with the index of its run.
pub type Sections<'a> = Vec<(usize, &'a SectionResult)>;

fn link(run: &Run) -> RunLink {
    RunLink { id: run.id.clone(), seed: run.seed, file: format!("{RUNS}/{}", run.file_name) }
}

impl<'a> GroupData<'a> {
    fn new(plan: &Plan, group: &'a Group, outcomes: &'a [CellOutcome], index: usize) -> GroupData<'a> {
        let mut data = GroupData {
            workload: group.case_title(),
            harts: group.harts,
            kernel: &group.variant,
            title: group.title.clone(),
            runs: Vec::new(),
            failures: Vec::new(),
            index,
            baseline: group.baseline,
        };
        for (run, outcome) in group.cells.iter().zip(outcomes) {
            let (link, title) = (link(run), run.title.clone());
            match outcome {
                CellOutcome::Made(file) => match plan.system.read(file).err() {
                    None => data.runs.push(RunData { link, result: &file.result }),
                    Some(why) => {
                        let (result, console) = (Some(&file.result), file.result.console.as_slice());
                        data.failures.push(FailedRun { link, title, why, result, console });
                    }
                },
                CellOutcome::NotBooted { why, console } => {
                    data.failures.push(FailedRun { link, title, why: why.clone(), result: None, console });
                }
            }
        }
        data
    }
}

impl<'a> Data<'a> {
    /// Puts the outcomes of a plan's runs beside the plan.
    pub fn new(plan: &'a Plan, outcomes: &'a [Vec<CellOutcome>]) -> Data<'a> {
        let of_group = |(index, (group, outcomes)): (usize, (&'a Group, &'a Vec<CellOutcome>))| {
            GroupData::new(plan, group, outcomes, index)
        };
        let groups = plan.groups.iter().zip(outcomes).enumerate().map(of_group).collect();
        let kernels = plan.description.variants.iter().map(|kernel| kernel.name.as_str()).collect();
        Data { plan, kernels, groups }
    }

    /// The kernels that are compared.
    pub fn kernels(&self) -> &[&'a str] {
        &self.kernels
    }

    /// The kernel that the others are compared with.
    pub fn first_kernel(&self) -> &'a str {
        self.kernels[0]
    }

    /// The first kernel of charts that compare the others with the first: a kernel alone is shown itself.
    pub fn first_compared(&self) -> usize {
        usize::from(self.kernels.len() > 1)
    }

    /// The numbers of harts.
    pub fn harts(&self) -> &[usize] {
        &self.plan.description.harts
    }

    /// The contention manager of every run.
    pub fn contention_manager(&self) -> &'static str {
        self.plan.description.boards[0].transactions.manager.name()
    }

    /// The group that a group is compared with.
    pub fn baseline(&self, group: &GroupData) -> &GroupData<'a> {
        &self.groups[group.baseline]
    }

    /// By what part a quantity's mean is above the first kernel's.
    pub fn change(&self, group: &GroupData, value: impl Fn(&ResultDocument) -> f64) -> Option<Estimate> {
        if group.index == group.baseline {
            return None;
        }
        statistics::change(&self.baseline(group).values(&value), &group.values(&value))
    }

    /// The groups that are compared with each other: one for each kernel.
    pub fn sets(&self) -> impl Iterator<Item = &[GroupData<'a>]> {
        self.groups.chunks(self.kernels.len())
    }

    /// Each kernel from one on, with its groups.
    pub fn by_kernel(&self, from: usize) -> Vec<(&'a str, Vec<&GroupData<'a>>)> {
        let kernels = self.kernels.iter().enumerate().skip(from);
        kernels.map(|(index, name)| (*name, self.sets().map(|set| &set[index]).collect())).collect()
    }

    /// Each number of harts with its sets of groups.
    pub fn by_harts(&self) -> Vec<(usize, Vec<&[GroupData<'a>]>)> {
        let of = |harts: &usize| (*harts, self.sets().filter(|set| set[0].harts == *harts).collect());
        self.plan.description.harts.iter().map(of).collect()
    }

    /// Every run that did its work.
    pub fn results(&self) -> impl Iterator<Item = &'a ResultDocument> {
        self.groups.iter().flat_map(|group| &group.runs).map(|run| run.result)
    }

    /// Whether any run has critical sections to speak of.
    pub fn has_sections(&self) -> bool {
        self.results().any(|run| !run.sections.is_empty())
    }

    /// What decides the comparison.
    pub(super) fn plan(&self) -> Value {
        self.plan.document()
    }

    /// What the page says of the runs that failed.
    pub(super) fn failures(&self) -> Vec<Failure> {
        let failed = self.groups.iter().flat_map(|group| &group.failures);
        let failure =
            |run: &FailedRun| Failure { title: run.title.clone(), why: run.why.clone(), console: run.console.to_vec() };
        failed.map(failure).collect()
    }

    /// The title of the report.
    pub(super) fn title(&self) -> String {
        let harts: Vec<String> = self.plan.description.harts.iter().map(usize::to_string).collect();
        let (first, others) = self.kernels.split_first().expect("a plan has a kernel");
        let kernels =
            if others.is_empty() { (*first).to_owned() } else { format!("{first} against {}", others.join(", ")) };
        format!("{kernels}: {} on {} harts", self.plan.description.cases.join(", "), harts.join(", "))
    }

    /// What the comparison was made of.
    pub(super) fn inputs(&self) -> Vec<(String, String)> {
        let plan = &self.plan.description;
        let mut inputs = Vec::new();
        for kernel in &plan.variants {
            let words = format!(
                "<code>{}</code> <span class=\"quiet\">Image <code>{}</code></span>",
                escape(&kernel.words),
                escape(kernel.files.get("image").map_or("", String::as_str))
            );
            inputs.push((format!("Kernel {}", escape(&kernel.name)), words));
        }
        inputs.extend(method::guests(plan));
        inputs.push(method::machine(plan, &format!("contention manager {}", self.contention_manager())));
        inputs.push(("Work".to_owned(), format!("size {}, seeds 1 to {}", plan.sizes.join(", "), plan.seeds)));
        inputs.extend(method::words(plan));
        inputs
    }
}

impl Compared for Data<'_> {
    fn headings(&self) -> GroupHeadings {
        let nouns = self.plan.system.nouns();
        GroupHeadings { case: &nouns.case, harts: "harts", subject: &nouns.variant, runs: "seeds" }
    }

    fn all_runs(&self) -> Vec<RunRow<'_>> {
        let mut rows = Vec::new();
        for group in &self.groups {
            let row = |link: &RunLink, result, failure| RunRow {
                group: group.coordinates(),
                link: link.clone(),
                result,
                failure,
            };
            let mut of_group: Vec<RunRow> =
                group.runs.iter().map(|run| row(&run.link, Some(run.result), None)).collect();
            of_group.extend(
                group.failures.iter().map(|run| row(&run.link, run.result, Some((run.why.as_str(), run.console)))),
            );
            of_group.sort_by_key(|row| row.link.seed);
            rows.extend(of_group);
        }
        rows
    }
}

impl GroupData<'_> {
    /// What names the group in tables.
    pub fn coordinates(&self) -> Coordinates {
        Coordinates { case: self.workload.clone(), harts: self.harts as u64, subject: self.kernel.to_owned() }
    }

    /// The runs behind the group's numbers.
    pub fn links(&self) -> Vec<RunLink> {
        self.runs.iter().map(|run| run.link.clone()).collect()
    }

    /// A row of a table of groups.
    pub fn row(&self, cells: impl IntoIterator<Item = Cell>) -> Vec<Cell> {
        self.coordinates().row(cells, self.links())
    }

    /// One quantity of every run, by seed.
    pub fn values(&self, value: impl Fn(&ResultDocument) -> f64) -> Vec<f64> {
        self.runs.iter().map(|run| value(run.result)).collect()
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
        let is_nothing = self.runs.iter().any(|run| whole(run.result) == 0);
        if is_nothing { None } else { self.mean(|run| part(run) as f64 / whole(run) as f64) }
    }

    /// The critical sections of all runs, by a name.
    pub fn sections_by<K: Ord>(&self, name: impl Fn(&SectionResult) -> K) -> BTreeMap<K, Sections<'_>> {
        let mut named: BTreeMap<K, Sections> = BTreeMap::new();
        for (index, run) in self.runs.iter().enumerate() {
            for section in &run.result.sections {
                named.entry(name(section)).or_default().push((index, section));
            }
        }
        named
    }

    /// The mean over all runs of a quantity of some sections, which is nothing in a run that has none of them.
    pub fn mean_of(&self, sections: &Sections, value: impl Fn(&SectionTotals) -> u64) -> Option<Estimate> {
        let mut values = vec![0.0; self.runs.len()];
        for (index, section) in sections {
            values[*index] += value(&section.totals) as f64;
        }
        statistics::mean(&values)
    }
}

/// A function of the kernel without the offset in it.
pub fn function_of(site: &str) -> &str {
    site.split_once('+').map_or(site, |(function, _)| function)
}
