//! Which worker does what next: independent runs side by side, each group booted once and before its runs.

use super::Error;
use super::local::{self, Boot, Watcher};
use super::plan::{Group, Plan, Run};
use super::progress::{Progress, Task};
use super::store::{Boots, Identified, Kept, Store};
use crate::compare::record::RunFile;
use concord_machine::result::ResultDocument;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Host memory that a run needs beside its guest's: tables by page, tags of caches, decoded code, and the snapshot it is read from.
const OVERHEAD_SHARE: u64 = 4;

/// As many runs side by side as there are processors, and as fit into the memory that the host has left, should every guest touch all
/// of its own, which is so large; at least one.
pub fn default_jobs(memory_bytes: u64) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let run_bytes = memory_bytes + memory_bytes / OVERHEAD_SHARE;
    let fitting = available_bytes().map_or(usize::MAX, |available| (available / run_bytes) as usize);
    processors.min(fitting).max(1)
}

/// `MemAvailable` of /proc/meminfo (proc_meminfo(5)).
fn available_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

/// Whether the user has asked for the end.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// What came of one run.
#[derive(Clone, Debug)]
pub enum RunOutcome {
    Made(Box<RunFile>),
    /// There is no result: the boot that it was to begin from failed. Why, and the last lines of the guest's console.
    NotBooted(String, Vec<String>),
}

/// What came of a comparison.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Of each run, by group, in the order of the plan.
    Complete(Vec<Vec<RunOutcome>>),
    /// Stopped when so many runs were finished.
    Stopped { finished_count: usize },
}

/// Where a group is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Unbooted,
    Booting,
    Booted,
}

/// What is left of a group.
struct Pending {
    group: usize,
    stage: Stage,
    /// Indices of runs that nobody has begun.
    runs: VecDeque<usize>,
    /// Runs that have begun and not ended.
    running: usize,
}

struct State {
    pending: Vec<Pending>,
    outcomes: Vec<Vec<Option<RunOutcome>>>,
    /// The first error ends everything.
    error: Option<Error>,
}

enum Work {
    Boot(usize),
    Run(usize, usize),
}

impl State {
    /// The next thing to do: a run whose boot is there before another boot, so that few snapshots lie about.
    fn take(&mut self) -> Option<Work> {
        if let Some(pending) =
            self.pending.iter_mut().find(|pending| pending.stage == Stage::Booted && !pending.runs.is_empty())
        {
            pending.running += 1;
            return pending.runs.pop_front().map(|run| Work::Run(pending.group, run));
        }
        let pending = self.pending.iter_mut().find(|pending| pending.stage == Stage::Unbooted)?;
        pending.stage = Stage::Booting;
        Some(Work::Boot(pending.group))
    }

    /// Whether something may yet turn up for a worker that found nothing.
    fn is_booting(&self) -> bool {
        self.pending.iter().any(|pending| pending.stage == Stage::Booting)
    }

    fn of_group(&mut self, group: usize) -> &mut Pending {
        self.pending.iter_mut().find(|pending| pending.group == group).expect("only pending groups are worked on")
    }
}

/// Runs every run of a plan that the store lacks, on `jobs` threads.
///
/// # Errors
/// If the host fails, or a file cannot be used. A guest that fails is an outcome.
pub fn run(plan: &Plan, store: &Store, jobs: usize, stop: Stop) -> Result<Outcome, Error> {
    let mut damaged = Vec::new();
    let mut outcomes = Vec::new();
    for group in &plan.groups {
        let kept = |run: &Run| Ok(kept(store, &run.file_name, &run.id, &mut damaged)?.map(RunOutcome::Made));
        outcomes.push(group.runs.iter().map(kept).collect::<Result<Vec<_>, Error>>()?);
    }
    let left = |(group, outcomes): (usize, &Vec<Option<RunOutcome>>)| {
        let missing = outcomes.iter().enumerate().filter(|(_, outcome)| outcome.is_none());
        let runs: VecDeque<usize> = missing.map(|(run, _)| run).collect();
        (!runs.is_empty()).then_some(Pending { group, stage: Stage::Unbooted, runs, running: 0 })
    };
    let pending = outcomes.iter().enumerate().filter_map(left).collect();
    let finished_count = outcomes.iter().flatten().flatten().count();
    let progress = Progress::new(plan.runs_count(), finished_count);
    for line in damaged {
        progress.say(&line);
    }
    let schedule = Schedule {
        plan,
        store,
        boots: store.boots()?,
        progress: &progress,
        stop,
        state: Mutex::new(State { pending, outcomes, error: None }),
        changed: Condvar::new(),
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
    let finished_count = state.outcomes.iter().flatten().flatten().count();
    let complete: Option<Vec<Vec<RunOutcome>>> =
        state.outcomes.into_iter().map(|outcomes| outcomes.into_iter().collect()).collect();
    Ok(complete.map_or(Outcome::Stopped { finished_count }, Outcome::Complete))
}

/// The file of a run, if the store has it. A damaged one is as good as none, and the user is to be told.
pub fn kept<F: Identified>(
    store: &Store,
    file_name: &str,
    id: &str,
    damaged: &mut Vec<String>,
) -> Result<Option<Box<F>>, Error> {
    Ok(match store.load(file_name, id)? {
        Kept::Finished(file) => Some(file),
        Kept::Missing => None,
        Kept::Damaged(why) => {
            damaged.push(format!("concord: {file_name}: damaged ({why}), so this run is made again"));
            None
        }
    })
}

struct Schedule<'a> {
    plan: &'a Plan,
    store: &'a Store,
    boots: Boots,
    progress: &'a Progress,
    stop: Stop<'a>,
    state: Mutex<State>,
    changed: Condvar,
}

