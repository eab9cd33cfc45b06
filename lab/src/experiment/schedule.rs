//! Which worker does what next: independent runs side by side, and a group that shares a boot booted once and before its runs.

use super::Error;
use super::cell::{BeginsAt, Cell, CellFile};
use super::executor::{BootEnd, Executor, Folders, RunEnd, Watcher};
use super::plan::Plan;
use super::progress::{Progress, Task, Work as Done};
use super::store::{Kept, Store};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

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

/// The end of one run.
#[derive(Clone, Debug)]
pub enum CellOutcome {
    Made(Box<CellFile>),
    /// There is no result, because the boot that the run was to begin from failed.
    NotBooted {
        why: String,
        /// The last lines of the guest's console.
        console: Vec<String>,
    },
}

/// The end of a schedule.
#[derive(Clone, Debug)]
pub enum Completion {
    /// The outcome of each run, by group, in the order of the plan.
    Complete(Vec<Vec<CellOutcome>>),
    /// Stopped when this many runs were finished.
    Stopped { finished_count: usize },
}

/// How far a group is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Unbooted,
    Booting,
    /// Its runs can begin.
    Ready,
}

/// The rest of a group.
struct Pending {
    group: usize,
    stage: Stage,
    /// Indices of runs that no worker has begun.
    runs: VecDeque<usize>,
    /// Runs that have begun and not ended.
    running: usize,
}

struct State {
    pending: Vec<Pending>,
    outcomes: Vec<Vec<Option<CellOutcome>>>,
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
            self.pending.iter_mut().find(|pending| pending.stage == Stage::Ready && !pending.runs.is_empty())
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

/// Makes every run of a plan that the store lacks, `jobs` side by side.
///
/// # Errors
/// If the host fails, or a file cannot be used. A guest that fails is an outcome.
pub fn run(plan: &Plan, store: &Store, executor: &dyn Executor, jobs: usize, stop: Stop) -> Result<Completion, Error> {
    let mut damaged = Vec::new();
    let mut outcomes = Vec::new();
    for group in &plan.groups {
        let kept = |cell: &Cell| Ok(kept(store, cell, &mut damaged)?.map(CellOutcome::Made));
        outcomes.push(group.cells.iter().map(kept).collect::<Result<Vec<_>, Error>>()?);
    }
    let left = |(group, outcomes): (usize, &Vec<Option<CellOutcome>>)| {
        let missing = outcomes.iter().enumerate().filter(|(_, outcome)| outcome.is_none());
        let runs: VecDeque<usize> = missing.map(|(run, _)| run).collect();
        let stage = match plan.groups[group].begins_at {
            BeginsAt::Region => Stage::Unbooted,
            BeginsAt::Reset => Stage::Ready,
        };
        (!runs.is_empty()).then_some(Pending { group, stage, runs, running: 0 })
    };
    let pending: Vec<Pending> = outcomes.iter().enumerate().filter_map(left).collect();
    let finished_count = outcomes.iter().flatten().flatten().count();
    let boots_count = pending.iter().filter(|pending| pending.stage == Stage::Unbooted).count();
    let progress = Progress::new(plan.runs_count(), finished_count, boots_count, jobs);
    for line in damaged {
        progress.say(&line);
    }
    // Their folder lives as long as this.
    let boots = store.boots()?;
    let schedule = Schedule {
        plan,
        store,
        executor,
        folders: store.folders(&boots),
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
    let complete: Option<Vec<Vec<CellOutcome>>> =
        state.outcomes.into_iter().map(|outcomes| outcomes.into_iter().collect()).collect();
    Ok(complete.map_or(Completion::Stopped { finished_count }, Completion::Complete))
}

/// The file of a run, if the store has it. A damaged one is as good as none, and the user is told.
fn kept(store: &Store, cell: &Cell, damaged: &mut Vec<String>) -> Result<Option<Box<CellFile>>, Error> {
    Ok(match store.load(&cell.file_name, &cell.id)? {
        Kept::Finished(file) => Some(file),
        Kept::Missing => None,
        Kept::Damaged(why) => {
            damaged.push(format!("concord: {}: damaged ({why}), so this run is made again", cell.file_name));
            None
        }
    })
}

struct Schedule<'a> {
    plan: &'a Plan,
    store: &'a Store,
    executor: &'a dyn Executor,
    folders: Folders,
    progress: &'a Progress,
    stop: Stop<'a>,
    state: Mutex<State>,
    changed: Condvar,
}

/// The name of a group's snapshot in the folder of boots.
fn snapshot_name(group: usize) -> String {
    format!("{group}.snapshot")
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
                    // The others must not wait for work that a dead worker was to do.
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
        let title = format!("{}: boot", group.title);
        let task = self.progress.task(title.clone());
        let begin = Instant::now();
        let mut watcher = Watched { task: &task, stop: self.stop };
        let booted = self.executor.boot(&group.cells[0], &snapshot_name(index), &self.folders, &mut watcher);
        let mut state = self.lock();
        // No worker may wait for this boot any longer, however it ended.
        state.of_group(index).stage = Stage::Ready;
        let booted = booted.inspect_err(|_| state.of_group(index).runs.clear())?;
        match booted {
            BootEnd::Stopped => {}
            BootEnd::Ready => {
                drop(state);
                self.progress.finished(Done::Boot, &title, Some(begin.elapsed()));
            }
            BootEnd::Failed { why, console } => {
                let runs = std::mem::take(&mut state.of_group(index).runs);
                for run in &runs {
                    let (why, console) = (why.clone(), console.clone());
                    state.outcomes[index][*run] = Some(CellOutcome::NotBooted { why, console });
                }
                drop(state);
                report_failure(self.progress, &group.title, &why, &console);
                self.progress.finished(Done::Boot, &title, Some(begin.elapsed()));
                for run in runs {
                    self.progress.finished(Done::Run, &group.cells[run].title, None);
                }
            }
        }
        Ok(())
    }

