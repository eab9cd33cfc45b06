//! Suspended transactions. Each context is a stack of frames (section 3.2: xpush and xpop, in last-in-first-out order),
//! and each hart has one current context.

use crate::engine::Engine;
use crate::policy::Mode;
use crate::resolve::Loss;
use crate::transaction::Slot;
use crate::{Line, Memory};
use concord_abi::htm::{Cause, FRAMES_MAX, PRIORITY_MAX, RESTARTS_MAX};
use serde::{Deserialize, Serialize};

/// A stack frame, which one push creates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Frame {
    pub transaction: Option<Slot>,
    /// A trap or privileged code pushed the frame, so user code may not pop it.
    pub privileged: bool,
}

/// A compare-and-swap outside a transaction that was refused and that its program may retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pending {
    pub address: u64,
    pub begin_cycle: u64,
    pub refusals: u32,
}

/// The state of one hart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HartState {
    pub active: Option<Slot>,
    pub context: u64,
    pub frames: Vec<Frame>,
    /// The frames of context 0, the hart's own, while another context is current.
    pub own_frames: Vec<Frame>,
    pub priority: u8,
    pub restarts: u16,
    pub backoff_cycles: u64,
    /// The first begin of the transaction that committed last, in cycles.
    pub begin_cycle: u64,
    pub conflict_address: u64,
    pub winner_id: u64,
    /// The status word of the transaction that committed last.
    pub last_status: u64,
    pub pending: Option<Pending>,
}

/// The greatest number of parked contexts with frames. The limit keeps a guest from filling the host's memory.
const PARKED_MAX: usize = 1 << 14;

/// The reason why an operation on frames or contexts is impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContextError {
    #[error("the context has no room for another frame")]
    Full,
    #[error("the context has no frame")]
    Empty,
    #[error("a transaction is active")]
    Active,
    #[error("the frame was pushed by privileged code")]
    Privileged,
    #[error("the context is another hart's current one")]
    Busy,
    #[error("too many contexts are parked")]
    TooMany,
}

/// The result of a pop.
#[derive(Debug, PartialEq, Eq)]
pub enum Popped {
    /// The frame was empty.
    Nothing,
    /// The frame's transaction is active again.
    Resumed,
    /// The frame's transaction had lost, and restarts.
    Restarted(Loss),
}

impl<C> Engine<C> {
    /// Suspends a hart's active transaction, if there is one, and pushes a frame. Returns the lines of the
    /// transaction's sets: from now on the hart's own accesses can conflict with them.
    ///
    /// # Errors
    /// [`ContextError::Full`].
    pub fn push(&mut self, hart: usize, privileged: bool) -> Result<Vec<Line>, ContextError> {
        let state = &mut self.harts[hart];
        if state.frames.len() >= FRAMES_MAX {
            return Err(ContextError::Full);
        }
        let transaction = state.active.take();
        state.frames.push(Frame { transaction, privileged });
        let Some(slot) = transaction else { return Ok(Vec::new()) };
        self.counters[hart].suspended += 1;
        let transaction = self.transaction_mut(slot);
        transaction.suspended = true;
        Ok(transaction.lines.clone())
    }

    /// A trap suspends a hart's active transaction. The stack has room for it, because [`Engine::begin`] and
    /// [`Engine::pop`] check that. In best-effort mode the transaction also loses, and the second part of the result is
    /// the loss.
    pub fn trap(&mut self, hart: usize, now: u64, memory: &mut impl Memory) -> (Vec<Line>, Option<Loss>) {
        let Some(slot) = self.harts[hart].active else { return (Vec::new(), None) };
        let lines = self.push(hart, true).expect("an active transaction has room to be suspended");
        let loss = (self.policy.mode == Mode::BestEffort)
            .then(|| self.lose(slot, Cause::Interrupt.status(0), None, now, memory));
        (lines, loss)
    }

    /// Pops the most recent frame of a hart's context.
    ///
    /// # Errors
    /// [`ContextError::Empty`], [`ContextError::Active`], and [`ContextError::Privileged`] when user code may not pop
    /// the frame.
    pub fn pop(&mut self, hart: usize, privileged: bool, now: u64) -> Result<Popped, ContextError> {
        let state = &mut self.harts[hart];
        let frame = *state.frames.last().ok_or(ContextError::Empty)?;
        if state.active.is_some() {
            return Err(ContextError::Active);
        }
        if frame.privileged && !privileged {
            return Err(ContextError::Privileged);
        }
        state.frames.pop();
        state.active = frame.transaction;
        let Some(slot) = frame.transaction else { return Ok(Popped::Nothing) };
        let transaction = self.transaction_mut(slot);
        transaction.hart = hart;
        transaction.suspended = false;
        transaction.stalled = false;
        Ok(match transaction.doom.take() {
            None => Popped::Resumed,
            Some(restart) => {
                self.go_back(slot, restart, now);
                Popped::Restarted(Loss {
                    hart,
                    id: self.transaction(slot).id,
                    active: true,
                    status: restart.status,
                    attempt_cycle: now,
                    backoff_cycles: restart.backoff_cycles,
                    lines: Vec::new(),
                    restored: Vec::new(),
                    overflowed_lines: 0,
                })
            }
        })
    }

