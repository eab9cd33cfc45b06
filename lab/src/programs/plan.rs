//! What is run: every subject on every number of harts, once for each seed, and when it is measured once for each case.

use super::family::{Case, Family, Task};
use crate::compare::plan::{ID_DIGITS, Input, MACHINE_DIGEST, ProgramDescription, digest};
use crate::experiment::{Error, refuse_repeated};
use crate::guest::Guest;
use concord_machine::{Board, Configuration, Gear, Net};
use serde::Serialize;
use std::collections::BTreeMap;

/// The format of plan and run files, and the way in which runs are made; raised when either changes.
const FORMAT: u32 = 1;

/// The case of runs that validate.
const VALIDATION: &str = "validation";

/// What the user asks for.
#[derive(Clone, Debug)]
pub struct Request {
    pub family: Family,
    pub task: Task,
    /// The first is what the others are compared with.
    pub subjects: Vec<&'static str>,
    /// What is measured; nothing where it is validated.
    pub cases: Vec<Case>,
    pub harts: Vec<usize>,
    /// Seeds 1 to this number.
    pub seeds: u64,
    /// How much each run does, instead of what its case has.
    pub work: Option<u64>,
    pub board: Board,
    pub gear: Gear,
    /// Words for every command line.
    pub append: String,
    /// Besides, a library that counts steals and aborts is run where there is something to count.
    pub counts: bool,
    pub check_isolation: bool,
    pub instructions_max: u64,
}

impl Request {
    /// Looks at the numbers.
    ///
    /// # Errors
    /// If one is none that a machine has, or comes twice.
    pub fn check(&self) -> Result<(), Error> {
        let harts: Vec<String> = self.harts.iter().map(usize::to_string).collect();
        refuse_repeated("hart count", harts.iter().map(String::as_str))?;
        if let Some(wrong) = self.harts.iter().find(|harts| !(1..=64).contains(*harts)) {
            return Err(Error::Request(format!("{wrong} harts: allowed is 1 to 64")));
        }
        for (count, what) in [(self.harts.len() as u64, "hart count"), (self.seeds, "seed")] {
            if count == 0 {
                return Err(Error::Request(format!("at least one {what} is wanted")));
            }
        }
        for harts in &self.harts {
            self.board_of(*harts)?;
        }
        Ok(())
    }

    /// The board with so many harts.
    fn board_of(&self, harts: usize) -> Result<Board, Error> {
        let mut board = self.board.clone();
        board.harts.count = harts;
        board.validate().map_err(concord_machine::MachineError::from)?;
        Ok(board)
    }
}

/// What `plan.json` says: everything that decides the runs, and nothing of where they were made.
#[derive(Clone, Debug, Serialize)]
pub struct Description {
    pub format: u32,
    pub family: &'static str,
    pub program: ProgramDescription,
    pub subjects: Vec<&'static str>,
    pub cases: Vec<&'static str>,
    pub harts: Vec<usize>,
    pub seeds: u64,
    pub work: Option<u64>,
    /// BLAKE3 of the programs, by their roles in the guest.
    pub guests: BTreeMap<String, String>,
    pub append: String,
    pub board: Board,
    pub gear: Gear,
    pub check_isolation: bool,
    pub instructions_max: u64,
}

/// Everything that decides one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunKey {
    pub format: u32,
    pub machine: &'static str,
    pub program: String,
    pub command_line: String,
    pub board: Board,
    pub gear: Gear,
    pub seed: u64,
    pub check_isolation: bool,
    pub instructions_max: u64,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Run {
    pub case: &'static str,
    pub subject: &'static str,
    pub harts: usize,
    pub seed: u64,
    /// Its library counts, and its times are not those of one that does not.
    pub counts: bool,
    /// The first digits of the digest of its key.
    pub id: String,
    pub key: RunKey,
    /// The name of its file in the folder of runs.
    pub file_name: String,
    pub configuration: Configuration,
}

impl Run {
    /// What a person calls it.
    pub fn title(&self) -> String {
        let counted = if self.counts { ", counted" } else { "" };
        format!("{} of {}, {} harts, seed {}{counted}", self.case, self.subject, self.harts, self.seed)
    }
}

/// All runs.
#[derive(Clone, Debug)]
pub struct Plan {
    pub family: Family,
    pub description: Description,
    /// By case, then number of harts, then subject, then seed.
    pub runs: Vec<Run>,
}

