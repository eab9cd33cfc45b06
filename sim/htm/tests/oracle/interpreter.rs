//! Harts that execute random programs on an engine as the machine does: ask, roll the losers back, access, join the
//! sets.

mod access;

use super::fault::{Fault, Undoing};
use super::program::{Operation, Program};
use super::serial::{Access, initial_memory, replay};
use access::{mix, words};
use concord_abi::htm::Cause;
use concord_htm::check::{Checker, Violation};
use concord_htm::manager::{Manager, Rule};
use concord_htm::policy::Policy;
use concord_htm::profile::Conflict;
use concord_htm::{Begun, Ended, Engine, Loss, Popped, Word};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A bound on the operations of a run. Runs of these programs stay far below it unless they never end.
const OPERATIONS_MAX: u64 = 50_000;
/// One operation in this many follows a context switch.
const SWITCH_PERIOD: u16 = 32;

/// Options of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    pub checks: bool,
    pub fault: Option<Fault>,
    /// After this many operations the engine is written to bytes and read back.
    pub cut: Option<u64>,
}

/// The reason why a run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The checker stopped the run.
    Violation(Violation),
    /// The serial oracle gets a different result.
    Serial(String),
    /// The run does not end.
    Stuck,
    /// The party with the lower priority won.
    Inversion(Box<Conflict>),
}

impl From<Violation> for Failure {
    fn from(violation: Violation) -> Failure {
        Failure::Violation(violation)
    }
}

/// The result of a run.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    pub events: Vec<Vec<Access>>,
    pub memory: Vec<u64>,
    pub operations: u64,
    /// The serialized engine at the end.
    pub engine: Vec<u8>,
    pub seen: Seen,
}

/// Counts of events, which show that the tests exercise the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub committed: u64,
    pub nested: u64,
    pub suspended: u64,
    pub restarts: [u64; 8],
    pub waits: u64,
    pub refused: u64,
    pub doomed: u64,
    pub stack: u64,
    pub overflowed: u64,
    pub migrated: u64,
    /// Words that were read around a transaction's write.
    pub around: u64,
    /// Additions that a commit made.
    pub added: u64,
    /// Deferred additions that became ordinary ones.
    pub undeferred: u64,
    /// Back-offs that ended with the transaction that had won.
    pub released: u64,
}

impl Seen {
    pub fn add(&mut self, other: &Seen) {
        self.committed += other.committed;
        self.nested += other.nested;
        self.suspended += other.suspended;
        self.restarts.iter_mut().zip(other.restarts).for_each(|(sum, count)| *sum += count);
        self.waits += other.waits;
        self.refused += other.refused;
        self.doomed += other.doomed;
        self.stack += other.stack;
        self.overflowed += other.overflowed;
        self.migrated += other.migrated;
        self.around += other.around;
        self.added += other.added;
        self.undeferred += other.undeferred;
        self.released += other.released;
    }
}

/// The state that a restart restores.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Checkpoint {
    pc: usize,
    register: u64,
}

struct Thread {
    operations: Vec<Operation>,
    priority: u64,
    /// The id of the thread's context.
    context: u64,
    pc: usize,
    register: u64,
    /// For each trap whose handler runs: whether the trap suspended a transaction.
    traps: Vec<bool>,
    /// The same for the context switch that the thread waits through.
    was_active: bool,
    /// Operations that happen only once and have happened.
    fired: BTreeSet<usize>,
    last_hart: Option<usize>,
    /// The operation ended in a restart.
    restarted: bool,
}

#[derive(Clone, Default)]
struct Hart {
    thread: Option<usize>,
    ready_cycle: u64,
    backs_off: bool,
}

/// The continuation after an operation.
#[derive(PartialEq, Eq)]
enum Flow {
    /// The next operation follows, unless this one ended in a restart.
    Next,
    /// The thread tries the operation again, or the operation has set the next one.
    Stay,
}

pub struct World<'a> {
    program: &'a Program,
    options: Options,
    engine: Engine<Checkpoint>,
    memory: Vec<u64>,
    checker: Option<Checker>,
    threads: Vec<Thread>,
    harts: Vec<Hart>,
    waiting: VecDeque<usize>,
    now: u64,
    operations: u64,
    random: u64,
    /// The accesses of live transactions.
    open: BTreeMap<u64, Vec<Access>>,
    priorities: BTreeMap<u64, u64>,
    events: Vec<Vec<Access>>,
    /// Lines that sets have lost under the planted fault, with their transactions.
    forgotten: BTreeMap<u64, u64>,
    /// Words beside written ones under the planted fault, with their values at the time of the write.
    beside: BTreeMap<Word, u64>,
    losses: Vec<Loss>,
    seen: Seen,
}

