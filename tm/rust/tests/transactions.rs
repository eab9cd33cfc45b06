// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Transactions of several threads, and the ways in which they end.

use concord_tm::{Abort, Restart, TVar, Transaction, atomically, try_atomically};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Counts how many of it are alive.
struct Alive<'a>(&'a Cell<i32>);

impl<'a> Alive<'a> {
    fn new(count: &'a Cell<i32>) -> Alive<'a> {
        count.set(count.get() + 1);
        Alive(count)
    }
}

impl Drop for Alive<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

fn read<T: concord_tm::Value>(variable: &TVar<T>) -> T {
    atomically(|tx| variable.read(tx))
}

#[test]
fn values_of_every_type_come_back() {
    fn check<T: concord_tm::Value + PartialEq + std::fmt::Debug>(first: T, second: T) {
        let variable = TVar::new(first);
        let before = atomically(|tx| {
            let before = variable.read(tx)?;
            variable.write(tx, second)?;
            assert_eq!(variable.read(tx)?, second);
            Ok(before)
        });
        assert_eq!((before, variable.into_inner()), (first, second));
    }
    check(1_u8, u8::MAX);
    check(-1_i8, i8::MIN);
    check(1_u16, u16::MAX);
    check(-1_i32, i32::MIN);
    check(1_u64, u64::MAX);
    check(-1_i64, i64::MIN);
    check(usize::MAX, 0);
    check(-1.5_f32, f32::MAX);
    check(-1.5_f64, f64::MIN);
    check('a', char::MAX);
    check(false, true);
}

#[test]
fn threads_see_no_sum_but_the_whole() {
    const THREADS: usize = 4;
    const TURNS: usize = 5000;
    let accounts: Vec<_> = (0..16).map(|_| TVar::new(100_i64)).collect();
    let attempts = AtomicUsize::new(0);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (accounts, attempts) = (&accounts, &attempts);
            scope.spawn(move || {
                for turn in 0..TURNS {
                    let (from, to) = ((thread + turn) % 16, (7 * turn + 3) % 16);
                    let alive = Cell::new(0);
                    let sum: i64 = atomically(|tx| {
                        attempts.fetch_add(1, Ordering::Relaxed);
                        let _alive = Alive::new(&alive);
                        accounts[from].modify(tx, |balance| balance - 1)?;
                        accounts[to].modify(tx, |balance| balance + 1)?;
                        accounts.iter().map(|account| account.read(tx)).sum()
                    });
                    assert_eq!((sum, alive.get()), (1600, 0));
                }
            });
        }
    });
    assert_eq!(accounts.into_iter().map(TVar::into_inner).sum::<i64>(), 1600);
    assert!(attempts.into_inner() >= THREADS * TURNS);
}

#[test]
fn a_panic_takes_everything_back_and_goes_on() {
    let variable = TVar::new(1);
    let alive = Cell::new(0);
    let panic = catch_unwind(AssertUnwindSafe(|| {
        atomically(|tx| {
            let _alive = Alive::new(&alive);
            variable.write(tx, 2)?;
            tx.or_else::<(), ()>(
                |tx| {
                    variable.write(tx, 3)?;
                    panic!("on purpose")
                },
                |_| Ok(()),
            )
            .map_err(|_| unreachable!("it panics"))
        })
    }));
    assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"on purpose"));
    assert_eq!((read(&variable), alive.get()), (1, 0));
}

#[test]
fn a_body_may_catch_the_panic_of_an_alternative() {
    let variable = TVar::new(1);
    atomically(|tx| {
        variable.write(tx, 2)?;
        let panic = catch_unwind(AssertUnwindSafe(|| {
            tx.or_else::<(), ()>(
                |tx| {
                    variable.write(tx, 3)?;
                    panic!("on purpose")
                },
                |_| Ok(()),
            )
        }));
        assert!(panic.is_err());
        assert_eq!(variable.read(tx)?, 2);
        Ok(())
    });
    assert_eq!(read(&variable), 2);
    // No level is left open.
    assert_eq!(atomically(|tx| variable.read(tx)), 2);
}

#[test]
fn a_cancelled_transaction_has_not_happened() {
    let variable = TVar::new(1);
    let result: Result<(), &str> = try_atomically(|tx| {
        variable.write(tx, 2)?;
        tx.or_else(
            |tx| {
                variable.write(tx, 3)?;
                Err(Abort::Cancel("not enough"))
            },
            |_| Ok(()),
        )
    });
    assert_eq!((result, read(&variable)), (Err("not enough"), 1));
}

