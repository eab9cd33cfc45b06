//! `concord stm`: the library's software transactions, measured and validated.

use super::programs::{self, Choice, EXIT_CODES, ProgramArguments};
use concord_abi::exit::Exit;
use concord_lab::experiment::request::SystemOptions;
use concord_lab::system::check_programs::{TASK, VALIDATE};
use concord_lab::system::{join_names, stm};

/// Measure or validate the software transactions of tm, over numbers of harts and seeds
///
/// Each run is a program on bare harts. Finished runs are kept, so that the same command goes on where it was interrupted. Prints the
/// tables; writes them as JSON, CSV and a page for the browser.
#[derive(clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Arguments {
    #[arg(value_name = "LIBRARY", conflicts_with = "native", help = libraries_help())]
    libraries: Vec<String>,
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', conflicts_with_all = ["native", "validate"], help = workloads_help())]
    workloads: Vec<String>,
    /// Transactions of each hart (1000), or of a test of --validate (1000)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "native")]
    operations: Option<u64>,
    #[command(flatten)]
    programs: ProgramArguments,
}

fn libraries_help() -> String {
    let validate = [(TASK.to_owned(), VALIDATE.to_owned())].into();
    let measured = join_names(&stm::system().variants(&SystemOptions::new()));
    let validated = join_names(&stm::system().variants(&validate));
    format!(
        "Ways to write a transaction and libraries, what the others are compared with first: {measured}; with --validate the libraries \
         alone, {validated}; all of them by default"
    )
}

fn workloads_help() -> String {
    let workloads = stm::system().cases(&SystemOptions::new()).join(", ");
    format!("What the transactions do, separated by commas: {workloads}; all by default")
}

/// Runs the command.
///
/// # Errors
/// If an input cannot be used or the host fails.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let choice = Choice {
        system: stm::programs(),
        variants: &arguments.libraries,
        cases: &arguments.workloads,
        harts: &stm::programs().default_harts,
        work: arguments.operations,
        counts: false,
    };
    programs::run(&arguments.programs, &choice)
}
