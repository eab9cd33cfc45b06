//! What `locks` and `stm` have in common: the check programs of `tm`, each run on a machine of its own from its reset on, which
//! measure or validate and print their results as lines of JSON.

use super::check_lines::{Line, LineFields};
use super::{Nouns, System};
use crate::experiment::Error;
use crate::experiment::cell::{BeginsAt, CellFile, Start};
use crate::experiment::coordinate::{Coordinate, Value};
use crate::experiment::files::{Files, GuestFile};
use crate::experiment::measurement::Reading;
use crate::experiment::plan::Point;
use crate::experiment::request::{Experiment, SystemOptions};
use crate::experiment::variant::Variant;
use concord_machine::{Configuration, Gear, Net};
use serde::Deserialize;

/// The case of runs that validate.
pub const VALIDATION: &str = "validation";

/// The axis of runs whose library counts.
const COUNTED: &str = "counted";

/// Options: what the programs do (`measure` or `validate`), the work of a run instead of its case's, whether runs that count are made
/// as well (`yes` or `no`), and the gear.
pub const TASK: &str = "task";
pub const WORK: &str = "work";
pub const COUNTS: &str = "counts";
pub const GEAR: &str = "gear";

const MEASURE: &str = "measure";
pub const VALIDATE: &str = "validate";
const TASKS: [&str; 2] = [MEASURE, VALIDATE];
const ANSWERS: [&str; 2] = ["yes", "no"];
const GEARS: [Gear; 2] = [Gear::Functional, Gear::Timed];

/// A system of check programs; its data is the system's TOML file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CheckPrograms {
    /// The system's.
    name: String,
    nouns: Nouns,
    /// The guest with the programs.
    guest: String,
    /// Instructions of all harts together after which a run is given up.
    instructions_max: u64,
    /// Hart counts where the user names none.
    pub default_harts: Vec<usize>,
    measurement: Measured,
    validation: Validated,
    /// How the programs' lines name case and variant.
    pub lines: LineFields,
}

/// Programs that measure. `{variant}`, `{words}` (the variant's), `{case}`, `{harts}` and `{seed}` stand in texts for what they say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Measured {
    program: String,
    /// The program whose library counts.
    counting_program: Option<String>,
    words: String,
    variants: Vec<ProgramVariant>,
    cases: Vec<Case>,
}

/// Programs that validate; with `{work}` beside the other texts.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Validated {
    program: String,
    words: String,
    /// The work of a test where nobody says.
    work: u64,
    /// Instead of those that are measured.
    variants: Option<Vec<ProgramVariant>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ProgramVariant {
    name: String,
    #[serde(default)]
    words: String,
}

/// Something that is measured of each variant.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Case {
    name: String,
    /// It is measured on one hart, whatever numbers of harts are asked for.
    #[serde(default)]
    is_alone: bool,
    /// A library that counts tells here how locks were taken. Counting changes times, and so these are runs of their own.
    #[serde(default)]
    is_counted: bool,
    /// The word for the work, and its value where nobody says.
    work_word: String,
    work: u64,
}

fn validates(options: &SystemOptions) -> bool {
    options.get(TASK).is_some_and(|task| task == VALIDATE)
}

impl CheckPrograms {
    fn case(&self, name: &str) -> Option<&Case> {
        self.measurement.cases.iter().find(|case| case.name == name)
    }

    fn program_variants(&self, options: &SystemOptions) -> &[ProgramVariant] {
        let own = self.validation.variants.as_ref().filter(|_| validates(options));
        own.unwrap_or(&self.measurement.variants)
    }

    /// The program of a variant, by its role in the guest.
    fn program(&self, variant: &str, options: &SystemOptions, is_counting: bool) -> String {
        let template = match (&self.measurement.counting_program, validates(options)) {
            (_, true) => &self.validation.program,
            (Some(counting), false) if is_counting => counting,
            (_, false) => &self.measurement.program,
        };
        template.replace("{variant}", variant)
    }

    /// Roles of all programs that the system may run.
    pub fn programs(&self) -> Vec<String> {
        let mut programs = Vec::new();
        for task in TASKS {
            let options = [(TASK.to_owned(), task.to_owned())].into();
            for variant in self.program_variants(&options) {
                programs.extend([false, true].map(|counts| self.program(&variant.name, &options, counts)));
            }
        }
        programs.sort();
        programs.dedup();
        programs
    }

