//! The transactions of a machine: begin, commit, sets. Conflicts are in `resolve.rs`, suspension in `context.rs`.

use crate::context::{Frame, HartState};
use crate::directory::{Directory, Member};
use crate::kinds::Kinds;
use crate::manager::Manager;
use crate::policy::{Mode, Policy};
use crate::profile::{Conflict, Profile};
use crate::resolve::Loss;
use crate::statistics::Counters;
use crate::transaction::{Slot, Stalls, Subject, Transaction};
use crate::{Line, Memory, Word, index_in_line, line_of};
use concord_abi::htm::{Cause, DEPTH_MAX, FRAMES_MAX};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// The result of a begin.
#[derive(Debug, PartialEq, Eq)]
pub enum Begun {
    /// A transaction began.
    Outermost,
    /// The active transaction nests one level deeper.
    Nested,
    /// The active transaction was already at the greatest depth, and restarts.
    TooDeep(Loss),
    /// The context holds the greatest allowed number of suspended frames.
    NoRoom,
}

/// The result of an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    Committed {
        /// The lines of its sets.
        lines: Vec<Line>,
        /// How many of these lines had left the first-level cache.
        overflowed_lines: u64,
        /// The begin of the attempt that committed, in cycles.
        attempt_cycle: u64,
        id: u64,
    },
    /// The active transaction continues, one level less deep.
    Nested,
    /// No transaction is active.
    NotActive,
}

/// The consequence of a line's leaving a hart's first-level cache.
#[derive(Debug, PartialEq, Eq)]
pub enum Evicted {
    /// The line was in no set of this hart, or had already left the cache.
    Nothing,
    /// The line was in a set, and its transaction continues.
    Overflowed,
    /// Best-effort mode: the transactions with the line restart, both the hart's active one and those suspended there.
    Lost(Vec<Loss>),
}

/// The accesses to the words of a line that need no further call of [`Engine::resolve`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Masks {
    /// Words in either set of the hart's active transaction.
    pub readable: u16,
    /// Words in its write set.
    pub writable: u16,
    /// No other transaction wrote to the line, so all of it may be read without a conflict.
    pub line_is_readable: bool,
    /// No other transaction has a word of the line in its sets.
    pub line_is_writable: bool,
    /// Another transaction has a word of the line that overflowed the first-level cache.
    pub others_overflowed: bool,
}

/// The transactions of a machine. `C` is the type of a checkpoint: the state besides memory that a restart restores.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Engine<C> {
    pub(crate) policy: Policy,
    pub(crate) transactions: Vec<Option<Transaction<C>>>,
    #[serde(skip)]
    pub(crate) directory: Directory,
    pub(crate) harts: Vec<HartState>,
    /// Contexts that hold frames and are no hart's current context.
    pub(crate) parked: BTreeMap<u64, Vec<Frame>>,
    pub(crate) live: u32,
    pub(crate) next_id: u64,
    pub(crate) random: u64,
    /// True while the words of live transactions are out of memory for a device's access.
    #[serde(skip)]
    pub(crate) taken_out: bool,
    pub(crate) counters: Vec<Counters>,
    pub(crate) profile: Profile,
    #[serde(skip)]
    pub(crate) kinds: Kinds,
    /// Conflicts since [`Engine::take_conflicts`] last took them; kept only while recording is on.
    #[serde(skip)]
    pub(crate) recorded: Option<Vec<Conflict>>,
}

/// The initial state of the random number generator; never its fixed point, zero.
fn random_of(seed: u64) -> u64 {
    (seed.wrapping_mul(0xd134_2543_de82_ef95) ^ 0x853c_49e6_748f_ea9b).max(1)
}

impl<C> Engine<C> {
    /// An engine without transactions for `harts` harts; `seed` determines the back-off.
    pub fn new(harts: usize, policy: Policy, seed: u64) -> Engine<C> {
        Engine {
            policy,
            transactions: Vec::new(),
            directory: Directory::default(),
            harts: vec![HartState::default(); harts],
            parked: BTreeMap::new(),
            live: 0,
            next_id: 1,
            random: random_of(seed),
            taken_out: false,
            counters: vec![Counters::default(); harts],
            profile: Profile::default(),
            kinds: Kinds::default(),
            recorded: None,
        }
    }

    /// Draws back-off from this seed from now on.
    pub fn reseed(&mut self, seed: u64) {
        self.random = random_of(seed);
    }

