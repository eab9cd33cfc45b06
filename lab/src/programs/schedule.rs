//! Independent runs side by side.

use super::plan::{Plan, Run};
use super::record::RunFile;
use crate::compare::Error;
use crate::compare::progress::Progress;
use crate::compare::schedule::{Stop, Watched, kept, report_failure};
use crate::compare::store::Store;
use concord_machine::Machine;
use concord_machine::result;
use concord_machine::run::{self, Host, Limits, Options};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Most that a guest's console is kept of; check programs print some kilobytes.
const CONSOLE_BYTES_MAX: usize = 1 << 20;

/// What came of a plan's runs.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// In the order of the plan.
    Complete(Vec<RunFile>),
    /// Stopped when so many runs were finished.
    Stopped { finished_count: usize },
}

/// Runs every run of a plan that the store lacks, on `jobs` threads.
///
/// # Errors
/// If the host fails, or a file cannot be used. A guest that fails is an outcome.
pub fn run(plan: &Plan, store: &Store, jobs: usize, stop: Stop) -> Result<Outcome, Error> {
    let mut damaged = Vec::new();
    let kept = |run: &Run| Ok(kept(store, &run.file_name, &run.id, &mut damaged)?.map(|file| *file));
    let files = plan.runs.iter().map(kept).collect::<Result<Vec<Option<RunFile>>, Error>>()?;
    let missing: Vec<usize> = (0..files.len()).filter(|index| files[*index].is_none()).collect();
    let progress = Progress::new(plan.runs.len(), plan.runs.len() - missing.len());
    for line in damaged {
        progress.say(&line);
    }
    let schedule = Schedule {
        plan,
        store,
        progress: &progress,
        stop,
        next: AtomicUsize::new(0),
        missing,
        state: Mutex::new(State { files, error: None }),
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| schedule.work());
        }
    });
    let state = schedule.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = state.error {
        return Err(error);
    }
    let finished_count = state.files.iter().flatten().count();
    let complete: Option<Vec<RunFile>> = state.files.into_iter().collect();
    Ok(complete.map_or(Outcome::Stopped { finished_count }, Outcome::Complete))
}

struct State {
    files: Vec<Option<RunFile>>,
    /// The first error ends everything.
    error: Option<Error>,
}

struct Schedule<'a> {
    plan: &'a Plan,
    store: &'a Store,
    progress: &'a Progress,
    stop: Stop<'a>,
    /// Runs that the store lacks, and the place of the first that nobody has begun.
    missing: Vec<usize>,
    next: AtomicUsize,
    state: Mutex<State>,
}

impl Schedule<'_> {
    /// A worker's life.
    fn work(&self) {
        while !(self.stop)() && self.lock().error.is_none() {
            let Some(index) = self.missing.get(self.next.fetch_add(1, Ordering::Relaxed)) else { return };
            match self.run(&self.plan.runs[*index]) {
                Ok(None) => return,
                Ok(Some(file)) => {
                    self.lock().files[*index] = Some(file);
                    self.progress.finished_run();
                }
                Err(error) => {
                    self.lock().error.get_or_insert(error);
                }
            }
        }
    }

    /// Makes a run, and keeps it; none was given up.
    fn run(&self, run: &Run) -> Result<Option<RunFile>, Error> {
        let title = run.title();
        let task = self.progress.task(title.clone());
        let mut console = Console { watched: Watched { task: &task, stop: self.stop }, bytes: Vec::new() };
        let mut machine = Machine::new(run.configuration.clone())?;
        let limits = Limits { instructions: Some(run.key.instructions_max), cycles: None };
        let outcome = run::run(&mut machine, &Options { limits, ..Options::default() }, &mut console)?;
        if (self.stop)() {
            return Ok(None);
        }
        let document = result::document(&mut machine, &outcome, 0.0)?;
        let text = String::from_utf8_lossy(&console.bytes);
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let file: RunFile = self.store.save(&run.file_name, RunFile::content(run, &lines, &document))?;
        if let Err(why) = file.lines(self.plan.family) {
            report_failure(self.progress, &title, &why, &file.console);
        }
        Ok(Some(file))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A worker that panicked ends the scope, and with it the command; until then the state is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A console that is kept.
struct Console<'a> {
    watched: Watched<'a>,
    bytes: Vec<u8>,
}

impl Host for Console<'_> {
    fn print(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let room = CONSOLE_BYTES_MAX - self.bytes.len();
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(())
    }

    fn input(&mut self, _wait: Duration) -> Option<Vec<u8>> {
        None
    }

    fn is_interactive(&self) -> bool {
        false
    }

    fn progress(&mut self, machine: &Machine) {
        self.watched.task.advanced(machine.instructions());
    }

    fn wants_to_stop(&self) -> bool {
        (self.watched.stop)()
    }
}
