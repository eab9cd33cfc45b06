//! Hardware transactions as MetaTM has them (Rossbach et al., "TxLinux", SOSP 2007, sections 2, 3.2, 4.3 and 6.1): read and
//! write sets by granule, an undo log, eager conflict detection, contention managers, flat nesting, suspended transactions.
//!
//! This crate does not know RISC-V, instructions or caches: harts are numbers, memory is words, and the machine chooses
//! the type of a checkpoint, which a restart restores. So the tests compare all of it with a serial oracle, without any
//! guest.
//!
//! Departures from the paper: a transaction's id and begin time survive its restarts; contexts (stacks of suspended
//! transactions) have names, so that a kernel can move a thread with a suspended transaction to another hart; a hart
//! always wins a conflict with a transaction suspended in its own context, because it could not continue otherwise;
//! devices see committed memory instead of ending the transactions whose words they read.
//!
//! Changes that other families of transactional memory would need: lazy versioning keeps new words in the log and
//! writes them at [`Engine::end`]; lazy detection moves the calls of [`Engine::resolve`] there. Both fit behind the
//! same calls, because every access and every commit already gets an answer that may be "restart", and names its
//! losers.

pub mod check;
mod context;
mod deferred;
mod directory;
mod engine;
mod join;
pub mod kinds;
pub mod manager;
pub mod policy;
pub mod profile;
mod resolve;
mod saved;
pub mod statistics;
mod transaction;

pub use context::{ContextError, Popped};
pub use deferred::DeferredAdd;
pub use directory::AddressHasher;
pub use engine::{Begun, Ended, Engine, Evicted, Masks};
pub use join::Joined;
pub use resolve::{Loss, Party, Request, Verdict};
pub use saved::StateError;
pub use transaction::Subject;

/// A word's number: its physical address divided by 4. A granule is one word or more ([`policy::Granularity`]).
pub type Word = u64;
/// A line's number: its physical address divided by 64.
pub type Line = u64;

pub const WORD_SHIFT: u32 = 2;
/// Bytes of a word.
pub const WORD_BYTES: u64 = 1 << WORD_SHIFT;
pub const LINE_SHIFT: u32 = 6;
/// Words of a line.
pub const LINE_WORDS: u32 = 1 << (LINE_SHIFT - WORD_SHIFT);

/// Memory, as the undo log accesses it.
pub trait Memory {
    fn load(&self, word: Word) -> u64;
    fn store(&mut self, word: Word, value: u64);
}

/// The words of its line that an access of `size_bytes` at `address` touches, as a mask. The access must not cross a
/// line.
#[inline]
pub fn word_mask(address: u64, size_bytes: u64) -> u16 {
    let first = address >> WORD_SHIFT & u64::from(LINE_WORDS - 1);
    let last = (address + size_bytes - 1) >> WORD_SHIFT & u64::from(LINE_WORDS - 1);
    (0xffff << first) as u16 & (0xffff >> (u64::from(LINE_WORDS - 1) - last)) as u16
}

/// The line that a word is in.
#[inline]
pub(crate) fn line_of(word: Word) -> Line {
    word >> (LINE_SHIFT - WORD_SHIFT)
}

/// A word's index in its line.
#[inline]
pub(crate) fn index_in_line(word: Word) -> usize {
    (word % Word::from(LINE_WORDS)) as usize
}

/// The words of `line` that are in `mask`, in order.
#[inline]
pub(crate) fn words_of(line: Line, mut mask: u16) -> impl Iterator<Item = Word> {
    let first = line << (LINE_SHIFT - WORD_SHIFT);
    std::iter::from_fn(move || {
        let index = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (index < LINE_WORDS).then_some(first + Word::from(index))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_the_words_that_are_touched() {
        assert_eq!(word_mask(0x1000, 4), 0b1);
        assert_eq!(word_mask(0x1000, 8), 0b11);
        assert_eq!(word_mask(0x1007, 1), 0b10);
        assert_eq!(word_mask(0x100e, 4), 0b1_1000);
        assert_eq!(word_mask(0x1038, 8), 0b1100_0000_0000_0000);
        assert_eq!(word_mask(0x1000, 64), 0xffff);
        assert_eq!(words_of(0x40, 0b101).collect::<Vec<_>>(), [0x400, 0x402]);
    }
}