/// Runs a program to its end and compares it with the serial oracle.
///
/// # Errors
/// [`Failure`] gives the reason.
pub fn run(program: &Program, policy: Policy, options: Options) -> Result<Outcome, Failure> {
    let mut world = World::new(program, policy, options);
    while world.step()? {}
    replay(&world.events, &world.memory).map_err(Failure::Serial)?;
    let engine = postcard::to_stdvec(&world.engine).expect("an engine can be written");
    for counters in world.engine.counters() {
        world.seen.committed += counters.committed;
        world.seen.nested += counters.nested;
        world.seen.suspended += counters.suspended;
        world.seen.refused += counters.refused;
        world.seen.overflowed += counters.overflowed_lines;
        for (cause, count) in counters.restarts.iter() {
            world.seen.restarts[cause as usize] += count;
        }
    }
    let World { events, memory, operations, seen, .. } = world;
    Ok(Outcome { events, memory, operations, engine, seen })
}

impl<'a> World<'a> {
    fn new(program: &'a Program, policy: Policy, options: Options) -> World<'a> {
        let thread = |(index, thread): (usize, &super::program::Thread)| Thread {
            operations: thread.operations(),
            priority: thread.priority.into(),
            context: index as u64 + 1,
            pc: 0,
            register: index as u64,
            traps: Vec::new(),
            was_active: false,
            fired: BTreeSet::new(),
            last_hart: None,
            restarted: false,
        };
        let mut engine = Engine::new(program.harts, policy, program.seed);
        engine.set_recording(true);
        World {
            program,
            options,
            engine,
            memory: initial_memory(),
            checker: options.checks.then(|| Checker::new(policy.outside_reads)),
            threads: program.threads.iter().enumerate().map(thread).collect(),
            harts: vec![Hart::default(); program.harts],
            waiting: (0..program.threads.len()).filter(|index| !program.threads[*index].actions.is_empty()).collect(),
            now: 0,
            operations: 0,
            random: program.seed | 1,
            open: BTreeMap::new(),
            priorities: BTreeMap::new(),
            events: Vec::new(),
            forgotten: BTreeMap::new(),
            beside: BTreeMap::new(),
            losses: Vec::new(),
            seen: Seen::default(),
        }
    }

    fn choose(&mut self) -> u16 {
        if let Some(choice) = self.program.choices.get(self.operations as usize) {
            return *choice;
        }
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 24) as u16
    }

    /// Executes one operation of one hart; returns false when all threads have ended.
    fn step(&mut self) -> Result<bool, Failure> {
        self.schedule_idle_harts()?;
        let busy = |hart: &usize| self.harts[*hart].thread.is_some();
        let Some(first) = (0..self.harts.len()).filter(busy).map(|hart| self.harts[hart].ready_cycle).min() else {
            return Ok(false);
        };
        self.now = self.now.max(first);
        let ready: Vec<usize> =
            (0..self.harts.len()).filter(busy).filter(|hart| self.harts[*hart].ready_cycle <= self.now).collect();
        let choice = self.choose();
        self.operations += 1;
        if self.operations > OPERATIONS_MAX {
            return Err(Failure::Stuck);
        }
        if self.options.cut == Some(self.operations) {
            self.cut();
        }
        let hart = ready[choice as usize / 64 % ready.len()];
        if choice.is_multiple_of(SWITCH_PERIOD) && !self.waiting.is_empty() {
            // An interrupt also hits a hart that backs off.
            let hart = choice as usize / 64 % self.harts.len();
            self.switch_out(hart)?;
        } else {
            self.harts[hart].ready_cycle = self.now + 1 + u64::from(choice % 4);
            self.harts[hart].backs_off = false;
            self.execute(hart)?;
        }
        self.check_priorities()?;
        Ok(true)
    }

    /// Writes the engine to bytes and reads it back, and begins with a new checker.
    fn cut(&mut self) {
        let policy = *self.engine.policy();
        let bytes = postcard::to_stdvec(&self.engine).expect("an engine can be written");
        self.engine = postcard::from_bytes(&bytes).expect("what was written can be read");
        let words = self.memory.len() as u64;
        self.engine.restore(self.harts.len(), &policy, |word| word < words).expect("what was saved is possible");
        self.engine.set_recording(true);
        if let Some(checker) = &mut self.checker {
            *checker = Checker::new(policy.outside_reads);
            checker.adopt(
                self.engine.written_words(),
                self.engine.deferred_adds(),
                &Undoing::new(&mut self.memory, None),
            );
        }
    }