    fn run(&self, group_index: usize, run_index: usize) -> Result<(), Error> {
        let group = &self.plan.groups[group_index];
        let cell = &group.cells[run_index];
        let task = self.progress.task(cell.title.clone());
        let begin = Instant::now();
        let snapshot = snapshot_name(group_index);
        let mut watcher = Watched { task: &task, stop: self.stop };
        let end = self.executor.run(cell, &snapshot, &self.folders, &mut watcher)?;
        let file = match end {
            RunEnd::Stopped => None,
            RunEnd::Made => Some(self.made(cell)?),
        };
        if let Some(file) = &file {
            if let Err(why) = self.plan.system.read(file) {
                report_failure(self.progress, &cell.title, &why, file.console());
            }
            self.progress.finished(Done::Run, &cell.title, Some(begin.elapsed()));
        }
        let mut state = self.lock();
        if let Some(file) = file {
            state.outcomes[group_index][run_index] = Some(CellOutcome::Made(file));
        }
        let pending = state.of_group(group_index);
        pending.running -= 1;
        if group.begins_at == BeginsAt::Region && pending.running == 0 && pending.runs.is_empty() {
            remove(&self.folders.boots.join(snapshot))?;
        }
        Ok(())
    }

    /// The file that the executor has made.
    fn made(&self, cell: &Cell) -> Result<Box<CellFile>, Error> {
        let wrong = |why: &str| Error::Request(format!("{}: the run left {why}", cell.file_name));
        match self.store.load(&cell.file_name, &cell.id)? {
            Kept::Finished(file) => Ok(file),
            Kept::Missing => Err(wrong("no file")),
            Kept::Damaged(why) => Err(wrong(&format!("a damaged file ({why})"))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A worker that panicked ends the scope, and with it the command; until then the state is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn remove(snapshot: &Path) -> Result<(), Error> {
    std::fs::remove_file(snapshot).map_err(Error::file("remove", snapshot))
}

/// Lines of the console that a failure brings.
const CONSOLE_LINES: usize = 10;

/// Tells a person that a run failed.
fn report_failure(progress: &Progress, title: &str, why: &str, console: &[String]) {
    let mut text = format!("concord: {title}: {why}");
    for line in console.iter().skip(console.len().saturating_sub(CONSOLE_LINES)) {
        text.push_str("\n    | ");
        // What a guest prints must not steer the terminal.
        text.extend(line.chars().filter(|character| !character.is_control()));
    }
    progress.say(&text);
}

/// A run that a person sees the progress of, and may stop.
struct Watched<'a> {
    task: &'a Task,
    stop: Stop<'a>,
}

impl Watcher for Watched<'_> {
    fn advanced(&mut self, instructions: u64) {
        self.task.advanced(instructions);
    }

    fn wants_to_stop(&self) -> bool {
        (self.stop)()
    }
}
