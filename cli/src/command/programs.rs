//! What `concord locks` and `concord stm` have in common: they run check programs, or read what these printed natively, and report.

use super::boot;
use super::experiment::{self, OutputArguments};
use concord_abi::exit::Exit;
use concord_lab::experiment::Experiment;
use concord_lab::experiment::coordinate::Parameter;
use concord_lab::experiment::request::SystemOptions;
use concord_lab::experiment::variant::Variant;
use concord_lab::report::programs::{self, Data, NATIVE_FILE};
use concord_lab::system::System;
use concord_lab::system::check_programs::{COUNTS, CheckPrograms, GEAR, TASK, VALIDATE, WORK};
use concord_lab::system::native::Native;
use concord_machine::Gear;
use std::num::NonZeroUsize;
use std::path::PathBuf;

pub use super::experiment::EXIT_CODES;

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
    #[arg(long, value_name = "FILE", conflicts_with_all = ["harts", "seeds", "validate", "jobs", "board", "parameters", "gear", "append",
        "check_isolation", "max_instructions"])]
    native: Option<PathBuf>,
    /// Runs to make side by side; as many as processors and memory allow by default
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    output: OutputArguments,
    /// Words for the programs' command lines
    #[arg(long, value_name = "WORDS", default_value = "", hide_default_value = true, allow_hyphen_values = true)]
    append: String,
    /// A word for the programs' command lines with each of several values in turn: `--parameter htm=on --parameter htm=off`
    #[arg(long = "parameter", value_name = "NAME=VALUE")]
    parameters: Vec<String>,
    /// Built-in boards or TOML files, separated by commas
    #[arg(long, value_name = "PRESET|FILE,...", value_delimiter = ',', default_value = "metatm-2007")]
    board: Vec<PathBuf>,
    /// The gear of the runs
    #[arg(long, default_value = "timed", value_parser = boot::gear_parser())]
    gear: Gear,
    /// Follow every access, and fail runs in which a transaction is not isolated
    #[arg(long)]
    check_isolation: bool,
    /// Give a run up after this many instructions of all harts together
    #[arg(long, value_name = "N", default_value_t = 100_000_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    max_instructions: u64,
}

/// What a command adds to its options: names, and the work of a run.
pub struct Choice<'a> {
    pub system: &'static CheckPrograms,
    pub variants: &'a [String],
    pub cases: &'a [String],
    pub harts: &'a [usize],
    pub work: Option<u64>,
    pub counts: bool,
}

/// Runs either command.
///
/// # Errors
/// If an input cannot be used or the host fails.
pub fn run(arguments: &ProgramArguments, choice: &Choice) -> anyhow::Result<Exit> {
    match &arguments.native {
        Some(path) => report_native(arguments, &Native::from_file(choice.system, path)?),
        None => {
            let experiment = experiment(arguments, choice)?;
            experiment::run(choice.system, &experiment, arguments.jobs, &arguments.output)
        }
    }
}

fn experiment(arguments: &ProgramArguments, choice: &Choice) -> anyhow::Result<Experiment> {
    let mut options = SystemOptions::new();
    let mut put = |name: &str, value: String| drop(options.insert(name.to_owned(), value));
    put(GEAR, arguments.gear.name().to_owned());
    if arguments.validate {
        put(TASK, VALIDATE.to_owned());
    }
    if choice.counts {
        put(COUNTS, "yes".to_owned());
    }
    if let Some(work) = choice.work {
        put(WORK, work.to_string());
    }
    let system: &'static dyn System = choice.system;
    let variants = Some(choice.variants).filter(|names| !names.is_empty());
    Ok(Experiment {
        cases: if choice.cases.is_empty() { system.cases(&options) } else { choice.cases.to_vec() },
        variants: Variant::choose(system, &options, variants, &[])?,
        sizes: Vec::new(),
        harts: arguments.harts.clone().unwrap_or_else(|| choice.harts.to_vec()),
        boards: experiment::boards(&arguments.board)?,
        parameters: Parameter::from_definitions(&arguments.parameters)?,
        seeds: arguments.seeds,
        append: arguments.append.clone(),
        check_isolation: arguments.check_isolation,
        instructions_max: Some(arguments.max_instructions),
        options,
    })
}

fn report_native(arguments: &ProgramArguments, native: &Native) -> anyhow::Result<Exit> {
    let store = arguments.output.store(&native.folder_name(), &native.description)?;
    store.write(NATIVE_FILE, native.text.as_bytes())?;
    arguments.output.write(&store, &programs::report(&Data::of_native(native)))?;
    Ok(Exit::PoweredOff)
}
