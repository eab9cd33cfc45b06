//! What the machine says of a guest's critical sections, on harts that run them as locks and as transactions.

use crate::support::assembler::*;
use crate::support::bare::*;
use crate::transactions::guest::*;
use concord_abi::exit::Exit;
use concord_abi::hint::{Hint, SectionKind};
use concord_machine::result::ResultDocument;
use concord_machine::run::{Options, SnapshotEvent};
use concord_machine::{Gear, Machine, result};
use serde_json::{Value, json};

const RA: u32 = 1;
const A7: u32 = 17;
/// Locks. Nobody looks at their words.
const FIRST: u64 = 0x8100_0000;
const SECOND: u64 = 0x8100_0040;

/// Call sites. There is no code there.
const SPUN: u64 = 0x9000_0000;
const OUTER: u64 = 0x9000_0010;
const INNER: u64 = 0x9000_0020;
const EXCLUSIVE: u64 = 0x9000_0030;
const MET: u64 = 0x9000_0040;
const MEETS: u64 = 0x9000_0050;
const MOVED: u64 = 0x9000_0060;
const INTERRUPTED_AT: u64 = 0x9000_0070;
const HANDLER: u64 = 0x9000_0080;
const HANDLER_INNER: u64 = 0x9000_0090;

pub(crate) fn code(hint: Hint, kind: SectionKind) -> u16 {
    hint as u16 + kind as u16
}

/// The registers that the next hints need; kept apart from them, so that the cycles between hints are known.
pub(crate) fn prepare(bare: &mut Bare, site: u64, lock: u64) {
    bare.load(S3, lock);
    bare.load(RA, site);
}

pub(crate) fn hint(bare: &mut Bare, code: u16) {
    bare.push(i_type(OP_IMM, 0, 2, S3, i64::from(code)));
}

pub(crate) fn locked(bare: &mut Bare) {
    hint(bare, code(Hint::SectionLocked, SectionKind::Spin));
}

pub(crate) fn transactional(bare: &mut Bare) {
    hint(bare, code(Hint::SectionTransactional, SectionKind::Spin));
}

pub(crate) fn over(bare: &mut Bare) {
    hint(bare, Hint::SectionEnd as u16);
}

pub(crate) fn work(bare: &mut Bare, cycles: usize) {
    (0..cycles).for_each(|_| bare.push(addi(0, 0, 0)));
}

/// One section from its begin to its end.
fn section(bare: &mut Bare, begin: fn(&mut Bare), cycles: usize) {
    begin(bare);
    work(bare, cycles);
    over(bare);
}

/// A spin of two test loops and an atomic attempt, and then the lock, of another kind; twice.
fn spin(bare: &mut Bare) {
    prepare(bare, SPUN, FIRST);
    for _ in 0..2 {
        hint(bare, Hint::LockSpinBegin as u16);
        hint(bare, Hint::LockTest as u16);
        hint(bare, Hint::LockTest as u16);
        hint(bare, Hint::LockTestAndSet as u16);
        work(bare, 3);
        section(bare, |bare| hint(bare, code(Hint::SectionLocked, SectionKind::Write)), 5);
    }
}

/// A transaction of two sections, the second of which outlives the first.
fn commit(bare: &mut Bare) {
    bare.load(S4, SECOND);
    bare.load(S5, INNER);
    bare.begin(ZERO);
    prepare(bare, OUTER, FIRST);
    transactional(bare);
    bare.push(addi(S3, S4, 0));
    bare.push(addi(RA, S5, 0));
    transactional(bare);
    bare.push(addi(S3, S4, (FIRST as i64) - (SECOND as i64)));
    over(bare);
    work(bare, 2);
    bare.push(addi(S3, S4, 0));
    over(bare);
    bare.end();
}

/// Two sections nest, and the inner one calls the SBI: at its begin, then when it has tried again, and then the outer one has the lock.
fn need_exclusive(bare: &mut Bare) {
    let (again, exclusive) = (bare.code.label(), bare.code.label());
    bare.load(A7, SBI_TIME);
    prepare(bare, EXCLUSIVE, FIRST);
    bare.begin(S2);
    bare.code.branch(1, S2, ZERO, again);
    let try_it = bare.code.here();
    transactional(bare);
    transactional(bare);
    work(bare, 4);
    bare.push(ECALL);
    bare.rest();
    bare.code.bind(again);
    // The second restart uses up a budget that is kept where no restart reaches.
    bare.suspend();
    bare.load(S7, FLAG + 0x100);
    bare.push(ld(S8, S7, 0));
    bare.push(addi(S8, S8, 1));
    bare.push(sd(S8, S7, 0));
    bare.resume();
    bare.load(S9, 2);
    bare.code.branch(0, S8, S9, exclusive);
    bare.code.jump(ZERO, try_it);
    bare.code.bind(exclusive);
    bare.end();
    section(bare, locked, 6);
}

