//! Granules of four bytes, of eight, and of a line: sections 1, 6 and 9 of docs/xmetatm.md.

use super::guest::*;
use crate::support::assembler::*;
use crate::support::bare::*;
use concord_abi::htm::*;
use concord_htm::manager::Manager;
use concord_htm::policy::Granularity;

/// `sw` of a constant to a word of memory.
fn store_word(bare: &mut Bare, address: u64, value: u64) {
    bare.load(T0, address);
    bare.load(T1, value);
    bare.push(s_type(STORE, 2, T0, T1, 0));
}

/// what another hart stores to the four bytes beside those that a transaction wrote makes the
/// transaction lose where they are one granule, and stays where they are two and the transaction restarts later.
#[test]
fn a_rollback_leaves_the_store_beside_it() {
    for granularity in Granularity::ALL {
        for in_transaction in [false, true] {
            let first = |bare: &mut Bare| {
                let first = |bare: &mut Bare| {
                    store_word(bare, A, 5);
                    bare.meet(1);
                    bare.restart(0);
                };
                bare.attempt(S2, first, |_| ());
                bare.end();
                bare.log(S2);
                bare.log_word(A);
                bare.log_csr(CSR_CONFLICT);
            };
            let second = |bare: &mut Bare| {
                bare.wait_for(FLAG, 1);
                if in_transaction {
                    bare.begin(ZERO);
                }
                store_word(bare, A + 4, 9);
                if in_transaction {
                    bare.end();
                }
                bare.store(ANSWER, 1);
            };
            let build = |bare: &mut Bare| {
                bare.set_word(A, 7 << 32 | 1);
                bare.board.transactions.granularity = granularity;
                bare.board.transactions.manager = Manager::RequesterWins;
                on_harts(&[&first, &second])(bare);
            };
            let cause = if in_transaction { CONFLICT } else { NONTRANSACTIONAL };
            let (status, conflict) = if granularity == Granularity::Word32 { (EXPLICIT, 0) } else { (cause, A) };
            everywhere(2, build, |logs| {
                let why = format!("{granularity:?} {:?} {in_transaction}", logs.gear);
                assert_eq!(logs.words::<3>(0), [status, 9 << 32 | 1, conflict], "{why}");
            });
        }
    }
}

/// an access of eight bytes adds both its granules, although the transaction has one of them already.
#[test]
fn a_wide_access_adds_the_other_granule_too() {
    for writes in [false, true] {
        for has in [0, 4] {
            let other = A + 4 - has;
            let first = |bare: &mut Bare| {
                let first = |bare: &mut Bare| {
                    bare.load(S0, A);
                    bare.push(s_type(STORE, 2, S0, ZERO, has as i64));
                    bare.push(if writes { sd(ZERO, S0, 0) } else { ld(S3, S0, 0) });
                    bare.tell_and_spin(1);
                };
                bare.attempt(S2, first, |_| ());
                bare.end();
                bare.log(S2);
                bare.log_csr(CSR_CONFLICT);
                bare.log_word(A);
            };
            let second = |bare: &mut Bare| {
                bare.wait_for(FLAG, 1);
                store_word(bare, other, 9);
            };
            let build = |bare: &mut Bare| {
                bare.set_word(A, 3 << 32 | 3);
                bare.board.transactions.granularity = Granularity::Word32;
                on_harts(&[&first, &second])(bare);
            };
            let stays = 3 << (8 * has) | 9 << (8 * (4 - has));
            everywhere(2, build, |logs| {
                assert_eq!(logs.words::<3>(0), [NONTRANSACTIONAL, other, stays], "{:?} {writes} {has}", logs.gear);
            });
        }
    }
}
