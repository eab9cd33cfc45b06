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
    let ops = [op, Op::bare(Kind::Next, 4)];
    generator.translate(variant, &[Run { page_offset: 0, ops: ops.to_vec() }]).expect("there is room")
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

fn run(region: &Region, hot: &mut HotState) -> Left {
    let recent = [0; 64];
    let surroundings = Surroundings { page_address: PAGE, recent_lines: recent.as_ptr(), first_line: 1 << 20 };
    // SAFETY: the region has one entry, and the test's line tables hold addresses of its own memory.
    unsafe { region.entry(0).run(hot, &surroundings) }
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
            let hit = hot.lines.hit(variant.timed, variant.answers, kind.store, address, size_bytes, user);
            let goes = hit.is_some() && (float_is_on || !kind.float);
            let before = hot.clone();
            let left = run(region, &mut hot);
            prop_assert_eq!(left == Left::BetweenRuns, goes, "{:?} {:?} at {:#x}", variant, op, address);
            let place = (offset % 64) as usize..((offset % 64 + size_bytes).min(64)) as usize;
            let mut wide = [0; 8];
            if !goes {
                prop_assert_eq!(left, Left::Inside { run: 0, completed: 0 });
                prop_assert_eq!((hot.x, hot.f, hot.cycle), (before.x, before.f, before.cycle));
            } else if kind.store {
                let size = size_bytes as usize;
                prop_assert_eq!(&memory.0[place], &value.to_le_bytes()[..size], "{:?}", op);
            } else {
                wide[..size_bytes as usize].copy_from_slice(&memory.0[place]);
                let wanted = semantics::loaded(op.kind, u64::from_le_bytes(wide)).expect("a load");
                let register = usize::from(DESTINATION);
                let found = if kind.float { hot.f[register] } else { hot.x[register] };
                prop_assert_eq!(found, wanted, "{:?}", op);
                prop_assert_eq!(hot.sstatus >> 13 & 3, if kind.float { 3 } else { u64::from(float_is_on) });
            }
        }
    });
}

#[test]
fn a_loop_ends_with_the_turn_and_before_a_line_that_is_not_fetched() {
    let mut generator = generator();
    let timed = Variant { timed: true, ..FUNCTIONAL };
    let body = [op(Kind::AddImmediate, 1), Op::bare(Kind::Next, 64)];
    let back = [op(Kind::Nop, 0), Op { kind: Kind::Jump, rd: 32, rs1: 0, rs2: 0, imm: 0 }];
    let runs = [Run { page_offset: 0, ops: body.to_vec() }, Run { page_offset: 64, ops: back.to_vec() }];
    let region = generator.translate(timed, &runs).expect("there is room");
    let first_line = 1 << 20;
    let mut hot = hart(0, 0);
    hot.limit = 150;
    let run_with = |entry: u16, recent: [u32; 64], hot: &mut HotState| {
        let surroundings = Surroundings { page_address: PAGE, recent_lines: recent.as_ptr(), first_line };
        // SAFETY: the region has two entries and accesses no memory.
        unsafe { region.entry(entry).run(hot, &surroundings) }
    };
    let mut recent = [0; 64];
    recent[1] = first_line + 1;
    let without_first = recent;
    recent[0] = first_line;
    let left = run_with(0, recent, &mut hot);
    assert_eq!((left, hot.cycle, hot.instructions, hot.pc), (Left::BetweenRuns, 151, 58, PAGE));
    hot.limit = 1000;
    let left = run_with(1, without_first, &mut hot);
    assert_eq!((left, hot.cycle, hot.pc), (Left::BetweenRuns, 153, PAGE), "the first line is gone");
}

#[test]
fn full_code_memory_begins_a_generation_and_keeps_the_old_regions_usable() {
    let mut generator = Generator::new(64 << 10).expect("this host executes translated code");
    let regions = Mutex::new(Regions::default());
    let ops = [op(Kind::Add, 0), Op::bare(Kind::Next, 4)];
    let mut first = None;
    for number in 0..200_u8 {
        let key = Key { variant: FUNCTIONAL, contents: [number; 32] };
        let runs = vec![Run { page_offset: 0, ops: ops.to_vec() }];
        generator.serve(&regions, &Request { key, runs, done: None });
        let made = locked(&regions).by_page.get(&key).map(|regions| regions[0].clone());
        first = first.or(made);
    }
    assert!(locked(&regions).generation > 1, "each generation has room for sixteen pages of code at most");
    let mut hot = hart(40, 2);
    assert_eq!(run(&first.expect("a region"), &mut hot), Left::BetweenRuns);
    assert_eq!(hot.x[usize::from(DESTINATION)], 42);
}
