//! The check programs of `tm` on the machine: locks at 2 to 64 harts over many seeds, with and without transactions, and broken variants,
//! which the programs must find.

mod machine_run;

use concord_abi::exit::Exit;
use concord_machine::board::{Granularity, Manager, Mode};
use concord_machine::{Board, Configuration, Gear, Net};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

const LOCKS: [&str; 10] =
    ["byte", "test-and-set", "ticket", "mcs", "queued", "paravirtualized", "unfair", "queued_rw", "cx", "tx"];
const MODES: [Mode; 3] = [Mode::Virtualized, Mode::BestEffort, Mode::None];
const GEARS: [Gear; 2] = [Gear::Functional, Gear::Timed];

/// Far more than any run here takes that ends.
const CYCLES_MAX: u64 = 1_000_000_000;
/// A broken variant often hangs, which is soon clear.
const BROKEN_CYCLES_MAX: u64 = 100_000_000;

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The programs of a source tree, each where the makefile says.
fn build(sources: &Path, folder: &Path, options: &str, programs: &[&str]) -> Result<(), String> {
    let output = Command::new("make")
        .args(["--silent", "--directory"])
        .arg(sources.join("tm"))
        .args(["HOST=bare", "HARTS_MAX=64", "ARENA_BYTES=67108864", "ORECS_LOG2=14"])
        .args([&format!("BUILD={}", folder.display()), &format!("OPTIONS={options}")])
        .args(programs.iter().map(|program| folder.join(program)))
        .output()
        .expect("make runs: `concord doctor` says what is missing");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(errors) }
}

/// A program of this tree, with statistics.
fn program(name: &str) -> PathBuf {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tm-bare");
        let programs = ["check/bare/port.elf", "check/locks/validate.elf", "check/sections/sections.elf"];
        build(Path::new(REPOSITORY), &folder, "-DTM_STATISTICS=1", &programs).unwrap();
        folder
    });
    FOLDER.join(name)
}

#[derive(Clone, Debug)]
struct Run {
    program: PathBuf,
    harts: usize,
    gear: Gear,
    seed: u64,
    mode: Mode,
    manager: Manager,
    granularity: Granularity,
    /// What the program is told besides its seed.
    words: String,
    checks_isolation: bool,
    cycles_max: u64,
}

impl Run {
    fn new(name: &str, harts: usize, gear: Gear, seed: u64, words: &str) -> Run {
        Run {
            program: program(name),
            harts,
            gear,
            seed,
            mode: Mode::Virtualized,
            manager: Manager::SizeMatters,
            granularity: Granularity::Word,
            words: words.to_owned(),
            checks_isolation: false,
            cycles_max: CYCLES_MAX,
        }
    }

    fn board(&self) -> Board {
        let mut board = Board::preset("metatm-2007").unwrap();
        board.harts.count = self.harts;
        board.transactions.mode = self.mode;
        board.transactions.manager = self.manager;
        board.transactions.granularity = self.granularity;
        board
    }

    /// How it ends, and what it prints.
    fn end(&self) -> (Exit, String) {
        let configuration = Configuration {
            board: self.board(),
            seed: self.seed,
            gear: self.gear,
            kernel: self.program.clone(),
            initrd: None,
            append: format!("seed={} {}", self.seed, self.words),
            disks: Vec::new(),
            net: Net::None,
            check_isolation: self.checks_isolation,
        };
        let (outcome, printed) = machine_run::to_the_end(configuration, self.cycles_max);
        (outcome.end.exit, printed + outcome.message.as_deref().unwrap_or(""))
    }

    fn passes(&self) {
        let (exit, printed) = self.end();
        assert_eq!(exit, Exit::PoweredOff, "{self:?}:\n{printed}");
        assert!(printed.contains(" passed\n"), "{self:?}:\n{printed}");
    }
}

/// Runs them all, on all of the host's processors.
fn all_pass(runs: &[Run]) {
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    run.passes();
                }
            });
        }
    });
}

#[test]
fn harts_sleep_wake_and_are_interrupted_in_transactions() {
    let mut runs = Vec::new();
    for (seed, harts) in [1, 2, 3, 8, 64].into_iter().enumerate() {
        for gear in GEARS {
            for mode in MODES {
                let run = Run::new("check/bare/port.elf", harts, gear, seed as u64 + 1, "iterations=200");
                runs.push(Run { mode, ..run });
            }
        }
    }
    all_pass(&runs);
}

/// Each lock at each number of harts, over so many seeds. Every other run is timed; the processor's transactions change as well.
fn lock_runs(harts: &[usize], seeds: std::ops::RangeInclusive<u64>, sections: u64) -> Vec<Run> {
    let mut runs = Vec::new();
    for lock in LOCKS {
        for seed in seeds.clone() {
            for (place, &harts) in harts.iter().enumerate() {
                let gear = GEARS[(seed as usize + place) % 2];
                let mode = MODES[(seed as usize + place) % 3];
                let words = format!("locks={lock} sections={sections}");
                runs.push(Run { mode, ..Run::new("check/locks/validate.elf", harts, gear, seed, &words) });
            }
        }
    }
    runs
}

#[test]
fn every_lock_is_right_at_any_number_of_harts() {
    all_pass(&lock_runs(&[2, 3, 5, 8, 16, 32, 64], 1..=2, 100));
}

