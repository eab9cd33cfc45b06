//! Faults planted in the machine are found: by what a guest sees, and by the isolation checker. (Faults of the engine are planted
//! in `sim/htm/tests/oracle`.)

use super::guest::*;
use crate::support::assembler::*;
use crate::support::bare::*;
use concord_abi::exit::Exit;
use concord_machine::Gear;
use concord_machine::planted::PlantedFault;

/// How a guest ended with a fault in the machine, and the first words of its log where it came to its end.
fn with_fault(build: impl Fn(&mut Bare), fault: Option<PlantedFault>, gear: Gear, check: bool) -> (Exit, [u64; 3]) {
    let mut bare = Bare::new(2);
    (bare.planted, bare.check_isolation) = (fault, check);
    build(&mut bare);
    let end = bare.run_to_any_end(gear);
    let exit = end.outcome.end.exit;
    (exit, if exit == Exit::PoweredOff { Logs::new(gear, &end.printed, 2).words(0) } else { [0; 3] })
}

/// A transaction that is met by another hart's AMO.
fn met_by_an_atomic(bare: &mut Bare) {
    let first = |bare: &mut Bare| {
        let first = |bare: &mut Bare| {
            bare.store(A, 5);
            bare.meet(1);
        };
        bare.attempt(S2, first, |_| ());
        bare.end();
        bare.log(S2);
        bare.log_word(A);
        bare.log_word(B);
    };
    let second = |bare: &mut Bare| {
        bare.load(S0, A);
        bare.load(S1, 1);
        bare.wait_for(FLAG, 1);
        bare.push(amo_add(S3, S0, S1));
        bare.load(S0, B);
        bare.push(sd(S3, S0, 0));
        bare.store(ANSWER, 1);
    };
    on_harts(&[&first, &second])(bare);
}

#[test]
fn an_unchecked_atomic_is_found() {
    for gear in [Gear::Functional, Gear::Timed] {
        let right = (Exit::PoweredOff, [NONTRANSACTIONAL, 1, 0]);
        for check in [false, true] {
            assert_eq!(with_fault(met_by_an_atomic, None, gear, check), right, "{gear:?}");
        }
        let fault = Some(PlantedFault::UncheckedAtomic);
        assert_eq!(with_fault(met_by_an_atomic, fault, gear, false), (Exit::PoweredOff, [0, 6, 5]), "{gear:?}");
        assert_eq!(with_fault(met_by_an_atomic, fault, gear, true).0, Exit::IsolationViolated, "{gear:?}");
    }
}

/// A transaction that defers an addition.
fn adding(bare: &mut Bare) {
    bare.board.transactions.deferred_adds = 16;
    bare.load(S0, A);
    bare.load(S1, 3);
    bare.begin(ZERO);
    bare.push(amo_add(ZERO, S0, S1));
    bare.end();
    bare.log_word(A);
    bare.log_word(B);
    bare.log_word(B);
    bare.finish();
}

#[test]
fn an_addition_made_twice_is_found() {
    for gear in [Gear::Functional, Gear::Timed] {
        for check in [false, true] {
            assert_eq!(with_fault(adding, None, gear, check), (Exit::PoweredOff, [3, 0, 0]), "{gear:?}");
        }
        let fault = Some(PlantedFault::AddedTwice);
        assert_eq!(with_fault(adding, fault, gear, false), (Exit::PoweredOff, [6, 0, 0]), "{gear:?}");
        assert_eq!(with_fault(adding, fault, gear, true).0, Exit::IsolationViolated, "{gear:?}");
    }
}

/// A transaction that maps a page anew, uses it, and is rolled back.
fn mapping(bare: &mut Bare) {
    bare.map(0, READ | WRITE);
    bare.set_word(DATA + 0x1000, 2);
    bare.translate();
    let first = |bare: &mut Bare| {
        bare.store(entry_address(0), entry(DATA + 0x1000, READ | WRITE));
        bare.push(SFENCE_VMA_ALL);
        bare.load_word(S3, WINDOW);
        bare.restart(0);
    };
    bare.attempt(S2, first, |_| ());
    bare.load_word(S3, WINDOW);
    bare.end();
    bare.log(S2);
    bare.log(S3);
    bare.finish();
}

#[test]
fn a_kept_translation_is_found() {
    for gear in [Gear::Functional, Gear::Timed] {
        for check in [false, true] {
            let words = |fault| with_fault(mapping, fault, gear, check).1;
            assert_eq!(words(None), [EXPLICIT, 0, 0], "{gear:?}");
            assert_eq!(words(Some(PlantedFault::KeptTranslation)), [EXPLICIT, 2, 0], "{gear:?}");
        }
    }
}
