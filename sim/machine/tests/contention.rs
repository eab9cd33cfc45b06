//! Queues of contended lines as guests see them.

use crate::support::assembler::*;
use crate::support::bare::*;
use concord_abi::exit::Exit;
use concord_abi::htm::Width;
use concord_machine::board::ContentionKind;
use concord_machine::run::Options;
use concord_machine::{Gear, Machine};

/// Words on lines of their own.
const X: u64 = DATA;
const Y: u64 = DATA + 0x40;
const READY: u64 = DATA + 0x80;
const DONE: u64 = DATA + 0xc0;

const PAUSE: u32 = 0x0100_000f;
/// AMOSWAP.D
fn amo_swap(rd: u32, address: u32, value: u32) -> u32 {
    r_type(AMO, rd, 3, address, value, 0x01 << 2)
}

/// What a hart does in each turn of its loop; s0 and s1 hold X and Y, s3 is 1, s4 the turns that are left.
type Turn<'a> = &'a dyn Fn(&mut Bare, u64);

/// Adds 1 to the word that `register` points to, and waits until it is `harts`.
fn meet(bare: &mut Bare, place: u64, harts: u64) {
    bare.load(S6, place);
    bare.push(amo_add(ZERO, S6, S3));
    bare.load(S7, harts);
    let again = bare.code.here();
    bare.push(ld(S8, S6, 0));
    bare.code.branch(1, S8, S7, again);
}

/// A guest of some harts that all do the same, beginning together.
fn loops(harts: usize, turns: u64, turn: Turn) -> impl Fn(&mut Bare) {
    move |bare: &mut Bare| {
        // Short windows, so that harts wait for nearly every access.
        bare.board.contention.window_cycles = 10;
        let body = |bare: &mut Bare, hart: u64| {
            bare.load(S0, X);
            bare.load(S1, Y);
            bare.load(S3, 1);
            meet(bare, READY, harts as u64);
            bare.load(S4, turns);
            let again = bare.code.here();
            turn(bare, hart);
            bare.push(addi(S4, S4, -1));
            bare.code.branch(1, S4, ZERO, again);
            meet(bare, DONE, harts as u64);
        };
        let bodies: Vec<_> = (0..harts as u64).map(|hart| move |bare: &mut Bare| body(bare, hart)).collect();
        let bodies: Vec<&dyn Fn(&mut Bare)> = bodies.iter().map(|body| body as &dyn Fn(&mut Bare)).collect();
        let first = |bare: &mut Bare| {
            bodies[0](bare);
            for (index, place) in [X, Y].into_iter().enumerate() {
                bare.load(S0, place);
                bare.push(ld(S5, S0, 0));
                bare.note(0, index as u64, S5);
            }
        };
        let mut all: Vec<&dyn Fn(&mut Bare)> = vec![&first];
        all.extend(&bodies[1..]);
        on_harts(&all)(bare);
    }
}

/// Runs a guest with queues and expects that somebody waited in one.
fn run_contended(harts: usize, build: impl Fn(&mut Bare)) -> (Logs, Machine) {
    let mut bare = Bare::new(harts);
    build(&mut bare);
    assert_eq!(bare.board.contention.model, ContentionKind::Queued, "the preset has queues");
    let (logs, machine) = bare.run_whole(Gear::Timed);
    assert!(queued(&machine) > 0, "nobody queued");
    (logs, machine)
}

fn queued(machine: &Machine) -> u64 {
    machine.region().queues.iter().map(|counters| counters.queued_requests).sum()
}

fn digest_of_run(bare: Bare, gear: Gear) -> (String, u64) {
    let (_, mut machine) = bare.run_whole(gear);
    (machine.digest().expect("the machine has a digest"), queued(&machine))
}

/// Every way to add 1 to a word that all harts add to.
fn additions() -> [(&'static str, Turn<'static>); 3] {
    [
        ("AMO", &|bare, _| bare.push(amo_add(ZERO, S0, S3))),
        ("LR and SC", &|bare, _| {
            let again = bare.code.here();
            bare.push(lr(S5, S0));
            bare.push(addi(S5, S5, 1));
            bare.push(sc(S6, S0, S5));
            bare.code.branch(1, S6, ZERO, again);
        }),
        ("test and set", &|bare, _| {
            let again = bare.code.here();
            bare.push(PAUSE);
            bare.push(amo_swap(S6, S1, S3));
            bare.code.branch(1, S6, ZERO, again);
            bare.push(ld(S5, S0, 0));
            bare.push(addi(S5, S5, 1));
            bare.push(sd(S5, S0, 0));
            bare.push(sd(ZERO, S1, 0));
        }),
    ]
}

