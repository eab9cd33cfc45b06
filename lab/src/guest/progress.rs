//! How a long build tells a person what it is doing: a bar on a terminal, plain lines anywhere else.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// Receives what a build does. Every method has a default that says nothing.
pub trait Progress {
    /// `guest` begins to be built in `steps_count` steps.
    fn begin(&self, _guest: &str, _steps_count: usize) {}
    /// The next step of the guest being built.
    fn step(&self, _step: &str) {}
    /// A sign of life within the step: for example the file being compiled.
    fn detail(&self, _text: &str) {}
    /// The guest is there. `seconds` is `None` when it was in the cache already.
    fn finish(&self, _guest: &str, _directory: &std::path::Path, _seconds: Option<f64>) {}
}

/// Says nothing; for tests and scripts.
pub struct Silent;

impl Progress for Silent {}

/// Progress on standard error.
pub struct Console {
    bar: ProgressBar,
    is_terminal: bool,
}

impl Console {
    /// A bar when standard error is a terminal, plain lines when it is not.
    pub fn new() -> Console {
        let is_terminal = std::io::stderr().is_terminal();
        let bar = if is_terminal { ProgressBar::no_length() } else { ProgressBar::hidden() };
        Console { bar, is_terminal }
    }

    fn line(&self, text: &str) {
        if self.is_terminal {
            self.bar.suspend(|| eprintln!("{text}"));
        } else {
            eprintln!("{text}");
        }
    }
}

impl Default for Console {
    fn default() -> Self {
        Console::new()
    }
}

impl Progress for Console {
    fn begin(&self, guest: &str, steps_count: usize) {
        self.bar.reset();
        self.bar.set_length(steps_count as u64);
        if let Ok(style) = ProgressStyle::with_template("{prefix} {bar:20} {elapsed:>4} {wide_msg}") {
            self.bar.set_style(style);
        }
        self.bar.set_prefix(guest.to_owned());
        self.bar.enable_steady_tick(Duration::from_millis(200));
        if !self.is_terminal {
            self.line(&format!("{guest}: building"));
        }
    }

    fn step(&self, step: &str) {
        self.bar.inc(1);
        self.bar.set_message(step.to_owned());
        if !self.is_terminal {
            self.line(&format!("  {step}"));
        }
    }

    fn detail(&self, text: &str) {
        self.bar.set_message(text.to_owned());
    }

    fn finish(&self, guest: &str, directory: &std::path::Path, seconds: Option<f64>) {
        self.bar.disable_steady_tick();
        self.bar.finish_and_clear();
        let how = match seconds {
            Some(seconds) => format!("built in {seconds:.0} s"),
            None => String::from("in the cache"),
        };
        self.line(&format!("{guest}: {how}: {}", directory.display()));
    }
}
