//! What the result document counts makes sense.

use crate::support::{Run, Typist, artifact, boot, ours, resume, run, snapshot_at};
use concord_machine::run::{Options, SnapshotEvent};
use concord_machine::symbols::SymbolTable;
use concord_machine::{Gear, Machine};

/// What a stall can add to a hart that is already a quantum ahead: a few misses of one instruction.
const STALL_CYCLES_MAX: u64 = 2_000;

fn files(gear: &str) -> Run {
    boot(ours(&format!("concord.run=files concord.size=2 concord.gear={gear}"), 8, Gear::Functional)).healthy()
}

/// A hart is at most a quantum and a stall behind the furthest one, both where the region begins and where it ends.
fn cycles_add_up(run: &Run, quantum_cycles: u64) {
    let document = &run.document;
    assert!(document.region);
    assert_eq!(document.harts.len(), 8);
    let slack_cycles = 2 * (quantum_cycles + STALL_CYCLES_MAX);
    for hart in &document.harts {
        let sum = hart.user_cycles + hart.supervisor_cycles + hart.idle_cycles;
        assert!(sum.abs_diff(document.region_cycles) <= slack_cycles, "{sum} of {}: {hart:?}", document.region_cycles);
        assert!(hart.user_cycles > 0 && hart.supervisor_cycles > 0, "{hart:?}");
        assert!(hart.instructions > 0, "{hart:?}");
        // A cycle an instruction at least, in either gear.
        assert!(hart.instructions <= hart.user_cycles + hart.supervisor_cycles + slack_cycles, "{hart:?}");
    }
    let instructions: u64 = document.harts.iter().map(|hart| hart.instructions).sum();
    assert!(instructions < document.instructions, "the boot is not in the region");
    assert!(document.region_cycles < document.clock_cycles);

    let shares: f64 = document.functions.iter().map(|function| function.share).sum();
    assert!((0.999..1.001).contains(&shares), "{shares}");
    for wanted in ["[user mode]", "handle_mm_fault"] {
        assert!(
            document.functions.iter().any(|function| function.name == wanted),
            "no {wanted}: {:?}",
            document.functions
        );
    }
    assert!(document.functions.iter().all(|function| function.name != "[no symbol]"), "{:?}", document.functions);
}

#[test]
fn the_timed_gear_counts_misses_and_stalls() {
    let run = files("timed");
    cycles_add_up(&run, run.document.configuration.board.order.quantum_cycles);
    for hart in &run.document.harts {
        let counters = &hart.counters;
        assert!(counters.data_misses > 0 && counters.fetch_misses > 0 && counters.second_misses > 0, "{counters:?}");
        assert!(counters.transfers > 0 && counters.invalidations > 0 && counters.upgrades > 0, "{counters:?}");
        assert!(counters.second_misses <= counters.data_misses + counters.fetch_misses, "{counters:?}");
        assert!(counters.transfers <= counters.second_misses, "{counters:?}");
        // Each second-level miss costs 200 cycles in this board, from memory or from another hart.
        assert!(counters.stall_cycles >= 200 * counters.second_misses, "{counters:?}");
        assert!(counters.stall_cycles < hart.user_cycles + hart.supervisor_cycles, "{hart:?}");
    }
}

#[test]
fn the_functional_gear_has_no_caches() {
    let run = files("functional");
    cycles_add_up(&run, run.document.configuration.board.order.functional_quantum_cycles);
    for hart in &run.document.harts {
        let counters = &hart.counters;
        let misses = [counters.data_misses, counters.fetch_misses, counters.second_misses];
        let coherence = [counters.transfers, counters.invalidations, counters.upgrades, counters.downgrades];
        assert_eq!((misses, coherence, counters.writebacks), ([0; 3], [0; 4], 0), "{counters:?}");
        assert_eq!(counters.stall_cycles, 0);
    }
}

/// Four threads of a process open and close descriptors, so that their transactions look for the next free one.
#[test]
fn conflicts_have_the_member_of_the_object_that_they_are_at() {
    let words = "cx=on cx.policy=always concord.run=contend:descriptors concord.size=100 concord.gear=timed";
    let configuration = ours(words, 4, Gear::Functional);
    let plain = boot(configuration.clone()).healthy();
    let next_descriptor = |run: &Run| {
        let conflicts = run.document.conflicts.iter();
        conflicts.filter(|conflict| conflict.address == "struct files_struct.next_fd").count()
    };
    let lock = |run: &Run| {
        let sections = run.document.sections.iter().filter(|section| section.site.starts_with("alloc_fd+"));
        sections.filter_map(|section| section.lock.clone()).collect::<Vec<String>>()
    };
    assert!(!plain.document.conflicts.is_empty() && next_descriptor(&plain) == 0 && lock(&plain).is_empty());

    let vmlinux = artifact("kernel", "vmlinux");
    let mut machine = Machine::new(configuration).unwrap();
    machine.set_symbols(SymbolTable::from_file(&vmlinux).unwrap());
    machine.set_types_file(&vmlinux, false);
    let folder = tempfile::tempdir().unwrap();
    let snapshot = folder.path().join("region");
    let named = run(machine, snapshot_at(SnapshotEvent::RegionBegin, &snapshot), Typist::default()).healthy();
    assert!(next_descriptor(&named) > 0, "{:?}", named.document.conflicts);
    assert_eq!(lock(&named), ["struct files_struct.file_lock"]);
    assert_eq!(named.document.digest, plain.document.digest, "names are no part of the guest");

    // A snapshot has the types in it.
    let resumed = resume(&snapshot, Options::default());
    assert_eq!(resumed.document.conflicts, named.document.conflicts);
    assert_eq!(lock(&resumed), lock(&named));
}