/// In a section of a transaction, until the other hart writes where it wrote; then again, when the other hart is done.
fn met(bare: &mut Bare) {
    prepare(bare, MET, FIRST);
    let first = |bare: &mut Bare| {
        transactional(bare);
        bare.store(A, 1);
        bare.tell_and_spin(1);
    };
    let again = |bare: &mut Bare| {
        bare.outside(|bare| bare.wait_for(ANSWER, 1));
        section(bare, transactional, 1);
    };
    bare.attempt(S2, first, again);
    bare.end();
}

/// The lock is taken here and released over there.
fn moved(bare: &mut Bare) {
    prepare(bare, MOVED, SECOND);
    locked(bare);
    bare.meet_plainly(2);
}

/// A trap in a section of a transaction; the handler has a lock and a transaction of its own.
fn interrupted(bare: &mut Bare) {
    bare.begin(ZERO);
    prepare(bare, INTERRUPTED_AT, FIRST);
    transactional(bare);
    bare.trap(|bare| bare.push(EBREAK));
    prepare(bare, HANDLER, SECOND);
    locked(bare);
    bare.begin(ZERO);
    bare.load(RA, HANDLER_INNER);
    section(bare, transactional, 7);
    bare.end();
    over(bare);
    prepare(bare, INTERRUPTED_AT, FIRST);
    bare.return_here();
    over(bare);
    bare.end();
}

fn first_hart(bare: &mut Bare) {
    prepare(bare, SPUN, FIRST);
    section(bare, locked, 1);
    bare.push(i_type(OP_IMM, 0, 2, ZERO, Hint::RegionBegin as i64));
    spin(bare);
    commit(bare);
    need_exclusive(bare);
    met(bare);
    moved(bare);
    interrupted(bare);
    bare.push(i_type(OP_IMM, 0, 2, ZERO, Hint::RegionEnd as i64));
    prepare(bare, SPUN, FIRST);
    section(bare, locked, 1);
}

fn second_hart(bare: &mut Bare) {
    prepare(bare, MEETS, FIRST);
    bare.wait_for(FLAG, 1);
    locked(bare);
    bare.store(A, 2);
    over(bare);
    bare.store(ANSWER, 1);
    bare.load(S3, SECOND);
    bare.wait_for(FLAG, 2);
    over(bare);
    bare.store(ANSWER, 2);
}

fn machine(gear: Gear) -> Machine {
    let mut bare = Bare::new(2);
    on_harts(&[&first_hart, &second_hart])(&mut bare);
    bare.machine(gear)
}

/// Runs a machine and returns its result document.
pub(crate) fn document(mut machine: Machine, options: &Options) -> Value {
    let (outcome, _) = run_machine(&mut machine, options);
    let document = result::document(&mut machine, &outcome, 0.0).expect("a document");
    assert_eq!(document.exit, Exit::PoweredOff, "{:?}", document.message);
    let text = serde_json::to_string_pretty(&document).expect("JSON");
    let read: ResultDocument = serde_json::from_str(&text).expect("a document is read by the type that wrote it");
    assert_eq!(serde_json::to_string_pretty(&read).expect("JSON"), text);
    assert_eq!(read, document);
    serde_json::to_value(document).expect("JSON")
}

