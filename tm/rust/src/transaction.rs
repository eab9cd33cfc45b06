// SPDX-License-Identifier: GPL-2.0-only OR MIT

use crate::calls::{self, Answer};
use std::convert::Infallible;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicU64;

/// The transaction is to begin again: the body returns it as an error, usually by `?`.
///
/// A body that has received one and goes on gets no other answer from its transaction, and its result is not used.
#[derive(Debug)]
#[must_use = "the body of a transaction has to return it"]
pub struct Restart(());

/// Why a body gives its transaction up.
#[derive(Debug)]
pub enum Abort<E> {
    /// It is to begin again.
    Restart(Restart),
    /// Nothing of it is to have happened, and [`try_atomically`] returns this.
    Cancel(E),
}

impl<E> From<Restart> for Abort<E> {
    fn from(restart: Restart) -> Abort<E> {
        Abort::Restart(restart)
    }
}

/// What the body of a transaction reads and writes with.
///
/// It belongs to the thread and to the call of [`atomically`], and to variables that live for `'env`, longer than that call.
///
/// ```compile_fail,E0277
/// concord_tm::atomically(|tx| {
///     std::thread::scope(|scope| {
///         scope.spawn(|| tx.retry::<()>());
///     });
///     Ok(())
/// });
/// ```
///
/// ```compile_fail,E0521
/// let mut kept = None;
/// concord_tm::atomically(|tx| {
///     kept = Some(tx);
///     Ok(())
/// });
/// ```
#[derive(Debug)]
pub struct Transaction<'env> {
    state: State,
    /// Neither `Send` nor `Sync`.
    thread: PhantomData<*mut ()>,
    env: PhantomData<Invariant<'env>>,
}

/// Neither a longer nor a shorter lifetime stands for this one: no shorter-lived variable will do.
type Invariant<'env> = fn(&'env ()) -> &'env ();

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// The library has begun it again, and the body has to return before it may go on.
    Restarted,
    /// It is no longer open, for lack of memory.
    Exhausted,
    /// It has committed, or was taken back.
    Ended,
}

impl<'env> Transaction<'env> {
    fn begin() -> Transaction<'env> {
        assert!(!calls::is_open(), "a transaction is open already: use Transaction::or_else for one within another");
        match calls::begin() {
            Answer::Done => Transaction { state: State::Open, thread: PhantomData, env: PhantomData },
            _ => panic!("there is no memory for a transaction"),
        }
    }

    /// Takes an answer of the library to anything but a commit.
    fn take(&mut self, answer: Answer) -> Result<(), Restart> {
        match answer {
            Answer::Done => Ok(()),
            Answer::TooDeep => panic!("more transactions within each other than the library has levels"),
            Answer::Exhausted => {
                self.state = State::Exhausted;
                Err(Restart(()))
            }
            Answer::Restarted | Answer::Cancelled => {
                self.state = State::Restarted;
                Err(Restart(()))
            }
        }
    }

    fn check(&self) -> Result<(), Restart> {
        if self.state == State::Open { Ok(()) } else { Err(Restart(())) }
    }

    pub(crate) fn load(&mut self, word: &'env AtomicU64) -> Result<u64, Restart> {
        self.check()?;
        match calls::load(word) {
            Ok(value) => Ok(value),
            Err(answer) => self.take(answer).map(|()| 0),
        }
    }

    pub(crate) fn store(&mut self, word: &'env AtomicU64, value: u64) -> Result<(), Restart> {
        self.check()?;
        // SAFETY: `'env` is longer than the call of `try_atomically`, which ends the transaction.
        self.take(unsafe { calls::store(word, value) })
    }

    /// Asks for a restart, in the hope that other threads change what the transaction has read. Waits for a random time before the next
    /// attempt, not for the change.
    ///
    /// In the first alternative of [`or_else`](Transaction::or_else) it chooses the second.
    pub fn retry<R>(&mut self) -> Result<R, Restart> {
        Err(Restart(()))
    }

    /// Does the first, and if that calls [`retry`](Transaction::retry), takes back what it has written and does the second.
    pub fn or_else<R, E>(
        &mut self,
        first: impl FnOnce(&mut Transaction<'env>) -> Result<R, Abort<E>>,
        second: impl FnOnce(&mut Transaction<'env>) -> Result<R, Abort<E>>,
    ) -> Result<R, Abort<E>> {
        self.check()?;
        self.take(calls::nest())?;
        // The level ends whichever way the alternative does. A body may catch its panic and go on.
        let result = catch_unwind(AssertUnwindSafe(|| first(self)));
        if self.state == State::Open {
            if let Ok(Ok(_)) = result {
                self.take(calls::commit())?;
            } else {
                let answer = calls::cancel();
                debug_assert_eq!(answer, Answer::Cancelled, "a cancel does not restart");
            }
        }
        match result {
            Err(panic) => resume_unwind(panic),
            Ok(Err(Abort::Restart(_))) if self.state == State::Open => second(self),
            Ok(result) => self.check().map_err(Abort::Restart).and(result),
        }
    }

    /// Begins the next attempt, where the body has asked for it.
    fn restart(&mut self) {
        if self.state == State::Open {
            let _ = self.take(calls::restart());
        }
        assert!(self.state != State::Exhausted, "there is no memory for what a transaction has to remember");
        self.state = State::Open;
    }

    /// Whether the transaction has committed. If not, it has begun again.
    fn commit(&mut self) -> bool {
        if self.state != State::Open || self.take(calls::commit()).is_err() {
            return false;
        }
        self.state = State::Ended;
        true
    }

    /// Takes everything back.
    fn cancel(&mut self) {
        while calls::is_open() {
            calls::cancel();
        }
        self.state = State::Ended;
    }
}

impl Drop for Transaction<'_> {
    /// The body has panicked: nothing of it has happened.
    fn drop(&mut self) {
        if self.state != State::Ended {
            self.cancel();
        }
    }
}

/// Runs the body as a transaction, again and again until it commits, and returns its result.
///
/// The body may run several times: what it does besides reading and writing variables should not matter. If it panics, nothing that it has
/// written has happened.
///
/// # Panics
///
/// Inside of another transaction, and where there is no memory for the transaction.
pub fn atomically<'env, R>(mut body: impl FnMut(&mut Transaction<'env>) -> Result<R, Restart>) -> R {
    let result: Result<R, Infallible> = try_atomically(|transaction| body(transaction).map_err(Abort::Restart));
    match result {
        Ok(value) => value,
        Err(never) => match never {},
    }
}

/// Like [`atomically`], of a body that may also give the transaction up for a reason: nothing of it has happened then.
pub fn try_atomically<'env, R, E>(mut body: impl FnMut(&mut Transaction<'env>) -> Result<R, Abort<E>>) -> Result<R, E> {
    let mut transaction = Transaction::begin();
    loop {
        match body(&mut transaction) {
            Ok(value) if transaction.commit() => return Ok(value),
            Err(Abort::Cancel(error)) if transaction.state == State::Open => {
                transaction.cancel();
                return Err(error);
            }
            _ => transaction.restart(),
        }
    }
}
