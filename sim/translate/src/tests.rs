//! Each op as host code against `concord_isa::semantics` and the rule of a hit, and the translator itself.

use super::*;
use crate::region::has_immediate;
use concord_isa::op::{Kind, Op};
use concord_isa::semantics;
use concord_mem::line_table::{self, BY_LINE, BY_WORD, Entry as LineEntry, LineTable, USER};
use proptest::prelude::*;

const FUNCTIONAL: Variant = Variant { timed: false, answers: BY_LINE, user: false };
const PAGE: u64 = 0x8020_0000;
const DESTINATION: u8 = 5;
const FIRST: u8 = 6;
const SECOND: u8 = 7;

fn kinds() -> impl Iterator<Item = Kind> {
    // SAFETY: the kinds are the numbers up to that of the last one.
    (0..=Kind::BitSetImmediate as u8).map(|number| unsafe { std::mem::transmute::<u8, Kind>(number) })
}

fn op(kind: Kind, imm: i32) -> Op {
    Op { kind, rd: DESTINATION, rs1: FIRST, rs2: SECOND, imm }
}

/// A region of one run: the op, and the end of the run at page offset 4.
fn region_of(generator: &mut Generator, variant: Variant, op: Op) -> Region {
    generator.translate(variant, vec![a_run(0, [op, Op::bare(Kind::Next, 4)])]).expect("there is room")
}

fn a_run(page_offset: u16, ops: [Op; 2]) -> Run {
    Run { page_offset, ops: ops.to_vec(), offsets: vec![page_offset, page_offset + 4] }
}

fn generator() -> Generator {
    Generator::new(CODE_BYTES_MAX).expect("this host executes translated code")
}

/// A hart at the beginning of the page, with two registers.
fn hart(first: u64, second: u64) -> Box<HotState> {
    let mut hot = Box::new(HotState { pc: PAGE, cycle: 100, limit: 1000, instructions: 7, ..HotState::default() });
    hot.x[usize::from(FIRST)] = first;
    hot.x[usize::from(SECOND)] = second;
    hot
}

const FIRST_LINE: u32 = 1 << 20;
/// What the functions of the tests' surroundings answer.
const LOADED: u64 = 0x8182_8384_8586_8788;

unsafe extern "C" fn load(_: *mut Surroundings, _: At, address: u64) -> Loaded {
    Loaded { value: LOADED, stops: address & 1 }
}

unsafe extern "C" fn store(_: *mut Surroundings, _: At, address: u64, _: u64) -> u64 {
    address & 1
}

/// Stops at odd immediates, and says in a register what it was called for.
unsafe extern "C" fn execute(surroundings: *mut Surroundings, at: At, op: Op) -> u64 {
    // SAFETY: these are the surroundings of a test, whose page address nothing else needs.
    unsafe { (*surroundings).page_address = at.0 };
    (op.imm & 1) as u64
}

unsafe extern "C" fn fetch(surroundings: *mut Surroundings, _: u64) {
    // SAFETY: these are the surroundings of a test.
    unsafe { (*surroundings).limit = 0 }
}

fn run_from(region: &Region, entry: u16, recent: [u32; 64], hot: &mut HotState) -> Left {
    let mut surroundings = Surroundings {
        page_address: PAGE,
        limit: hot.limit,
        recent_lines: recent.as_ptr(),
        load,
        store,
        execute,
        fetch,
        first_line: FIRST_LINE,
    };
    // SAFETY: the entry is one of the region's, and the test's line tables hold addresses of its own memory.
    unsafe { region.entry(entry).run(hot, &raw mut surroundings) }
}

fn run(region: &Region, hot: &mut HotState) -> Left {
    run_from(region, 0, [0; 64], hot)
}

/// Values that arithmetic trips over, and any others.
fn operand() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (0..64_u32, -2..3_i64).prop_map(|(bit, offset)| (1_u64 << bit).wrapping_add(offset as u64)),
        any::<i32>().prop_map(|value| value as u64),
        (-8..8_i64).prop_map(|value| value as u64),
    ]
}

#[test]
fn integer_ops_compute_what_the_semantics_say() {
    let mut generator = generator();
    let regions: Vec<(Op, Region)> = kinds()
        .filter(|kind| semantics::compute(*kind, 0, 0).is_some())
        .flat_map(|kind| [0, 1, 3, 31, 33, 63, -1, -2048, 2047].map(|imm| op(kind, imm)))
        .filter(|op| has_immediate(op.kind) || op.imm == 0)
        .map(|op| (op, region_of(&mut generator, FUNCTIONAL, op)))
        .collect();
    assert!(regions.len() > 200, "every kind that computes is here");
    proptest!(ProptestConfig::with_cases(2000), |(first in operand(), second in operand())| {
        for (op, region) in &regions {
            let mut hot = hart(first, second);
            prop_assert_eq!(run(region, &mut hot), Left::BetweenRuns);
            let other = if has_immediate(op.kind) { op.imm as i64 as u64 } else { second };
            let wanted = semantics::compute(op.kind, first, other).expect("it computes");
            prop_assert_eq!(hot.x[usize::from(DESTINATION)], wanted, "{:?} {:#x} {:#x}", op, first, other);
            prop_assert_eq!((hot.pc, hot.cycle, hot.instructions), (PAGE + 4, 101, 8));
        }
    });
}

