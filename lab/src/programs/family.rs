//! What there is to measure and to validate: locks, and ways to write a transaction.

use crate::compare::Error;
use crate::experiment::refuse_repeated;

/// Which programs are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Locks,
    Stm,
}

/// What they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    Measure,
    Validate,
}

/// Something that is measured of each subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    pub name: &'static str,
    /// It is measured on one hart, whatever numbers of harts are asked for.
    pub is_alone: bool,
    /// A library that counts tells here how locks were taken. Counting changes times, and so these are runs of their own.
    pub is_counted: bool,
    /// The word that says how much is done.
    work_word: &'static str,
    /// How much is done where nobody says.
    work: u64,
}

const fn case(name: &'static str, work_word: &'static str, work: u64) -> Case {
    Case { name, is_alone: false, is_counted: false, work_word, work }
}

/// The loop of a million pairs in "Unfair Queued Spinlocks and Transactional Locks", with fewer of them.
pub const LOOP: &str = "loop";

const LOCK_CASES: [Case; 3] = [
    Case { is_alone: true, ..case("uncontended", "pairs", 1000) },
    Case { is_counted: true, ..case("throughput", "duration_ms", 1) },
    Case { is_counted: true, ..case(LOOP, "iterations", 1000) },
];

const STM_CASES: [Case; 7] = [
    case("increment", "operations", 1000),
    case("read16-write4", "operations", 1000),
    case("read16", "operations", 1000),
    case("list", "operations", 1000),
    case("hash-table", "operations", 1000),
    case("red-black-tree", "operations", 1000),
    case("bank", "operations", 1000),
];

/// How much a test does where nobody says.
const VALIDATION_WORK: u64 = 1000;

/// Locks: the first is what the others are compared with, as in that paper.
const LOCKS: [&str; 9] = ["byte", "ticket", "mcs", "queued", "paravirtualized", "unfair", "queued_rw", "cx", "tx"];

/// Backends and libraries.
const TRANSACTIONS: [&str; 5] = ["spinlock", "plain-2pl", "plain-tl2", "itm-2pl", "itm-tl2"];

const STM_LIBRARIES: [&str; 2] = ["2pl", "tl2"];

impl Family {
    /// Its name, as the command's.
    pub fn name(self) -> &'static str {
        match self {
            Family::Locks => "locks",
            Family::Stm => "stm",
        }
    }

    /// What one of its subjects is called.
    pub fn subject_noun(self) -> &'static str {
        match self {
            Family::Locks => "lock",
            Family::Stm => "library",
        }
    }

    /// What one of its cases is called.
    pub fn case_noun(self) -> &'static str {
        match self {
            Family::Locks => "test",
            Family::Stm => "workload",
        }
    }

    /// Everything that can be measured or validated.
    pub fn subjects(self, task: Task) -> &'static [&'static str] {
        match (self, task) {
            (Family::Locks, _) => &LOCKS,
            (Family::Stm, Task::Measure) => &TRANSACTIONS,
            (Family::Stm, Task::Validate) => &STM_LIBRARIES,
        }
    }

    /// Everything that is measured of a subject.
    pub fn cases(self) -> &'static [Case] {
        match self {
            Family::Locks => &LOCK_CASES,
            Family::Stm => &STM_CASES,
        }
    }

    /// The subjects of these names; all of them without a name.
    ///
    /// # Errors
    /// If a name is unknown or comes twice.
    pub fn choose_subjects(self, task: Task, names: &[String]) -> Result<Vec<&'static str>, Error> {
        choose(self.subject_noun(), self.subjects(task), |name| *name, names)
    }

    /// The cases of these names; all of them without a name.
    ///
    /// # Errors
    /// If a name is unknown or comes twice.
    pub fn choose_cases(self, names: &[String]) -> Result<Vec<Case>, Error> {
        choose(self.case_noun(), self.cases(), |case| case.name, names)
    }

    /// The file of the guest `tm` that a subject is in.
    pub fn program(self, task: Task, subject: &str, counts: bool) -> String {
        match (self, task) {
            (Family::Locks, Task::Measure) if counts => "locks-benchmark-counting".to_owned(),
            (Family::Locks, Task::Measure) => "locks-benchmark".to_owned(),
            (Family::Locks, Task::Validate) => "locks-validate".to_owned(),
            (Family::Stm, Task::Measure) => format!("stm-bench-{subject}"),
            (Family::Stm, Task::Validate) => format!("stm-validate-{subject}"),
        }
    }

    /// The command line of a measurement, on so many harts with this seed; `work` is how much is done, instead of what the case has.
    pub fn measurement(self, case: &Case, subject: &str, harts: usize, seed: u64, work: Option<u64>) -> String {
        let (word, work) = (case.work_word, work.unwrap_or(case.work));
        match self {
            Family::Locks => {
                format!("locks={subject} tests={} runs=1 threads={harts} {word}={work}", case.name)
            }
            Family::Stm => {
                let library = subject.split_once('-').map_or("", |(_, library)| library);
                let name = if library.is_empty() { String::new() } else { format!(" name={library}") };
                format!("workloads={}{name} rounds=1 threads={harts} seed={seed} {word}={work}", case.name)
            }
        }
    }

    /// The command line of a validation, on so many harts with this seed; `work` is how much each test does, instead of a thousand sections
    /// or transactions.
    pub fn validation(self, subject: &str, harts: usize, seed: u64, work: Option<u64>) -> String {
        let work = work.unwrap_or(VALIDATION_WORK);
        match self {
            Family::Locks => format!("locks={subject} seed={seed} sections={work}"),
            Family::Stm => format!("threads={harts} seed={seed} operations={work}"),
        }
    }
}

