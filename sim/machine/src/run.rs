//! A run: steps the machine until the guest ends it, a limit is reached, or nothing more can happen.

use crate::accounting::trace::Tracer;
use crate::configuration::Gear;
use crate::data::DataNamer;
use crate::error::MachineError;
use crate::events::{End, Event};
use crate::machine::Machine;
use concord_abi::exit::Exit;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// Turns between two looks at the host: typed input, progress, errors of disk images.
const TURNS_PER_LOOK: u64 = 4096;
/// An idle machine that a person sits at keeps to the wall clock from gaps of this length on.
const PACED_GAP_CYCLES: u64 = 1_000_000;
/// The message of a run that a person ended at its console.
const STOPPED: &str = "the run was stopped from the console";

/// How long a guest does nothing before its time may keep to the wall clock. A choice: longer than a script sleeps, and passed in
/// some seconds.
const QUIET_CYCLES: u64 = 600_000_000_000;
/// A guest that retires at most one instruction in this many cycles does nothing but serve its timer. A choice: Linux's ticks take a
/// tenth of that.
const QUIET_CYCLES_PER_INSTRUCTION: u64 = 100;
/// How long a request to stop may go unnoticed by a run that keeps to the wall clock.
const PATIENCE: Duration = Duration::from_millis(50);

/// How long a debugged machine waits for typed input at a time.
const BRIEF_WAIT: Duration = Duration::from_millis(1);

/// When to stop a guest that does not stop by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Instructions of all harts together.
    pub instructions: Option<u64>,
    /// The machine's clock.
    pub cycles: Option<u64>,
}

/// When a snapshot is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotEvent {
    /// At the first turn that begins at or after this clock value.
    Cycle(u64),
    /// At the first turn that begins after this many instructions of all harts together.
    Instructions(u64),
    /// Right after the marker hint with this argument.
    Marker(u64),
    /// Right after the region of interest begins.
    RegionBegin,
    /// Right after the guest switches to the timed gear.
    GearTimed,
}

/// Not a description of a [`SnapshotEvent`].
#[derive(Debug, thiserror::Error)]
#[error("{text:?} is not an event: use cycle:N, instructions:N, marker:N, region or timed")]
pub struct SnapshotEventError {
    text: String,
}

impl FromStr for SnapshotEvent {
    type Err = SnapshotEventError;

    fn from_str(text: &str) -> Result<SnapshotEvent, SnapshotEventError> {
        let error = || SnapshotEventError { text: text.to_owned() };
        let Some((name, number)) = text.split_once(':') else {
            return match text {
                "region" => Ok(SnapshotEvent::RegionBegin),
                "timed" => Ok(SnapshotEvent::GearTimed),
                _ => Err(error()),
            };
        };
        let number = number.parse().map_err(|_| error())?;
        match name {
            "cycle" => Ok(SnapshotEvent::Cycle(number)),
            "instructions" => Ok(SnapshotEvent::Instructions(number)),
            "marker" => Ok(SnapshotEvent::Marker(number)),
            _ => Err(error()),
        }
    }
}

impl SnapshotEvent {
    fn is(self, event: Event) -> bool {
        match (self, event) {
            (SnapshotEvent::Marker(wanted), Event::Marker(number)) => wanted == number,
            (SnapshotEvent::RegionBegin, Event::RegionBegin) => true,
            (SnapshotEvent::GearTimed, Event::Gear(Gear::Timed)) => true,
            _ => false,
        }
    }

    fn has_come(self, machine: &Machine) -> bool {
        match self {
            SnapshotEvent::Cycle(cycle) => machine.clock() >= cycle,
            SnapshotEvent::Instructions(instructions) => machine.instructions() >= instructions,
            _ => false,
        }
    }
}

/// The files that a run writes, and the points where it ends or changes its pace.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub limits: Limits,
    /// Take a snapshot at this event, into this file; the run goes on.
    pub snapshot: Option<(SnapshotEvent, PathBuf)>,
    /// The run ends right after its snapshot instead, as at a limit.
    pub ends_at_snapshot: bool,
    /// The region of interest runs in the timed gear, and the rest of the run in the functional one. A snapshot taken where the
    /// region begins is in the timed gear already.
    pub timed_region: bool,
    /// Write a timeline into this file.
    pub timeline: Option<PathBuf>,
    /// Guest time keeps to the wall clock after ten minutes in which the guest has only waited and its console has had no input. Such a
    /// guest takes hardly any time of the host. The run itself stays the same.
    pub paces_idle: bool,
}