fn site(document: &Value, address: u64) -> &Value {
    let name = format!("{address:#x}");
    let found = document["sections"].as_array().unwrap().iter().find(|section| section["site"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {}", document["sections"]))
}

/// Some fields of a call site.
pub(crate) fn fields<const N: usize>(document: &Value, address: u64, names: [&str; N]) -> [Value; N] {
    names.map(|name| site(document, address)[name].clone())
}

/// Cycles are instructions in the functional gear, so every number is known.
#[test]
fn every_section_and_every_cycle_of_it_is_accounted_for() {
    let document = document(machine(Gear::Functional), &Options::default());
    let counts = ["locked", "contended", "test_loops", "test_and_set_loops", "transactional"];
    assert_eq!(fields(&document, SPUN, counts), [2, 2, 4, 2, 0]);
    assert_eq!(site(&document, SPUN)["kind"], "write");
    assert_eq!(fields(&document, SPUN, ["spin_cycles", "hold_cycles"]), [2 * 7, 2 * 6]);

    let counts = ["locked", "transactional", "transactional_cycles", "locks"];
    assert_eq!(fields(&document, OUTER, counts), [0, 1, 5, 1]);
    assert_eq!(fields(&document, INNER, counts), [0, 1, 6, 1]);

    assert_eq!(site(&document, EXCLUSIVE)["restarts"], json!({"need-exclusive": 2}));
    assert_eq!(site(&document, EXCLUSIVE)["exclusive_after"], json!({"need-exclusive": 1}));
    assert_eq!(site(&document, EXCLUSIVE)["io_restarts_by_depth"], json!([0, 2]));
    assert_eq!(site(&document, EXCLUSIVE)["io_restarts_by_origin"], json!({"kernel": 2}));
    assert_eq!(fields(&document, EXCLUSIVE, counts), [1, 0, 0, 1]);
    assert_eq!(site(&document, EXCLUSIVE)["hold_cycles"], 7);
    let places = site(&document, EXCLUSIVE)["io_restarts_at"].as_object().unwrap();
    assert_eq!((places.len(), places.values().next()), (1, Some(&json!(2))), "{places:?}");

    assert_eq!(site(&document, MET)["restarts"], json!({"nontransactional": 1}));
    assert_eq!(fields(&document, MET, counts), [0, 1, 2, 1]);
    assert_eq!(fields(&document, MET, ["concurrency", "concurrency_max"]), [json!([1]), json!(1)]);
    assert_eq!(fields(&document, MEETS, counts), [1, 0, 0, 1]);
    assert_eq!(fields(&document, MEETS, ["concurrency", "concurrency_max"]), [json!([0, 1]), json!(2)]);

    assert_eq!(fields(&document, MOVED, counts), [1, 0, 0, 1]);
    assert!(site(&document, MOVED)["hold_cycles"].as_u64().unwrap() > 10);

    assert_eq!(fields(&document, HANDLER, counts), [1, 0, 0, 1]);
    assert_eq!(fields(&document, HANDLER_INNER, counts), [0, 1, 8, 1]);
    assert_eq!(fields(&document, HANDLER_INNER, ["concurrency"]), [json!([1])], "one's own section is no other");
    assert_eq!(fields(&document, INTERRUPTED_AT, ["locked", "transactional"]), [0, 1]);
    assert_eq!(document["sections"].as_array().unwrap().len(), 10, "nothing of what lies outside the region");
    check_sums(&document);
    let harts: Vec<&Value> = document["harts"].as_array().unwrap().iter().collect();
    assert_eq!([&harts[0]["sections_count"], &harts[1]["sections_count"]], [10, 1], "a hart has what it began");
}

/// Restarts cost what was done in vain, and not the time in between that a transaction was suspended.
#[test]
fn restarts_cost_what_was_done_in_vain() {
    for gear in [Gear::Functional, Gear::Timed] {
        let document = document(machine(gear), &Options::default());
        assert_eq!(document["section_totals"]["spin"]["restarts"], json!({"need-exclusive": 2, "nontransactional": 1}));
        let of = |address, cause: &str| site(&document, address)["restart_cycles"][cause].as_u64().unwrap();
        if gear == Gear::Functional {
            // xbegin, branch, two begins, four others, call; then branch, xpop, three others, and again from the begins on.
            assert_eq!(of(EXCLUSIVE, "need-exclusive"), 9 + 12);
        }
        assert!(of(MET, "nontransactional") > 0, "{gear:?}");
        check_sums(&document);
    }
}

/// Totals by kind and by lock are those of the call sites.
fn check_sums(document: &Value) {
    let sections = document["sections"].as_array().unwrap();
    let locks = document["section_locks"].as_array().unwrap();
    let sum = |all: &[Value], field: &str| all.iter().map(|each| each[field].as_u64().unwrap()).sum::<u64>();
    let kinds: Vec<Value> = document["section_totals"].as_object().unwrap().values().cloned().collect();
    for field in ["locked", "transactional", "spin_cycles"] {
        assert_eq!(sum(&kinds, field), sum(sections, field), "{field}");
        assert_eq!(sum(locks, field), sum(sections, field), "{field}");
    }
    let restart_cycles =
        |each: &Value| each["restart_cycles"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum::<u64>();
    let of_sites: u64 = sections.iter().map(restart_cycles).sum();
    assert_eq!(sum(locks, "restart_cycles"), of_sites);
    assert_eq!(kinds.iter().map(restart_cycles).sum::<u64>(), of_sites);
    let cost = |each: &Value| each["spin_cycles"].as_u64().unwrap() + restart_cycles(each);
    assert!(sections.is_sorted_by(|a, b| cost(a) >= cost(b)), "the costliest first");
}

/// In the timed gear the counts are the same.
#[test]
fn the_gear_changes_cycles_and_no_count() {
    let counts = |gear| {
        let mut document = document(machine(gear), &Options::default());
        let mut sections: Vec<Value> = document["sections"].as_array_mut().unwrap().drain(..).collect();
        sections.sort_by_key(|section| section["site"].to_string());
        for section in &mut sections {
            section.as_object_mut().unwrap().retain(|field, _| !field.ends_with("_cycles"));
        }
        sections
    };
    assert_eq!(counts(Gear::Functional), counts(Gear::Timed));
}

/// Snapshots cut anywhere: in spins, sections, transactions, handlers.
#[test]
fn a_resumed_run_has_the_sections_of_the_whole() {
    let accounts = |document: &Value| {
        ["sections", "section_totals", "section_locks", "digest"].map(|field| document[field].clone())
    };
    for gear in [Gear::Functional, Gear::Timed] {
        let whole = document(machine(gear), &Options::default());
        let instructions = whole["instructions"].as_u64().unwrap();
        for step in 1..40 {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let path = folder.path().join("cut");
            let event = SnapshotEvent::Instructions(instructions * step / 40);
            let options = Options { snapshot: Some((event, path.clone())), ..Options::default() };
            assert_eq!(accounts(&document(machine(gear), &options)), accounts(&whole), "{gear:?} {event:?}");
            let resumed = Machine::resume(&path).expect("the snapshot is sound");
            assert_eq!(accounts(&document(resumed, &Options::default())), accounts(&whole), "{gear:?} {event:?}");
        }
    }
}

/// On the timeline, a wait for a lock and an attempt at a section name the call site.
#[test]
fn slices_of_the_timeline_name_their_call_sites() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("timeline.json");
    document(machine(Gear::Functional), &Options { timeline: Some(path.clone()), ..Options::default() });
    let timeline: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let count = |name: &str, site: u64| {
        let site = format!("{site:#x}");
        let events = timeline["traceEvents"].as_array().unwrap().iter();
        events.filter(|event| event["name"] == name && event["args"]["call site"] == site).count()
    };
    assert_eq!(count(&format!("spin {FIRST:#x}"), SPUN), 2);
    assert_eq!(count("transaction", OUTER), 1, "of the outermost section");
    assert_eq!(count("restart: need-exclusive", EXCLUSIVE), 2);
    assert_eq!((count("restart: nontransactional", MET), count("transaction", MET)), (1, 1));
}

/// A loop with hints of each sort takes as long as it takes with other instructions of no effect in their places, less one cycle for
/// each of these; in the functional gear both take the same.
#[test]
fn hints_take_no_cycle_in_the_timed_gear() {
    const LOOPS: u64 = 50;
    let hints = [Hint::LockSpinBegin as u16, 19, 32, 48, Hint::Marker as u16, 48];
    let cycles = |gear, with_hints: bool| {
        let build = |bare: &mut Bare| {
            prepare(bare, SPUN, FIRST);
            bare.load(S4, LOOPS);
            bare.read_csr(S5, CSR_CYCLE);
            let again = bare.code.here();
            for code in hints {
                match with_hints {
                    true => hint(bare, code),
                    false => bare.push(i_type(OP_IMM, 0, 2, S3, 0x7ff)),
                }
            }
            bare.push(addi(S4, S4, -1));
            bare.code.branch(1, S4, ZERO, again);
            bare.read_csr(S6, CSR_CYCLE);
            bare.push(r_type(OP, S6, 0, S6, S5, 0x20));
            bare.log(S6);
            bare.finish();
        };
        let mut bare = Bare::new(1);
        build(&mut bare);
        bare.run(gear).words::<1>(0)[0]
    };
    let functional = [true, false].map(|with_hints| cycles(Gear::Functional, with_hints));
    assert_eq!(functional[0], functional[1]);
    let timed = [true, false].map(|with_hints| cycles(Gear::Timed, with_hints));
    assert_eq!(timed[0] + LOOPS * hints.len() as u64, timed[1]);
}
