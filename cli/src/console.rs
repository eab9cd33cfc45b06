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

/// The host of a run from the command line.
pub struct Console {
    output: Box<dyn Write>,
    keyboard: Option<Keyboard>,
    stop: Stop,
    progress: Option<Progress>,
    /// Last, so that it goes when everything else has gone.
    _raw_mode: Option<RawMode>,
}

impl Console {
    /// Connects the guest. `to_standard_error` leaves standard output to the result document.
    ///
    /// # Errors
    /// If the terminal does not do what is needed.
    pub fn open(interactive: bool, to_standard_error: bool, stop: Stop) -> anyhow::Result<Console> {
        let (output, is_seen): (Box<dyn Write>, bool) = if to_standard_error {
            (Box::new(std::io::stderr()), std::io::stderr().is_terminal())
        } else {
            (Box::new(std::io::stdout()), std::io::stdout().is_terminal())
        };
        let is_terminal = std::io::stdin().is_terminal();
        let (mut keyboard, mut raw_mode) = (None, None);
        if interactive {
            if is_terminal {
                raw_mode = Some(RawMode::enter().map_err(|error| anyhow!("--interactive: standard input: {error}"))?);
            }
            keyboard = Some(
                Keyboard::open(is_terminal, stop.clone())
                    .map_err(|error| anyhow!("--interactive: cannot read standard input: {error}"))?,
            );
        }
        // Whoever sees the guest's console sees how far it is.
        let progress = (!is_seen && std::io::stderr().is_terminal()).then(Progress::new);
        Ok(Console { output, keyboard, stop, progress, _raw_mode: raw_mode })
    }
}

impl Host for Console {
    fn print(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.output.write_all(bytes)?;
        self.output.flush()
    }

    fn input(&mut self, wait: Duration) -> Option<Vec<u8>> {
        self.keyboard.as_ref()?.take(wait)
    }

    fn is_interactive(&self) -> bool {
        self.keyboard.is_some()
    }

    fn progress(&mut self, machine: &Machine) {
        if let Some(progress) = &mut self.progress {
            progress.update(machine);
        }
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