    /// The words of a point, before those of parameters and the user's.
    fn words(&self, point: &Point) -> String {
        let options = &point.experiment.options;
        let asked = options.get(WORK).map(String::as_str);
        let (template, work) = match self.case(point.case) {
            Some(case) => {
                let work = asked.map_or_else(|| case.work.to_string(), str::to_owned);
                (format!("{} {}={work}", self.measurement.words, case.work_word), work)
            }
            None => {
                (self.validation.words.clone(), asked.map_or_else(|| self.validation.work.to_string(), str::to_owned))
            }
        };
        let filled = template
            .replace("{variant}", &point.variant.name)
            .replace("{words}", &point.variant.words)
            .replace("{case}", point.case)
            .replace("{harts}", &point.harts.to_string())
            .replace("{seed}", &point.seed.to_string())
            .replace("{work}", &work);
        filled.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
    }
}

fn is_counting(further: &[Coordinate]) -> bool {
    further.iter().any(|coordinate| coordinate.axis == COUNTED)
}

fn check_option(options: &SystemOptions, name: &str, allowed: &[&str]) -> Result<(), Error> {
    match options.get(name).filter(|value| !allowed.contains(&value.as_str())) {
        None => Ok(()),
        Some(value) => Err(Error::Request(format!("option {name} = {value:?}: allowed is {}", allowed.join(", ")))),
    }
}

impl System for CheckPrograms {
    fn name(&self) -> &str {
        &self.name
    }

    fn nouns(&self) -> &Nouns {
        &self.nouns
    }

    fn cases(&self, options: &SystemOptions) -> Vec<String> {
        if validates(options) {
            return vec![VALIDATION.to_owned()];
        }
        self.measurement.cases.iter().map(|case| case.name.clone()).collect()
    }

    fn variants(&self, options: &SystemOptions) -> Vec<Variant> {
        self.program_variants(options).iter().map(|variant| Variant::new(&variant.name, &variant.words)).collect()
    }

    fn options(&self) -> Vec<&str> {
        vec![TASK, WORK, COUNTS, GEAR]
    }

    fn check_options(&self, options: &SystemOptions) -> Result<(), Error> {
        check_option(options, TASK, &TASKS)?;
        check_option(options, COUNTS, &ANSWERS)?;
        check_option(options, GEAR, &GEARS.map(Gear::name))?;
        match options.get(WORK) {
            Some(work) if !work.parse::<u64>().is_ok_and(|work| work > 0) => {
                Err(Error::Request(format!("option {WORK} = {work:?}: allowed is a whole number from 1 on")))
            }
            _ => Ok(()),
        }
    }

    fn harts(&self, case: &str, experiment: &Experiment) -> Vec<usize> {
        // Without contention there is nothing to see on more than one hart.
        if self.case(case).is_some_and(|case| case.is_alone) { vec![1] } else { experiment.harts.clone() }
    }

    fn further(&self, case: &str, experiment: &Experiment) -> Vec<Vec<Coordinate>> {
        let is_asked = experiment.options.get(COUNTS).is_some_and(|answer| answer == ANSWERS[0]);
        let is_counted = self.case(case).is_some_and(|case| case.is_counted);
        let counted = vec![Coordinate { axis: COUNTED.to_owned(), value: Value::Flag(true) }];
        if is_asked && is_counted { vec![Vec::new(), counted] } else { vec![Vec::new()] }
    }

    fn guest_files(&self, experiment: &Experiment) -> Result<Vec<GuestFile>, Error> {
        let mut programs = Vec::new();
        for case in &experiment.cases {
            for further in self.further(case, experiment) {
                let program =
                    |variant: &Variant| self.program(&variant.name, &experiment.options, is_counting(&further));
                programs.extend(experiment.variants.iter().map(program));
            }
        }
        programs.sort();
        programs.dedup();
        Ok(programs.iter().map(|program| GuestFile::new(&self.guest, program)).collect())
    }

    fn builds_on_demand(&self, guest: &str) -> bool {
        guest == self.guest
    }

    fn start(&self, point: &Point, files: &Files) -> Result<Start, Error> {
        let options = &point.experiment.options;
        let role = self.program(&point.variant.name, options, is_counting(point.further));
        let program = files.of_guest(&GuestFile::new(&self.guest, &role))?.clone();
        let gear = options.get(GEAR).and_then(|name| GEARS.into_iter().find(|gear| gear.name() == *name));
        Ok(Start {
            configuration: Configuration {
                board: point.board.clone(),
                seed: point.seed,
                gear: gear.unwrap_or(Gear::Timed),
                kernel: program.path.clone(),
                initrd: None,
                append: point.command_line(&[&self.words(point)]),
                disks: Vec::new(),
                net: Net::None,
                check_isolation: point.experiment.check_isolation,
            },
            symbols: None,
            files: [("program".to_owned(), program)].into(),
            begins_at: BeginsAt::Reset,
            instructions_max: point.experiment.instructions_max.unwrap_or(self.instructions_max),
            keeps_console: true,
        })
    }