    /// Lets this contention manager decide from now on. The past of live transactions counts with it as well.
    pub fn set_manager(&mut self, manager: Manager) {
        self.policy.manager = manager;
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// True while a transaction exists, active or suspended.
    #[inline]
    pub fn is_live(&self) -> bool {
        self.live != 0
    }

    #[inline]
    pub fn is_active(&self, hart: usize) -> bool {
        self.harts[hart].active.is_some()
    }

    /// The id of a hart's active transaction, or 0.
    pub fn active_id(&self, hart: usize) -> u64 {
        self.harts[hart].active.map_or(0, |slot| self.transaction(slot).id)
    }

    /// The checkpoint of a hart's active transaction.
    pub fn checkpoint(&self, hart: usize) -> Option<&C> {
        self.harts[hart].active.map(|slot| &self.transaction(slot).checkpoint)
    }

    pub(crate) fn transaction(&self, slot: Slot) -> &Transaction<C> {
        self.transactions[slot as usize].as_ref().expect("a slot that is used names a transaction")
    }

    pub(crate) fn transaction_mut(&mut self, slot: Slot) -> &mut Transaction<C> {
        self.transactions[slot as usize].as_mut().expect("a slot that is used names a transaction")
    }

    /// Begins a transaction on a hart, or nests in the active one. Only a new transaction calls `checkpoint`.
    pub fn begin(&mut self, hart: usize, now: u64, memory: &mut impl Memory, checkpoint: impl FnOnce() -> C) -> Begun {
        if let Some(slot) = self.harts[hart].active {
            let transaction = self.transaction_mut(slot);
            if transaction.depth == DEPTH_MAX {
                return Begun::TooDeep(self.lose(slot, Cause::Depth.status(0), None, now, memory));
            }
            transaction.depth += 1;
            let depth = transaction.depth;
            let counters = &mut self.counters[hart];
            counters.nested += 1;
            counters.depth_max = counters.depth_max.max(depth);
            return Begun::Nested;
        }
        if self.harts[hart].frames.len() >= FRAMES_MAX {
            return Begun::NoRoom;
        }
        let transaction = Transaction {
            id: self.next_id,
            hart,
            suspended: false,
            doom: None,
            depth: 1,
            checkpoint: checkpoint(),
            priority: self.harts[hart].priority,
            begin_cycle: now,
            attempt_cycle: now,
            restarts: 0,
            stalls: Stalls::default(),
            stalled: false,
            status: 0,
            karma_words: 0,
            size_words: 0,
            reads: Vec::new(),
            undo: Vec::new(),
            adds: Vec::new(),
            lines: Vec::new(),
            overflowed: Vec::new(),
        };
        self.next_id += 1;
        self.live += 1;
        let slot = match self.transactions.iter().position(Option::is_none) {
            Some(free) => free,
            None => {
                self.transactions.push(None);
                self.transactions.len() - 1
            }
        };
        self.transactions[slot] = Some(transaction);
        self.harts[hart].active = Some(slot as Slot);
        let counters = &mut self.counters[hart];
        counters.begun += 1;
        counters.depth_max = counters.depth_max.max(1);
        Begun::Outermost
    }

    /// Ends the innermost nesting of a hart's active transaction; the outermost end commits it.
    pub fn end(&mut self, hart: usize, now: u64) -> Ended {
        let Some(slot) = self.harts[hart].active else { return Ended::NotActive };
        let transaction = self.transaction_mut(slot);
        if transaction.depth > 1 {
            transaction.depth -= 1;
            return Ended::Nested;
        }
        self.harts[hart].active = None;
        let transaction = self.remove(slot);
        self.harts[hart].last_status = transaction.status;
        self.harts[hart].begin_cycle = transaction.begin_cycle;
        let counters = &mut self.counters[hart];
        counters.committed += 1;
        counters.committed_cycles += now.saturating_sub(transaction.attempt_cycle);
        counters.committed_words += transaction.size_words;
        counters.size_words_max = counters.size_words_max.max(transaction.size_words);
        Ended::Committed {
            overflowed_lines: transaction.overflowed.len() as u64,
            attempt_cycle: transaction.attempt_cycle,
            id: transaction.id,
            lines: transaction.lines,
        }
    }

    /// Removes a transaction that is over, and everything that the engine knows of it.
    pub(crate) fn remove(&mut self, slot: Slot) -> Transaction<C> {
        self.live -= 1;
        let transaction = self.transactions[slot as usize].take().expect("a slot that is used names a transaction");
        for line in &transaction.lines {
            self.directory.remove(*line, slot);
        }
        self.kinds.forget(transaction.id);
        transaction
    }

    /// Restarts a hart's active transaction for a reason other than a conflict; `None` if there is no such transaction.
    pub fn restart(&mut self, hart: usize, status: u64, now: u64, memory: &mut impl Memory) -> Option<Loss> {
        let slot = self.harts[hart].active?;
        Some(self.lose(slot, status, None, now, memory))
    }

    /// The accesses to a line that a hart may make without further calls of [`Engine::resolve`].
    pub fn masks(&self, hart: usize, line: Line) -> Masks {
        let own = self.harts[hart].active;
        let mut masks = Masks {
            readable: 0,
            writable: 0,
            line_is_readable: true,
            line_is_writable: true,
            others_overflowed: false,
        };
        for member in self.directory.members(line) {
            if Some(member.slot) == own {
                masks.readable = member.read | member.write;
                masks.writable = member.write;
            } else {
                masks.line_is_readable &= member.write == 0;
                masks.line_is_writable = false;
                masks.others_overflowed |= member.overflowed;
            }
        }
        masks
    }

    /// A line left a hart's first-level cache.
    pub fn evicted(&mut self, hart: usize, line: Line, now: u64, memory: &mut impl Memory) -> Evicted {
        let here = |member: &&Member| !member.overflowed && self.transaction(member.slot).hart == hart;
        let members = self.directory.members(line).iter().filter(here);
        let slots: SmallVec<[Slot; 2]> = members.map(|member| member.slot).collect();
        if slots.is_empty() {
            return Evicted::Nothing;
        }
        if self.policy.mode == Mode::BestEffort {
            let status = Cause::Capacity.status(0);
            return Evicted::Lost(slots.iter().map(|slot| self.lose(*slot, status, None, now, memory)).collect());
        }
        for slot in slots {
            self.directory.member(line, slot).0.overflowed = true;
            self.transaction_mut(slot).overflowed.push(line);
            self.counters[hart].overflowed_lines += 1;
        }
        Evicted::Overflowed
    }

    /// The lines of a hart's active transaction.
    pub fn active_lines(&self, hart: usize) -> &[Line] {
        self.harts[hart].active.map_or(&[], |slot| &self.transaction(slot).lines)
    }

    /// True when a hart's active transaction wrote to the word.
    pub fn active_wrote(&self, hart: usize, word: Word) -> bool {
        let bit = 1 << index_in_line(word);
        let own = self.harts[hart].active;
        self.directory.members(line_of(word)).iter().any(|member| Some(member.slot) == own && member.write & bit != 0)
    }

    /// The transaction that a hart's registers describe.
    pub fn subject(&self, hart: usize) -> Option<Subject<'_, C>> {
        let state = &self.harts[hart];
        let suspended = state.frames.iter().rev().find_map(|frame| frame.transaction);
        let transaction = self.transaction(state.active.or(suspended)?);
        Some(Subject {
            id: transaction.id,
            suspended: transaction.suspended,
            doomed: transaction.doom.is_some(),
            stalled: transaction.stalled,
            overflowed: !transaction.overflowed.is_empty(),
            depth: transaction.depth,
            status: transaction.doom.map_or(transaction.status, |doom| doom.status),
            size_words: transaction.size_words,
            begin_cycle: transaction.begin_cycle,
            checkpoint: &transaction.checkpoint,
        })
    }