#[test]
fn branches_go_where_the_semantics_say() {
    let mut generator = generator();
    let regions: Vec<(Op, Region)> = kinds()
        .filter(|kind| semantics::branches(*kind, 0, 0).is_some())
        .map(|kind| op(kind, 64))
        .map(|op| (op, region_of(&mut generator, FUNCTIONAL, op)))
        .collect();
    assert_eq!(regions.len(), 6);
    proptest!(|(first in operand(), second in operand(), is_equal in any::<bool>())| {
        let second = if is_equal { first } else { second };
        for (op, region) in &regions {
            let mut hot = hart(first, second);
            prop_assert_eq!(run(region, &mut hot), Left::BetweenRuns);
            let is_taken = semantics::branches(op.kind, first, second).expect("a branch");
            prop_assert_eq!(hot.pc, if is_taken { PAGE + 64 } else { PAGE + 4 }, "{:?} {:#x} {:#x}", op, first, second);
        }
    });
}

/// A line of memory, aligned as lines are.
#[repr(C, align(64))]
#[derive(Clone, Debug)]
struct Line64([u8; 64]);

#[test]
fn accesses_hit_where_the_line_table_says_and_move_the_right_bytes() {
    let mut generator = generator();
    let variants = [
        FUNCTIONAL,
        Variant { user: true, ..FUNCTIONAL },
        Variant { timed: true, ..FUNCTIONAL },
        Variant { timed: true, answers: BY_WORD, user: true },
    ];
    let regions: Vec<(Variant, Op, Region)> = variants
        .into_iter()
        .flat_map(|variant| {
            kinds().filter(|kind| kind.plain_access().is_some()).map(move |kind| (variant, op(kind, 8)))
        })
        .map(|(variant, op)| (variant, op, region_of(&mut generator, variant, op)))
        .collect();
    proptest!(|(
        offset in 0..72_u64, page in 0..3_u64, words in any::<(u16, u16)>(), user_page in any::<bool>(),
        rights in any::<(bool, bool)>(), bytes in any::<[u8; 32]>(), value in any::<u64>(), float_is_on in any::<bool>(),
    )| {
        let mut memory = Line64([0; 64]);
        memory.0[..32].copy_from_slice(&bytes);
        memory.0[32..].copy_from_slice(&bytes);
        let base = 0x7000_0000 + (page << 12);
        let address = base + offset;
        for (variant, op, region) in &regions {
            let mut memory = memory.clone();
            let mut hot = hart(address.wrapping_sub(8), value);
            hot.f[usize::from(SECOND)] = value;
            hot.sstatus = if float_is_on { 1 << 13 } else { 0 };
            let tag = line_table::access_tag(variant.timed, 0x7000_1000, 1, if user_page { USER } else { 0 });
            *hot.lines.entry(LineTable::slot(variant.timed, 0x7000_1000)) = LineEntry {
                read_tag: if rights.0 { tag } else { line_table::INVALID },
                write_tag: if rights.1 { tag } else { line_table::INVALID },
                addend: (memory.0.as_mut_ptr() as u64).wrapping_sub(0x7000_1000),
                line: 1,
                readable_words: words.0,
                writable_words: words.1,
            };
            let kind = op.kind.plain_access().expect("an access");
            let size_bytes = kind.size_bytes;
            // The functional gear's table answers for the whole page, of which the test has one line.
            if page == 1 && address % 4096 + size_bytes > 64 {
                continue;
            }
            let user = if variant.user { USER } else { 0 };
            let hits = hot.lines.hit(variant.timed, variant.answers, kind.store, address, size_bytes, user).is_some();
            let before = memory.clone();
            let left = run(region, &mut hot);
            let at = At::new(0, 0, 0, 0, size_bytes);
            if kind.float && !float_is_on {
                prop_assert_eq!(left, Left::Inside(at), "{:?}", op);
                prop_assert_eq!(hot.cycle, 100);
                continue;
            }
            let stops = !hits && address & 1 != 0;
            prop_assert_eq!(left, if stops { Left::Stopped(at) } else { Left::BetweenRuns }, "{:?} {:#x}", op, address);
            let bytes = 8 * size_bytes as u32;
            let place = (offset % 64) as usize..((offset % 64 + size_bytes).min(64)) as usize;
            if kind.store {
                let mut wanted = before;
                if hits {
                    wanted.0[place].copy_from_slice(&value.to_le_bytes()[..size_bytes as usize]);
                }
                prop_assert_eq!(&memory.0[..], &wanted.0[..], "{:?}", op);
            } else if !stops {
                let mut wide = [0; 8];
                if hits {
                    wide[..size_bytes as usize].copy_from_slice(&memory.0[place]);
                }
                let loaded = if hits { u64::from_le_bytes(wide) } else { LOADED << (64 - bytes) >> (64 - bytes) };
                let wanted = semantics::loaded(op.kind, loaded).expect("a load");
                let register = usize::from(DESTINATION);
                let found = if kind.float { hot.f[register] } else { hot.x[register] };
                prop_assert_eq!(found, wanted, "{:?}", op);
                prop_assert_eq!(hot.sstatus >> 13 & 3, if kind.float { 3 } else { u64::from(float_is_on) });
            }
        }
    });
}

