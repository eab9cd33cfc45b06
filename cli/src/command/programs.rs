//! What `concord locks` and `concord stm` have in common: they run check programs, or read what these printed natively, and report.

use super::boot;
use crate::signal::Stop;
use anyhow::anyhow;
use concord_abi::exit::Exit;
use concord_lab::compare::schedule::default_jobs;
use concord_lab::compare::store::Store;
use concord_lab::guest::progress::Console;
use concord_lab::guest::{self, Guest};
use concord_lab::programs::family::{Family, Task};
use concord_lab::programs::native::Native;
use concord_lab::programs::plan::{Plan, Request};
use concord_lab::programs::record::RunFile;
use concord_lab::programs::schedule::{self, Outcome};
use concord_lab::report::Report;
use concord_lab::report::programs::{self, Data, NATIVE_FILE};
use concord_machine::Gear;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

pub const EXIT_CODES: &str = "\
Exit codes:
  0  every run did its work
  1  a run failed, and is in no table
  2  bad input: one line on standard error says what and where
  5  interrupted; the same command goes on
  7  a transaction was not isolated (--check-isolation)";

/// Options of both commands.
#[derive(clap::Args)]
pub struct ProgramArguments {
    /// Numbers of harts, separated by commas; 1,2,4,8 by default
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    harts: Option<Vec<usize>>,
    /// Runs of each kind, with seeds 1 to N
    #[arg(long, value_name = "N", default_value_t = 3)]
    seeds: u64,
    /// Run the tests instead, and measure nothing
    #[arg(long)]
    validate: bool,
    /// Report on what the programs of `make -C tm bench` printed natively, and run nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["harts", "seeds", "validate", "jobs", "board", "gear", "append",
        "check_isolation", "max_instructions"])]
    native: Option<PathBuf>,
    /// Runs to make side by side; as many as processors and memory allow by default
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// The folder of runs and reports; by default one under results/ that is named after what is run
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Words for the programs' command lines
    #[arg(long, value_name = "WORDS", default_value = "", hide_default_value = true, allow_hyphen_values = true)]
    append: String,
    /// A built-in board or a TOML file
    #[arg(long, value_name = "PRESET|FILE", default_value = "metatm-2007")]
    board: PathBuf,
    /// The gear of the runs
    #[arg(long, default_value = "timed", value_parser = boot::gear_parser())]
    gear: Gear,
    /// Follow every access, and fail runs in which a transaction is not isolated
    #[arg(long)]
    check_isolation: bool,
    /// Give a run up after this many instructions of all harts together
    #[arg(long, value_name = "N", default_value_t = 100_000_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    max_instructions: u64,
    /// Print no tables
    #[arg(long, short)]
    quiet: bool,
}

/// What a command adds to its options: names, and how much is done.
pub struct Choice<'a> {
    pub family: Family,
    pub subjects: &'a [String],
    pub cases: &'a [String],
    pub harts: &'static [usize],
    pub work: Option<u64>,
    pub counts: bool,
}

/// Runs either command.
///
/// # Errors
/// If an input cannot be used or the host fails.
pub fn run(arguments: &ProgramArguments, choice: &Choice) -> anyhow::Result<Exit> {
    match &arguments.native {
        Some(path) => report_native(arguments, &Native::from_file(choice.family, path)?),
        None => run_on_machine(arguments, &request(arguments, choice)?),
    }
}

fn request(arguments: &ProgramArguments, choice: &Choice) -> anyhow::Result<Request> {
    let task = if arguments.validate { Task::Validate } else { Task::Measure };
    Ok(Request {
        family: choice.family,
        task,
        subjects: choice.family.choose_subjects(task, choice.subjects)?,
        cases: choice.family.choose_cases(choice.cases)?,
        harts: arguments.harts.clone().unwrap_or_else(|| choice.harts.to_vec()),
        seeds: arguments.seeds,
        work: choice.work,
        board: boot::named_board(&arguments.board)?,
        gear: arguments.gear,
        append: arguments.append.clone(),
        counts: choice.counts,
        check_isolation: arguments.check_isolation,
        instructions_max: arguments.max_instructions,
    })
}

fn run_on_machine(arguments: &ProgramArguments, request: &Request) -> anyhow::Result<Exit> {
    request.check()?;
    let plan = Plan::new(request, &guest()?)?;
    let store = store(arguments, &plan.folder_name(), &plan.description)?;
    let jobs = arguments.jobs.map_or_else(|| default_jobs(request.board.memory.size_bytes), NonZeroUsize::get);
    let stop = Stop::on_signals().map_err(|error| anyhow!("cannot watch for signals: {error}"))?;
    let files = match schedule::run(&plan, &store, jobs, &|| stop.is_asked())? {
        Outcome::Complete(files) => files,
        Outcome::Stopped { finished_count } => {
            eprintln!(
                "concord: interrupted with {finished_count} of {} runs finished in {}; the same command goes on",
                plan.runs.len(),
                store.folder().display()
            );
            return Ok(Exit::LimitReached);
        }
    };
    write(arguments, &store, &programs::report(&Data::of_runs(&plan, &files)))?;
    Ok(exit(request.family, &files))
}

/// The programs, which are made in seconds where they are not there yet.
fn guest() -> anyhow::Result<Guest> {
    Ok(match guest::open("tm") {
        Err(guest::Error::NotBuilt { name }) => {
            guest::build(&[name.to_owned()], &guest::Options::default(), &Console::new())?.swap_remove(0)
        }
        opened => opened?,
    })
}

fn report_native(arguments: &ProgramArguments, native: &Native) -> anyhow::Result<Exit> {
    let store = store(arguments, &native.folder_name(), &native.description)?;
    store.write(NATIVE_FILE, native.text.as_bytes())?;
    write(arguments, &store, &programs::report(&Data::of_native(native)))?;
    Ok(Exit::PoweredOff)
}

fn store(arguments: &ProgramArguments, name: &str, description: &impl serde::Serialize) -> anyhow::Result<Store> {
    let folder = arguments.output.clone().unwrap_or_else(|| Path::new("results").join(name));
    Ok(Store::open(&folder, description)?)
}

fn write(arguments: &ProgramArguments, store: &Store, report: &Report) -> anyhow::Result<()> {
    let page = report.write(store)?;
    if !arguments.quiet {
        super::answer(report.text().as_bytes())?;
    }
    eprintln!("concord: report: {}", page.display());
    Ok(())
}

/// The worst that happened.
fn exit(family: Family, files: &[RunFile]) -> Exit {
    if files.iter().any(|file| file.result.exit == Exit::IsolationViolated) {
        return Exit::IsolationViolated;
    }
    if files.iter().all(|file| file.lines(family).is_ok()) { Exit::PoweredOff } else { Exit::Failed }
}
