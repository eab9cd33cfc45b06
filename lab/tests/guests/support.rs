//! What every test needs: guests, a console that can be typed at, and runs.

use concord_abi::exit::Exit;
use concord_dev::DiskMode;
use concord_lab::guest::{self, Guest, progress};
use concord_machine::board::{Backoff, Granularity, Manager, OutsideReads};
use concord_machine::result::{self, ResultDocument};
use concord_machine::run::{self, Host, Limits, Options, Outcome, SnapshotEvent};
use concord_machine::{Board, Configuration, DiskImage, Gear, Machine, Net};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

pub const SEED: u64 = 1;

/// More than any guest here takes: one that hangs becomes a failed test, not a hung one.
const INSTRUCTIONS_MAX: u64 = 20_000_000_000;

/// The path of a guest's file. The guest is built when it is not in the cache.
pub fn artifact(name: &str, role: &str) -> PathBuf {
    static GUESTS: Mutex<BTreeMap<String, Guest>> = Mutex::new(BTreeMap::new());
    // A builder that failed in one test fails in the others too, with its reason rather than with a poisoned lock.
    let mut guests = GUESTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let guest = guests.entry(name.to_owned()).or_insert_with(|| {
        let built = guest::build(&[name.to_owned()], &guest::Options::default(), &progress::Console::new());
        built.unwrap_or_else(|error| panic!("guest {name}: {error}")).remove(0)
    });
    guest.artifact(role).unwrap_or_else(|| panic!("guest {name} has no {role}"))
}

fn overlay(path: PathBuf) -> DiskImage {
    DiskImage { path, mode: DiskMode::Overlay }
}

fn linux(kernel: PathBuf, words: &str, harts: usize, gear: Gear) -> Configuration {
    let mut board = Board::preset("metatm-2007").unwrap();
    board.harts.count = harts;
    if std::env::var_os("CONCORD_TEST_EVERY_KEY").is_some() {
        turn_on_every_key(&mut board);
    }
    Configuration {
        board,
        seed: SEED,
        gear,
        kernel,
        initrd: None,
        append: format!("console=ttyS0 root=/dev/vda panic=-1 {words}"),
        disks: vec![overlay(artifact("rootfs", "rootfs"))],
        net: Net::None,
        check_isolation: false,
    }
}

/// Gives the machine what the built-in boards leave out: a manager that waits, loads that read around transactions, additions that
/// wait for the commit, and losers that wait for the winner. With `CONCORD_TEST_EVERY_KEY` every test has it so.
pub fn turn_on_every_key(board: &mut Board) {
    let transactions = &mut board.transactions;
    transactions.manager = Manager::RequesterStalls;
    transactions.granularity = Granularity::Word32;
    transactions.outside_reads = OutsideReads::Committed;
    transactions.deferred_adds = 16;
    transactions.backoff = Backoff::Winner;
}

/// Our kernel on its root file system; `words` are added to its command line.
pub fn ours(words: &str, harts: usize, gear: Gear) -> Configuration {
    linux(artifact("kernel", "Image"), words, harts, gear)
}

/// Debian's kernel, unmodified, with its initial RAM disk, on the same root file system.
pub fn stock(words: &str, harts: usize) -> Configuration {
    let initrd = Some(artifact("stock", "initrd"));
    Configuration { initrd, ..linux(artifact("stock", "Image"), words, harts, Gear::Functional) }
}

/// The console's other end: keeps what the guest prints, and types each line when what it waits for has been printed.
#[derive(Default)]
pub struct Typist {
    pub printed: String,
    /// What to wait for, and what to type then.
    script: Vec<(&'static str, String)>,
    next: usize,
    /// The printed text up to here has been answered.
    answered_bytes: usize,
}

impl Typist {
    /// Types a line at each prompt of the root shell.
    pub fn at_shell(lines: &[&str]) -> Typist {
        let script = lines.iter().map(|line| ("# ", format!("{line}\n"))).collect();
        Typist { script, ..Typist::default() }
    }
}

impl Host for Typist {
    fn print(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.printed.push_str(&String::from_utf8_lossy(bytes));
        Ok(())
    }

    fn input(&mut self, _: Duration) -> Option<Vec<u8>> {
        let (wanted, line) = self.script.get(self.next)?;
        let Some(at) = self.printed[self.answered_bytes..].find(wanted) else { return Some(Vec::new()) };
        self.answered_bytes += at + wanted.len();
        self.next += 1;
        Some(line.clone().into_bytes())
    }