impl Plan {
    /// Checks what is asked for, and lays it out.
    ///
    /// # Errors
    /// As [`Request::check`], or if the guest lacks a program.
    pub fn new(request: &Request, guest: &Guest) -> Result<Plan, Error> {
        request.check()?;
        let mut programs = BTreeMap::new();
        let mut runs = Vec::new();
        for case in cases(request) {
            let alone = [1];
            let harts = if case.is_some_and(|case| case.is_alone) { &alone } else { request.harts.as_slice() };
            let counts =
                if request.counts && case.is_some_and(|case| case.is_counted) { &[false, true][..] } else { &[false] };
            for harts in harts {
                for subject in &request.subjects {
                    for counts in counts {
                        let role = request.family.program(request.task, subject, *counts);
                        let program = program(guest, &role)?;
                        for seed in 1..=request.seeds {
                            runs.push(run(request, &program, case, subject, *harts, *counts, seed)?);
                        }
                        programs.insert(role, program);
                    }
                }
            }
        }
        let description = Description {
            format: FORMAT,
            family: request.family.name(),
            program: ProgramDescription { version: env!("CARGO_PKG_VERSION"), machine: MACHINE_DIGEST },
            subjects: request.subjects.clone(),
            cases: cases(request).into_iter().map(name_of).collect(),
            harts: request.harts.clone(),
            seeds: request.seeds,
            work: request.work,
            guests: programs.into_iter().map(|(role, input)| (role, input.blake3)).collect(),
            append: request.append.clone(),
            board: request.board.clone(),
            gear: request.gear,
            check_isolation: request.check_isolation,
            instructions_max: request.instructions_max,
        };
        Ok(Plan { family: request.family, description, runs })
    }

    /// Whether the runs validate, and measure nothing.
    pub fn is_validation(&self) -> bool {
        self.runs.iter().all(|run| run.case == VALIDATION)
    }

    /// A name for the folder of these runs and of no others.
    pub fn folder_name(&self) -> String {
        format!("{}-{}", self.family.name(), &digest(&self.description)[..ID_DIGITS])
    }
}

fn program(guest: &Guest, role: &str) -> Result<Input, Error> {
    let blake3 = guest.manifest.artifacts.get(role).map(|artifact| artifact.blake3.clone());
    let missing = || Error::Request(format!("guest {} has no file {role:?}", guest.manifest.name));
    guest.artifact(role).zip(blake3).map(|(path, blake3)| Input { path, blake3 }).ok_or_else(missing)
}

/// The cases of the runs; none is the one of validation.
fn cases(request: &Request) -> Vec<Option<Case>> {
    match request.task {
        Task::Measure => request.cases.iter().copied().map(Some).collect(),
        Task::Validate => vec![None],
    }
}

fn name_of(case: Option<Case>) -> &'static str {
    case.map_or(VALIDATION, |case| case.name)
}