/// The other end of the guest's console. A host that only prints types nothing, and never stops the run.
pub trait Host {
    /// Passes on the bytes that the guest printed.
    fn print(&mut self, bytes: &[u8]) -> std::io::Result<()>;
    /// Returns the bytes typed since the last call, after waiting for the first for at most `wait`. `None` at the end of input.
    fn input(&mut self, _wait: Duration) -> Option<Vec<u8>> {
        None
    }
    /// Says whether a byte may still be typed.
    fn is_interactive(&self) -> bool {
        false
    }
    /// Called now and then.
    fn progress(&mut self, _machine: &Machine) {}
    /// Tells the person at the console something that is not the guest's.
    fn announce(&mut self, _message: &str) {}
    /// True when the person at the console wants the run to end.
    fn wants_to_stop(&self) -> bool {
        false
    }
}

/// A console without a person: it keeps the guest's output, and types nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unattended {
    pub printed: Vec<u8>,
}

impl Unattended {
    /// The guest's output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.printed).into_owned()
    }
}

impl Host for Unattended {
    fn print(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.printed.extend_from_slice(bytes);
        Ok(())
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub end: End,
    /// One line that says more, where there is more to say.
    pub message: Option<String>,
    /// The file of a snapshot that was not taken, because the run ended before its event.
    pub missed_snapshot: Option<PathBuf>,
}

impl Outcome {
    /// An outcome of a run that took its snapshot, or was to take none.
    pub fn new(end: End, message: Option<String>) -> Outcome {
        Outcome { end, message, missed_snapshot: None }
    }
}

/// Runs the machine to its end.
pub fn run(machine: &mut Machine, options: &Options, host: &mut dyn Host) -> Result<Outcome, MachineError> {
    let mut runner = Runner::new(machine, options, host)?;
    loop {
        if let Some(outcome) = runner.turn(u64::MAX)? {
            return runner.finish(outcome);
        }
    }
}

/// A run in progress; the debugger drives it turn by turn.
pub(crate) struct Runner<'a> {
    pub machine: &'a mut Machine,
    options: &'a Options,
    pub host: &'a mut dyn Host,
    snapshot_is_due: bool,
    tracer: Option<Tracer>,
    turns: u64,
    /// The input of the console has ended, or there was none.
    input_ended: bool,
    quiet: Quiet,
    /// A machine that waits for typed input comes back after a moment, so that a debugger can ask for something.
    pub waits_briefly: bool,
}

