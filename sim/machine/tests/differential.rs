//! Differential test: seeded programs run on Concord and on `qemu-system-riscv64`, and must end in the same registers,
//! flags, memory and traps.
//!
//! `CONCORD_DIFFERENTIAL_PROGRAMS` sets the number of programs of each variant and `CONCORD_DIFFERENTIAL_SEED` the
//! first seed.

use crate::support::compare::{Name, assert_equal, dump};
use crate::support::generator::Variant;
use crate::support::harness::{DUMP_LINES, Paging, trap_causes};
use crate::support::machines::{run_concord, run_qemu};
use concord_machine::Gear;
use std::collections::BTreeSet;
use std::path::Path;

const ITEMS: usize = 1000;
/// Programs in one image.
const BATCH: u64 = 100;

pub fn number(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable} must be a number, not {text:?}")),
        Err(_) => default,
    }
}

fn qemu(elf: &Path, _programs: usize) -> Vec<String> {
    run_qemu(elf)
}

fn batches(paging: Paging, is_user: bool, subject: &dyn Fn(&Path, usize) -> Vec<String>) {
    let variant = Variant { paging, is_user };
    let first = number("CONCORD_DIFFERENTIAL_SEED", 1);
    let seeds: Vec<u64> = (first..first + number("CONCORD_DIFFERENTIAL_PROGRAMS", BATCH)).collect();
    for batch in seeds.chunks(BATCH as usize) {
        let names: Vec<Name> = batch.iter().map(|&seed| Name { seed, variant, items: ITEMS }).collect();
        assert_equal(&names, &qemu, subject);
    }
}

fn functional(elf: &Path, programs: usize) -> Vec<String> {
    run_concord(elf, Gear::Functional, programs)
}

#[test]
fn supervisor_without_translation() {
    batches(Paging::Bare, false, &functional);
}

#[test]
fn user_without_translation() {
    batches(Paging::Bare, true, &functional);
}

#[test]
fn supervisor_under_sv39() {
    batches(Paging::Sv39, false, &functional);
}

#[test]
fn user_under_sv39() {
    batches(Paging::Sv39, true, &functional);
}

#[test]
fn supervisor_under_sv48() {
    batches(Paging::Sv48, false, &functional);
}

#[test]
fn user_under_sv48() {
    batches(Paging::Sv48, true, &functional);
}

/// The cache model changes time, and nothing that a lone hart can see but time.
#[test]
fn supervisor_under_sv39_in_the_timed_gear() {
    batches(Paging::Sv39, false, &|elf, programs| run_concord(elf, Gear::Timed, programs));
}

/// The comparison is worth what the programs reach: every exception that S-mode can see, and interrupts.
#[test]
fn the_programs_meet_every_cause() {
    let mut causes = BTreeSet::new();
    for (paging, is_user) in [(Paging::Bare, false), (Paging::Bare, true), (Paging::Sv39, false), (Paging::Sv39, true)]
    {
        let variant = Variant { paging, is_user };
        let names: Vec<Name> = (1..=40).map(|seed| Name { seed, variant, items: ITEMS }).collect();
        for dump in dump(&names, &functional).chunks(DUMP_LINES) {
            causes.extend(trap_causes(dump));
        }
    }
    // Fetch access, illegal instruction, breakpoint, misaligned and refused loads and stores (AMOs too), calls from
    // U-mode, page faults of each kind, the software interrupt. Misaligned fetches cannot be, and misaligned loads trap
    // only for LR.
    let expected = BTreeSet::from([1, 2, 3, 5, 6, 7, 8, 12, 13, 15, 1 << 63 | 1]);
    assert_eq!(causes, expected);
}
