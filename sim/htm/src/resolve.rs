//! Conflicts: which transactions an access conflicts with, which party continues, and the fate of the losers (sections
//! 2 and 6.1).

use crate::context::Pending;
use crate::directory::Member;
use crate::engine::Engine;
use crate::kinds::{ConflictKind, inverts_policy};
use crate::manager::{Contender, Decision, Manager, Rule};
use crate::policy::{Backoff, OutsideReads};
use crate::profile::{Conflict, ConflictKey};
use crate::transaction::{Defeat, Restart, Slot, Stalls};
use crate::{LINE_SHIFT, LINE_WORDS, Line, Memory, WORD_SHIFT, Word, index_in_line, line_of, words_of};
use concord_abi::htm::Cause;
use smallvec::SmallVec;

/// A party that accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// A hart's active transaction.
    Transaction(usize),
    /// A hart outside any transaction, or its page walker, which never conflicts with the hart's own active
    /// transaction.
    Nontransactional(usize),
    /// A hart's load outside any transaction. Under [`OutsideReads::Committed`] it reads around the writes of
    /// transactions ([`Engine::committed`]), except those suspended in the hart's own context.
    Reader(usize),
    /// A hart's compare-and-swap outside any transaction, which the contention manager may refuse.
    Arbitrated(usize),
    Device,
}

impl Party {
    pub fn hart(self) -> Option<usize> {
        match self {
            Party::Transaction(hart)
            | Party::Nontransactional(hart)
            | Party::Reader(hart)
            | Party::Arbitrated(hart) => Some(hart),
            Party::Device => None,
        }
    }
}

/// An access that is about to be made, inside one line.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub party: Party,
    pub line: Line,
    /// The words of the line that the access touches.
    pub words: u16,
    pub write: bool,
    /// The program counter of the access; 0 for a device.
    pub pc: u64,
    /// The clock of the requester's hart.
    pub now: u64,
}

/// The fate of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The access proceeds; the transactions that conflicted with it are among the losses.
    Granted,
    /// The requester's transaction lost, and is among the losses.
    Lost,
    /// The requester must retry the access after this many cycles.
    Wait { cycles: u64 },
    /// The compare-and-swap must not execute now.
    Refused,
}

/// A conflict that was counted, and what its loser is to know of it.
struct Noted {
    kind: ConflictKind,
    key: ConflictKey,
    defeat: Defeat,
}

/// A transaction that rolled back. Memory holds its old words already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The hart on which the transaction runs, or ran last.
    pub hart: usize,
    pub id: u64,
    /// The transaction is active there and restarts now; a suspended one restarts when it is popped.
    pub active: bool,
    /// The status word of the restart.
    pub status: u64,
    /// The begin of the attempt that lost, in cycles.
    pub attempt_cycle: u64,
    /// Cycles of back-off before the transaction starts again.
    pub backoff_cycles: u64,
    /// The lines of its sets.
    pub lines: Vec<Line>,
    /// The words that the rollback restored.
    pub restored: Vec<Word>,
    /// Lines of its sets that had left the first-level cache.
    pub overflowed_lines: u64,
}

impl<C> Engine<C> {
    /// Resolves the conflicts of an access that is about to be made, and rolls the losers back.
    #[inline]
    pub fn resolve(&mut self, request: &Request, memory: &mut impl Memory, losses: &mut Vec<Loss>) -> Verdict {
        let words = self.policy.span(request.words);
        let holders: SmallVec<[Member; 4]> = self.holders(request, words).collect();
        if holders.is_empty() {
            if let (Party::Arbitrated(hart), true) = (request.party, request.write) {
                self.harts[hart].pending = None;
            }
            return Verdict::Granted;
        }
        self.resolve_against(request, words, &holders, memory, losses)
    }

    /// Whether [`Engine::resolve`] would grant an access. An access that spans two lines happens in both or in neither,
    /// so the caller asks for both lines before any transaction loses.
    pub fn wins(&self, request: &Request) -> bool {
        let words = self.policy.span(request.words);
        self.holders(request, words)
            .all(|holder| matches!(self.decide(request, holder.slot), Decision::RequesterWins(_)))
    }

