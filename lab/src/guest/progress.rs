//! How a long build tells a person what it is doing: a bar on a terminal, plain lines anywhere else.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Stderr, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Receives what a build does. Every method has a default that says nothing.
pub trait Progress {
    /// `guest` begins to be built in `steps_count` steps.
    fn begin(&self, _guest: &str, _steps_count: usize) {}
    /// The next step of the guest being built.
    fn step(&self, _step: &str) {}
    /// A sign of life within the step: for example the file being compiled.
    fn detail(&self, _text: &str) {}
    /// Something that a person should know, in one line: for example that another build is being waited for.
    fn note(&self, _text: &str) {}
    /// The guest is there. `seconds` is `None` when it was in the cache already.
    fn finish(&self, _guest: &str, _directory: &Path, _seconds: Option<f64>) {}
}

/// Says nothing; for tests and scripts.
pub struct Silent;

impl Progress for Silent {}

/// Progress on standard error.
pub enum Console {
    /// A bar that shows the step and its latest detail.
    Terminal(ProgressBar),
    /// Lines, for a log.
    Lines(Lines<Stderr>),
}

impl Console {
    /// A bar when standard error is a terminal, plain lines when it is not.
    pub fn new() -> Console {
        let output = std::io::stderr();
        if output.is_terminal() {
            Console::Terminal(ProgressBar::no_length())
        } else {
            Console::Lines(Lines::new(output))
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
        match self {
            Console::Lines(lines) => lines.begin(guest, steps_count),
            Console::Terminal(bar) => {
                bar.reset();
                bar.set_length(steps_count as u64);
                if let Ok(style) = ProgressStyle::with_template("{prefix} {bar:20} {elapsed:>4} {wide_msg}") {
                    bar.set_style(style);
                }
                bar.set_prefix(guest.to_owned());
                bar.enable_steady_tick(Duration::from_millis(200));
            }
        }
    }

    fn step(&self, step: &str) {
        match self {
            Console::Lines(lines) => lines.step(step),
            Console::Terminal(bar) => {
                bar.inc(1);
                bar.set_message(step.to_owned());
            }
        }
    }

    fn detail(&self, text: &str) {
        match self {
            Console::Lines(lines) => lines.detail(text),
            Console::Terminal(bar) => bar.set_message(text.to_owned()),
        }
    }

    fn note(&self, text: &str) {
        match self {
            Console::Lines(lines) => lines.note(text),
            Console::Terminal(bar) => bar.suspend(|| eprintln!("{text}")),
        }
    }

    fn finish(&self, guest: &str, directory: &Path, seconds: Option<f64>) {
        match self {
            Console::Lines(lines) => lines.finish(guest, directory, seconds),
            Console::Terminal(bar) => {
                bar.disable_steady_tick();
                bar.finish_and_clear();
                bar.suspend(|| eprintln!("{}", finished(guest, directory, seconds)));
            }
        }
    }
}

fn finished(guest: &str, directory: &Path, seconds: Option<f64>) -> String {
    let how = seconds.map_or_else(|| String::from("in the cache"), |seconds| format!("built in {seconds:.0} s"));
    format!("{guest}: {how}: {}", directory.display())
}

/// The longest time in a step without a line.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// Progress as lines: one when a step begins, one with its duration when it ends, and one from time to time in a long step.
pub struct Lines<W> {
    state: Mutex<State<W>>,
}

struct State<W> {
    output: W,
    /// When the step that is under way began, and when its last line was written.
    step: Option<(Instant, Instant)>,
}

impl<W: Write> Lines<W> {
    /// Lines that go to `output`.
    pub fn new(output: W) -> Lines<W> {
        Lines { state: Mutex::new(State { output, step: None }) }
    }

    fn state(&self) -> MutexGuard<'_, State<W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: Write> State<W> {
    fn line(&mut self, text: &str) {
        // A reader that has gone does not end the build.
        let _ = writeln!(self.output, "{text}");
    }

    fn end_step(&mut self, now: Instant) {
        if let Some((began, _)) = self.step.take() {
            self.line(&format!("    took {} s", (now - began).as_secs()));
        }
    }

    fn step(&mut self, step: &str, now: Instant) {
        self.end_step(now);
        self.line(&format!("  {step}"));
        self.step = Some((now, now));
    }

    fn detail(&mut self, text: &str, now: Instant) {
        let Some((began, last)) = self.step else { return };
        if now - last >= SILENCE_MAX {
            self.line(&format!("    after {} s: {text}", (now - began).as_secs()));
            self.step = Some((began, now));
        }
    }
}

impl<W: Write> Progress for Lines<W> {
    fn begin(&self, guest: &str, steps_count: usize) {
        let mut state = self.state();
        state.step = None;
        let steps = if steps_count == 1 { "step" } else { "steps" };
        state.line(&format!("{guest}: building in {steps_count} {steps}"));
    }

    fn step(&self, step: &str) {
        self.state().step(step, Instant::now());
    }

    fn detail(&self, text: &str) {
        self.state().detail(text, Instant::now());
    }

    fn note(&self, text: &str) {
        self.state().line(text);
    }

    fn finish(&self, guest: &str, directory: &Path, seconds: Option<f64>) {
        let mut state = self.state();
        state.end_step(Instant::now());
        state.line(&finished(guest, directory, seconds));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_says_how_long_it_took_and_a_long_one_shows_that_it_lives() {
        let lines = Lines::new(Vec::new());
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        lines.begin("kernel", 2);
        lines.state().step("configure", at(0));
        lines.state().detail("HOSTCC conf", at(12));
        lines.state().step("compile", at(14));
        lines.state().detail("CC fork.o", at(43));
        lines.state().detail("CC exec.o", at(44));
        lines.state().detail("CC exit.o", at(45));
        lines.state().detail("LD vmlinux", at(75));
        lines.state().end_step(at(80));
        lines.note("a note");
        lines.finish("kernel", Path::new("/guests/kernel"), Some(80.4));
        let text = String::from_utf8(lines.state.into_inner().unwrap().output).unwrap();
        assert_eq!(
            text,
            "kernel: building in 2 steps\n  configure\n    took 14 s\n  compile\n    after 30 s: CC exec.o\n    \
             after 61 s: LD vmlinux\n    took 66 s\na note\nkernel: built in 80 s: /guests/kernel\n"
        );
    }

    #[test]
    fn a_guest_in_the_cache_takes_one_line() {
        let lines = Lines::new(Vec::new());
        lines.finish("kernel", Path::new("/guests/kernel"), None);
        assert_eq!(lines.state.into_inner().unwrap().output, b"kernel: in the cache: /guests/kernel\n");
    }
}
