//! `concord stm`: the library's software transactions, measured and validated.

use super::programs::{self, Choice, EXIT_CODES, ProgramArguments};
use concord_abi::exit::Exit;
use concord_lab::programs::family::Family;

/// Measure or validate the software transactions of tm, over numbers of harts and seeds
///
/// Each run is a program on bare harts. Finished runs are kept, so that the same command goes on where it was interrupted. Prints the
/// tables; writes them as JSON, CSV and a page for the browser.
#[derive(clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Arguments {
    /// Ways to write a transaction and libraries, what the others are compared with first: spinlock, plain-2pl, plain-tl2, itm-2pl,
    /// itm-tl2; with --validate the libraries alone, 2pl and tl2; all of them by default
    #[arg(value_name = "LIBRARY", conflicts_with = "native")]
    libraries: Vec<String>,
    /// What the transactions do, separated by commas: increment, read16-write4, read16, list, hash-table, red-black-tree, bank; all by
    /// default
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', conflicts_with_all = ["native", "validate"])]
    workloads: Vec<String>,
    /// Transactions of each hart (1000), or of a test of --validate (1000)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "native")]
    operations: Option<u64>,
    #[command(flatten)]
    programs: ProgramArguments,
}

/// Runs the command.
///
/// # Errors
/// If an input cannot be used or the host fails.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let choice = Choice {
        family: Family::Stm,
        subjects: &arguments.libraries,
        cases: &arguments.workloads,
        harts: &[1, 2, 4, 8],
        work: arguments.operations,
        counts: false,
    };
    programs::run(&arguments.programs, &choice)
}