    /// The transactions with words of the line that conflict with an access.
    #[inline]
    fn holders(&self, request: &Request, words: u16) -> impl Iterator<Item = Member> {
        let own = request.party.hart().and_then(|hart| self.harts[hart].active);
        let around = match request.party {
            Party::Reader(hart) if self.policy.outside_reads == OutsideReads::Committed => Some(hart),
            _ => None,
        };
        let meets = move |member: &&Member| {
            let theirs = if request.write { member.read | member.write } else { member.write };
            let is_met = Some(member.slot) != own && theirs & words != 0;
            is_met && around.is_none_or(|hart| self.is_suspended_in_own_context(hart, member.slot))
        };
        self.directory.members(request.line).iter().filter(meets).copied()
    }

    #[cold]
    fn resolve_against(
        &mut self,
        request: &Request,
        words: u16,
        holders: &[Member],
        memory: &mut impl Memory,
        losses: &mut Vec<Loss>,
    ) -> Verdict {
        let mut rules: SmallVec<[Rule; 4]> = SmallVec::new();
        let mut wait = None;
        if let (Party::Arbitrated(hart), Some(word)) = (request.party, words_of(request.line, request.words).next()) {
            self.begin_arbitration(hart, self.policy.unit_address(word), request.now);
        }
        for holder in holders {
            match self.decide(request, holder.slot) {
                Decision::RequesterWins(rule) => rules.push(rule),
                Decision::Wait { bound_cycles } => {
                    wait = Some(bound_cycles.max(wait.unwrap_or(0)));
                    rules.push(Rule::Karma);
                }
                Decision::HolderWins(rule) => return self.refuse(request, words, holder, rule, memory, losses),
            }
        }
        if let Some(bound_cycles) = wait {
            self.note_blocked(request, holders);
            return self.wait(request, bound_cycles);
        }
        for (holder, rule) in holders.iter().zip(rules) {
            let noted = self.note_conflict(request, words, holder, rule, true);
            let cause = match request.party {
                Party::Transaction(_) => Cause::Conflict,
                _ => Cause::Nontransactional,
            };
            losses.push(self.lose_conflict(holder.slot, cause, &noted, request.now, memory));
        }
        if let Party::Arbitrated(hart) = request.party {
            self.harts[hart].pending = None;
        }
        Verdict::Granted
    }

    /// A compare-and-swap on an address is as old as its first try, so refusals let it become the oldest.
    fn begin_arbitration(&mut self, hart: usize, address: u64, now: u64) {
        self.counters[hart].arbitrated += 1;
        let pending = &mut self.harts[hart].pending;
        if pending.is_none_or(|pending| pending.address != address) {
            *pending = Some(Pending { address, begin_cycle: now, refusals: 0 });
        }
    }

    fn decide(&self, request: &Request, holder: Slot) -> Decision {
        let (hart, requester) = match request.party {
            Party::Nontransactional(_) | Party::Reader(_) | Party::Device => {
                return Decision::RequesterWins(Rule::Nontransactional);
            }
            Party::Transaction(hart) => {
                let Some(slot) = self.harts[hart].active else {
                    return Decision::RequesterWins(Rule::Nontransactional);
                };
                (hart, self.transaction(slot).contender())
            }
            Party::Arbitrated(hart) => (hart, self.arbitrated(hart, request.now)),
        };
        if self.is_stacked(hart, holder) {
            return Decision::RequesterWins(Rule::Stack);
        }
        self.policy.manager.get().decide(&requester, &self.transaction(holder).contender(), &self.policy)
    }

    /// Whether the holder cannot continue before the hart does: it is suspended in the hart's own context, or it is
    /// suspended elsewhere while a transaction of this context is suspended too. Without the second case two handlers
    /// could wait for ever, each for the transaction that the other interrupted.
    fn is_stacked(&self, hart: usize, holder: Slot) -> bool {
        let mut own = self.harts[hart].frames.iter().filter_map(|frame| frame.transaction);
        let is_suspended = self.transaction(holder).suspended;
        is_suspended && own.any(|slot| slot == holder || self.transaction(slot).doom.is_none())
    }

