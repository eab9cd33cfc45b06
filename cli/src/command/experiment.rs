//! What `compare`, `locks` and `stm` have in common: options of every experiment, and the way from a plan to its report.

use super::boot;
use crate::session::ExecutorArguments;
use crate::signal::Stop;
use anyhow::anyhow;
use concord_abi::exit::Exit;
use concord_lab::experiment::Experiment;
use concord_lab::experiment::files::Files;
use concord_lab::experiment::local::Local;
use concord_lab::experiment::plan::Plan;
use concord_lab::experiment::schedule::{self, CellOutcome, Completion};
use concord_lab::experiment::store::Store;
use concord_lab::guest::progress::Console;
use concord_lab::report::{self, Report};
use concord_lab::system::System;
use concord_machine::Board;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

pub const EXIT_CODES: &str = "\
Exit codes:
  0  every run did its work
  1  a run failed, and is in no table
  2  bad input: one line on standard error says what and where
  5  interrupted; the same command goes on
  7  a transaction was not isolated (--check-isolation)";

/// Options that decide nothing of the runs.
#[derive(clap::Args)]
pub struct OutputArguments {
    /// The folder of runs and reports; by default one under results/ that is named after what is run
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print no tables
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    executor: ExecutorArguments,
}

impl OutputArguments {
    /// The folder of an experiment.
    ///
    /// # Errors
    /// If it is another one's, or cannot be written to.
    pub fn store(&self, folder_name: &str, description: &impl serde::Serialize) -> anyhow::Result<Store> {
        let folder = self.output.clone().unwrap_or_else(|| Path::new("results").join(folder_name));
        Ok(Store::open(&folder, description)?)
    }

    /// Writes a report, and prints its tables.
    ///
    /// # Errors
    /// If a file cannot be written, or standard output is closed or full.
    pub fn write(&self, store: &Store, report: &Report) -> anyhow::Result<()> {
        let page = report.write(store)?;
        if !self.quiet {
            super::answer(report.text().as_bytes())?;
        }
        eprintln!("concord: report: {}", page.display());
        Ok(())
    }
}

/// Boards by their names or files.
///
/// # Errors
/// Names the first that there is not.
pub fn boards(names: &[PathBuf]) -> anyhow::Result<Vec<Board>> {
    names.iter().map(|name| boot::named_board(name)).collect()
}

/// Makes an experiment's runs and its report.
///
/// # Errors
/// If an input cannot be used or the host fails.
pub fn run(
    system: &'static dyn System,
    experiment: &Experiment,
    jobs: Option<NonZeroUsize>,
    output: &OutputArguments,
) -> anyhow::Result<Exit> {
    let files = Files::open(system, experiment, || Box::new(Console::new()))?;
    let plan = Plan::new(system, experiment, &files)?;
    let store = output.store(&plan.folder_name(), &plan.document())?;
    let jobs = jobs.map_or_else(|| schedule::default_jobs(experiment.memory_bytes_max()), NonZeroUsize::get);
    let stop = Stop::on_signals().map_err(|error| anyhow!("cannot watch for signals: {error}"))?;
    let local = Local { instructions: output.executor.choose() };
    let outcomes = match schedule::run(&plan, &store, &local, jobs, &|| stop.is_asked())? {
        Completion::Complete(outcomes) => outcomes,
        Completion::Stopped { finished_count } => {
            eprintln!(
                "concord: interrupted with {finished_count} of {} runs finished in {}; the same command goes on",
                plan.runs_count(),
                store.folder().display()
            );
            return Ok(Exit::Stopped);
        }
    };
    output.write(&store, &report::of(&plan, &outcomes))?;
    Ok(exit(system, &outcomes))
}

/// The worst end of all runs.
fn exit(system: &dyn System, outcomes: &[Vec<CellOutcome>]) -> Exit {
    let mut worst = Exit::PoweredOff;
    for outcome in outcomes.iter().flatten() {
        match outcome {
            CellOutcome::Made(file) if file.result.exit_code == Exit::IsolationViolated.code() => {
                return Exit::IsolationViolated;
            }
            CellOutcome::Made(file) if system.read(file).is_ok() => {}
            _ => worst = Exit::Failed,
        }
    }
    worst
}
