//! What a run says of its transactions: in the result document and on the timeline.

use crate::support::assembler::ld;
use crate::support::bare::*;
use concord_abi::exit::Exit;
use concord_abi::hint::Hint;
use concord_abi::htm::Control;
use concord_machine::result::ResultDocument;
use concord_machine::run::{Options, SnapshotEvent};
use concord_machine::{Gear, Machine, result};
use serde_json::{Value, json};
use std::path::Path;

/// Words on lines of their own.
const A: u64 = DATA;
const B: u64 = DATA + 0x40;
const C: u64 = DATA + 0x80;
/// Where harts wait for each other, outside transactions.
const FLAG: u64 = DATA + 0x4000;
const ANSWER: u64 = DATA + 0x4040;

fn begin(bare: &mut Bare, status: u32) {
    bare.push(Control::Begin.encode(status, 0));
}

fn end(bare: &mut Bare) {
    bare.push(Control::End.encode(0, 0));
}

/// Runs `body` with the active transaction suspended.
fn suspended(bare: &mut Bare, body: impl FnOnce(&mut Bare)) {
    bare.push(Control::Push.encode(0, 0));
    body(bare);
    bare.push(Control::Pop.encode(0, 0));
}

/// A transaction that does `body` when it is first executed, and nothing behind a restart, which must come.
fn restarted(bare: &mut Bare, body: impl FnOnce(&mut Bare)) {
    let done = bare.code.label();
    begin(bare, S2);
    bare.code.branch(1, S2, ZERO, done);
    body(bare);
    bare.rest();
    bare.code.bind(done);
    end(bare);
}

fn read(bare: &mut Bare, address: u64) {
    bare.load(T0, address);
    bare.push(ld(T1, T0, 0));
}

fn hint(bare: &mut Bare, hint: Hint) {
    bare.push((hint as u32) << 20 | 0x2013);
}

/// Hart 0: a transaction before the region of interest; in it one that nests, one that restarts itself, one that loses to a
/// store of hart 1, and one with two words, to which a transaction of hart 1 loses; one behind the region.
fn first_hart(bare: &mut Bare) {
    begin(bare, S2);
    bare.store(A, 1);
    end(bare);
    hint(bare, Hint::RegionBegin);
    begin(bare, S2);
    begin(bare, S2);
    bare.store(A, 2);
    bare.store(B, 2);
    end(bare);
    end(bare);
    restarted(bare, |bare| bare.push(Control::Restart.encode(0, ZERO)));
    restarted(bare, |bare| {
        read(bare, C);
        suspended(bare, |bare| bare.store(FLAG, 1));
    });
    begin(bare, S2);
    bare.store(A, 3);
    bare.store(B, 3);
    suspended(bare, |bare| {
        bare.store(FLAG, 2);
        bare.wait_for(ANSWER, 2);
    });
    end(bare);
    hint(bare, Hint::RegionEnd);
    begin(bare, S2);
    bare.store(A, 4);
    end(bare);
}

fn second_hart(bare: &mut Bare) {
    bare.wait_for(FLAG, 1);
    bare.store(C, 1);
    bare.wait_for(FLAG, 2);
    restarted(bare, |bare| {
        read(bare, C);
        read(bare, A);
    });
    bare.store(ANSWER, 2);
}

/// Runs both harts and returns the result document.
fn document(timeline: Option<&Path>) -> Value {
    let mut bare = Bare::new(2);
    on_harts(&[&first_hart, &second_hart])(&mut bare);
    let mut machine = bare.machine(Gear::Timed);
    let options = Options { timeline: timeline.map(Path::to_owned), ..Options::default() };
    let (outcome, _) = run_machine(&mut machine, &options);
    let document = result::document(&mut machine, &outcome, 0.1 + 0.2).expect("a document");
    let text = serde_json::to_string_pretty(&document).expect("JSON");
    let read: ResultDocument = serde_json::from_str(&text).expect("a document is read by the type that wrote it");
    assert_eq!(serde_json::to_string_pretty(&read).expect("JSON"), text);
    assert_eq!(read, document);
    serde_json::to_value(document).expect("JSON")
}

