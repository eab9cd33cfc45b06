//! `concord compare`: the same workloads on several kernels.

use super::boot;
use crate::signal::Stop;
use anyhow::anyhow;
use concord_abi::exit::Exit;
use concord_lab::compare::declaration::Declaration;
use concord_lab::compare::kernel::KernelChoice;
use concord_lab::compare::plan::{Guests, Plan, Request};
use concord_lab::compare::schedule::{self, Outcome, RunOutcome};
use concord_lab::compare::store::Store;
use concord_lab::compare::workload::Size;
use concord_lab::report::kernels::{self, Data};
use concord_machine::board::Manager;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Compare kernels: the same workloads with locks and with transactions
///
/// Each workload is booted once on each kernel and number of harts, and then run once for each seed. Finished runs are kept, so that the
/// same command goes on where it was interrupted. Prints the tables; writes them as JSON, CSV and a page for the browser.
#[derive(clap::Args)]
#[command(after_help = "\
Exit codes:
  0  every run did its work
  1  a run failed, and is in no table
  2  bad input: one line on standard error says what and where
  5  interrupted; the same command goes on
  7  a transaction was not isolated (--check-isolation)")]
pub struct Arguments {
    /// What is run: pmake, bonnie++, mab, configure, find, dpunish, files
    #[arg(value_name = "WORKLOAD", required_unless_present = "experiment")]
    workloads: Vec<String>,
    /// A declared comparison, such as experiments/comparisons/demo.toml, instead of workloads and options
    #[arg(long, value_name = "FILE", conflicts_with_all = ["workloads", "kernels", "definitions", "harts", "seeds", "size", "append",
        "board", "contention_manager", "check_isolation", "max_instructions"])]
    experiment: Option<PathBuf>,
    /// Kernels by name, separated by commas, what the others are compared with first: linux (locks), txlinux-ss (subsystems
    /// converted), txlinux-cx (nearly every spinlock) and those of --kernel; all of them by default
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    kernels: Option<Vec<String>>,
    /// Another kernel: our Image with these words on its command line, such as `no-ipi=cx=on cx.safe=counter,wake`; the words
    /// image=FILE and symbols=FILE name another Image
    #[arg(long = "kernel", value_name = "NAME=WORDS")]
    definitions: Vec<String>,
    /// Numbers of harts, separated by commas
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "8")]
    harts: Vec<usize>,
    /// Runs of each kind, with seeds 1 to N
    #[arg(long, value_name = "N", default_value_t = 3)]
    seeds: u64,
    /// How much work: tiny, quick or paper
    #[arg(long, value_name = "SIZE", default_value = "quick")]
    size: Size,
    /// Runs to make side by side; as many as processors and memory allow by default
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// The folder of runs and reports; by default one under results/ that is named after the comparison
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Words for every kernel's command line
    #[arg(long, value_name = "WORDS", default_value = "", hide_default_value = true, allow_hyphen_values = true)]
    append: String,
    /// A built-in board or a TOML file
    #[arg(long, value_name = "PRESET|FILE", default_value = "metatm-2007")]
    board: PathBuf,
    /// Who goes on when two transactions meet, instead of the board's choice
    #[arg(long, value_name = "NAME", value_parser = boot::manager_parser())]
    contention_manager: Option<Manager>,
    /// Follow every access, and fail runs in which a transaction is not isolated
    #[arg(long)]
    check_isolation: bool,
    /// Give a run up after this many instructions of all harts together, instead of what its size allows
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_instructions: Option<u64>,
    /// Print no tables
    #[arg(long, short)]
    quiet: bool,
}

/// Runs the command.
///
/// # Errors
/// If an input cannot be used or the host fails.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let request = match &arguments.experiment {
        Some(path) => Declaration::from_file(path)?.request()?,
        None => request(arguments)?,
    };
    let plan = Plan::new(&request, &Guests::open(&request.workloads, &request.kernels)?)?;
    let folder = arguments.output.clone().unwrap_or_else(|| Path::new("results").join(plan.folder_name()));
    let store = Store::open(&folder, &plan.description)?;
    let jobs = arguments
        .jobs
        .map_or_else(|| schedule::default_jobs(plan.description.board.memory.size_bytes), NonZeroUsize::get);
    let stop = Stop::on_signals().map_err(|error| anyhow!("cannot watch for signals: {error}"))?;
    let outcomes = match schedule::run(&plan, &store, jobs, &|| stop.is_asked())? {
        Outcome::Complete(outcomes) => outcomes,
        Outcome::Stopped { finished_count } => {
            eprintln!(
                "concord: interrupted with {finished_count} of {} runs finished in {}; the same command goes on",
                plan.runs_count(),
                folder.display()
            );
            return Ok(Exit::LimitReached);
        }
    };
    let report = kernels::report(&Data::new(&plan, &outcomes));
    let page = report.write(&store)?;
    if !arguments.quiet {
        super::answer(report.text().as_bytes())?;
    }
    eprintln!("concord: report: {}", page.display());
    Ok(exit(&outcomes))
}

fn request(arguments: &Arguments) -> anyhow::Result<Request> {
    let mut board = boot::named_board(&arguments.board)?;
    board.transactions.manager = arguments.contention_manager.unwrap_or(board.transactions.manager);
    Ok(Request {
        workloads: arguments.workloads.clone(),
        kernels: KernelChoice::choose(arguments.kernels.as_deref(), &arguments.definitions)?,
        harts: arguments.harts.clone(),
        seeds: arguments.seeds,
        size: arguments.size,
        board,
        append: arguments.append.clone(),
        check_isolation: arguments.check_isolation,
        instructions_max: arguments.max_instructions,
    })
}

/// The worst that happened.
fn exit(outcomes: &[Vec<RunOutcome>]) -> Exit {
    let mut worst = Exit::PoweredOff;
    for outcome in outcomes.iter().flatten() {
        match outcome {
            RunOutcome::Made(file) if file.result.exit == Exit::IsolationViolated => return Exit::IsolationViolated,
            RunOutcome::Made(file) if file.failure().is_none() => {}
            _ => worst = Exit::Failed,
        }
    }
    worst
}