    fn schedule_idle_harts(&mut self) -> Result<(), Failure> {
        for hart in 0..self.harts.len() {
            if let Some(thread) = self.harts[hart].thread
                && self.threads[thread].pc == self.threads[thread].operations.len()
            {
                assert!(
                    !self.engine.is_active(hart) && self.engine.frames(hart) == 0,
                    "a thread ends with nothing open"
                );
                self.harts[hart].thread = None;
                self.engine.switch_context(hart, 0).expect("nothing is active");
            }
            if self.harts[hart].thread.is_none() && !self.waiting.is_empty() {
                self.switch_in(hart);
            }
        }
        Ok(())
    }

    fn switch_out(&mut self, hart: usize) -> Result<(), Failure> {
        if let Some(thread) = self.harts[hart].thread.take() {
            self.threads[thread].was_active = self.engine.is_active(hart);
            self.trap(hart)?;
            self.waiting.push_back(thread);
        }
        self.switch_in(hart);
        Ok(())
    }

    fn switch_in(&mut self, hart: usize) {
        let Some(index) = self.waiting.pop_front() else { return };
        self.harts[hart] = Hart { thread: Some(index), ready_cycle: self.now + 1, backs_off: false };
        let thread = &mut self.threads[index];
        self.engine.switch_context(hart, thread.context).expect("the context is free and nothing is active");
        self.engine.set_priority(hart, thread.priority);
        self.seen.migrated += u64::from(thread.last_hart.is_some_and(|last| last != hart) && thread.was_active);
        thread.last_hart = Some(hart);
        if std::mem::take(&mut thread.was_active) {
            self.pop(hart, true);
        }
    }

    /// Takes a trap. If the mode makes its transaction lose, the thread does not restart yet.
    fn trap(&mut self, hart: usize) -> Result<(), Failure> {
        let memory = &mut Undoing::new(&mut self.memory, self.options.fault);
        let (_, loss) = self.engine.trap(hart, self.now, memory);
        self.losses.extend(loss);
        self.settle()
    }

    fn pop(&mut self, hart: usize, privileged: bool) -> Flow {
        match self.engine.pop(hart, privileged, self.now).expect("what was pushed can be popped") {
            Popped::Nothing | Popped::Resumed => Flow::Next,
            Popped::Restarted(loss) => {
                self.seen.doomed += 1;
                self.restart(&loss);
                Flow::Next
            }
        }
    }

    /// Puts a hart back to the checkpoint of its active transaction.
    fn restart(&mut self, loss: &Loss) {
        let checkpoint = *self.engine.checkpoint(loss.hart).expect("who restarts is active");
        let hart = &mut self.harts[loss.hart];
        hart.ready_cycle = self.now + 1 + loss.backoff_cycles;
        hart.backs_off = loss.backoff_cycles > 0;
        let thread = &mut self.threads[hart.thread.expect("who is active has a thread")];
        (thread.pc, thread.register) = (checkpoint.pc, checkpoint.register);
        thread.restarted = true;
    }

    /// Removes the accesses of the losers from the record.
    fn settle(&mut self) -> Result<(), Failure> {
        for loss in std::mem::take(&mut self.losses) {
            self.open.remove(&loss.id);
            self.forgotten.retain(|_, id| *id != loss.id);
            if let Some(checker) = &mut self.checker {
                checker.rollback(loss.id, &Undoing::new(&mut self.memory, None))?;
            }
            if loss.active {
                self.restart(&loss);
            }
        }
        Ok(())
    }

    /// Ends the back-offs for a transaction that has ended.
    fn release_losers(&mut self, winner_id: u64) {
        for hart in self.engine.release_losers(winner_id) {
            let end = self.now + 1;
            let state = &mut self.harts[hart];
            if state.backs_off && state.ready_cycle > end {
                let unspent_cycles = state.ready_cycle - end;
                state.ready_cycle = end;
                self.engine.shorten_backoff(hart, unspent_cycles);
                self.seen.released += 1;
            }
        }
    }