    /// Whether a transaction is suspended in a hart's current context. What the hart does until it resumes the
    /// transaction comes behind the transaction's stores in its program, so it cannot read around them.
    fn is_suspended_in_own_context(&self, hart: usize, slot: Slot) -> bool {
        self.harts[hart].frames.iter().any(|frame| frame.transaction == Some(slot))
    }

    /// The committed value of a word that a live transaction wrote, for [`OutsideReads::Committed`]; `None` if memory
    /// holds it.
    pub fn committed(&self, word: Word) -> Option<u64> {
        let bit = 1 << index_in_line(word);
        let writer = self.directory.members(line_of(word)).iter().find(|member| member.write & bit != 0)?;
        // The latest writes are the likeliest to be read.
        let undo = self.transaction(writer.slot).undo.iter().rev().find(|undo| undo.word == word);
        undo.map(|undo| undo.old)
    }

    /// A compare-and-swap as a contender: a transaction with empty sets, whose refusals count as restarts.
    fn arbitrated(&self, hart: usize, now: u64) -> Contender {
        let state = &self.harts[hart];
        let pending = state.pending.unwrap_or(Pending { address: 0, begin_cycle: now, refusals: 0 });
        Contender {
            id: u64::MAX,
            priority: state.priority,
            size_words: 0,
            begin_cycle: pending.begin_cycle,
            restarts: pending.refusals,
            karma_words: 0,
            waits: pending.refusals,
            blocks_older: false,
            is_suspended: false,
        }
    }

    fn refuse(
        &mut self,
        request: &Request,
        words: u16,
        holder: &Member,
        rule: Rule,
        memory: &mut impl Memory,
        losses: &mut Vec<Loss>,
    ) -> Verdict {
        let noted = self.note_conflict(request, words, holder, rule, false);
        let own = request.party.hart().and_then(|hart| self.harts[hart].active);
        match (request.party, own) {
            (Party::Transaction(_), Some(slot)) => {
                losses.push(self.lose_conflict(slot, Cause::Conflict, &noted, request.now, memory));
                Verdict::Lost
            }
            _ => self.refuse_arbitrated(request),
        }
    }

    fn refuse_arbitrated(&mut self, request: &Request) -> Verdict {
        if let Some(hart) = request.party.hart() {
            self.counters[hart].refused += 1;
            if let Some(pending) = &mut self.harts[hart].pending {
                pending.refusals = pending.refusals.saturating_add(1);
            }
        }
        Verdict::Refused
    }

    fn wait(&mut self, request: &Request, bound_cycles: u64) -> Verdict {
        let Party::Transaction(hart) = request.party else { return self.refuse_arbitrated(request) };
        // The wait is at least one cycle, so that the holder can run.
        let cycles = 1 + self.draw(bound_cycles);
        self.counters[hart].wait_cycles += cycles;
        if let Some(slot) = self.harts[hart].active {
            let stalls = &mut self.transaction_mut(slot).stalls;
            stalls.waits = stalls.waits.saturating_add(1);
        }
        Verdict::Wait { cycles }
    }

    /// Marks those holders that are younger than the transaction that waits for them: they may be part of a cycle of
    /// waits. Only [`Manager::RequesterStalls`] asks for the mark.
    fn note_blocked(&mut self, request: &Request, holders: &[Member]) {
        let (Party::Transaction(hart), Manager::RequesterStalls) = (request.party, self.policy.manager) else { return };
        let Some(slot) = self.harts[hart].active else { return };
        let requester = self.transaction(slot).contender();
        for holder in holders {
            let holder = self.transaction_mut(holder.slot);
            holder.stalls.blocks_older |= requester.is_older_than(&holder.contender());
        }
    }