#[test]
fn ops_that_the_machine_keeps_are_called_for_and_a_lock_hint_is_free_where_time_counts() {
    let mut generator = generator();
    let called: Vec<Kind> = kinds().filter(|kind| calls(*kind)).collect();
    assert_eq!(called.len(), 9);
    for kind in called {
        for timed in [false, true] {
            let run = |imm| Run {
                page_offset: 64,
                ops: vec![op(kind, 2), op(Kind::Nop, 0), op(kind, imm), Op::bare(Kind::Next, 80)],
                offsets: vec![64, 68, 72, 76],
            };
            let variant = Variant { timed, ..FUNCTIONAL };
            let free = u32::from(timed && kind == Kind::LockHint);
            let at = At::new(64, 2, free, 72, 0);
            assert_eq!((at.run(), at.completed(), at.free(), at.page_offset()), (64, 2, free, 72));
            let region = generator.translate(variant, vec![run(4)]).expect("there is room");
            let mut hot = hart(0, 0);
            assert_eq!(super::tests::run(&region, &mut hot), Left::BetweenRuns);
            assert_eq!((hot.cycle, hot.instructions), (103 - 2 * u64::from(free), 10), "{kind:?}");
            // The page's address is what the last call made of it.
            assert_eq!(hot.pc, at.0 + 80, "{kind:?}");
            let region = generator.translate(variant, vec![run(5)]).expect("there is room");
            let mut hot = hart(0, 0);
            assert_eq!(super::tests::run(&region, &mut hot), Left::Stopped(at), "{kind:?}");
            assert_eq!((hot.cycle, hot.instructions), (100, 7), "the machine accounts for the run");
        }
    }
}

#[test]
fn a_loop_ends_with_the_turn_and_charges_lines_that_are_not_fetched() {
    let mut generator = generator();
    let timed = Variant { timed: true, ..FUNCTIONAL };
    let body = a_run(0, [op(Kind::AddImmediate, 1), Op::bare(Kind::Next, 64)]);
    let back = a_run(64, [op(Kind::Nop, 0), Op { kind: Kind::Jump, rd: 32, rs1: 0, rs2: 0, imm: 0 }]);
    let region = generator.translate(timed, vec![body, back]).expect("there is room");
    let mut recent = [0; 64];
    recent[1] = FIRST_LINE + 1;
    let without_first = recent;
    recent[0] = FIRST_LINE;
    let mut hot = hart(0, 0);
    hot.limit = 150;
    hot.stall_cycles = 9;
    let left = run_from(&region, 0, recent, &mut hot);
    // The stall is charged with the first run, and each round takes three cycles.
    assert_eq!((left, hot.cycle, hot.instructions, hot.pc), (Left::BetweenRuns, 151, 49, PAGE));
    hot.limit = 1000;
    let left = run_from(&region, 1, without_first, &mut hot);
    // The function for fetches ends the turn, which the next run's end notices.
    assert_eq!((left, hot.cycle, hot.pc), (Left::BetweenRuns, 154, PAGE + 64));
}

#[test]
fn full_code_memory_begins_a_generation_and_keeps_the_old_regions_usable() {
    let mut generator = Generator::new(4 << 10).expect("this host executes translated code");
    let regions = Mutex::new(Regions::default());
    let ops = [op(Kind::Add, 0), Op::bare(Kind::Next, 4)];
    let mut first = None;
    for number in 0..200_u8 {
        let key = Key { variant: FUNCTIONAL, contents: [number; 32] };
        let runs = vec![a_run(0, ops)];
        generator.serve(&regions, Request { key, runs, done: None });
        let made = locked(&regions).by_page.get(&key).map(|regions| regions[0].clone());
        first = first.or(made);
    }
    assert!(locked(&regions).generation > 1, "each generation has room for 64 regions at most");
    let mut hot = hart(40, 2);
    assert_eq!(run(&first.expect("a region"), &mut hot), Left::BetweenRuns);
    assert_eq!(hot.x[usize::from(DESTINATION)], 42);
}