fn run(
    request: &Request,
    program: &Input,
    case: Option<Case>,
    subject: &'static str,
    harts: usize,
    counts: bool,
    seed: u64,
) -> Result<Run, Error> {
    let board = request.board_of(harts)?;
    let words = match case {
        Some(case) => request.family.measurement(&case, subject, harts, seed, request.work),
        None => request.family.validation(subject, harts, seed, request.work),
    };
    let command_line = [words.as_str(), request.append.trim()].join(" ").trim().to_owned();
    let key = RunKey {
        format: FORMAT,
        machine: MACHINE_DIGEST,
        program: program.blake3.clone(),
        command_line: command_line.clone(),
        board: board.clone(),
        gear: request.gear,
        seed,
        check_isolation: request.check_isolation,
        instructions_max: request.instructions_max,
    };
    let id = digest(&key)[..ID_DIGITS].to_owned();
    let case = name_of(case);
    let counted = if counts { ".counted" } else { "" };
    let file_name = format!("{case}.{subject}.{harts}.{seed}{counted}.{id}.json");
    let configuration = Configuration {
        board,
        seed,
        gear: request.gear,
        kernel: program.path.clone(),
        initrd: None,
        append: command_line,
        disks: Vec::new(),
        net: Net::None,
        check_isolation: request.check_isolation,
    };
    Ok(Run { case, subject, harts, seed, counts, id, key, file_name, configuration })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::guest::{Artifact, Manifest};
    use std::collections::BTreeSet;

    pub fn guest() -> Guest {
        let artifact = |role: &str| {
            (role.to_owned(), Artifact { file: role.to_owned(), size_bytes: 1, blake3: format!("digest of {role}") })
        };
        let artifacts = ["locks-benchmark", "locks-benchmark-counting", "locks-validate"].map(artifact).into();
        let manifest = Manifest { name: "tm".to_owned(), digest: String::new(), inputs: Vec::new(), artifacts };
        Guest { directory: "/guests/tm".into(), manifest }
    }

    pub fn request() -> Request {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        Request {
            family: Family::Locks,
            task: Task::Measure,
            subjects: Family::Locks.choose_subjects(Task::Measure, &texts(&["byte", "unfair"])).unwrap(),
            cases: Family::Locks.choose_cases(&texts(&["uncontended", "loop"])).unwrap(),
            harts: vec![4, 8],
            seeds: 3,
            work: None,
            board: Board::preset("metatm-2007").unwrap(),
            gear: Gear::Timed,
            append: String::new(),
            counts: true,
            check_isolation: false,
            instructions_max: 1 << 40,
        }
    }

    fn ids(request: &Request) -> BTreeSet<String> {
        Plan::new(request, &guest()).unwrap().runs.into_iter().map(|run| run.id).collect()
    }

    #[test]
    fn every_combination_is_a_run_with_a_name_of_its_own() {
        let plan = Plan::new(&request(), &guest()).unwrap();
        // Without contention there is nothing to see on more than one hart.
        assert_eq!((plan.runs.len(), ids(&request()).len()), (2 * 3 + 2 * 2 * 2 * 3, 30));
        assert_eq!(plan.runs[0].title(), "uncontended of byte, 1 harts, seed 1");
        let last = plan.runs.last().unwrap();
        assert_eq!(last.file_name, format!("loop.unfair.8.3.counted.{}.json", last.id));
        assert_eq!((plan.runs[6].key.program.as_str(), plan.runs[6].counts), ("digest of locks-benchmark", false));
        assert_eq!(last.configuration.append, "locks=unfair tests=loop runs=1 threads=8 iterations=1000");
        assert_eq!((last.configuration.board.harts.count, last.configuration.seed), (8, 3));
        assert_eq!(last.key.program, "digest of locks-benchmark-counting");

        let plan = Plan::new(&Request { task: Task::Validate, ..request() }, &guest()).unwrap();
        assert_eq!(plan.runs.len(), 2 * 2 * 3);
        assert_eq!(plan.runs[1].configuration.append, "locks=byte seed=2 sections=1000");
    }

    /// A run is named by what decides it: anything that does changes every name, and nothing else does.
    #[test]
    fn what_decides_a_run_decides_its_name() {
        let base = ids(&request());
        let changes: [&dyn Fn(&mut Request); 5] = [
            &|request| request.append = "htm=off".to_owned(),
            &|request| request.work = Some(7),
            &|request| request.gear = Gear::Functional,
            &|request| request.instructions_max = 7,
            &|request| request.board.cache.memory_latency_cycles += 1,
        ];
        for (index, change) in changes.iter().enumerate() {
            let mut other = request();
            change(&mut other);
            assert!(base.is_disjoint(&ids(&other)), "{index}");
        }
        assert_eq!(ids(&Request { seeds: 5, harts: vec![8], ..request() }).intersection(&base).count(), 6 + 12);
        let uncounted = ids(&Request { counts: false, ..request() });
        assert!(uncounted.is_subset(&base) && uncounted.len() == 18);
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        let refused = |change: &dyn Fn(&mut Request)| {
            let mut request = request();
            change(&mut request);
            Plan::new(&request, &guest()).unwrap_err().to_string()
        };
        let lines = [
            refused(&|request| request.harts.push(0)),
            refused(&|request| request.harts.push(65)),
            refused(&|request| request.harts.push(4)),
            refused(&|request| request.harts.clear()),
            refused(&|request| request.seeds = 0),
            refused(&|request| (request.family, request.subjects) = (Family::Stm, vec!["plain-2pl"])),
        ];
        insta::assert_snapshot!(lines.join("\n"), @r#"
        0 harts: allowed is 1 to 64
        65 harts: allowed is 1 to 64
        hart count "4" is named twice
        at least one hart count is wanted
        at least one seed is wanted
        guest tm has no file "stm-bench-plain-2pl"
        "#);
    }
}
