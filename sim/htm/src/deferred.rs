//! Deferred additions: an addition whose result nobody reads joins no set and takes effect at the commit (Zhang, Chiu and Sanchez,
//! "CommTM: Exploiting Commutativity in Transactional Memory", MICRO 2016).
//!
//! Departures from the paper: the only operation is an addition, and the instruction itself says so, without labels; what is added lies in
//! a buffer of the transaction and not in caches, so that a line has no state of its own and no reductions are gathered from others; the
//! commit adds in memory, as a non-transactional access would; and an addition whose granule the transaction touches otherwise becomes an
//! ordinary one.

use crate::engine::Engine;
use crate::{LINE_SHIFT, Line, word_mask};
use serde::{Deserialize, Serialize};

/// An addition that its transaction has yet to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeferredAdd {
    /// The physical address, a multiple of `size_bytes`.
    pub address: u64,
    /// 4 or 8.
    pub size_bytes: u64,
    /// The sum of what was added, modulo the size.
    pub amount: u64,
    /// The program counter of the first addition.
    pub pc: u64,
}

impl DeferredAdd {
    pub fn line(&self) -> Line {
        self.address >> LINE_SHIFT
    }

    /// The words of its line that the addition changes.
    pub fn words(&self) -> u16 {
        word_mask(self.address, self.size_bytes)
    }

    /// The value after the addition to `old`.
    pub fn apply(&self, old: u64) -> u64 {
        old.wrapping_add(self.amount) & u64::MAX >> (64 - 8 * self.size_bytes)
    }
}

impl<C> Engine<C> {
    /// Defers an addition of a hart's active transaction, and returns true; or returns false if it must be made as an ordinary access:
    /// where the policy defers none, outside transactions, where the transaction has one of its granules in a set or in another addition,
    /// and where the buffer is full.
    pub fn defer(&mut self, hart: usize, add: DeferredAdd) -> bool {
        let Some(slot) = self.harts[hart].active else { return false };
        let span = self.policy.span(add.words());
        let in_sets = |words: u16| words & span != 0;
        let own = self.directory.members(add.line()).iter().find(|member| member.slot == slot);
        if self.policy.deferred_adds == 0 || own.is_some_and(|own| in_sets(own.read | own.write)) {
            return false;
        }
        let policy = self.policy;
        let adds = &mut self.transaction_mut(slot).adds;
        if let Some(known) =
            adds.iter_mut().find(|known| (known.address, known.size_bytes) == (add.address, add.size_bytes))
        {
            known.amount = known.amount.wrapping_add(add.amount);
            return true;
        }
        let meets = |known: &DeferredAdd| known.line() == add.line() && in_sets(policy.span(known.words()));
        if adds.len() >= policy.deferred_adds as usize || adds.iter().any(meets) {
            return false;
        }
        adds.push(add);
        true
    }

    /// True when a hart's active transaction has additions to make.
    #[inline]
    pub fn has_deferred(&self, hart: usize) -> bool {
        self.harts[hart].active.is_some_and(|slot| !self.transaction(slot).adds.is_empty())
    }

    /// The first addition of a hart's active transaction with a granule that an access to `words` of a line touches. It must become an
    /// ordinary access before that one.
    pub fn deferred_at(&self, hart: usize, line: Line, words: u16) -> Option<DeferredAdd> {
        let span = self.policy.span(words);
        let adds = &self.transaction(self.harts[hart].active?).adds;
        adds.iter().find(|add| add.line() == line && self.policy.span(add.words()) & span != 0).copied()
    }

    /// Forgets an addition of a hart's active transaction, which was made as an ordinary access.
    pub fn forget_deferred(&mut self, hart: usize, add: &DeferredAdd) {
        if let Some(slot) = self.harts[hart].active {
            self.transaction_mut(slot).adds.retain(|known| known.address != add.address);
        }
    }

    /// The additions that the commit of a hart's active transaction makes, in the order of their first executions; none where its next
    /// end does not commit. The caller resolves their conflicts as those of non-transactional stores before it changes memory.
    pub fn take_deferred_at_commit(&mut self, hart: usize) -> Vec<DeferredAdd> {
        match self.harts[hart].active {
            Some(slot) if self.transaction(slot).depth == 1 => std::mem::take(&mut self.transaction_mut(slot).adds),
            _ => Vec::new(),
        }
    }

    /// The additions of live transactions, with the transactions' ids. A checker that is switched on for a resumed run adopts them.
    pub fn deferred_adds(&self) -> impl Iterator<Item = (u64, DeferredAdd)> {
        let live = self.transactions.iter().flatten();
        live.flat_map(|transaction| transaction.adds.iter().map(|add| (transaction.id, *add)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Granularity, Policy};
    use crate::{Memory, Word};

    struct Words;

    impl Memory for Words {
        fn load(&self, _: Word) -> u64 {
            0
        }

        fn store(&mut self, _: Word, _: u64) {}
    }

    fn engine(granularity: Granularity) -> Engine<()> {
        let policy = Policy { granularity, deferred_adds: 2, ..Policy::default() };
        let mut engine = Engine::new(1, policy, 1);
        engine.begin(0, 0, &mut Words, || ());
        engine
    }

    fn add(address: u64, size_bytes: u64) -> DeferredAdd {
        DeferredAdd { address, size_bytes, amount: 3, pc: address }
    }

    #[test]
    fn equal_addresses_share_a_place_and_there_are_so_many() {
        let mut engine = engine(Granularity::Word32);
        assert!([add(0, 4), add(4, 4), add(0, 4)].into_iter().all(|add| engine.defer(0, add)));
        assert!(!engine.defer(0, add(8, 4)), "the buffer is full");
        assert_eq!(engine.deferred_at(0, 0, 1), Some(DeferredAdd { amount: 6, ..add(0, 4) }));
        assert_eq!(engine.deferred_at(0, 0, 0b100), None);
        engine.begin(0, 0, &mut Words, || ());
        assert_eq!(engine.take_deferred_at_commit(0), [], "an inner end commits nothing");
        engine.end(0, 0);
        assert_eq!(engine.take_deferred_at_commit(0).len(), 2);
        assert!(!engine.has_deferred(0));
    }

    #[test]
    fn what_a_transaction_has_otherwise_is_added_at_once() {
        let mut by_word = engine(Granularity::Word);
        by_word.join(0, 0, 0b1, false, 0, &Words);
        assert!(!by_word.defer(0, add(4, 4)), "the granule is in the read set");
        assert!(by_word.defer(0, add(8, 4)));
        assert!(!by_word.defer(0, add(12, 4)) && !by_word.defer(0, add(8, 8)), "the granule is added to otherwise");
        let mut by_word32 = engine(Granularity::Word32);
        by_word32.join(0, 0, 0b1, false, 0, &Words);
        assert!(by_word32.defer(0, add(4, 4)));
        assert!(!by_word32.defer(0, add(0, 8)));
    }

    #[test]
    fn sums_wrap_at_their_size() {
        let minus = |size_bytes| DeferredAdd { address: 0, size_bytes, amount: u64::MAX, pc: 0 };
        assert_eq!((minus(4).apply(0), minus(8).apply(0), minus(4).apply(1)), (0xffff_ffff, u64::MAX, 0));
    }
}