    /// Under os_prio the lower priority wins only against a transaction suspended in its own context.
    fn check_priorities(&mut self) -> Result<(), Failure> {
        for conflict in self.engine.take_conflicts() {
            self.seen.stack += u64::from(conflict.key.rule == Rule::Stack);
            if self.engine.policy().manager != Manager::OsPrio
                || matches!(conflict.key.rule, Rule::Stack | Rule::Nontransactional)
            {
                continue;
            }
            let hart = conflict.requester_hart.expect("a device is not arbitrated");
            let requester = match conflict.requester_id {
                0 => self.engine.priority(hart),
                id => self.priorities[&id],
            };
            let holder = self.priorities[&conflict.holder_id];
            let (winner, loser) = if conflict.key.requester_won { (requester, holder) } else { (holder, requester) };
            if winner < loser || conflict.inversion {
                return Err(Failure::Inversion(Box::new(conflict)));
            }
        }
        Ok(())
    }

    fn execute(&mut self, hart: usize) -> Result<(), Failure> {
        let index = self.harts[hart].thread.expect("only harts with a thread are chosen");
        let pc = self.threads[index].pc;
        self.threads[index].restarted = false;
        let is_first = self.threads[index].fired.insert(pc);
        let flow = match self.threads[index].operations[pc] {
            Operation::Load { word, is_wide } => self.load(hart, index, &words(word, is_wide))?,
            Operation::Store { word, is_wide, salt } => {
                let value = mix(self.threads[index].register, salt.into());
                self.store(hart, &words(word, is_wide), value)?
            }
            Operation::Swap { word, salt } => self.swap(hart, index, word, salt)?,
            Operation::Add { word, amount } => self.add(hart, word, amount.into())?,
            Operation::CompareAndSwap { word, hits, salt } => self.compare_and_swap(hart, index, word, hits, salt)?,
            Operation::Test { word, hits } => self.test(hart, index, word, hits)?,
            Operation::Begin => self.begin(hart, index),
            Operation::End => self.end(hart)?,
            Operation::Push { end } | Operation::Trap { end } if !is_first => {
                self.threads[index].pc = end;
                Flow::Stay
            }
            Operation::Push { .. } => {
                self.engine.push(hart, false).expect("programs do not nest so deep");
                Flow::Next
            }
            Operation::Pop => self.pop(hart, false),
            Operation::Trap { .. } => {
                let was_active = self.engine.is_active(hart);
                self.threads[index].traps.push(was_active);
                self.trap(hart)?;
                Flow::Next
            }
            Operation::TrapReturn => match self.threads[index].traps.pop() {
                Some(true) => self.pop(hart, true),
                _ => Flow::Next,
            },
            Operation::Restart { code } if is_first => {
                let status = Cause::Explicit.status(code);
                let memory = &mut Undoing::new(&mut self.memory, self.options.fault).beside(&self.beside);
                self.losses.extend(self.engine.restart(hart, status, self.now, memory));
                self.settle()?;
                Flow::Next
            }
            Operation::Evict { line } if is_first => self.evict(hart, line)?,
            Operation::Device { word, is_write } if is_first => self.device(word, is_write)?,
            Operation::Restart { .. } | Operation::Evict { .. } | Operation::Device { .. } => Flow::Next,
            Operation::Walk { word, marks } => self.walk(hart, word, marks)?,
        };
        let thread = &mut self.threads[index];
        if flow == Flow::Next && !thread.restarted {
            thread.pc = pc + 1;
        }
        Ok(())
    }

    fn begin(&mut self, hart: usize, index: usize) -> Flow {
        let thread = &self.threads[index];
        let checkpoint = Checkpoint { pc: thread.pc + 1, register: thread.register };
        let memory = &mut Undoing::new(&mut self.memory, self.options.fault);
        match self.engine.begin(hart, self.now, memory, || checkpoint) {
            Begun::Outermost => {
                self.priorities.insert(self.engine.active_id(hart), thread.priority);
            }
            Begun::Nested => {}
            begun => panic!("programs do not nest so deep: {begun:?}"),
        }
        Flow::Next
    }

    fn end(&mut self, hart: usize) -> Result<Flow, Failure> {
        let id = self.engine.active_id(hart);
        self.add_at_commit(hart)?;
        match self.engine.end(hart, self.now) {
            Ended::Nested => {}
            Ended::Committed { .. } => {
                self.events.extend(self.open.remove(&id));
                self.forgotten.retain(|_, forgetful| *forgetful != id);
                if let Some(checker) = &mut self.checker {
                    checker.commit(id, &Undoing::new(&mut self.memory, None))?;
                }
                self.release_losers(id);
            }
            Ended::NotActive => panic!("a section ends in its transaction"),
        }
        Ok(Flow::Next)
    }
}