impl<'a> Runner<'a> {
    pub fn new(
        machine: &'a mut Machine,
        options: &'a Options,
        host: &'a mut dyn Host,
    ) -> Result<Runner<'a>, MachineError> {
        if options.snapshot.is_some() {
            // Known from the beginning, so that a disk that changes while the guest runs is not taken for the one it saw.
            machine.bus.disk_digests()?;
        }
        let tracer = options.timeline.as_deref().map(Tracer::create).transpose()?;
        if tracer.is_some() {
            machine.types.read();
        }
        machine.accounting.trace.set_enabled(tracer.is_some());
        machine.transactions.set_recording(tracer.is_some());
        let input_ended = !host.is_interactive();
        Ok(Runner {
            machine,
            options,
            host,
            snapshot_is_due: options.snapshot.is_some(),
            tracer,
            turns: 0,
            input_ended,
            quiet: Quiet::default(),
            waits_briefly: false,
        })
    }

    /// Runs one turn; the outcome once there is one.
    pub fn turn(&mut self, instructions_max: u64) -> Result<Option<Outcome>, MachineError> {
        if let Some(outcome) = self.over()? {
            return Ok(Some(outcome));
        }
        let left = match self.options.limits.instructions {
            Some(limit) => instructions_max.min(limit - self.machine.instructions()),
            None => instructions_max,
        };
        self.pace();
        if !self.machine.step(left) && !self.wait_for_input() {
            let message = "every hart is idle and no event is left that could wake one".to_owned();
            return Ok(Some(self.outcome(Exit::Deadlocked, Some(message))));
        }
        self.pass_console_on()?;
        self.take_events()?;
        // A turn that the debugger broke off comes again, and is one turn all the same.
        if !self.machine.debug.has_broken_turn() {
            self.turns += 1;
            if self.turns.is_multiple_of(TURNS_PER_LOOK) {
                self.look_at_the_host()?;
            }
        }
        Ok(None)
    }

    /// The outcome, when the guest, a limit or a person has ended the run.
    pub fn over(&mut self) -> Result<Option<Outcome>, MachineError> {
        if let Some(end) = self.machine.end {
            if end.exit == Exit::IsolationViolated {
                return Ok(Some(Outcome::new(end, self.machine.watch.violation.clone())));
            }
            if let Some(panic) = self.machine.console.panic().map(str::to_owned) {
                return Ok(Some(Outcome::new(End { exit: Exit::Panicked, ..end }, Some(panic))));
            }
            let lost = end.hart.filter(|_| end.exit == Exit::Deadlocked);
            let message = lost.map(|hart| {
                let handler = self.machine.harts[hart].stvec & !3;
                format!("hart {hart} can only trap: nothing can be fetched at its trap handler, {handler:#x}")
            });
            return Ok(Some(Outcome::new(end, message)));
        }
        if self.machine.console.panic_is_over() {
            let message = self.machine.console.panic().map(str::to_owned);
            return Ok(Some(self.outcome(Exit::Panicked, message)));
        }
        let Limits { instructions, cycles } = self.options.limits;
        let cut_off = if self.options.ends_at_snapshot && self.options.snapshot.is_some() && !self.snapshot_is_due {
            Some((Exit::LimitReached, "the run was to end at its snapshot".to_owned()))
        } else if instructions.is_some_and(|limit| self.machine.instructions() >= limit) {
            let message = format!("the limit of {} instructions was reached", instructions.unwrap_or(0));
            Some((Exit::LimitReached, message))
        } else if cycles.is_some_and(|limit| self.machine.clock() >= limit) {
            let message = format!("the limit of {} cycles was reached", cycles.unwrap_or(0));
            Some((Exit::LimitReached, message))
        } else if self.host.wants_to_stop() {
            Some((Exit::Stopped, STOPPED.to_owned()))
        } else {
            None
        };
        Ok(cut_off.map(|(exit, message)| match self.machine.console.panic().map(str::to_owned) {
            Some(panic) => self.outcome(Exit::Panicked, Some(panic)),
            None => self.outcome(exit, Some(message)),
        }))
    }

    fn outcome(&self, exit: Exit, message: Option<String>) -> Outcome {
        Outcome::new(End { exit, code: 0, hart: None }, message)
    }

    /// With a person at the console, or a guest that only waits, guest time does not run ahead of the wall clock while every hart
    /// sleeps.
    fn pace(&mut self) {
        if self.input_ended && !self.quiet.is_announced {
            return;
        }
        let gap = self.machine.idle_gap_cycles();
        if !(PACED_GAP_CYCLES..u64::MAX).contains(&gap) {
            return;
        }
        let gap = Duration::from_nanos(gap);
        if !self.input_ended {
            self.type_input(gap);
            return;
        }
        let begin = Instant::now();
        while !self.host.wants_to_stop() {
            let Some(left) = gap.checked_sub(begin.elapsed()) else { break };
            std::thread::sleep(left.min(PATIENCE));
        }
    }

    /// Finds out whether the guest does nothing but wait, and says so once.
    fn look_for_quiet(&mut self) {
        if !self.options.paces_idle || !self.input_ended {
            return;
        }
        self.quiet.look(self.machine.clock(), self.machine.instructions());
        if self.quiet.cycles() < QUIET_CYCLES {
            self.quiet.is_announced = false;
        } else if !self.quiet.is_announced {
            self.quiet.is_announced = true;
            self.host.announce(
                "the guest has only waited for ten minutes of its time, and its console has no input: guest time now keeps to the \
                 wall clock; Ctrl-C ends the run",
            );
        }
    }

    /// Waits for typed input; false when there will be none.
    fn wait_for_input(&mut self) -> bool {
        while !self.input_ended && !self.host.wants_to_stop() {
            let wait = if self.waits_briefly { BRIEF_WAIT } else { Duration::from_secs(1) };
            if self.type_input(wait) || (self.waits_briefly && !self.input_ended) {
                return true;
            }
        }
        self.host.wants_to_stop()
    }

    /// Passes typed input on to the guest; true when there was some.
    fn type_input(&mut self, wait: Duration) -> bool {
        match self.host.input(wait) {
            None => {
                self.input_ended = true;
                false
            }
            Some(bytes) if bytes.is_empty() => false,
            Some(bytes) => {
                self.machine.type_at_console(&bytes);
                true
            }
        }
    }

    fn pass_console_on(&mut self) -> Result<(), MachineError> {
        let output = self.machine.bus.console_output();
        if output.len() == 0 {
            return Ok(());
        }
        let bytes: Vec<u8> = output.collect();
        self.machine.console.print(&bytes);
        self.quiet.end(self.machine.clock());
        self.host.print(&bytes).map_err(MachineError::Console)
    }

    fn take_events(&mut self) -> Result<(), MachineError> {
        let mut due = false;
        if let Some((wanted, _)) = &self.options.snapshot
            && self.snapshot_is_due
            && !self.machine.debug.has_broken_turn()
        {
            due = wanted.has_come(self.machine);
        }
        while !self.machine.events.is_empty() {
            for (hart, event) in self.machine.take_events() {
                due |= self.options.snapshot.as_ref().is_some_and(|(wanted, _)| wanted.is(event));
                if let Some(tracer) = &mut self.tracer {
                    tracer.event(hart, event, self.machine.memory.hot[hart].cycle)?;
                }
                if let Some(gear) = gear_after(event).filter(|_| self.options.timed_region) {
                    self.machine.events.push((hart, Event::Gear(gear)));
                }
            }
        }
        if let Some(tracer) = &mut self.tracer {
            tracer.write(&mut self.machine.accounting.trace, self.machine.symbols.as_ref())?;
            let conflicts = self.machine.transactions.take_conflicts();
            if !conflicts.is_empty() {
                let namer = DataNamer::new(self.machine);
                for conflict in &conflicts {
                    tracer.conflict(conflict, self.machine.symbols.as_ref(), &namer)?;
                }
            }
        }
        // A machine that is switched off has nothing to resume.
        if due
            && self.snapshot_is_due
            && self.machine.end.is_none()
            && let Some((_, path)) = &self.options.snapshot
        {
            self.snapshot_is_due = false;
            self.machine.save(path)?;
        }
        Ok(())
    }

    fn look_at_the_host(&mut self) -> Result<(), MachineError> {
        if let Some(error) = self.machine.bus.take_host_error() {
            return Err(error.into());
        }
        self.machine.trim_code();
        if !self.input_ended {
            self.type_input(Duration::ZERO);
        }
        self.look_for_quiet();
        self.host.progress(self.machine);
        Ok(())
    }

    /// Closes the files of the run.
    pub fn finish(mut self, outcome: Outcome) -> Result<Outcome, MachineError> {
        self.pass_console_on()?;
        self.look_at_the_host()?;
        self.machine.bus.finish_disks()?;
        if let Some(tracer) = self.tracer.take() {
            tracer.finish()?;
        }
        let missed = self.options.snapshot.as_ref().filter(|_| self.snapshot_is_due);
        Ok(Outcome { missed_snapshot: missed.map(|(_, path)| path.clone()), ..outcome })
    }
}

