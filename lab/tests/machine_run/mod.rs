//! What tests of guests without a user share: a run of the machine to its end, and all that it printed.

use concord_machine::run::{self, Host, Limits, Options, Outcome};
use concord_machine::{Configuration, Machine};
use std::time::Duration;

#[derive(Default)]
struct Console {
    printed: String,
}

impl Host for Console {
    fn print(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.printed.push_str(&String::from_utf8_lossy(bytes));
        Ok(())
    }

    fn input(&mut self, _: Duration) -> Option<Vec<u8>> {
        None
    }

    fn is_interactive(&self) -> bool {
        false
    }

    fn progress(&mut self, _: &Machine) {}
}

/// How a machine ends that nobody types to, at most after so many cycles, and what it prints.
pub fn to_the_end(configuration: Configuration, cycles_max: u64) -> (Outcome, String) {
    let mut machine = Machine::new(configuration).unwrap();
    let limits = Limits { instructions: None, cycles: Some(cycles_max) };
    let mut console = Console::default();
    let outcome = run::run(&mut machine, &Options { limits, ..Options::default() }, &mut console).unwrap();
    (outcome, console.printed)
}
