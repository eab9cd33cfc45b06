//! How an experiment tells a person how far it is: a bar and a line for each run on a terminal, and a line for each finished boot
//! and run anywhere else.

use super::estimate::{Estimator, told};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

pub use super::estimate::Work;

/// Progress on standard error.
#[derive(Debug)]
pub struct Progress {
    bars: MultiProgress,
    total: ProgressBar,
    estimator: Mutex<Estimator>,
    runs_count: usize,
    /// Whether bars are seen; otherwise there are lines.
    has_bars: bool,
}

impl Progress {
    /// Progress of this many runs, some of which are finished; the others need boots, and are made `jobs` side by side. There are bars
    /// where standard error is a terminal and the environment does not say that this is continuous integration.
    pub fn new(runs_count: usize, finished_count: usize, boots_count: usize, jobs: usize) -> Progress {
        let has_bars = std::io::stderr().is_terminal() && std::env::var_os("CI").is_none_or(|value| value.is_empty());
        let target = if has_bars { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bars = MultiProgress::with_draw_target(target);
        let total = bars.add(ProgressBar::new(runs_count as u64));
        if let Ok(style) = ProgressStyle::with_template("{pos}/{len} runs {bar:30} {elapsed}{msg}") {
            total.set_style(style);
        }
        total.set_position(finished_count as u64);
        if has_bars {
            total.enable_steady_tick(Duration::from_millis(500));
        }
        let estimator = Mutex::new(Estimator::new(runs_count - finished_count, boots_count, jobs));
        Progress { bars, total, estimator, runs_count, has_bars }
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

    /// A boot or run is finished, after this time; none for a run without a boot.
    pub fn finished(&self, work: Work, title: &str, took: Option<Duration>) {
        let mut estimator = self.estimator.lock().unwrap_or_else(PoisonError::into_inner);
        estimator.finished(work, took);
        let left = estimator.left().map_or_else(String::new, |left| format!(", about {} left", told(left)));
        let finished_count = self.runs_count - estimator.runs_left();
        self.total.set_message(left.clone());
        if work == Work::Run {
            self.total.inc(1);
        }
        if let Some(took) = took.filter(|_| !self.has_bars) {
            // Under the lock, so that numbers never go back from one line to the next.
            eprintln!("concord: {finished_count} of {} runs finished{left}: {title} ({})", self.runs_count, told(took));
        }
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
    /// Tells the number of instructions executed so far.
    pub fn advanced(&self, instructions: u64) {
        self.bar.set_message(format!("{} million instructions", instructions / 1_000_000));
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
