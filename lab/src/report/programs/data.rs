//! The measurements and tests of some runs, or of a file, in the groups that are compared. Subjects know of the plan what this file
//! tells them.

use crate::experiment::cell::{Cell as Run, CellFile};
use crate::experiment::measurement::{Measurement, Reading, Verdict};
use crate::experiment::plan::{Group as PlanGroup, Plan};
use crate::experiment::schedule::CellOutcome;
use crate::experiment::statistics::{self, Estimate};
use crate::experiment::store::RUNS;
use crate::report::group::{Compared, Coordinates, GroupHeadings, RunRow, in_order};
use crate::report::table::RunLink;
use crate::report::{Failure, method};
use crate::system::check_programs::VALIDATION;
use crate::system::native::Native;
use crate::system::{Nouns, System};
use concord_machine::result::ResultDocument;
use serde_json::Value;

/// The copy of the file that native measurements come from, beside the report.
pub const NATIVE_FILE: &str = "native.jsonl";

/// Everything that a report is about.
#[derive(Debug)]
pub struct Data<'a> {
    nouns: &'static Nouns,
    /// What decides the measurements.
    pub(super) plan: Value,
    /// None where the programs ran natively.
    machine: Option<&'a Plan>,
    samples: Vec<Sample>,
    /// Runs in which everything was tested.
    pub tests: Vec<Tested>,
    /// Every run of the machine.
    runs: Vec<ProgramRun<'a>>,
}

/// A run of the machine.
#[derive(Debug)]
struct ProgramRun<'a> {
    group: Coordinates,
    title: &'a str,
    link: RunLink,
    /// None where the machine did not boot.
    result: Option<&'a ResultDocument>,
    /// Why nothing may be concluded from the run.
    failure: Option<String>,
    console: &'a [String],
}

/// A measurement, and where it comes from.
#[derive(Debug)]
pub struct Sample {
    pub measurement: Measurement,
    pub link: RunLink,
}

/// A run in which everything was tested, and passed or did not.
#[derive(Debug)]
pub struct Tested {
    pub subject: String,
    pub harts: u64,
    pub link: RunLink,
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
            runs: Vec::new(),
        };
        for ((group, run), outcome) in plan.cells().zip(outcomes.iter().flatten()) {
            let (result, reading, console) = match outcome {
                CellOutcome::Made(file) => (Some(&file.result), plan.system.read(file), CellFile::console(file)),
                CellOutcome::NotBooted { why, console } => (None, Err(why.clone()), console.as_slice()),
            };
            data.add_run(group, run, result, reading, console);
        }
        data
    }

    fn add_run(
        &mut self,
        group: &'a PlanGroup,
        run: &'a Run,
        result: Option<&'a ResultDocument>,
        reading: Result<Reading, String>,
        console: &'a [String],
    ) {
        let (reading, failure) = match reading {
            Ok(reading) => (reading, None),
            Err(why) => (Reading::default(), Some(why)),
        };
        for measurement in reading.measurements {
            let case = format!("{}{}", measurement.case, group.case_suffix());
            self.samples.push(Sample { measurement: Measurement { case, ..measurement }, link: link(run) });
        }
        if group.case == VALIDATION {
            self.tests.push(Tested {
                subject: format!("{}{}", group.variant, group.case_suffix()),
                harts: group.harts as u64,
                link: link(run),
                verdicts: reading.verdicts,
                has_failed: failure.is_some(),
            });
        }
        let (case, harts, subject) = (group.case_title(), group.harts as u64, group.variant.clone());
        let group = Coordinates { case, harts, subject };
        self.runs.push(ProgramRun { group, title: &run.title, link: link(run), result, failure, console });
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

    /// Whether the machine made the runs, or a file has measurements of the host.
    pub(super) fn is_native(&self) -> bool {
        self.machine.is_none()
    }

    /// What one of the cases is called.
    pub fn case_noun(&self) -> &'static str {
        &self.nouns.case
    }

    /// What one of the compared locks or libraries is called.
    pub fn subject_noun(&self) -> &'static str {
        &self.nouns.variant
    }

    /// Whether charts show times over numbers of harts, and otherwise over cases.
    pub fn plots_harts(&self) -> bool {
        self.nouns.plots_harts
    }

    /// What the page says of the runs that failed.
    pub(super) fn failures(&self) -> Vec<Failure> {
        let failure = |run: &ProgramRun| {
            let why = run.failure.clone()?;
            Some(Failure { title: run.title.to_owned(), why, console: run.console.to_vec() })
        };
        self.runs.iter().filter_map(failure).collect()
    }

    /// The title of the report.
    pub(super) fn title(&self) -> String {
        let what = &self.nouns.title;
        let Some(plan) = self.machine else { return format!("{what}, natively") };
        let plan = &plan.description;
        let harts: Vec<String> = plan.harts.iter().map(usize::to_string).collect();
        let variants: Vec<&str> = plan.variants.iter().map(|variant| variant.name.as_str()).collect();
        format!("{what}: {} of {} on {} harts", plan.cases.join(", "), variants.join(", "), harts.join(", "))
    }

    /// What was measured.
    pub(super) fn inputs(&self) -> Vec<(String, String)> {
        let Some(plan) = self.machine else {
            let count = self.samples.len();
            let file = format!("<a href=\"{NATIVE_FILE}\">{NATIVE_FILE}</a>, {count} measurements");
            return vec![("File".to_owned(), file)];
        };
        let gear = plan.cells().next().map_or("", |(_, cell)| cell.key.gear.name());
        let plan = &plan.description;
        let mut inputs = method::guests(plan);
        inputs.push(method::machine(plan, &format!("{gear} gear")));
        inputs.push(("Work".to_owned(), format!("seeds 1 to {}", plan.seeds)));
        inputs.extend(method::words(plan));
        inputs
    }
}

impl Compared for Data<'_> {
    fn headings(&self) -> GroupHeadings {
        let (harts, runs) = if self.is_native() { ("threads", "lines") } else { ("harts", "seeds") };
        GroupHeadings { case: self.case_noun(), harts, subject: self.subject_noun(), runs }
    }

    fn all_runs(&self) -> Vec<RunRow<'_>> {
        let row = |run| -> RunRow<'_> {
            let ProgramRun { group, link, result, failure, console, .. }: &ProgramRun = run;
            RunRow {
                group: group.clone(),
                link: link.clone(),
                result: *result,
                failure: failure.as_deref().map(|why| (why, *console)),
            }
        };
        self.runs.iter().map(row).collect()
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

    /// Case, subject and number of threads.
    pub fn title(&self, nouns: &GroupHeadings) -> String {
        format!("{} of {}, {} {}", self.case, self.subject, self.threads, nouns.harts)
    }

    /// What names the group in tables.
    pub fn coordinates(&self) -> Coordinates {
        Coordinates { case: self.case.to_owned(), harts: self.threads, subject: self.subject.to_owned() }
    }
}

/// Where a run is, for a table.
fn link(run: &Run) -> RunLink {
    RunLink { id: run.id.clone(), seed: run.seed, file: format!("{RUNS}/{}", run.file_name) }
}