    fn is_interactive(&self) -> bool {
        !self.script.is_empty()
    }

    fn progress(&mut self, _: &Machine) {}
}

/// A run that has ended.
pub struct Run {
    pub outcome: Outcome,
    /// Everything the guest printed.
    pub console: String,
    pub document: ResultDocument,
}

impl Run {
    /// Checks that the guest powered off and that its kernel complained of nothing.
    #[track_caller]
    pub fn healthy(self) -> Run {
        const COMPLAINTS: [&str; 8] = [
            "BUG",
            "Oops",
            "WARNING",
            "hung task",
            "blocked for more than",
            "lockup",
            "Call Trace",
            "concord: unknown",
        ];
        let is_complaint = |line: &&str| {
            COMPLAINTS.iter().any(|word| line.contains(word)) || line.contains("rcu") && line.contains("stall")
        };
        // The program warns, as often as not, that it was faster than it had expected.
        let mut lines = self.console.lines().filter(|line| !line.starts_with("stress-ng:"));
        let complaint = lines.find(is_complaint);
        assert!(complaint.is_none(), "the kernel complains: {complaint:?}\n{}", self.console);
        assert_eq!(self.document.exit, Exit::PoweredOff, "{:?}\n{}", self.outcome, self.console);
        assert_eq!(self.document.exit_code, 0);
        self
    }

    #[track_caller]
    pub fn says(&self, text: &str) {
        assert!(self.console.contains(text), "{text:?} is not on the console:\n{}", self.console);
    }

    /// Checks that this was the same run as another one, as far as results say.
    #[track_caller]
    pub fn equals(&self, other: &Run, what: &str) {
        let mut differences = Vec::new();
        compare(&self.facts(), &other.facts(), "", &mut differences);
        assert!(differences.is_empty(), "{what}:\n{}", differences.join("\n"));
    }

    /// The result without the host's time, the only field in which two equal runs may differ.
    fn facts(&self) -> Value {
        let mut facts = serde_json::to_value(&self.document).unwrap();
        let fields = facts.as_object_mut().unwrap();
        assert!(fields.remove("host_seconds").is_some());
        facts
    }
}

/// Notes where two documents differ, rather than print them whole.
fn compare(one: &Value, other: &Value, path: &str, differences: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(fields), Value::Object(others)) if fields.keys().eq(others.keys()) => {
            for (key, value) in fields {
                compare(value, &others[key], &format!("{path}/{key}"), differences);
            }
        }
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => {
            for (index, (item, other)) in items.iter().zip(others).enumerate() {
                compare(item, other, &format!("{path}/{index}"), differences);
            }
        }
        _ if one == other => {}
        _ => differences.push(format!("{path}: {one} and {other}")),
    }
}

/// Runs a machine to its end. Limits that `options` leave open are set to something that ends a guest that hangs.
pub fn run(mut machine: Machine, mut options: Options, mut typist: Typist) -> Run {
    if options.limits == Limits::default() {
        options.limits.instructions = Some(INSTRUCTIONS_MAX);
    }
    let outcome = run::run(&mut machine, &options, &mut typist).unwrap();
    let document = result::document(&mut machine, &outcome, 0.0).unwrap();
    Run { outcome, console: typist.printed, document }
}

pub fn boot(configuration: Configuration) -> Run {
    run(Machine::new(configuration).unwrap(), Options::default(), Typist::default())
}

/// Boots to the root shell, types a line at each prompt, and runs until the guest ends the run.
pub fn boot_and_type(configuration: Configuration, lines: &[&str]) -> Run {
    run(Machine::new(configuration).unwrap(), Options::default(), Typist::at_shell(lines))
}

pub fn snapshot_at(event: SnapshotEvent, path: &Path) -> Options {
    Options { snapshot: Some((event, path.to_owned())), ..Options::default() }
}

pub fn resume(path: &Path, options: Options) -> Run {
    run(Machine::resume(path).unwrap(), options, Typist::default())
}

/// Runs a host program and returns what it printed; it must succeed. The tools of file systems are in the superuser's path.
pub fn host_tool(program: &str, arguments: &[&str]) -> String {
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let output = Command::new("env").arg(format!("PATH={path}")).arg(program).args(arguments).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {}\n{printed}{errors}", output.status);
    printed
}