#[test]
fn a_cancelled_alternative_leaves_the_rest() {
    let (outer, inner) = (TVar::new(1), TVar::new(1));
    let result: Result<i32, ()> = try_atomically(|tx| {
        outer.write(tx, 2)?;
        let cancelled = tx.or_else(
            |tx| {
                inner.write(tx, 3)?;
                Err::<(), _>(Abort::Cancel(()))
            },
            |_| Ok(()),
        );
        assert!(matches!(cancelled, Err(Abort::Cancel(()))));
        Ok(inner.read(tx)?)
    });
    assert_eq!((result, read(&outer), read(&inner)), (Ok(1), 2, 1));
}

/// Takes one of a stock, or retries.
fn take<'env>(tx: &mut Transaction<'env>, stock: &'env TVar<u32>) -> Result<(), Restart> {
    match stock.read(tx)? {
        0 => tx.retry(),
        count => stock.write(tx, count - 1),
    }
}

#[test]
fn or_else_takes_the_first_back_and_does_the_second() {
    let (first, second, tries) = (TVar::new(0_u32), TVar::new(1_u32), TVar::new(0_u32));
    let result: Result<(), ()> = try_atomically(|tx| {
        tx.or_else(
            |tx| {
                tries.modify(tx, |tries| tries + 1)?;
                Ok(take(tx, &first)?)
            },
            |tx| Ok(take(tx, &second)?),
        )
    });
    assert_eq!((result, read(&second), read(&tries)), (Ok(()), 0, 0));
}

#[test]
fn retry_waits_for_another_thread() {
    let stock = Arc::new(TVar::new(0_u32));
    let waits = Arc::new(AtomicBool::new(false));
    let taker = thread::spawn({
        let (stock, waits) = (Arc::clone(&stock), Arc::clone(&waits));
        move || {
            let (stock, waits) = (&*stock, &*waits);
            atomically(|tx| {
                let taken = take(tx, stock);
                waits.store(true, Ordering::Release);
                taken
            });
        }
    });
    while !waits.load(Ordering::Acquire) {
        thread::yield_now();
    }
    atomically(|tx| stock.write(tx, 2));
    taker.join().unwrap();
    assert_eq!(read(&stock), 1);
}

#[test]
fn a_body_that_goes_on_after_a_restart_gets_no_further() {
    let (variable, other) = (TVar::new(1), TVar::new(1));
    let mut attempts = 0;
    let swallowed: Result<u32, ()> = try_atomically(|tx| {
        attempts += 1;
        other.write(tx, attempts)?;
        // Nothing has happened that cannot be taken back: an error that is swallowed changes nothing.
        let _ = tx.retry::<()>();
        Ok(variable.read(tx)?)
    });
    assert_eq!((swallowed, attempts, read(&other)), (Ok(1), 1, 1));
}

#[test]
fn a_transaction_within_another_is_refused() {
    let variable = TVar::new(1);
    let panic = catch_unwind(AssertUnwindSafe(|| {
        atomically(|tx| {
            variable.write(tx, 2)?;
            atomically(|_| Ok(()));
            Ok(())
        })
    }));
    let text = *panic.unwrap_err().downcast::<&str>().unwrap();
    assert!(text.contains("a transaction is open already"), "{text}");
    assert_eq!(read(&variable), 1);
}

#[test]
fn alternatives_nest_up_to_the_librarys_limit() {
    fn descend<'env>(tx: &mut Transaction<'env>, depth: u32, deepest: &'env TVar<u32>) -> Result<(), Abort<()>> {
        if depth == 0 {
            return Ok(deepest.modify(tx, |count| count + 1)?);
        }
        tx.or_else(|tx| descend(tx, depth - 1, deepest), |_| Ok(()))
    }
    let deepest = TVar::new(0);
    assert!(try_atomically(|tx| descend(tx, 254, &deepest)).is_ok());
    assert_eq!(read(&deepest), 1);
    assert!(catch_unwind(AssertUnwindSafe(|| try_atomically(|tx| descend(tx, 255, &deepest)))).is_err());
    assert_eq!(read(&deepest), 1);
}

#[test]
fn large_transactions_grow_their_sets() {
    const VARIABLES: usize = 20_000;
    let variables: Vec<_> = (0..VARIABLES).map(|_| TVar::new(0_usize)).collect();
    let keep_company = AtomicBool::new(true);
    thread::scope(|scope| {
        // Another context, so that the transaction needs its sets.
        scope.spawn(|| {
            while keep_company.load(Ordering::Relaxed) {
                read(&variables[0]);
                thread::yield_now();
            }
        });
        atomically(|tx| {
            for (index, variable) in variables.iter().enumerate() {
                variable.modify(tx, |value| value + index)?;
            }
            Ok(())
        });
        keep_company.store(false, Ordering::Relaxed);
    });
    assert!(variables.into_iter().map(TVar::into_inner).eq(0..VARIABLES));
}