impl Schedule<'_> {
    /// A worker's life.
    fn work(&self) {
        while let Some(work) = self.next() {
            let done = catch_unwind(AssertUnwindSafe(|| match work {
                Work::Boot(group) => self.boot(group),
                Work::Run(group, run) => self.run(group, run),
            }));
            match done {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    self.lock().error.get_or_insert(error);
                }
                Err(panic) => {
                    // The others must not wait for what a worker that is gone was to do.
                    let error = Error::Request("the simulator panicked".to_owned());
                    self.lock().error.get_or_insert(error);
                    self.changed.notify_all();
                    resume_unwind(panic);
                }
            }
            self.changed.notify_all();
        }
    }

    fn next(&self) -> Option<Work> {
        let mut state = self.lock();
        loop {
            if state.error.is_some() || (self.stop)() {
                return None;
            }
            if let Some(work) = state.take() {
                return Some(work);
            }
            if !state.is_booting() {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn boot(&self, index: usize) -> Result<(), Error> {
        let group = &self.plan.groups[index];
        let task = self.progress.task(format!("{}: boot", group.title()));
        let snapshot = self.boots.file(index);
        let booted = local::boot(group, &snapshot, &mut Watched { task: &task, stop: self.stop });
        let mut state = self.lock();
        match booted {
            // Nobody may wait for this boot any longer, whatever became of it.
            Err(error) => {
                state.of_group(index).stage = Stage::Booted;
                return Err(error);
            }
            Ok(Boot::Ready | Boot::Stopped) => state.of_group(index).stage = Stage::Booted,
            Ok(Boot::Failed(why, console)) => {
                let pending = state.of_group(index);
                pending.stage = Stage::Booted;
                let runs = std::mem::take(&mut pending.runs);
                for run in runs {
                    state.outcomes[index][run] = Some(RunOutcome::NotBooted(why.clone(), console.clone()));
                    self.progress.finished_run();
                }
                drop(state);
                report_failure(self.progress, &group.title(), &why, &console);
            }
        }
        Ok(())
    }

    fn run(&self, group_index: usize, run_index: usize) -> Result<(), Error> {
        let group = &self.plan.groups[group_index];
        let run = &group.runs[run_index];
        let title = run_title(group, run);
        let task = self.progress.task(title.clone());
        let snapshot = self.boots.file(group_index);
        let document = local::run(group, run, &snapshot, &mut Watched { task: &task, stop: self.stop })?;
        let file = document.map(|document| self.save(group, run, &document)).transpose()?;
        let failure = file.as_ref().and_then(|file| file.failure());
        if let (Some(file), Some(why)) = (&file, failure) {
            report_failure(self.progress, &title, &why, &file.result.console);
        }
        let mut state = self.lock();
        if let Some(file) = file {
            state.outcomes[group_index][run_index] = Some(RunOutcome::Made(Box::new(file)));
            self.progress.finished_run();
        }
        let pending = state.of_group(group_index);
        pending.running -= 1;
        if pending.running == 0 && pending.runs.is_empty() {
            remove(&snapshot)?;
        }
        Ok(())
    }

    fn save(&self, group: &Group, run: &Run, document: &ResultDocument) -> Result<RunFile, Error> {
        self.store.save(&run.file_name, RunFile::content(group, run, document))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A worker that panicked ends the scope, and with it the command; until then the state is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn remove(snapshot: &Path) -> Result<(), Error> {
    std::fs::remove_file(snapshot).map_err(Error::file("remove", snapshot))
}

/// What a person calls a run.
pub fn run_title(group: &Group, run: &Run) -> String {
    format!("{}, seed {}", group.title(), run.seed)
}

/// Lines of the console that a failure brings.
const CONSOLE_LINES: usize = 10;

/// Tells a person that a run failed.
pub fn report_failure(progress: &Progress, title: &str, why: &str, console: &[String]) {
    let mut text = format!("concord: {title}: {why}");
    for line in console.iter().skip(console.len().saturating_sub(CONSOLE_LINES)) {
        text.push_str("\n    | ");
        // What a guest prints must not steer the terminal.
        text.extend(line.chars().filter(|character| !character.is_control()));
    }
    progress.say(&text);
}

/// A run that a person sees the progress of, and may stop.
pub struct Watched<'a> {
    pub task: &'a Task,
    pub stop: Stop<'a>,
}

impl Watcher for Watched<'_> {
    fn advanced(&mut self, instructions: u64) {
        self.task.advanced(instructions);
    }

    fn wants_to_stop(&self) -> bool {
        (self.stop)()
    }
}