    /// Records a conflict before the loser rolls back.
    fn note_conflict(
        &mut self,
        request: &Request,
        words: u16,
        holder: &Member,
        rule: Rule,
        requester_won: bool,
    ) -> Noted {
        let holders = self.transaction(holder.slot);
        let theirs = if request.write { holder.read | holder.write } else { holder.write };
        // The word that both parties accessed: the request's own word, if the holder's sets contain it.
        let shared = if theirs & request.words != 0 { theirs & request.words } else { theirs & words };
        let word = (request.line << (LINE_SHIFT - WORD_SHIFT)) + u64::from(shared.trailing_zeros().min(LINE_WORDS - 1));
        let own = request.party.hart().and_then(|hart| self.harts[hart].active);
        let own = own.filter(|_| matches!(request.party, Party::Transaction(_))).map(|slot| self.transaction(slot));
        let priority = match request.party {
            Party::Transaction(_) => own.map(|own| own.priority),
            Party::Arbitrated(hart) => Some(self.harts[hart].priority),
            Party::Nontransactional(_) | Party::Reader(_) | Party::Device => None,
        };
        let loser = if requester_won { Some(holders) } else { own };
        let ranks = priority.map(|priority| match requester_won {
            true => (priority, holders.priority),
            false => (holders.priority, priority),
        });
        let kind = match request.party {
            _ if own.is_some() => ConflictKind::Transactions,
            Party::Arbitrated(_) if requester_won => ConflictKind::Granted,
            Party::Arbitrated(_) => ConflictKind::Refused,
            _ => ConflictKind::Asymmetric,
        };
        let conflict = Conflict {
            kind,
            key: ConflictKey {
                requester_pc: request.pc,
                holder_pc: holders.first_access_pc(word),
                address: self.policy.unit_address(word),
                requester_is_transactional: own.is_some(),
                requester_writes: request.write,
                requester_won,
                rule,
            },
            cycle: request.now,
            requester_hart: request.party.hart(),
            holder_hart: holders.hart,
            requester_id: own.map_or(0, |own| own.id),
            holder_id: holders.id,
            lost_cycles: loser.map_or(0, |loser| request.now.saturating_sub(loser.attempt_cycle)),
            lost_words: loser.map_or(0, |loser| loser.size_words),
            holder_writes: holder.write & shared != 0,
            inversion: ranks.is_some_and(|(winner, loser)| winner < loser),
            policy_inversion: ranks.is_some_and(|(winner, loser)| inverts_policy(winner, loser)),
        };
        self.profile.add(&conflict);
        self.kinds.add(&conflict);
        if let Some(recorded) = &mut self.recorded {
            recorded.push(conflict);
        }
        let winner_id = if requester_won { conflict.requester_id } else { conflict.holder_id };
        Noted { kind, key: conflict.key, defeat: Defeat { address: conflict.key.address, winner_id } }
    }

    /// Rolls back the loser of a conflict.
    fn lose_conflict(&mut self, slot: Slot, cause: Cause, noted: &Noted, now: u64, memory: &mut impl Memory) -> Loss {
        let loss = self.lose(slot, cause.status(0), Some(noted.defeat), now, memory);
        self.kinds.add_backoff(noted.kind, &noted.key, loss.backoff_cycles);
        if self.awaits(noted.defeat) {
            self.kinds.follow_backoff(loss.id, noted.key);
        } else {
            self.kinds.forget(loss.id);
        }
        loss
    }

    /// Whether the loser of this conflict backs off for the winner.
    fn awaits(&self, defeat: Defeat) -> bool {
        self.policy.backoff == Backoff::Winner && defeat.winner_id != 0
    }

    /// A transaction has committed or been dropped: under [`Backoff::Winner`] those that lost to it back off no longer.
    /// Returns the harts whose active transactions are among them; the caller calls [`Engine::shorten_backoff`] for
    /// those that back off now.
    pub fn release_losers(&mut self, winner_id: u64) -> SmallVec<[usize; 4]> {
        if self.policy.backoff != Backoff::Winner {
            return SmallVec::new();
        }
        for transaction in self.transactions.iter_mut().flatten() {
            let Some(doom) = &mut transaction.doom else { continue };
            if doom.defeat.is_some_and(|defeat| defeat.winner_id == winner_id) {
                let unspent_cycles = std::mem::take(&mut doom.backoff_cycles);
                let spent_cycles = &mut self.counters[transaction.hart].backoff_cycles;
                *spent_cycles = spent_cycles.saturating_sub(unspent_cycles);
                self.kinds.take_backoff(transaction.id, unspent_cycles);
            }
        }
        let lost_to_it = |hart: &usize| {
            let state = &self.harts[*hart];
            // A transaction that has waited since then does not back off.
            let is_at_begin = state.active.is_some_and(|slot| self.transaction(slot).stalls.waits == 0);
            is_at_begin && state.winner_id == winner_id
        };
        (0..self.harts.len()).filter(lost_to_it).collect()
    }