#[test]
fn nothing_is_lost_where_all_wait_for_one_line() {
    for (name, turn) in additions() {
        for harts in [2, 3, 8, 16] {
            let (logs, _) = run_contended(harts, loops(harts, 20, turn));
            assert_eq!(logs.note(0, 0), 20 * harts as u64, "{name} on {harts} harts");
        }
    }
}

/// Whoever has compared and found another value has the line, and succeeds in the next try if it comes soon.
#[test]
fn harts_that_compare_and_swap_do_not_keep_each_other_from_success() {
    const TURNS: u64 = 20;
    // S9 counts the tries of a turn; Y ends up as their sum.
    let turn: Turn = &|bare, _| {
        bare.load(S9, 0);
        let again = bare.code.here();
        bare.push(addi(S9, S9, 1));
        bare.push(ld(S5, S0, 0));
        bare.push(addi(S6, S5, 1));
        bare.push(Width::Double.encode_compare_and_swap(S7, S0, S5, S6));
        bare.code.branch(1, S7, ZERO, again);
        bare.push(amo_add(ZERO, S1, S9));
    };
    for harts in [8, 16] {
        let build = |bare: &mut Bare| {
            loops(harts, TURNS, turn)(bare);
            bare.board.contention.window_cycles = 32;
        };
        let (logs, _) = run_contended(harts, build);
        let (additions, tries) = (logs.note(0, 0), logs.note(0, 1));
        assert_eq!(additions, TURNS * harts as u64, "{harts} harts");
        assert!(tries < 3 * additions, "{harts} harts: {tries} tries for {additions} additions");
    }
}

/// Timer interrupts come while harts wait; an instruction that waits executes once, and then the handler runs.
#[test]
fn an_instruction_that_waits_is_not_interrupted_and_not_repeated() {
    for harts in [2, 8] {
        let build = |bare: &mut Bare| {
            loops(harts, 30, &|bare, _| {
                // The next interrupt comes a tick from now, often while this addition waits.
                let (handler, over) = (bare.code.label(), bare.code.label());
                bare.load_address(T0, handler);
                bare.csrw(CSR_STVEC, T0);
                bare.push(csr(CSRRS, T1, CSR_TIME, ZERO));
                bare.push(addi(T1, T1, 1));
                bare.csrw(CSR_STIMECMP, T1);
                bare.set_bits(CSR_SIE, TIMER);
                bare.set_bits(CSR_SSTATUS, SIE);
                for _ in 0..8 {
                    bare.push(amo_add(ZERO, S0, S3));
                }
                bare.clear_bits(CSR_SSTATUS, SIE);
                bare.code.jump(0, over);
                bare.code.bind(handler);
                bare.push(amo_add(ZERO, S1, S3));
                bare.load(SCRATCH, u64::MAX);
                bare.csrw(CSR_STIMECMP, SCRATCH);
                bare.push(SRET);
                bare.code.bind(over);
            })(bare);
        };
        let (logs, _) = run_contended(harts, build);
        assert_eq!(logs.note(0, 0), 8 * 30 * harts as u64, "{harts} harts");
        assert!(logs.note(0, 1) > 10 * harts as u64, "{harts} harts: {} interrupts came", logs.note(0, 1));
    }
}

/// Message passing: what sequential consistency forbids is never seen, although stores wait.
#[test]
fn nobody_sees_a_store_before_its_turn_or_an_older_value_after_it() {
    // Hart 0 writes its turn to X and then to Y; the others see Y never ahead of X.
    let turn: Turn = &|bare, hart| {
        if hart == 0 {
            bare.push(sd(S4, S0, 0));
            bare.push(sd(S4, S1, 0));
            return;
        }
        // Turns count down, so the one that was written first is the smaller number.
        bare.push(ld(S5, S1, 0));
        bare.push(ld(S6, S0, 0));
        let fine = bare.code.label();
        bare.code.branch(0, S5, ZERO, fine);
        bare.code.branch(7, S5, S6, fine);
        bare.note(hart, 0, S3);
        bare.code.bind(fine);
        // And takes the lines away, so that the stores wait.
        bare.push(amo_add(ZERO, S0, ZERO));
        bare.push(amo_add(ZERO, S1, ZERO));
    };
    let harts = 4;
    let (logs, _) = run_contended(harts, loops(harts, 60, turn));
    for hart in 1..harts {
        assert_eq!(logs.note(hart, 0), 0, "hart {hart} saw the second store without the first");
    }
}

