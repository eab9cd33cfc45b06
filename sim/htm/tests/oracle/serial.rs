//! The serial oracle repeats the events one by one, in the order in which they became visible.

use super::program::WORDS;
use concord_htm::Word;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read {
        word: Word,
        value: u64,
    },
    Write {
        word: Word,
        value: u64,
    },
    /// An addition that was deferred to the end of its event; words keep 32 bits of the sum.
    Add {
        word: Word,
        amount: u64,
    },
}

impl Access {
    pub fn word(self) -> Word {
        match self {
            Access::Read { word, .. } | Access::Write { word, .. } | Access::Add { word, .. } => word,
        }
    }
}

pub fn initial_memory() -> Vec<u64> {
    (0..WORDS.next_multiple_of(16)).map(|word| 0x1111 * (word + 1)).collect()
}

/// Repeats the events (a committed transaction, or an access outside any) one after the other.
///
/// # Errors
/// A value that was read, or the memory that was left, differs.
pub fn replay(events: &[Vec<Access>], left: &[u64]) -> Result<(), String> {
    let mut memory = initial_memory();
    for (number, event) in events.iter().enumerate() {
        for access in event {
            match *access {
                Access::Read { word, value } if memory[word as usize] != value => {
                    let serial = memory[word as usize];
                    return Err(format!(
                        "event {number} read {value:#x} in word {word}, serially {serial:#x}: {event:x?}"
                    ));
                }
                Access::Read { .. } => {}
                Access::Write { word, value } => memory[word as usize] = value,
                Access::Add { word, amount } => {
                    memory[word as usize] = memory[word as usize].wrapping_add(amount) & 0xffff_ffff;
                }
            }
        }
    }
    if memory != left { Err(format!("memory is {left:x?}, serially {memory:x?}")) } else { Ok(()) }
}