/// Only the region is timed; and the run that is cut where the region begins, and ends there, is the same run.
#[test]
fn a_timed_region_is_timed_and_may_begin_in_a_run_of_its_own() {
    let machine = || {
        let mut bare = Bare::new(2);
        on_harts(&[&first_hart, &second_hart])(&mut bare);
        bare.machine(Gear::Functional)
    };
    let finish = |mut machine: Machine, options: &Options| {
        let (outcome, _) = run_machine(&mut machine, options);
        result::document(&mut machine, &outcome, 0.0).expect("a document")
    };
    let misses = |document: &ResultDocument| document.harts.iter().map(|hart| hart.counters.data_misses).sum::<u64>();
    let untimed = finish(machine(), &Options::default());
    assert_eq!(misses(&untimed), 0);

    let timed = Options { timed_region: true, ..Options::default() };
    let whole = finish(machine(), &timed);
    assert_eq!((whole.exit, whole.gear), (Exit::PoweredOff, Gear::Functional));
    assert!(misses(&whole) > 0);

    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("region");
    let snapshot = Some((SnapshotEvent::RegionBegin, path.clone()));
    let cut = finish(machine(), &Options { snapshot, ends_at_snapshot: true, ..timed.clone() });
    assert_eq!((cut.exit, cut.gear), (Exit::LimitReached, Gear::Timed));
    assert!(cut.instructions < whole.instructions);
    let rest = finish(Machine::resume(&path).expect("a snapshot"), &timed);
    assert_eq!(rest.digest, whole.digest);
    assert_eq!(rest.region_cycles, whole.region_cycles);
}

/// Leaves of what is counted in cycles only whether there were any.
fn without_cycles(value: &mut Value) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                if key.ends_with("_cycles") && value != 0 {
                    *value = json!("some");
                }
                without_cycles(value);
            }
        }
        Value::Array(array) => array.iter_mut().for_each(without_cycles),
        _ => {}
    }
}

#[test]
fn the_document_says_what_transactions_did_in_the_region_and_how_they_met() {
    let mut document = document(None);
    assert_eq!(document["exit"], "powered-off");
    let mut harts = document["harts"].take();
    let transactions: Vec<Value> =
        harts.as_array_mut().unwrap().iter_mut().map(|hart| hart["transactions"].take()).collect();
    let mut said = json!({
        "transactions": transactions,
        "conflicts": document["conflicts"],
        "conflict_totals": document["conflict_totals"],
        "conflict_kinds": document["conflict_kinds"],
    });
    let lost = |conflict: &Value| conflict["lost_cycles"].as_u64().unwrap();
    let conflicts = said["conflicts"].as_array().unwrap();
    assert!(conflicts.is_sorted_by(|a, b| lost(a) >= lost(b)), "most lost cycles first: {said}");
    assert_eq!(conflicts.iter().map(lost).sum::<u64>(), lost(&said["conflict_totals"]));
    let kinds = said["conflict_kinds"].as_object().unwrap();
    assert_eq!(kinds.values().map(lost).sum::<u64>(), lost(&said["conflict_totals"]), "each is of one kind");
    without_cycles(&mut said);
    insta::assert_snapshot!(serde_json::to_string_pretty(&said).unwrap());
}

#[test]
fn the_timeline_has_every_attempt_and_every_conflict() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timeline.json");
    document(Some(&path));
    let timeline: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let events = timeline["traceEvents"].as_array().unwrap();
    let track = |name: &str| {
        let named = |event: &&Value| event["name"] == "thread_name" && event["args"]["name"] == name;
        events.iter().find(named).unwrap_or_else(|| panic!("no track {name}"))["tid"].clone()
    };
    let tracks = ["hart 0 transactions", "hart 1 transactions"].map(track);
    let slices = |track: &Value| {
        let slice = |event: &&Value| event["ph"] == "X" && event["tid"] == *track;
        let mut slices: Vec<&Value> = events.iter().filter(slice).collect();
        slices.sort_by(|a, b| a["ts"].as_f64().unwrap().total_cmp(&b["ts"].as_f64().unwrap()));
        slices
    };
    let names = |track| slices(track).iter().map(|slice| slice["name"].as_str().unwrap()).collect::<Vec<_>>();
    let first = ["transaction", "transaction", "restart: explicit", "transaction", "restart: nontransactional"];
    assert_eq!(names(&tracks[0]), [&first[..], &["transaction"; 3]].concat());
    assert_eq!(names(&tracks[1]), ["restart: conflict", "transaction"]);
    for track in &tracks {
        let end = |slice: &Value| slice["ts"].as_f64().unwrap() + slice["dur"].as_f64().unwrap();
        let slices = slices(track);
        assert!(slices.windows(2).all(|pair| end(pair[0]) <= pair[1]["ts"].as_f64().unwrap() + 1e-9), "{slices:?}");
    }
    let conflicts: Vec<&Value> = events.iter().filter(|event| event["name"] == "conflict").collect();
    let said: Vec<_> = conflicts.iter().map(|event| (&event["tid"], &event["args"])).collect();
    insta::assert_snapshot!(serde_json::to_string_pretty(&said).unwrap());
}
