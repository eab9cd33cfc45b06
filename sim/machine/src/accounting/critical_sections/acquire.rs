//! The first access of an acquisition to the lock's word, which a hint cannot name: hints come after it.
//!
//! A hart's atomics, `xtest` and `xcas` note the word and the cycle at which they began. The hint that begins a section,
//! or a spin, takes the noted cycle of its lock's word: there the acquisition began, with the stall of a miss included.
//! An atomic on the same word begins anew, except after a store-conditional that failed, and except for an instruction
//! that could not complete and executes again: these are tries of the same acquisition. Plain loads and stores of the word are not noted, so
//! a lock that is read before it is taken begins with the atomic that takes it. A restart forgets what was noted: the
//! cycles before it are those of the restart.

use serde::{Deserialize, Serialize};

/// The number of words that a hart remembers. Between an atomic and its hint there is no other atomic, except a handler's.
const WORDS: usize = 8;
/// The bytes of the smallest lock.
const WORD_BYTES: u64 = 4;

/// The last try at a word.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Attempt {
    /// Virtual address; 0 for none.
    word: u64,
    begin_cycle: u64,
    /// The instructions that the hart had retired before it.
    instructions: u64,
    /// The next atomic on the word belongs to the same acquisition.
    goes_on: bool,
}

/// The words that a hart's last atomics accessed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Attempts {
    attempts: [Attempt; WORDS],
    /// The place of the last one.
    last: u8,
}

fn word_of(address: u64) -> u64 {
    address & !(WORD_BYTES - 1)
}

fn place_of(word: u64) -> usize {
    (word / WORD_BYTES) as usize % WORDS
}

impl Attempts {
    /// An atomic begins at an address, as the next one after so many instructions.
    #[inline]
    pub fn begin(&mut self, address: u64, now: u64, instructions: u64) {
        let word = word_of(address);
        let place = place_of(word);
        let attempt = &mut self.attempts[place];
        let goes_on = attempt.goes_on || attempt.instructions == instructions;
        let begin_cycle = if attempt.word == word && goes_on { attempt.begin_cycle } else { now };
        *attempt = Attempt { word, begin_cycle, instructions, goes_on: false };
        self.last = place as u8;
    }

    /// The last atomic did not take the word, and its instructions try again at once.
    #[inline]
    pub fn go_on(&mut self) {
        self.attempts[usize::from(self.last) % WORDS].goes_on = true;
    }

    /// Takes the cycle at which the acquisition of a lock began.
    #[inline]
    pub fn take(&mut self, lock: u64) -> Option<u64> {
        let word = word_of(lock);
        let attempt = &mut self.attempts[place_of(word)];
        if word == 0 || attempt.word != word {
            return None;
        }
        attempt.word = 0;
        Some(attempt.begin_cycle)
    }

    pub fn forget(&mut self) {
        *self = Attempts::default();
    }

    /// Whether a run can have noted this. For a state that was read from a file.
    pub fn is_possible(&self) -> bool {
        self.attempts.iter().all(|attempt| attempt.begin_cycle < 1 << 63)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acquisition_begins_with_the_first_of_its_tries() {
        let mut attempts = Attempts::default();
        attempts.begin(0x1000, 10, 1);
        attempts.go_on();
        attempts.begin(0x1000, 20, 3);
        assert_eq!(attempts.take(0x1000), Some(10), "the store-conditional failed");
        assert_eq!(attempts.take(0x1000), None, "one section for one acquisition");
        attempts.begin(0x1000, 22, 6);
        attempts.begin(0x1000, 28, 6);
        assert_eq!(attempts.take(0x1000), Some(22), "the instruction had to wait");
        attempts.begin(0x1000, 30, 8);
        attempts.begin(0x1000, 40, 9);
        assert_eq!(attempts.take(0x1000), Some(40), "the first one released the lock");
    }

    #[test]
    fn another_word_is_another_lock() {
        let mut attempts = Attempts::default();
        attempts.begin(0x1002, 10, 1);
        attempts.begin(0x1004, 20, 2);
        attempts.begin(0x1004 + (WORDS as u64) * WORD_BYTES, 30, 3);
        assert_eq!((attempts.take(0x1000), attempts.take(0x1004)), (Some(10), None), "the last took its place");
        attempts.begin(0x1000, 40, 4);
        attempts.forget();
        assert_eq!((attempts.take(0x1000), attempts.take(0)), (None, None));
    }
}
