//! What the machine says of the sizes of committed transactions, on a hart whose every instruction is known.

use crate::sections::{document, work};
use crate::support::assembler::*;
use crate::support::bare::*;
use crate::transactions::guest::*;
use concord_abi::hint::Hint;
use concord_machine::run::{Options, SnapshotEvent};
use concord_machine::{Gear, Machine};
use serde_json::{Value, json};

/// Seven instructions up to the last one, three granules, two levels.
fn nests(bare: &mut Bare) {
    bare.begin(ZERO);
    bare.push(sd(ZERO, S5, 0));
    bare.push(ld(S7, S5, 8));
    bare.begin(ZERO);
    bare.push(ld(S7, S6, 0));
    bare.push(ld(S7, S5, 0));
    bare.end();
    bare.end();
}

/// The attempt that is lost does not count, and the suspension of the other one does not either.
fn restarts(bare: &mut Bare) {
    let again = bare.code.label();
    bare.begin(S2);
    bare.code.branch(1, S2, ZERO, again);
    bare.push(sd(ZERO, S6, 0));
    work(bare, 30);
    bare.restart(3);
    bare.code.bind(again);
    bare.push(sd(ZERO, S5, 0));
    bare.suspend();
    work(bare, 40);
    bare.resume();
    bare.end();
}

fn machine(gear: Gear) -> Machine {
    let mut bare = Bare::new(1);
    bare.load(S5, A);
    bare.load(S6, B);
    nests(&mut bare);
    bare.push(i_type(OP_IMM, 0, 2, ZERO, Hint::RegionBegin as i64));
    nests(&mut bare);
    restarts(&mut bare);
    bare.push(i_type(OP_IMM, 0, 2, ZERO, Hint::RegionEnd as i64));
    nests(&mut bare);
    bare.finish();
    bare.machine(gear)
}

fn sizes(machine: Machine) -> Value {
    document(machine, &Options::default())["transaction_sizes"].clone()
}

#[test]
fn a_committed_transaction_counts_with_the_attempt_that_committed() {
    let sizes = sizes(machine(Gear::Functional));
    let of = |least: u64, most: u64| {
        json!({
            "count": 2, "mean": (least + most) as f64 / 2.0, "median": least, "percentile_99": most, "max": most,
        })
    };
    // xbegin, six more; then the branch, the store, and xpop.
    assert_eq!(sizes["instructions"], of(3, 7));
    assert_eq!(sizes["cycles"], of(3, 7));
    assert_eq!(sizes["granules"], of(1, 3));
    assert_eq!(sizes["depth"], of(1, 2));
}

#[test]
fn a_resumed_run_has_the_sizes_of_the_whole() {
    for gear in [Gear::Functional, Gear::Timed] {
        let whole = document(machine(gear), &Options::default());
        let instructions = whole["instructions"].as_u64().unwrap();
        for cut in (1..20).map(|step| instructions * step / 25) {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let path = folder.path().join("cut");
            let options =
                Options { snapshot: Some((SnapshotEvent::Instructions(cut), path.clone())), ..Options::default() };
            document(machine(gear), &options);
            let resumed = Machine::resume(&path).expect("the snapshot is sound");
            assert_eq!(sizes(resumed), whole["transaction_sizes"], "{gear:?} at {cut}");
        }
    }
}