/// How long the guest has done nothing.
#[derive(Debug, Default)]
struct Quiet {
    /// The machine's clock when the guest last did something.
    since_cycle: u64,
    /// The machine's clock and instructions at the last look.
    looked_cycle: u64,
    looked_instructions: u64,
    /// The host knows that the guest only waits.
    is_announced: bool,
}

impl Quiet {
    /// Judges the work since the last look.
    fn look(&mut self, clock_cycles: u64, instructions: u64) {
        let cycles = clock_cycles.saturating_sub(self.looked_cycle);
        let retired = instructions.saturating_sub(self.looked_instructions);
        (self.looked_cycle, self.looked_instructions) = (clock_cycles, instructions);
        if retired.saturating_mul(QUIET_CYCLES_PER_INSTRUCTION) > cycles {
            self.end(clock_cycles);
        }
    }

    /// The guest did something.
    fn end(&mut self, clock_cycles: u64) {
        self.since_cycle = clock_cycles;
    }

    fn cycles(&self) -> u64 {
        self.looked_cycle.saturating_sub(self.since_cycle)
    }
}

/// The gear that an event begins, where only the region of interest is timed.
fn gear_after(event: Event) -> Option<Gear> {
    match event {
        Event::RegionBegin => Some(Gear::Timed),
        Event::RegionEnd => Some(Gear::Functional),
        Event::Marker(_) | Event::Gear(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Quiet, SnapshotEvent};

    #[test]
    fn a_guest_is_quiet_while_it_prints_nothing_and_takes_only_its_ticks() {
        let mut quiet = Quiet::default();
        quiet.look(1_000_000, 500_000);
        assert_eq!(quiet.cycles(), 0, "it was busy");
        quiet.look(2_000_000, 510_000);
        quiet.look(3_000_000, 510_001);
        assert_eq!(quiet.cycles(), 2_000_000);
        quiet.end(3_500_000);
        quiet.look(4_000_000, 510_002);
        assert_eq!(quiet.cycles(), 500_000, "it printed");
        quiet.look(5_000_000, 520_003);
        assert_eq!(quiet.cycles(), 0, "it was busy");
    }

    #[test]
    fn snapshot_events_are_named() {
        assert_eq!("cycle:12".parse::<SnapshotEvent>().unwrap(), SnapshotEvent::Cycle(12));
        assert_eq!("timed".parse::<SnapshotEvent>().unwrap(), SnapshotEvent::GearTimed);
        for bad in ["", "cycle", "cycle:", "cycle:-1", "marker:x", "tomorrow"] {
            assert!(bad.parse::<SnapshotEvent>().is_err(), "{bad}");
        }
    }
}
