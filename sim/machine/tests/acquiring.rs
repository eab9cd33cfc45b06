//! The cycles that the machine counts from the first access to a lock's word to having the lock.

use crate::sections::*;
use crate::support::bare::*;
use crate::transactions::guest::*;
use concord_abi::hint::Hint;
use concord_machine::Gear;
use concord_machine::run::Options;
use serde_json::Value;

const COLD: u64 = 0x9000_0000;
const WARM: u64 = 0x9000_0010;
const RETRIED: u64 = 0x9000_0020;
const SPUN: u64 = 0x9000_0030;
const ABANDONED: u64 = 0x9000_0040;
const RELEASED: u64 = 0x9000_0050;
const COMMITTED: u64 = 0x9000_0060;
const SILENT: u64 = 0x9000_0070;

/// An atomic, two instructions, and the section.
fn take(bare: &mut Bare, site: u64) {
    prepare(bare, site, A);
    bare.push(amo_add(S6, S3, ZERO));
    work(bare, 2);
    locked(bare);
    over(bare);
}

/// A store-conditional fails, because it has no reservation for that line; the next try succeeds.
fn retry(bare: &mut Bare) {
    prepare(bare, RETRIED, A);
    bare.load(S5, B);
    bare.push(lr(S6, S3));
    bare.push(sc(S6, S5, ZERO));
    bare.push(lr(S6, S3));
    bare.push(sc(S6, S3, ZERO));
    locked(bare);
    over(bare);
}

/// The first access finds the lock taken; further ones belong to the spin.
fn spin(bare: &mut Bare) {
    prepare(bare, SPUN, A);
    bare.push(amo_add(S6, S3, ZERO));
    hint(bare, Hint::LockSpinBegin as u16);
    work(bare, 3);
    bare.push(amo_add(S6, S3, ZERO));
    locked(bare);
    over(bare);
}

/// A spin ends without the lock, and the next section of the lock has its cycles beside its own.
fn abandon(bare: &mut Bare) {
    prepare(bare, ABANDONED, A);
    bare.push(amo_add(S6, S3, ZERO));
    hint(bare, Hint::LockSpinBegin as u16);
    work(bare, 5);
    hint(bare, Hint::LockSpinAbandoned as u16);
    work(bare, 20);
    bare.push(amo_add(S6, S3, ZERO));
    locked(bare);
    over(bare);
}

/// The atomic after the end of a section releases the lock, and so no acquisition begins there.
fn release(bare: &mut Bare) {
    prepare(bare, RELEASED, A);
    bare.push(amo_add(S6, S3, ZERO));
    locked(bare);
    over(bare);
    bare.push(amo_add(S6, S3, ZERO));
    work(bare, 20);
    bare.push(amo_add(S6, S3, ZERO));
    locked(bare);
    over(bare);
}

/// The first attempt tests the word and restarts; the second one tests it again.
fn commit(bare: &mut Bare) {
    prepare(bare, COMMITTED, A);
    bare.load(T0, A);
    let again = bare.code.label();
    bare.begin(S2);
    bare.push(concord_abi::htm::Width::Double.encode_test(S6, S3, ZERO));
    bare.code.branch(1, S2, ZERO, again);
    transactional(bare);
    work(bare, 9);
    bare.restart(3);
    bare.code.bind(again);
    transactional(bare);
    over(bare);
    bare.end();
}

/// A hint without any access to the lock's word.
fn hold_silently(bare: &mut Bare) {
    prepare(bare, SILENT, B);
    work(bare, 4);
    locked(bare);
    over(bare);
}

fn guest(gear: Gear) -> Value {
    let mut bare = Bare::new(1);
    let all = |bare: &mut Bare| {
        take(bare, COLD);
        take(bare, WARM);
        [retry, spin, abandon, release, commit, hold_silently].iter().for_each(|part| part(bare));
        bare.finish();
    };
    all(&mut bare);
    document(bare.machine(gear), &Options::default())
}

/// Cycles are instructions in the functional gear, so every number is known.
#[test]
fn acquiring_a_lock_lasts_from_the_first_access_to_having_it() {
    let document = guest(Gear::Functional);
    let of = |address| fields(&document, address, ["acquire_cycles", "subscribe_cycles", "spin_cycles"]);
    assert_eq!(of(WARM), [3, 0, 0]);
    assert_eq!(of(RETRIED), [4, 0, 0]);
    assert_eq!(of(SPUN), [1 + 5, 0, 5]);
    assert_eq!(of(ABANDONED), [1 + 6 + 1, 0, 6]);
    assert_eq!(of(RELEASED), [1 + 1, 0, 0]);
    assert_eq!(of(COMMITTED), [0, 2, 0]);
    assert_eq!(of(SILENT), [0, 0, 0]);
    let locks = document["section_locks"].as_array().unwrap();
    let of_locks: u64 = locks.iter().map(|lock| lock["acquire_cycles"].as_u64().unwrap()).sum();
    assert_eq!(of_locks, 3 + 3 + 4 + 6 + 8 + 2 + 2);
    assert_eq!(document["section_totals"]["spin"]["acquire_cycles"], 3 + 3 + 4 + 6 + 8 + 2);
}

#[test]
fn acquiring_includes_the_miss_on_a_lock_that_nobody_holds() {
    let document = guest(Gear::Timed);
    let of = |address| fields(&document, address, ["acquire_cycles"])[0].as_u64().unwrap();
    assert_eq!(of(WARM), 3);
    assert!(of(COLD) > 50, "{} cycles", of(COLD));
}