#[test]
#[ignore = "takes half an hour"]
fn every_lock_is_right_over_a_hundred_seeds() {
    all_pass(&lock_runs(&[2, 3, 4, 8, 16, 32, 64], 1..=100, 400));
}

#[test]
fn a_hundred_seeds_of_every_lock_at_few_harts() {
    all_pass(&lock_runs(&[4], 101..=200, 40));
}

/// Under each policy, and without transactions: by the processor, and by the program's wish.
fn section_runs(harts: &[usize], seeds: std::ops::RangeInclusive<u64>, sections: u64) -> Vec<Run> {
    let mut runs = Vec::new();
    for &harts in harts {
        for seed in seeds.clone() {
            let words = format!("sections={sections}");
            let run = Run::new("check/sections/sections.elf", harts, GEARS[seed as usize % 2], seed, &words);
            for manager in Manager::ALL.into_iter().filter(|manager| *manager != Manager::SizeMatters) {
                runs.push(Run { manager, ..run.clone() });
            }
            for mode in MODES {
                runs.push(Run { mode, ..run.clone() });
                runs.push(Run { mode, granularity: Granularity::Line, gear: Gear::Timed, ..run.clone() });
            }
            runs.push(Run { words: format!("{words} htm=off"), ..run.clone() });
            runs.push(Run { checks_isolation: true, gear: Gear::Timed, ..run.clone() });
        }
    }
    runs
}

#[test]
fn sections_are_right_as_transactions_and_without() {
    all_pass(&section_runs(&[2, 4, 16], 1..=2, 40));
}

#[test]
#[ignore = "takes half an hour"]
fn sections_are_right_over_a_hundred_seeds() {
    all_pass(&section_runs(&[2, 5, 16], 1..=100, 100));
    all_pass(&section_runs(&[64], 1..=5, 40));
}

#[test]
fn the_programs_say_which_transactions_the_machine_has() {
    let run = Run::new("check/sections/sections.elf", 2, Gear::Functional, 1, "sections=10");
    let says = |run: &Run, kind: &str| {
        let (_, printed) = run.end();
        let lines: Vec<_> = printed.lines().filter(|line| line.starts_with('{')).collect();
        let all = lines.iter().all(|line| line.contains(&format!("\"transactions\":{kind:?}")));
        assert!(all && !lines.is_empty(), "{run:?}:\n{printed}");
    };
    says(&run, "xmetatm");
    says(&Run { mode: Mode::None, ..run.clone() }, "none");
    says(&Run { words: "sections=10 htm=off".to_owned(), ..run }, "none");
}

/// A variant of the sources that lacks something. Its patch says which program finds it, and for which lock.
struct Broken {
    name: String,
    patch: PathBuf,
    lock: String,
}

/// The variants that the machine is to find: `Caught-by: machine (sections lock=NAME)`.
fn broken_variants() -> Vec<Broken> {
    let folder = Path::new(REPOSITORY).join("tm/check/broken");
    let mut variants = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let patch = entry.unwrap().path();
        let text = fs::read_to_string(&patch).unwrap();
        let caught_by = text.lines().find_map(|line| line.strip_prefix("Caught-by: ")).unwrap_or("");
        if let Some((_, rest)) = caught_by.split_once("machine (sections lock=") {
            let lock = rest.split([')', ',']).next().unwrap().to_owned();
            let name = patch.file_stem().unwrap().to_string_lossy().into_owned();
            variants.push(Broken { name, patch, lock });
        }
    }
    variants
}

fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap();
    assert!(status.success());
}

impl Broken {
    fn build(&self, folder: &Path) -> PathBuf {
        fs::create_dir_all(folder.join("workloads")).unwrap();
        copy(&Path::new(REPOSITORY).join("tm"), folder);
        for part in ["bare", "include"] {
            copy(&Path::new(REPOSITORY).join("workloads").join(part), &folder.join("workloads"));
        }
        let mut patch = Command::new("patch");
        patch.args(["--silent", "--strip=1", "--directory"]).arg(folder).arg("--input").arg(&self.patch);
        assert!(patch.status().unwrap().success(), "{} does not apply", self.name);
        let built = folder.join("built");
        build(folder, &built, "-DTM_STATISTICS=1", &["check/sections/sections.elf"])
            .unwrap_or_else(|errors| panic!("{}: {errors}", self.name));
        built.join("check/sections/sections.elf")
    }

    /// The first run that finds it.
    fn found(&self, program: &Path) -> Option<Run> {
        let words = format!("lock={} sections=200", self.lock);
        let runs = (1..=6).flat_map(|seed| [(4, seed), (8, seed)]).flat_map(|(harts, seed)| {
            GEARS.map(|gear| Run::new("check/sections/sections.elf", harts, gear, seed, &words))
        });
        let mut runs = runs.map(|run| Run { program: program.to_owned(), cycles_max: BROKEN_CYCLES_MAX, ..run });
        runs.find(|run| run.end().0 != Exit::PoweredOff)
    }
}

#[test]
fn broken_variants_are_found() {
    let variants = broken_variants();
    assert!(variants.len() >= 10, "the patches are missing");
    let scratch = tempfile::tempdir().unwrap();
    let is_missed = |variant: &&Broken| {
        let program = variant.build(&scratch.path().join(&variant.name));
        variant.found(&program).is_none()
    };
    let missed: Vec<_> = variants.iter().filter(is_missed).map(|variant| &variant.name).collect();
    assert!(missed.is_empty(), "nobody noticed {missed:?}");
}