/// Accesses across two lines that all harts want, one of which each may lose while it waits for the other.
#[test]
fn an_access_across_two_contended_lines_comes_to_its_end() {
    for harts in [2, 8] {
        let turn: Turn = &|bare, _| {
            // Bytes 60 to 67 of the two lines.
            bare.push(addi(S5, S0, 60));
            bare.push(sd(S4, S5, 0));
            bare.push(ld(S6, S5, 0));
            bare.push(amo_add(ZERO, S0, S3));
            bare.push(amo_add(ZERO, S1, S3));
        };
        run_contended(harts, loops(harts, 40, turn));
    }
}

/// A snapshot between any two turns: some, most or all harts wait, and one has just been served.
#[test]
fn a_snapshot_cut_at_any_state_of_a_queue_resumes_to_the_same_end() {
    for (name, turn) in additions() {
        let build = || {
            let mut bare = Bare::new(4);
            loops(4, 12, turn)(&mut bare);
            bare
        };
        let (whole, queued) = digest_of_run(build(), Gear::Timed);
        assert!(queued > 20, "{name}: {queued} requests queued");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("cut");
        let mut machine = build().machine(Gear::Timed);
        let mut cuts = 0;
        let finish = |mut machine: Machine| {
            let (outcome, _) = run_machine(&mut machine, &Options::default());
            assert_eq!(outcome.end.exit, Exit::PoweredOff, "{name}: {outcome:?}");
            machine.digest().expect("the machine has a digest")
        };
        for turns in 0.. {
            if !machine.step(u64::MAX) || machine.ended().is_some() {
                break;
            }
            if machine.waiting_harts() > 0 && turns % 3 == 0 {
                machine.save(&path).expect("the snapshot is written");
                let resumed = Machine::resume(&path).expect("the snapshot is sound");
                assert_eq!(resumed.waiting_harts(), machine.waiting_harts());
                assert_eq!(finish(resumed), whole, "{name}: turn {turns}");
                cuts += 1;
            }
        }
        assert!(cuts > 20, "{name}: {cuts} cuts");
    }
}

#[test]
fn a_contended_run_repeats_and_the_functional_gear_has_no_queues() {
    let build = |seed: u64| {
        let mut bare = Bare::new(8);
        bare.seed = seed;
        loops(8, 20, additions()[2].1)(&mut bare);
        bare
    };
    assert_eq!(digest_of_run(build(1), Gear::Timed), digest_of_run(build(1), Gear::Timed));
    assert_ne!(
        digest_of_run(build(1), Gear::Timed).0,
        digest_of_run(build(2), Gear::Timed).0,
        "windows follow the seed"
    );
    let functional = digest_of_run(build(1), Gear::Functional);
    assert_eq!(functional, digest_of_run(build(1), Gear::Functional));
    assert_eq!(functional.1, 0, "requests that queued");
}

#[test]
fn a_hart_alone_never_waits() {
    for (name, turn) in additions() {
        let run = |model| {
            let mut bare = Bare::new(1);
            bare.board.contention.model = model;
            loops(1, 40, turn)(&mut bare);
            digest_of_run(bare, Gear::Timed)
        };
        let queued = run(ContentionKind::Queued);
        assert_eq!(queued, run(ContentionKind::None), "{name}");
        assert_eq!(queued.1, 0, "{name}");
    }
}

#[test]
fn a_pause_takes_what_the_board_says_in_the_timed_gear() {
    let cycles = |pause_cycles, gear| {
        let mut bare = Bare::new(1);
        bare.board.harts.pause_cycles = pause_cycles;
        for _ in 0..10 {
            bare.push(PAUSE);
        }
        bare.finish();
        let (_, machine) = bare.run_whole(gear);
        machine.hot_states()[0].cycle
    };
    assert_eq!(cycles(141, Gear::Timed) - cycles(1, Gear::Timed), 10 * 140);
    assert_eq!(cycles(141, Gear::Functional), cycles(1, Gear::Functional));
}