    /// Rolls a transaction back. An active one is at its begin again; a suspended one is doomed. After a lost conflict
    /// it backs off.
    pub(crate) fn lose(
        &mut self,
        slot: Slot,
        status: u64,
        defeat: Option<Defeat>,
        now: u64,
        memory: &mut impl Memory,
    ) -> Loss {
        let bound_cycles = self.policy.backoff_bound_cycles(self.transaction(slot).restarts);
        let backoff_cycles = match defeat {
            Some(defeat) if self.awaits(defeat) => {
                self.policy.winner_bound_cycles().saturating_add(self.draw(bound_cycles))
            }
            Some(_) => self.draw(bound_cycles),
            None => 0,
        };
        let transaction = self.transactions[slot as usize].as_mut().expect("a slot that is used names a transaction");
        let restored: Vec<Word> = transaction.undo.iter().map(|undo| undo.word).collect();
        if !self.taken_out {
            for undo in &transaction.undo {
                memory.store(undo.word, undo.old);
            }
        }
        let lines = std::mem::take(&mut transaction.lines);
        for line in &lines {
            self.directory.remove(*line, slot);
        }
        let loss = Loss {
            hart: transaction.hart,
            id: transaction.id,
            active: !transaction.suspended,
            status,
            attempt_cycle: transaction.attempt_cycle,
            backoff_cycles,
            lines,
            restored,
            overflowed_lines: transaction.overflowed.len() as u64,
        };
        let counters = &mut self.counters[loss.hart];
        counters.count_loss(status);
        counters.wasted_cycles += now.saturating_sub(loss.attempt_cycle);
        counters.wasted_words += transaction.size_words;
        counters.backoff_cycles += backoff_cycles;
        transaction.undo.clear();
        transaction.reads.clear();
        transaction.adds.clear();
        transaction.overflowed.clear();
        transaction.karma_words = transaction.karma_words.saturating_add(transaction.size_words);
        transaction.size_words = 0;
        transaction.restarts = transaction.restarts.saturating_add(1);
        transaction.stalls = Stalls::default();
        transaction.depth = 1;
        let restart = Restart { status, backoff_cycles, defeat };
        if loss.active {
            self.go_back(slot, restart, now);
        } else {
            // The first reason stays: a doomed transaction has no sets, so no other conflict can end it.
            transaction.doom = Some(restart);
        }
        loss
    }

    /// Puts a transaction that rolled back to its begin on its hart, and the cause into the hart's registers.
    pub(crate) fn go_back(&mut self, slot: Slot, restart: Restart, now: u64) {
        let transaction = self.transaction_mut(slot);
        transaction.status = restart.status;
        transaction.attempt_cycle = now.saturating_add(restart.backoff_cycles);
        let hart = transaction.hart;
        let state = &mut self.harts[hart];
        state.restarts = state.restarts.saturating_add(1);
        state.backoff_cycles = state.backoff_cycles.saturating_add(restart.backoff_cycles);
        if let Some(defeat) = restart.defeat {
            (state.conflict_address, state.winner_id) = (defeat.address, defeat.winner_id);
        }
    }

    /// Lets a hart's active transaction start its next attempt at `cycle`: its hart may be ahead of the winner's, and a
    /// rollback takes time.
    pub fn begin_attempt(&mut self, hart: usize, cycle: u64) {
        if let Some(slot) = self.harts[hart].active {
            self.transaction_mut(slot).attempt_cycle = cycle;
        }
    }
}
