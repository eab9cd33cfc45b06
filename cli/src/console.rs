//! The guest's console on this side: standard output, and standard input where it is interactive.

use crate::keyboard::Keyboard;
use crate::signal::Stop;
use crate::terminal::RawMode;
use anyhow::anyhow;
use concord_machine::Machine;
use concord_machine::run::Host;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// How often the line of progress changes.
const PROGRESS_PERIOD: Duration = Duration::from_millis(250);

/// A guest that will do nothing for this long waits for input.
const LULL: Duration = Duration::from_millis(100);
/// So does a busy guest that has printed nothing for this long: it may be polling.
const SILENCE_CYCLES: u64 = 5_000_000_000;

/// The host of a run from the command line.
pub struct Console {
    output: Box<dyn Write>,
    input: Input,
    /// The machine's clock when it was last looked at, and when the guest last printed or was typed to.
    clock_cycles: u64,
    active_cycles: u64,
    stop: Stop,
    progress: Option<Progress>,
    /// Last, so that it goes when everything else has gone.
    _raw_mode: Option<RawMode>,
}

/// The source of typed input.
enum Input {
    Nobody,
    /// A person, whose keys go to the guest at once.
    Person(Keyboard),
    /// A pipe or file: a line goes to the guest whenever it waits for input. When that is depends on the guest alone, so the
    /// run is the same each time; and nothing is typed before the guest's driver is there to take it.
    Script(Keyboard),
}

impl Console {
    /// Connects the guest. `to_standard_error` leaves standard output to the result document.
    ///
    /// # Errors
    /// If the terminal cannot be switched to raw mode, or standard input cannot be read.
    pub fn open(interactive: bool, to_standard_error: bool, stop: Stop) -> anyhow::Result<Console> {
        let (output, is_seen): (Box<dyn Write>, bool) = if to_standard_error {
            (Box::new(std::io::stderr()), std::io::stderr().is_terminal())
        } else {
            (Box::new(std::io::stdout()), std::io::stdout().is_terminal())
        };
        let is_terminal = std::io::stdin().is_terminal();
        let (mut input, mut raw_mode) = (Input::Nobody, None);
        if interactive {
            if is_terminal {
                raw_mode = Some(RawMode::enter().map_err(|error| anyhow!("--interactive: standard input: {error}"))?);
            }
            let keyboard = Keyboard::open(is_terminal, stop.clone())
                .map_err(|error| anyhow!("--interactive: cannot read standard input: {error}"))?;
            input = if is_terminal { Input::Person(keyboard) } else { Input::Script(keyboard) };
        }
        // A guest's console on a terminal shows the progress by itself.
        let progress = (!is_seen && std::io::stderr().is_terminal()).then(Progress::new);
        Ok(Console { output, input, clock_cycles: 0, active_cycles: 0, stop, progress, _raw_mode: raw_mode })
    }
}

impl Host for Console {
    fn print(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.active_cycles = self.clock_cycles;
        self.output.write_all(bytes)?;
        self.output.flush()
    }

    fn input(&mut self, wait: Duration) -> Option<Vec<u8>> {
        match &mut self.input {
            Input::Nobody => None,
            Input::Person(keyboard) => keyboard.take(wait),
            Input::Script(keyboard) => {
                let silence = self.clock_cycles.saturating_sub(self.active_cycles);
                if wait < LULL && silence < SILENCE_CYCLES {
                    return Some(Vec::new());
                }
                self.active_cycles = self.clock_cycles;
                keyboard.take_line()
            }
        }
    }

    fn is_interactive(&self) -> bool {
        !matches!(self.input, Input::Nobody)
    }

    fn progress(&mut self, machine: &Machine) {
        self.clock_cycles = machine.clock();
        if let Some(progress) = &mut self.progress {
            progress.update(machine);
        }
    }

    fn announce(&mut self, message: &str) {
        // Without standard error there is no place for the message.
        let _ = writeln!(std::io::stderr(), "concord: {message}");
    }

    fn wants_to_stop(&self) -> bool {
        self.stop.is_asked()
    }
}

/// A line on the terminal that says how far the run is.
struct Progress {
    bar: ProgressBar,
    shown: Instant,
}

impl Progress {
    fn new() -> Progress {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{elapsed} {wide_msg}") {
            bar.set_style(style);
        }
        Progress { bar, shown: Instant::now() }
    }

    fn update(&mut self, machine: &Machine) {
        if self.shown.elapsed() >= PROGRESS_PERIOD {
            self.shown = Instant::now();
            let (instructions, clock) = (machine.instructions() as f64 / 1e6, machine.clock() as f64 / 1e9);
            let gear = machine.gear().name();
            self.bar.set_message(format!("{instructions:.0} million instructions, {clock:.3} s of guest time, {gear}"));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
