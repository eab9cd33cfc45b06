//! How a comparison tells a person how far it is: a bar and a line for each run on a terminal, and nothing anywhere else.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// Bars on standard error.
#[derive(Debug)]
pub struct Progress {
    bars: MultiProgress,
    total: ProgressBar,
}

impl Progress {
    /// For so many runs, some of which are finished. Hidden where standard error is no terminal, or where the environment says that
    /// this is continuous integration.
    pub fn new(runs_count: usize, finished_count: usize) -> Progress {
        let is_seen = std::io::stderr().is_terminal() && std::env::var_os("CI").is_none_or(|value| value.is_empty());
        let target = if is_seen { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bars = MultiProgress::with_draw_target(target);
        let total = bars.add(ProgressBar::new(runs_count as u64));
        if let Ok(style) = ProgressStyle::with_template("{pos}/{len} runs {bar:30} {elapsed}, about {eta} left") {
            total.set_style(style);
        }
        // What is finished already says nothing of how long the rest will take.
        total.set_position(finished_count as u64);
        total.reset_eta();
        if is_seen {
            total.enable_steady_tick(Duration::from_millis(500));
        }
        Progress { bars, total }
    }

    /// A line for what one worker does now.
    pub fn task(&self, title: String) -> Task {
        let bar = self.bars.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("  {prefix} {msg}") {
            bar.set_style(style);
        }
        bar.set_prefix(title);
        Task { bar }
    }

    /// One run more is finished.
    pub fn finished_run(&self) {
        self.total.inc(1);
    }

    /// Says something above the bars, on standard error.
    pub fn say(&self, text: &str) {
        self.bars.suspend(|| eprintln!("{text}"));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.total.finish_and_clear();
    }
}

/// The line of one boot or run; it goes when this is dropped.
#[derive(Debug)]
pub struct Task {
    bar: ProgressBar,
}

impl Task {
    /// So many instructions have been executed.
    pub fn advanced(&self, instructions: u64) {
        self.bar.set_message(format!("{} million instructions", instructions / 1_000_000));
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