    /// Takes the writes of live transactions out of memory, so that a device sees committed memory. Between this call
    /// and [`Engine::put_in`] only [`Engine::resolve`] for [`Party::Device`](crate::Party) may be called.
    pub fn take_out(&mut self, memory: &mut impl Memory) {
        self.taken_out = true;
        self.swap_written(memory);
    }

    /// Puts the words that [`Engine::take_out`] took back, if their transactions still exist.
    pub fn put_in(&mut self, memory: &mut impl Memory) {
        self.taken_out = false;
        self.swap_written(memory);
    }

    /// No word is in two write sets, so the order has no effect.
    fn swap_written(&mut self, memory: &mut impl Memory) {
        for undo in self.transactions.iter_mut().flatten().flat_map(|transaction| &mut transaction.undo) {
            let there = memory.load(undo.word);
            memory.store(undo.word, undo.old);
            undo.old = there;
        }
    }

    /// True when a live transaction wrote to memory.
    pub fn has_written(&self) -> bool {
        self.live != 0 && self.transactions.iter().flatten().any(|transaction| !transaction.undo.is_empty())
    }

    pub fn counters(&self) -> &[Counters] {
        &self.counters
    }

    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    pub fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// Takes over the accounts by kind of a snapshot, which keeps them beside the engine.
    pub fn set_kinds(&mut self, kinds: Kinds) {
        self.kinds = kinds;
    }

    /// Resets the statistics to zero.
    pub fn reset_statistics(&mut self) {
        self.counters.fill(Counters::default());
        self.profile = Profile::default();
        self.kinds = Kinds::default();
    }

    /// Sets whether the engine keeps single conflicts for [`Engine::take_conflicts`].
    pub fn set_recording(&mut self, recording: bool) {
        self.recorded = recording.then(Vec::new);
    }

    /// The conflicts since the last call, if they are recorded.
    pub fn take_conflicts(&mut self) -> Vec<Conflict> {
        self.recorded.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// A random number below `bound`, which is at least 1. Generator: xorshift64 (Marsaglia 2003), as for the miss
    /// latencies.
    pub(crate) fn draw(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 16) % bound
    }
}
