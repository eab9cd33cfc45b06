//! `concord compare`: the same workloads on several kernels.

use super::boot;
use super::experiment::{self, EXIT_CODES, OutputArguments};
use concord_abi::exit::Exit;
use concord_lab::experiment::Experiment;
use concord_lab::experiment::coordinate::Parameter;
use concord_lab::experiment::declaration::Declaration;
use concord_lab::experiment::request::{SystemOptions, choose, listed};
use concord_lab::experiment::variant::Variant;
use concord_lab::system::linux;
use concord_machine::board::Manager;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Compare kernels: the same workloads with locks and with transactions
///
/// Each workload is booted once on each kernel and number of harts, and then run once for each seed. Finished runs are kept, so that the
/// same command goes on where it was interrupted. Prints the tables; writes them as JSON, CSV and a page for the browser.
#[derive(clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Arguments {
    #[arg(value_name = "WORKLOAD", required_unless_present = "experiment", help = workloads_help())]
    workloads: Vec<String>,
    /// A declared comparison, such as experiments/comparisons/demo.toml, instead of workloads and options
    #[arg(long, value_name = "FILE", conflicts_with_all = ["workloads", "kernels", "definitions", "harts", "seeds", "size", "append",
        "board", "parameters", "contention_manager", "check_isolation", "max_instructions"])]
    experiment: Option<PathBuf>,
    /// Kernels by name, separated by commas, what the others are compared with first: linux (queued locks), linux-ticket (a kernel
    /// without our conversion, with ticket locks), txlinux-ss (subsystems converted), txlinux-cx (nearly every spinlock) and those of
    /// --kernel; all of them but linux-ticket by default
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
    /// How much work, separated by commas: tiny, quick or paper
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', default_value = "quick", value_parser = size)]
    size: Vec<String>,
    /// Runs to make side by side; as many as processors and memory allow by default
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    output: OutputArguments,
    /// Words for every kernel's command line
    #[arg(long, value_name = "WORDS", default_value = "", hide_default_value = true, allow_hyphen_values = true)]
    append: String,
    /// A word for every kernel's command line with each of several values in turn: `--parameter cx.retries=4 --parameter cx.retries=16`
    #[arg(long = "parameter", value_name = "NAME=VALUE")]
    parameters: Vec<String>,
    /// Built-in boards or TOML files, separated by commas
    #[arg(long, value_name = "PRESET|FILE,...", value_delimiter = ',', default_value = "metatm-2007")]
    board: Vec<PathBuf>,
    /// The contention manager, which decides which party of a conflict goes on, instead of the board's
    #[arg(long, value_name = "NAME", value_parser = boot::manager_parser())]
    contention_manager: Option<Manager>,
    /// Follow every access, and fail runs in which a transaction is not isolated
    #[arg(long)]
    check_isolation: bool,
    /// Give a run up after this many instructions of all harts together, instead of what its size allows
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_instructions: Option<u64>,
}

fn workloads_help() -> String {
    format!("What is run: {}", listed(&linux::system().cases(&SystemOptions::new())))
}

fn size(name: &str) -> Result<String, concord_lab::experiment::Error> {
    choose("size", &linux::system().sizes(), &[name.to_owned()])?;
    Ok(name.to_owned())
}

/// Runs the command.
///
/// # Errors
/// If an input cannot be used or the host fails.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let (system, experiment) = match &arguments.experiment {
        Some(path) => Declaration::from_file(path)?.experiment()?,
        None => (linux::system(), experiment(arguments)?),
    };
    experiment::run(system, &experiment, arguments.jobs, &arguments.output)
}

fn experiment(arguments: &Arguments) -> anyhow::Result<Experiment> {
    let mut boards = experiment::boards(&arguments.board)?;
    for board in &mut boards {
        board.transactions.manager = arguments.contention_manager.unwrap_or(board.transactions.manager);
    }
    let (system, options) = (linux::system(), SystemOptions::new());
    Ok(Experiment {
        cases: arguments.workloads.clone(),
        variants: Variant::choose(system, &options, arguments.kernels.as_deref(), &arguments.definitions)?,
        sizes: arguments.size.clone(),
        harts: arguments.harts.clone(),
        boards,
        parameters: Parameter::from_definitions(&arguments.parameters)?,
        seeds: arguments.seeds,
        append: arguments.append.clone(),
        check_isolation: arguments.check_isolation,
        instructions_max: arguments.max_instructions,
        options,
    })
}
