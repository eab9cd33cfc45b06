//! The translator's results are the interpreter's: random programs, cut anywhere, end in the same state of the whole
//! machine; and faults that are planted in the translated execution are found that way.
//!
//! (The other tests of this suite run under both executors: `CONCORD_TEST_HEAT=0` chooses the interpreter, and 1 translates
//! every run at once.)
//! `CONCORD_DIFFERENTIAL_PROGRAMS` and `CONCORD_DIFFERENTIAL_SEED` are those of `differential.rs`.

use crate::differential::number;
use crate::support::assembler::*;
use crate::support::bare::*;
use crate::support::compare::write_image;
use crate::support::generator::{Program, Variant};
use crate::support::harness::Paging;
use crate::support::machines::concord;
use crate::support::random::Random;
use concord_machine::planted::PlantedFault;
use concord_machine::run::{Limits, Options, Unattended, run};
use concord_machine::{Executor, Gear, Machine};
use std::path::Path;

const ITEMS: usize = 300;
/// Each program runs so often, so that its code is hot in the later turns.
const REPETITIONS: usize = 3;
/// Runs are translated when they are executed for the second time, with all others of their page that were executed.
const HEAT: u32 = 2;

/// Everything that a run has changed: the digest of the machine, and what it printed.
fn state(machine: &mut Machine, cycles_max: u64) -> (String, u64, Vec<u8>) {
    let limits = Limits { instructions: None, cycles: Some(cycles_max) };
    let mut console = Unattended::default();
    run(machine, &Options { limits, ..Options::default() }, &mut console).expect("nothing on the host stops the run");
    (machine.digest().expect("a digest"), machine.instructions(), console.printed)
}

fn machine(elf: &Path, gear: Gear, executor: Executor) -> Machine {
    let mut machine = concord(elf, gear);
    machine.set_executor_of_test(executor, HEAT).expect("this host executes translated code");
    machine
}

fn compare(first_seed: u64, programs: u64, variant: Variant) {
    let mut random = Random::new(first_seed);
    let programs: Vec<Program> = (first_seed..first_seed + programs)
        .flat_map(|seed| std::iter::repeat_n(Program::generate(seed, variant, ITEMS), REPETITIONS))
        .collect();
    let (_directory, path) = write_image(&programs);
    for gear in [Gear::Functional, Gear::Timed] {
        let mut machines = Executor::ALL.map(|executor| machine(&path, gear, executor));
        let mut cycle = 0;
        // A cut ends a turn where the run would go on, so each also begins one in the middle of things.
        for cut in 0..24 {
            let scale = random.below(18);
            cycle += 1 + random.below(1 << scale);
            let [interpreted, translated] = machines.each_mut().map(|machine| state(machine, cycle));
            assert_eq!(interpreted, translated, "seed {first_seed}, {variant:?}, {gear:?}, cut {cut} at {cycle}");
        }
        let [interpreted, translated] = machines.each_mut().map(|machine| state(machine, u64::MAX));
        assert_eq!(interpreted, translated, "seed {first_seed}, {variant:?}, {gear:?}, at the end");
    }
}

#[test]
fn a_translated_program_ends_as_an_interpreted_one() {
    let first = number("CONCORD_DIFFERENTIAL_SEED", 1);
    let count = number("CONCORD_DIFFERENTIAL_PROGRAMS", 8);
    for paging in [Paging::Bare, Paging::Sv39, Paging::Sv48] {
        for is_user in [false, true] {
            for seed in (first..first + count).step_by(4) {
                compare(seed, 4.min(first + count - seed), Variant { paging, is_user });
            }
        }
    }
}

/// Two harts in loops: each reads what the other writes, and may change an instruction of its loop.
fn busy(bare: &mut Bare, is_patched: bool) {
    let body = |hart: u64| {
        move |bare: &mut Bare| {
            bare.load(S0, DATA + 0x100 * hart);
            bare.load(S1, DATA + 0x100 * (1 - hart));
            bare.load(S2, 400);
            bare.load(S3, 0);
            bare.load(S6, u64::from(addi(S3, S3, 1)));
            let again = bare.code.here();
            bare.push(ld(S4, S1, 0));
            bare.push(add(S3, S3, S4));
            bare.push(sd(S3, S0, 0));
            let over = bare.code.label();
            bare.code.jump(S5, over);
            bare.code.bind(over);
            // The immediate of the patched instruction is bits 20 to 31.
            bare.push(i_type(OP_IMM, S7, 1, S2, 22));
            bare.push(add(S6, S6, S7));
            if is_patched {
                bare.push(s_type(STORE, 2, S5, S6, 16));
                bare.push(FENCE_I);
            }
            // The fifth instruction after the jump is the patched one.
            bare.push(addi(S3, S3, 1));
            for _ in 0..40 {
                // Over more than a line, so that the loop fetches lines inside of a region.
                bare.push(addi(S4, S4, 3));
            }
            bare.push(addi(S2, S2, -1));
            bare.code.branch(1, S2, 0, again);
            bare.log(S3);
        }
    };
    on_harts(&[&body(0), &body(1)])(bare);
}

fn busy_state(executor: Executor, fault: Option<PlantedFault>, is_patched: bool, gear: Gear) -> (String, u64, Vec<u8>) {
    let mut bare = Bare::new(2);
    bare.planted = fault;
    busy(&mut bare, is_patched);
    let mut machine = bare.machine(gear);
    machine.set_executor_of_test(executor, HEAT).expect("this host executes translated code");
    state(&mut machine, 100_000_000)
}

#[test]
fn planted_faults_of_translated_execution_are_found() {
    for gear in [Gear::Functional, Gear::Timed] {
        for is_patched in [false, true] {
            let right = busy_state(Executor::Interpreter, None, is_patched, gear);
            assert_eq!(busy_state(Executor::Translator, None, is_patched, gear), right, "{gear:?}");
            let is_found = |fault| busy_state(Executor::Translator, Some(fault), is_patched, gear) != right;
            if is_patched {
                assert!(is_found(PlantedFault::ForgottenInvalidation), "{gear:?}");
                continue;
            }
            assert!(is_found(PlantedFault::MissedLimit), "{gear:?}");
            // The functional gear charges no fetches.
            assert_eq!(is_found(PlantedFault::UnchargedFetch), gear == Gear::Timed);
        }
    }
}
