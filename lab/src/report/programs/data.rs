//! The measurements and tests of some runs, or of a file, in the groups that are compared.

use crate::experiment::cell::{Cell, CellFile};
use crate::experiment::measurement::{Measurement, Reading, Verdict};
use crate::experiment::plan::{Group as PlanGroup, Plan};
use crate::experiment::schedule::CellOutcome;
use crate::experiment::statistics::{self, Estimate};
use crate::experiment::store::RUNS;
use crate::report::Failure;
use crate::report::table::RunLink;
use crate::system::check_programs::VALIDATION;
use crate::system::native::Native;
use crate::system::{Nouns, System};
use serde_json::Value;

/// The copy of the file that native measurements come from, beside the report.
pub const NATIVE_FILE: &str = "native.jsonl";

/// Everything that a report is about.
#[derive(Debug)]
pub struct Data<'a> {
    pub nouns: &'static Nouns,
    /// What decides it.
    pub plan: Value,
    /// None where it was measured natively.
    pub machine: Option<&'a Plan>,
    pub samples: Vec<Sample>,
    pub tests: Vec<Tested<'a>>,
    pub(super) failures: Vec<Failure>,
    /// Every run of the machine, and what came of it.
    pub runs: Vec<(&'a PlanGroup, &'a Cell, &'a CellFile)>,
}

/// A measurement, and where it comes from.
#[derive(Debug)]
pub struct Sample {
    pub measurement: Measurement,
    pub link: RunLink,
}

/// A run in which everything was tested, and passed or did not.
#[derive(Debug)]
pub struct Tested<'a> {
    pub group: &'a PlanGroup,
    pub run: &'a Cell,
    pub verdicts: Vec<Verdict>,
    pub has_failed: bool,
}

/// Measurements of one case and subject on one number of threads.
#[derive(Debug)]
pub struct Group<'a> {
    pub case: &'a str,
    pub threads: u64,
    pub subject: &'a str,
    /// Its place among all subjects.
    pub subject_index: usize,
    pub samples: Vec<&'a Sample>,
}

impl<'a> Data<'a> {
    /// Puts the outcomes of a plan's runs beside the plan.
    pub fn of_runs(plan: &'a Plan, outcomes: &'a [Vec<CellOutcome>]) -> Data<'a> {
        let mut data = Data {
            nouns: plan.system.nouns(),
            plan: plan.document(),
            machine: Some(plan),
            samples: Vec::new(),
            tests: Vec::new(),
            failures: Vec::new(),
            runs: Vec::new(),
        };
        for ((group, run), outcome) in plan.cells().zip(outcomes.iter().flatten()) {
            let reading = match outcome {
                CellOutcome::Made(file) => {
                    data.runs.push((group, run, file));
                    plan.system.read(file).map_err(|why| (why, file.console()))
                }
                CellOutcome::NotBooted { why, console } => Err((why.clone(), console.as_slice())),
            };
            let has_failed = reading.is_err();
            let reading = reading.unwrap_or_else(|(why, console)| {
                data.failures.push(Failure { title: run.title.clone(), why, console: console.to_vec() });
                Reading::default()
            });
            for measurement in reading.measurements {
                let case = format!("{}{}", measurement.case, group.case_suffix());
                data.samples.push(Sample { measurement: Measurement { case, ..measurement }, link: link(run) });
            }
            if group.case == VALIDATION {
                data.tests.push(Tested { group, run, verdicts: reading.verdicts, has_failed });
            }
        }
        data
    }

    /// Takes the measurements of a file.
    pub fn of_native(native: &Native) -> Data<'static> {
        let sample = |(line, measurement): &(usize, Measurement)| {
            let link = RunLink { id: format!("line {line}"), seed: *line as u64, file: NATIVE_FILE.to_owned() };
            Sample { measurement: measurement.clone(), link }
        };
        Data {
            nouns: native.system.nouns(),
            plan: serde_json::to_value(&native.description).expect("plain data"),
            machine: None,
            samples: native.measurements.iter().map(sample).collect(),
            tests: Vec::new(),
            failures: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// Every subject, in the order of the first measurement of each.
    pub fn subjects(&self) -> Vec<&str> {
        in_order(self.samples.iter().map(|sample| sample.measurement.subject.as_str()))
    }

    /// Every main quantity with its unit.
    pub fn mains(&self) -> Vec<(&'static str, &'static str)> {
        in_order(self.samples.iter().map(|sample| (sample.measurement.main, sample.measurement.unit)))
    }

    /// Groups by case, then number of threads, then subject.
    pub fn groups(&self, is_wanted: impl Fn(&Measurement) -> bool) -> Vec<Group<'_>> {
        let wanted: Vec<&Sample> = self.samples.iter().filter(|sample| is_wanted(&sample.measurement)).collect();
        let cases = in_order(wanted.iter().map(|sample| sample.measurement.case.as_str()));
        let mut threads = in_order(wanted.iter().map(|sample| sample.measurement.threads));
        threads.sort_unstable();
        let mut groups = Vec::new();
        for case in &cases {
            for threads in &threads {
                for (subject_index, subject) in self.subjects().into_iter().enumerate() {
                    let is_in = |sample: &&Sample| {
                        let measurement = &sample.measurement;
                        (measurement.case.as_str(), measurement.threads, measurement.subject.as_str())
                            == (*case, *threads, subject)
                    };
                    let samples: Vec<&Sample> = wanted.iter().copied().filter(is_in).collect();
                    if !samples.is_empty() {
                        groups.push(Group { case, threads: *threads, subject, subject_index, samples });
                    }
                }
            }
        }
        groups
    }

    /// What a thread runs on.
    pub fn threads_noun(&self) -> &'static str {
        if self.machine.is_some() { "harts" } else { "threads" }
    }
}

impl Group<'_> {
    /// One quantity of every measurement that has it.
    pub fn values(&self, quantity: &str) -> Vec<f64> {
        self.samples.iter().filter_map(|sample| sample.measurement.quantities.get(quantity).copied()).collect()
    }

    /// Where the measurements come from that have a quantity.
    pub fn links(&self, quantity: &str) -> Vec<RunLink> {
        let with = self.samples.iter().filter(|sample| sample.measurement.quantities.contains_key(quantity));
        with.map(|sample| sample.link.clone()).collect()
    }

    /// Its mean.
    pub fn mean(&self, quantity: &str) -> Option<Estimate> {
        statistics::mean(&self.values(quantity))
    }

    /// What a person calls the group.
    pub fn title(&self, threads_noun: &str) -> String {
        format!("{} of {}, {} {threads_noun}", self.case, self.subject, self.threads)
    }
}

/// Where a run is, for a table.
pub fn link(run: &Cell) -> RunLink {
    RunLink { id: run.id.clone(), seed: run.seed, file: format!("{RUNS}/{}", run.file_name) }
}

/// Each once, in the order of its first appearance.
pub fn in_order<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut kept = Vec::new();
    for one in all {
        if !kept.contains(&one) {
            kept.push(one);
        }
    }
    kept
}