/// Those of a list that are named, in the order of the names.
fn choose<T: Copy>(
    noun: &str,
    all: &'static [T],
    name_of: impl Fn(&T) -> &'static str,
    names: &[String],
) -> Result<Vec<T>, Error> {
    refuse_repeated(noun, names.iter().map(String::as_str))?;
    if names.is_empty() {
        return Ok(all.to_vec());
    }
    let named = |name: &String| {
        all.iter().find(|one| name_of(one) == name).copied().ok_or_else(|| {
            let known = all.iter().map(&name_of).collect::<Vec<_>>().join(", ");
            Error::Request(format!("no {noun} is called {name:?}; there are {known}"))
        })
    };
    names.iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// A lock joins the check programs with an adapter, and the command with its name here.
    #[test]
    fn every_adapter_is_a_lock_here() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tm/check/locks/adapters");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut adapters: Vec<String> = files
            .filter(|path| path.extension().is_some_and(|extension| extension == "h"))
            .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        adapters.sort();
        let mut locks = LOCKS;
        locks.sort_unstable();
        assert_eq!(adapters, locks);
    }

    #[test]
    fn an_unknown_name_is_told_the_known_ones() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let error = Family::Locks.choose_subjects(Task::Measure, &names(&["byte", "bite"])).unwrap_err().to_string();
        assert!(error.starts_with("no lock is called \"bite\"; there are byte, ticket, "), "{error}");
        let error = Family::Stm.choose_cases(&names(&["bank", "bank"])).unwrap_err().to_string();
        assert_eq!(error, "workload \"bank\" is named twice");
        assert_eq!(Family::Stm.choose_subjects(Task::Validate, &[]).unwrap(), ["2pl", "tl2"]);
        assert_eq!(Family::Locks.choose_cases(&names(&["loop"])).unwrap()[0].name, LOOP);
    }

    #[test]
    fn command_lines_are_what_the_programs_read() {
        let cases = Family::Locks.cases();
        assert_eq!(
            Family::Locks.measurement(&cases[2], "unfair", 32, 1, None),
            "locks=unfair tests=loop runs=1 threads=32 iterations=1000"
        );
        let cases = Family::Stm.cases();
        assert_eq!(
            Family::Stm.measurement(&cases[0], "plain-tl2", 2, 9, Some(7)),
            "workloads=increment name=tl2 rounds=1 threads=2 seed=9 operations=7"
        );
        assert_eq!(
            Family::Stm.measurement(&cases[0], "spinlock", 2, 1, None),
            "workloads=increment rounds=1 threads=2 seed=1 operations=1000"
        );
        assert_eq!(Family::Locks.validation("cx", 2, 9, Some(100)), "locks=cx seed=9 sections=100");
        assert_eq!(Family::Stm.validation("2pl", 4, 1, None), "threads=4 seed=1 operations=1000");
    }
}
