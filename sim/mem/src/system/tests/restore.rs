//! States that no memory system can reach.

use crate::cache::Geometry;
use crate::contention::{ContentionModel, Request};
use crate::fault::Access;
use crate::line_table::{Entry, NO_LINE};
use crate::ram::{RAM_BASE, Ram};
use crate::system::{Admission, MemorySystem, Model, SavedMemory, StateError};
use proptest::prelude::*;

/// Breaks one invariant.
type Damage = fn(&mut MemorySystem);

const MODEL: Model = Model {
    instruction: Geometry { sets: 2, ways: 2 },
    data: Geometry { sets: 2, ways: 2 },
    second: Geometry { sets: 4, ways: 2 },
    second_latency_cycles: 1,
    memory_latency_cycles: 1,
    transfer_latency_cycles: 1,
    upgrade_latency_cycles: 1,
    perturbation_cycles_max: 0,
    contention: None,
    translation_entries: 4,
};

fn system(cores: usize, model: Model) -> MemorySystem {
    MemorySystem::new(Ram::new(1 << 20).expect("1 MiB"), cores, model, 1)
}

/// Two cores that share some lines and own others.
fn busy() -> MemorySystem {
    let mut system = system(2, MODEL);
    system.set_timed(true);
    for index in 0..12 {
        for core in 0..2 {
            let access = if index % 3 == core as u64 { Access::Store } else { Access::Load };
            system.access(core, RAM_BASE + index * 64, access, 0, Admission::Queues).expect("it is RAM");
            system.translate_fetch(core, RAM_BASE + index * 0x1000).expect("it is RAM");
            system.touch_fetch(core, index as u32 * 64);
        }
    }
    system
}

const QUEUED: Model = Model {
    memory_latency_cycles: 100,
    transfer_latency_cycles: 100,
    contention: Some(ContentionModel { window_cycles: 10, shared_busy_cycles: 5, bus_busy_cycles: 0 }),
    ..MODEL
};

/// Core 0 owns a line for which core 1 and then core 2 wait.
fn waiting() -> MemorySystem {
    let mut system = system(3, QUEUED);
    system.set_timed(true);
    for (core, line) in [(0, 0), (1, 0), (2, 0)] {
        let refused = system.access(core, RAM_BASE + line * 64, Access::Store, 0, Admission::Queues);
        assert_eq!(refused.is_err(), core > 0);
    }
    system
}

fn bytes_of(system: &MemorySystem) -> Vec<u8> {
    postcard::to_stdvec(&system.save()).expect("a state can be written")
}

#[test]
fn a_state_of_another_board_is_refused() {
    let bytes = bytes_of(&busy());
    let restore = |cores, model| {
        let saved: SavedMemory = postcard::from_bytes(&bytes).expect("a state can be read");
        assert_eq!(saved.check_sizes(&model, cores).is_ok(), cores == 2 && model == MODEL);
        system(cores, model).restore(saved)
    };
    assert_eq!(restore(2, MODEL), Ok(()));
    assert_eq!(restore(3, MODEL), Err(StateError::Cores { found: 2, expected: 3 }));
    let other = Geometry { sets: 4, ways: 1 };
    for model in [
        Model { data: other, ..MODEL },
        Model { instruction: other, ..MODEL },
        Model { second: Geometry { sets: 8, ways: 1 }, ..MODEL },
        Model { translation_entries: 8, ..MODEL },
    ] {
        assert!(restore(2, model).is_err(), "{model:?}");
    }
}

fn live_entry(system: &mut MemorySystem) -> &mut Entry {
    let slot = system.hot[0].lines.entries().iter().position(|entry| entry.line != NO_LINE);
    system.hot[0].lines.entry(slot.expect("core 0 has used lines"))
}

