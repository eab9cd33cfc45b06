//! A system outside the crate: a bare program under two contention managers, from a request to the tables of its report. It shows how much a
//! system needs, and holds the way from its cells to its tables; docs/how-to/system.md is about such a system.

use concord_lab::experiment::cell::{BeginsAt, CellFile, Start};
use concord_lab::experiment::coordinate::Parameter;
use concord_lab::experiment::executor::{BootEnd, Executor, Folders, RunEnd, Watcher};
use concord_lab::experiment::files::{Files, Input};
use concord_lab::experiment::local::Local;
use concord_lab::experiment::measurement::{Measurement, Reading};
use concord_lab::experiment::plan::{Plan, Point};
use concord_lab::experiment::request::SystemOptions;
use concord_lab::experiment::schedule::{self, CellOutcome, Completion};
use concord_lab::experiment::store::Store;
use concord_lab::experiment::variant::Variant;
use concord_lab::experiment::{Error, Experiment, cell::Cell};
use concord_lab::report;
use concord_lab::system::{Nouns, System};
use concord_machine::board::Manager;
use concord_machine::{Board, Configuration, Gear, Net};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The program `workloads/bare/contended.c`.
#[derive(Debug)]
struct Toy {
    program: PathBuf,
    nouns: Nouns,
}

static TOY: LazyLock<Toy> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("toy-system");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workloads/bare");
    let mut build = Command::new("make");
    build.arg("--silent").arg("--directory").arg(source).arg(format!("BUILD={}", folder.display()));
    let program = folder.join("contended.elf");
    let output = build.arg(&program).output().expect("make runs: `concord doctor` says what is missing");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = |text: &str| text.to_owned();
    let nouns = Nouns {
        title: text("Counters"),
        command: text("toy"),
        case: text("program"),
        variant: text("manager"),
        preposition: text("under"),
        case_field: text("program"),
        variant_field: text("manager"),
        plots_harts: true,
    };
    Toy { program, nouns }
});

impl System for Toy {
    fn name(&self) -> &str {
        "toy"
    }

    fn nouns(&self) -> &Nouns {
        &self.nouns
    }

    fn cases(&self, _options: &SystemOptions) -> Vec<String> {
        vec!["contended".to_owned()]
    }

    fn variants(&self, _options: &SystemOptions) -> Vec<Variant> {
        [Manager::SizeMatters, Manager::Timestamp].map(|manager| Variant::new(manager.name(), "")).into()
    }

    fn start(&self, point: &Point, _files: &Files) -> Result<Start, Error> {
        let mut board = point.board.clone();
        let named = |manager: &Manager| manager.name() == point.variant.name;
        board.transactions.manager = Manager::ALL.into_iter().find(named).expect("one of the variants");
        let program = Input::of_file(&self.program)?;
        Ok(Start {
            configuration: Configuration {
                board,
                seed: point.seed,
                gear: Gear::Timed,
                kernel: program.path.clone(),
                initrd: None,
                append: point.command_line(&[]),
                disks: Vec::new(),
                net: Net::None,
                check_isolation: point.experiment.check_isolation,
            },
            symbols: None,
            files: [("program".to_owned(), program)].into(),
            begins_at: BeginsAt::Reset,
            instructions_max: 1_000_000_000,
            keeps_console: true,
        })
    }

    /// Reads the line `sum 200 restarts 17 cycles of back-off 4711`.
    fn read(&self, file: &CellFile) -> Result<Reading, String> {
        if let Some(why) = file.end_failure() {
            return Err(why);
        }
        let line = file.console().iter().find(|line| line.starts_with("sum ")).ok_or("no line has the sum")?;
        let numbers: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [sum, restarts, _backoff] = numbers[..] else { return Err(format!("not three numbers: {line}")) };
        let operation = file.result.clock_cycles as f64 / sum;
        let quantities = [("operation_cycles", operation), ("restarts_all", restarts)];
        let measurement = Measurement {
            case: "contended".to_owned(),
            subject: file.coordinates["manager"].to_string(),
            threads: file.result.harts.len() as u64,
            main: "operation",
            unit: "cycles",
            quantities: quantities.map(|(name, value)| (name.to_owned(), value)).into(),
        };
        Ok(Reading { measurements: vec![measurement], verdicts: Vec::new() })
    }
}

