// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! The library's calls, as `calls.c` has them: each returns to its caller in Rust, once, also where the transaction restarts.

use std::sync::atomic::AtomicU64;

/// What the library answers: `<tm/tm.h>` has the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The call did what it is for.
    Done,
    /// The innermost transaction was taken back, and is no longer open.
    Cancelled,
    /// There is no memory. All was taken back, and no transaction is open.
    Exhausted,
    /// As many transactions are open as can be, and this one is not among them.
    TooDeep,
    /// All was taken back, and the outermost transaction has begun again.
    Restarted,
}

impl Answer {
    fn new(number: u32) -> Answer {
        match number {
            0 => Answer::Done,
            1 => Answer::Cancelled,
            2 => Answer::Exhausted,
            3 => Answer::TooDeep,
            4 => Answer::Restarted,
            _ => unreachable!("the library has no answer {number}"),
        }
    }
}

mod c {
    // SAFETY: these are the prototypes of calls.c. Those without arguments may be called at any time: without a transaction they answer so.
    unsafe extern "C" {
        pub safe fn concord_tm_begin() -> u32;
        pub safe fn concord_tm_nest() -> u32;
        pub fn concord_tm_load(address: *const u64, value: *mut u64) -> u32;
        pub fn concord_tm_store(address: *mut u64, value: u64) -> u32;
        pub safe fn concord_tm_commit() -> u32;
        pub safe fn concord_tm_restart() -> u32;
        pub safe fn concord_tm_cancel() -> u32;
        pub safe fn concord_tm_is_open() -> u32;
    }
}

pub fn begin() -> Answer {
    Answer::new(c::concord_tm_begin())
}

pub fn nest() -> Answer {
    Answer::new(c::concord_tm_nest())
}

pub fn load(word: &AtomicU64) -> Result<u64, Answer> {
    let mut value = 0;
    // SAFETY: both addresses are those of words that live during the call.
    let answer = Answer::new(unsafe { c::concord_tm_load(word.as_ptr(), &raw mut value) });
    if answer == Answer::Done { Ok(value) } else { Err(answer) }
}

/// Stores to a word.
///
/// # Safety
///
/// The word lives until the outermost transaction has ended: the library may store to it up to then.
pub unsafe fn store(word: &AtomicU64, value: u64) -> Answer {
    // SAFETY: the word lives, as the caller promises, and may be changed through a shared reference.
    Answer::new(unsafe { c::concord_tm_store(word.as_ptr(), value) })
}

/// Ends the innermost transaction.
pub fn commit() -> Answer {
    Answer::new(c::concord_tm_commit())
}

/// Restarts the outermost transaction.
pub fn restart() -> Answer {
    Answer::new(c::concord_tm_restart())
}

/// Takes the innermost transaction back.
pub fn cancel() -> Answer {
    Answer::new(c::concord_tm_cancel())
}

pub fn is_open() -> bool {
    c::concord_tm_is_open() != 0
}
