//! What tests of guests without a user share: a run of the machine to its end, and all that it printed.

use concord_machine::run::{self, Limits, Options, Outcome, Unattended};
use concord_machine::{Configuration, Machine};

/// How a machine ends that nobody types to, at most after so many cycles, and what it prints.
pub fn to_the_end(configuration: Configuration, cycles_max: u64) -> (Outcome, String) {
    let mut machine = Machine::new(configuration).unwrap();
    let limits = Limits { instructions: None, cycles: Some(cycles_max) };
    let mut console = Unattended::default();
    let outcome = run::run(&mut machine, &Options { limits, ..Options::default() }, &mut console).unwrap();
    (outcome, console.text())
}