/// The check names the broken invariant, whichever part of the state has it.
#[test]
fn each_broken_invariant_is_named() {
    let breaks: [(Damage, &str); 8] = [
        (|system| live_entry(system).line = NO_LINE - 1, "an entry of the line table leads out of RAM"),
        (|system| live_entry(system).read_tag |= 1, "an entry of the line table has impossible tags"),
        (
            |system| {
                let line = system.cores[0].second.lines().next().unwrap();
                system.cores[0].second.drop_line(line);
                system.cores[0].second.fill(line ^ 0x8000, crate::cache::State::Shared);
            },
            "a cached line is outside RAM",
        ),
        (
            |system| {
                let owned = system.cores[1].second.lines_and_sharing().find(|(_, shared)| !shared).unwrap().0;
                system.cores[0].second.fill(owned, crate::cache::State::Exclusive);
            },
            "a line that is not shared has another holder",
        ),
        (
            |system| {
                let line = system.cores[0].data.lines().next().unwrap().0;
                system.cores[0].second.drop_line(line);
            },
            "the first-level cache holds more than the second",
        ),
        (
            |system| {
                let (line, writable) = system.cores[0].data.lines().next().unwrap();
                let way = system.cores[0].data.find(line).unwrap();
                system.cores[0].data.set_writable(way, !writable);
            },
            "a line is writable in only one of the two caches",
        ),
        (|system| system.cores[0].reservation = Some(1 << 30), "the reserved line is outside RAM"),
        (
            |system| system.cores[0].fetch_translations.entry(0).tag = 0x77 << 1,
            "a translation is in another page's slot",
        ),
    ];
    for (damage, expected) in breaks {
        let mut damaged = busy();
        damage(&mut damaged);
        let result = system(2, MODEL).restore(damaged.save());
        let Err(StateError::Core { what, .. }) = result else { panic!("{expected}: {result:?}") };
        assert_eq!(what, expected);
    }
}

/// Makes a saved state impossible.
type Change<'a> = &'a dyn Fn(&mut SavedMemory);

/// The request of core 1.
fn request(saved: &mut SavedMemory) -> &mut Request {
    saved.queues.requests[1].as_mut().expect("core 1 waits")
}

#[test]
fn a_queue_survives_a_snapshot_and_an_impossible_one_is_refused() {
    let bytes = bytes_of(&waiting());
    let restore = |model: Model, change: &dyn Fn(&mut SavedMemory)| {
        let mut saved: SavedMemory = postcard::from_bytes(&bytes).expect("a state can be read");
        change(&mut saved);
        let mut system = system(3, model);
        system.restore(saved).map(|()| system)
    };
    let restored = restore(QUEUED, &|_| ()).expect("the state is sound");
    for core in 0..3 {
        assert_eq!(restored.request(core), waiting().request(core), "core {core}");
    }
    assert!(restored.turn(1) < restored.turn(2) && restored.turn(0).is_none());
    let impossible: [(Model, Change, &str); 6] = [
        (MODEL, &|_| (), "queues where the board has none"),
        (QUEUED, &|saved| saved.queues.requests.truncate(2), "the queues of other cores"),
        (QUEUED, &|saved| request(saved).line = 1 << 14, "a line is waited for and idle"),
        (QUEUED, &|saved| request(saved).start = 1 << 20, "a line is waited for and idle"),
        (QUEUED, &|saved| request(saved).is_served = true, "a request waits for an impossible turn"),
        (QUEUED, &|saved| request(saved).start = 0, "a request waits for an impossible turn"),
    ];
    for (model, change, expected) in impossible {
        let result = restore(model, change).map(|_| ());
        assert_eq!(result, Err(StateError::Queues { what: expected }), "{expected}");
    }
}

proptest! {
    /// The same for queues.
    #[test]
    fn damaged_queues_are_refused_or_work(changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..6)) {
        let mut bytes = postcard::to_stdvec(&waiting().save().queues).expect("a state can be written");
        for (place, value) in changes {
            let length = bytes.len();
            bytes[place % length] = value;
        }
        if let Ok(queues) = postcard::from_bytes(&bytes) {
            let mut saved = waiting().save();
            saved.queues = queues;
            let mut system = system(3, QUEUED);
            if system.restore(saved).is_ok() {
                for index in 0..64 {
                    let _ = system.access(index % 3, RAM_BASE + index as u64 / 2 * 64, Access::Store, 0, Admission::Queues);
                    let _ = system.leave_queue(index / 2 % 3);
                }
                prop_assert!(system.check().is_ok());
            }
        }
    }

    /// Any bytes give an error or a state with which the system can continue.
    #[test]
    fn damaged_states_are_refused_or_work(changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..6)) {
        let mut bytes = bytes_of(&busy());
        for (place, value) in changes {
            let length = bytes.len();
            bytes[place % length] = value;
        }
        if let Ok(saved) = postcard::from_bytes::<SavedMemory>(&bytes) {
            let mut system = system(2, MODEL);
            if system.restore(saved).is_ok() {
                prop_assert!(system.check().is_ok());
                for index in 0..64 {
                    let _ = system.access(index % 2, RAM_BASE + index as u64 * 64, Access::Store, 0, Admission::Queues);
                }
                prop_assert!(system.check().is_ok());
            }
        }
    }
}