    /// Pops the most recent frame of a hart's context and ends its transaction, if it has one, without a restart: the
    /// transaction's process no longer exists. Returns the rollback.
    ///
    /// # Errors
    /// [`ContextError::Empty`], [`ContextError::Active`].
    pub fn drop_frame(
        &mut self,
        hart: usize,
        now: u64,
        memory: &mut impl Memory,
    ) -> Result<Option<Loss>, ContextError> {
        let state = &mut self.harts[hart];
        if state.active.is_some() {
            return Err(ContextError::Active);
        }
        let frame = state.frames.pop().ok_or(ContextError::Empty)?;
        Ok(frame.transaction.map(|slot| {
            let loss = self.lose(slot, Cause::None.status(0), None, now, memory);
            self.remove(slot);
            loss
        }))
    }

    /// An interrupt ends the back-off or the wait of a hart's active transaction, with `unspent_cycles` left.
    pub fn cut_stall(&mut self, hart: usize, unspent_cycles: u64) {
        let Some(slot) = self.harts[hart].active else { return };
        let transaction = self.transaction_mut(slot);
        transaction.stalled = true;
        let is_waiting = transaction.stalls.waits > 0;
        if is_waiting {
            let counters = &mut self.counters[hart];
            counters.wait_cycles = counters.wait_cycles.saturating_sub(unspent_cycles);
        } else {
            self.shorten_backoff(hart, unspent_cycles);
        }
    }

    /// The back-off of a hart's active transaction ends so many cycles before its time.
    pub fn shorten_backoff(&mut self, hart: usize, unspent_cycles: u64) {
        let Some(slot) = self.harts[hart].active else { return };
        let counters = &mut self.counters[hart];
        counters.backoff_cycles = counters.backoff_cycles.saturating_sub(unspent_cycles);
        let state = &mut self.harts[hart];
        state.backoff_cycles = state.backoff_cycles.saturating_sub(unspent_cycles);
        let transaction = self.transaction_mut(slot);
        transaction.attempt_cycle = transaction.attempt_cycle.saturating_sub(unspent_cycles);
        let id = transaction.id;
        self.kinds.take_backoff(id, unspent_cycles);
    }

    /// Resets a hart: its registers and its own context are as after a reset. Returns the rollbacks of the transactions
    /// that were suspended there.
    pub fn reset_hart(&mut self, hart: usize, now: u64, memory: &mut impl Memory) -> Vec<Loss> {
        let mut losses = Vec::new();
        // A hart that runs no transaction can always switch to its own context.
        if self.switch_context(hart, 0).is_ok() {
            while let Ok(dropped) = self.drop_frame(hart, now, memory) {
                losses.extend(dropped);
            }
            self.harts[hart] = HartState::default();
        }
        losses
    }

    /// The status word of the transaction that committed last on a hart; 0 before the first.
    pub fn last_status(&self, hart: usize) -> u64 {
        self.harts[hart].last_status
    }

    /// Makes another context a hart's current one; 0 is the hart's own.
    ///
    /// # Errors
    /// [`ContextError::Active`], [`ContextError::Busy`], [`ContextError::TooMany`].
    pub fn switch_context(&mut self, hart: usize, id: u64) -> Result<(), ContextError> {
        let old = self.harts[hart].context;
        if self.harts[hart].active.is_some() {
            return Err(ContextError::Active);
        }
        if old == id {
            return Ok(());
        }
        if id != 0 && self.harts.iter().any(|state| state.context == id) {
            return Err(ContextError::Busy);
        }
        if old != 0 && !self.harts[hart].frames.is_empty() && self.parked.len() >= PARKED_MAX {
            return Err(ContextError::TooMany);
        }
        let frames = std::mem::take(&mut self.harts[hart].frames);
        match old {
            0 => self.harts[hart].own_frames = frames,
            _ if frames.is_empty() => {}
            _ => {
                self.parked.insert(old, frames);
            }
        }
        let frames = match id {
            0 => std::mem::take(&mut self.harts[hart].own_frames),
            _ => self.parked.remove(&id).unwrap_or_default(),
        };
        let state = &mut self.harts[hart];
        state.frames = frames;
        state.context = id;
        Ok(())
    }

    pub fn context(&self, hart: usize) -> u64 {
        self.harts[hart].context
    }

    /// Frames in a hart's current context.
    pub fn frames(&self, hart: usize) -> usize {
        self.harts[hart].frames.len()
    }

    /// The conflict priority that the hart's next transaction gets.
    pub fn priority(&self, hart: usize) -> u64 {
        u64::from(self.harts[hart].priority)
    }

    /// Sets the priority; only the low bits, up to [`PRIORITY_MAX`], are kept.
    pub fn set_priority(&mut self, hart: usize, priority: u64) {
        self.harts[hart].priority = (priority & PRIORITY_MAX) as u8;
    }

    /// Restarts on a hart since the counter was last set, saturating.
    pub fn restarts(&self, hart: usize) -> u64 {
        u64::from(self.harts[hart].restarts)
    }

    pub fn set_restarts(&mut self, hart: usize, restarts: u64) {
        self.harts[hart].restarts = (restarts & RESTARTS_MAX) as u16;
    }

    /// Cycles that a hart spent in back-off since the counter was last set.
    pub fn backoff_cycles(&self, hart: usize) -> u64 {
        self.harts[hart].backoff_cycles
    }

    pub fn set_backoff_cycles(&mut self, hart: usize, cycles: u64) {
        self.harts[hart].backoff_cycles = cycles;
    }

    /// The first begin, in cycles, of the transaction that committed last on a hart; 0 before the first commit.
    pub fn begin_cycle(&self, hart: usize) -> u64 {
        self.harts[hart].begin_cycle
    }

    /// The physical address of the word of the last conflict that a transaction of this hart lost, and the id of the winner.
    pub fn last_conflict(&self, hart: usize) -> (u64, u64) {
        (self.harts[hart].conflict_address, self.harts[hart].winner_id)
    }
}
