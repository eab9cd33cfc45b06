//! `concord locks`: the library's locks, measured and validated.

use super::programs::{self, Choice, EXIT_CODES, ProgramArguments};
use concord_abi::exit::Exit;
use concord_lab::experiment::request::SystemOptions;
use concord_lab::system::join_names;
use concord_lab::system::locks::{self, LOOP};

/// Measure or validate the locks of tm, over numbers of harts and seeds
///
/// Each run is a program on bare harts. Finished runs are kept, so that the same command goes on where it was interrupted. Prints the
/// tables; writes them as JSON, CSV and a page for the browser.
#[derive(clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Arguments {
    #[arg(value_name = "LOCK", conflicts_with = "native", help = locks_help())]
    locks: Vec<String>,
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', conflicts_with_all = ["native", "validate"], help = tests_help())]
    measure: Vec<String>,
    /// The loop of lock and unlock of "Unfair Queued Spinlocks and Transactional Locks" alone, on 4, 8, 16 and 32 harts unless --harts
    /// says otherwise; its million pairs with --iterations 1000000
    #[arg(long = "loop", conflicts_with_all = ["measure", "native", "validate"])]
    is_loop: bool,
    /// Pairs of lock and unlock of each hart (1000), milliseconds of throughput (1), or sections of a test of --validate (1000)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "native")]
    iterations: Option<u64>,
    /// Leave out the runs whose library counts steals and aborts; counting changes times, and so these are runs of their own
    #[arg(long, conflicts_with_all = ["native", "validate"])]
    no_statistics: bool,
    #[command(flatten)]
    programs: ProgramArguments,
}

fn locks_help() -> String {
    let locks = join_names(&locks::system().variants(&SystemOptions::new()));
    format!("Locks, what the others are compared with first: {locks}; all of them by default")
}

fn tests_help() -> String {
    let tests = locks::system().cases(&SystemOptions::new()).join(", ");
    format!("What is measured, separated by commas: {tests}; all by default")
}

/// Runs the command.
///
/// # Errors
/// If an input cannot be used or the host fails.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let only_loop = [LOOP.to_owned()];
    let choice = Choice {
        system: locks::programs(),
        variants: &arguments.locks,
        cases: if arguments.is_loop { &only_loop } else { &arguments.measure },
        harts: if arguments.is_loop { &[4, 8, 16, 32] } else { &locks::programs().default_harts },
        work: arguments.iterations,
        counts: !arguments.no_statistics,
    };
    programs::run(&arguments.programs, &choice)
}