fn experiment() -> Experiment {
    let toy: &'static dyn System = &*TOY;
    let options = SystemOptions::new();
    Experiment {
        cases: toy.cases(&options),
        variants: toy.variants(&options),
        sizes: Vec::new(),
        harts: vec![2],
        boards: vec![Board::preset("metatm-2007").unwrap()],
        parameters: Parameter::from_definitions(&["iterations=40".to_owned(), "iterations=80".to_owned()]).unwrap(),
        seeds: 2,
        append: String::new(),
        check_isolation: true,
        instructions_max: None,
        options,
    }
}

/// An executor that counts the runs that it makes.
#[derive(Default)]
struct Counting {
    runs_count: AtomicUsize,
}

const LOCAL: Local = Local { instructions: concord_machine::Executor::Translator };

impl Executor for Counting {
    fn boot(
        &self,
        cell: &Cell,
        snapshot_name: &str,
        folders: &Folders,
        watcher: &mut dyn Watcher,
    ) -> Result<BootEnd, Error> {
        LOCAL.boot(cell, snapshot_name, folders, watcher)
    }

    fn run(
        &self,
        cell: &Cell,
        snapshot_name: &str,
        folders: &Folders,
        watcher: &mut dyn Watcher,
    ) -> Result<RunEnd, Error> {
        self.runs_count.fetch_add(1, Ordering::Relaxed);
        // An executor elsewhere has the cell's text alone.
        let cell: Cell = serde_json::from_str(&serde_json::to_string(cell).unwrap()).unwrap();
        LOCAL.run(&cell, snapshot_name, folders, watcher)
    }
}

/// Makes the missing runs; the number of runs made, and the outcomes.
fn finish(plan: &Plan, store: &Store) -> (usize, Vec<Vec<CellOutcome>>) {
    let executor = Counting::default();
    match schedule::run(plan, store, &executor, 2, &|| false).unwrap() {
        Completion::Complete(outcomes) => (executor.runs_count.into_inner(), outcomes),
        Completion::Stopped { .. } => panic!("nobody stops it"),
    }
}

#[test]
fn a_system_outside_the_crate_goes_all_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let plan = Plan::new(&*TOY, &experiment(), &Files::default()).unwrap();
    let titles: Vec<&str> = plan.groups.iter().map(|group| group.title.as_str()).collect();
    assert_eq!(titles[1], "contended under timestamp, 2 harts, iterations=40");
    assert_eq!((titles.len(), plan.runs_count()), (4, 8));
    let store = Store::open(folder.path(), &plan.document()).unwrap();
    let (runs_count, outcomes) = finish(&plan, &store);
    assert_eq!(runs_count, 8);
    let report = report::of(&plan, &outcomes);
    let text = report.text();
    assert!(text.contains("contended, iterations=40") && text.contains("contended, iterations=80"), "{text}");
    assert!(text.contains("\n  size-matters ") && text.contains("\n  timestamp "), "{text}");
    report.write(&store).unwrap();
    let table = std::fs::read_to_string(folder.path().join("tables/operation.csv")).unwrap();
    assert_eq!(table.lines().count(), 1 + 4, "{table}");

    // An edited file is made again, and the others are believed.
    let file = folder.path().join("runs").join(&plan.groups[0].cells[0].file_name);
    let whole = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, whole.replacen("\"clock_cycles\": ", "\"clock_cycles\": 1", 1)).unwrap();
    let (runs_count, outcomes) = finish(&plan, &store);
    assert_eq!(runs_count, 1);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), whole, "the same run gives the same file");
    assert_eq!(report::of(&plan, &outcomes).text(), text);
}

#[test]
fn a_failed_run_says_why_and_where() {
    let folder = tempfile::tempdir().unwrap();
    let experiment = Experiment { seeds: 1, append: "iterations=x".to_owned(), parameters: Vec::new(), ..experiment() };
    let plan = Plan::new(&*TOY, &experiment, &Files::default()).unwrap();
    let store = Store::open(folder.path(), &plan.document()).unwrap();
    let text = report::of(&plan, &finish(&plan, &store).1).text();
    assert!(
        text.contains("Failed runs") && text.contains("contended, 2 harts\n") && text.contains("\n  timestamp "),
        "{text}"
    );
}