    fn read(&self, file: &CellFile) -> Result<Reading, String> {
        let mut reading = Reading::default();
        for (index, line) in file.console().iter().enumerate() {
            let line = self.lines.read(line).map_err(|what| format!("line {} of the console: {what}", index + 1))?;
            match line {
                None => {}
                Some(Line::Verdict(verdict)) => reading.verdicts.push(verdict),
                // A library that counts takes its time: only its counts are results.
                Some(Line::Measurement(measurement)) if file.coordinates.contains_key(COUNTED) => {
                    reading.measurements.push(measurement.counts());
                }
                Some(Line::Measurement(measurement)) => reading.measurements.push(measurement),
            }
        }
        for verdict in &reading.verdicts {
            if let Some(failure) = &verdict.failure {
                return Err(format!("{}: {failure}", verdict.test));
            }
        }
        match file.end_failure() {
            Some(why) => Err(why),
            None if reading == Reading::default() => Err("the program printed no result".to_owned()),
            None => Ok(reading),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{locks, stm};
    use super::*;
    use crate::experiment::Error;
    use concord_machine::Board;

    fn experiment(system: &CheckPrograms, options: &[(&str, &str)]) -> Experiment {
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Experiment {
            cases: system.cases(&options),
            variants: system.variants(&options),
            sizes: Vec::new(),
            harts: vec![2],
            boards: vec![Board::preset("metatm-2007").unwrap()],
            parameters: Vec::new(),
            seeds: 1,
            append: String::new(),
            check_isolation: false,
            instructions_max: None,
            options,
        }
    }

    fn words(system: &CheckPrograms, case: &str, variant: &str, options: &[(&str, &str)]) -> String {
        let experiment = experiment(system, options);
        experiment.check(system).unwrap();
        let variant = experiment.variants.iter().find(|known| known.name == variant).unwrap();
        let board = experiment.boards[0].clone();
        let (further, parameters) = (&[], &[]);
        system.words(&Point {
            case,
            variant,
            size: None,
            harts: 2,
            board,
            further,
            parameters,
            seed: 9,
            experiment: &experiment,
        })
    }

    #[test]
    fn command_lines_are_what_the_programs_read() {
        let (locks, stm) = (locks::programs(), stm::programs());
        let validate = (TASK, VALIDATE);
        let lines = [
            words(locks, "loop", "unfair", &[]),
            words(stm, "increment", "plain-tl2", &[(WORK, "7")]),
            words(stm, "increment", "spinlock", &[]),
            words(locks, VALIDATION, "cx", &[validate, (WORK, "100")]),
            words(stm, VALIDATION, "2pl", &[validate]),
        ];
        insta::assert_snapshot!(lines.join("\n"), @r"
        locks=unfair tests=loop runs=1 threads=2 iterations=1000
        workloads=increment name=tl2 rounds=1 threads=2 seed=9 operations=7
        workloads=increment rounds=1 threads=2 seed=9 operations=1000
        locks=cx seed=9 sections=100
        threads=2 seed=9 operations=1000
        ");
    }

    #[test]
    fn an_option_that_makes_no_sense_is_refused() {
        let refused = |options: &[(&str, &str)]| {
            experiment(locks::programs(), options).check(locks::programs()).map_err(|error: Error| error.to_string())
        };
        let lines = [
            refused(&[(TASK, "sleep")]).unwrap_err(),
            refused(&[(WORK, "0")]).unwrap_err(),
            refused(&[(COUNTS, "maybe")]).unwrap_err(),
            refused(&[(GEAR, "fast")]).unwrap_err(),
            refused(&[("colour", "red")]).unwrap_err(),
        ];
        insta::assert_snapshot!(lines.join("\n"), @r#"
        option task = "sleep": allowed is measure, validate
        option work = "0": allowed is a whole number from 1 on
        option counts = "maybe": allowed is yes, no
        option gear = "fast": allowed is functional, timed
        system locks has no option "colour"; there are task, work, counts, gear
        "#);
        refused(&[(WORK, "7"), (COUNTS, "no"), (GEAR, "functional")]).unwrap();
    }
}
