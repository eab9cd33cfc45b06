//! Engines that are read from bytes: equal to the written ones, or refused with a reason. The oracle's tests cut whole
//! runs.

mod support;

use concord_abi::htm::Cause;
use concord_htm::manager::Manager;
use concord_htm::policy::{Granularity, OutsideReads, Policy};
use concord_htm::{Begun, DeferredAdd, Engine, Party, WORD_SHIFT};
use proptest::collection::vec;
use proptest::prelude::*;
use support::{Words, access};

const HARTS: usize = 3;
const WORDS: u64 = 128;

/// Transactions that are active, suspended, doomed and parked, with sets, overflowed lines and a refused compare-and-swap.
fn busy(granularity: Granularity) -> (Engine<u32>, Words) {
    let policy = Policy { manager: Manager::Polka, granularity, deferred_adds: 3, ..Policy::default() };
    let (mut engine, mut memory) = (Engine::new(HARTS, policy, 3), Words(vec![7; WORDS as usize]));
    for (hart, word) in [(0, 0), (0, 16), (1, 32), (1, 48), (2, 64)] {
        engine.switch_context(hart, word).unwrap();
        assert_eq!(engine.begin(hart, word, &mut memory, || word as u32), Begun::Outermost);
        engine.begin(hart, word, &mut memory, || 0);
        for (offset, write) in [(0, None), (1, Some(word)), (0, Some(1)), (18, None)] {
            access(&mut engine, &mut memory, Party::Transaction(hart), word + offset, write, word);
        }
        assert!(
            engine.defer(
                hart,
                DeferredAdd { address: (96 + word / 4) << WORD_SHIFT, size_bytes: 4, amount: word, pc: 1 }
            )
        );
        engine.evicted(hart, word / 16, word, &mut memory);
        if word != 48 && word != 64 {
            engine.trap(hart, word, &mut memory);
        }
    }
    access(&mut engine, &mut memory, Party::Nontransactional(2), 0, Some(1), 90);
    engine.switch_context(0, 100).unwrap();
    access(&mut engine, &mut memory, Party::Arbitrated(0), 64, Some(1), 100);
    engine.restart(2, Cause::Explicit.status(3), 110, &mut memory);
    access(&mut engine, &mut memory, Party::Transaction(2), 80, Some(4), 110);
    (engine, memory)
}

fn bytes_of(engine: &Engine<u32>) -> Vec<u8> {
    postcard::to_stdvec(engine).unwrap()
}

fn restored(bytes: &[u8]) -> Result<Engine<u32>, String> {
    let mut engine: Engine<u32> = postcard::from_bytes(bytes).map_err(|error| error.to_string())?;
    let policy = Policy { deferred_adds: 3, ..*engine.policy() };
    engine.restore(HARTS, &policy, |word| word < WORDS).map_err(|error| error.to_string())?;
    Ok(engine)
}

/// Performs a few operations of every kind and returns their results.
fn go_on(engine: &mut Engine<u32>, memory: &mut Words) -> Vec<u8> {
    let mut log = Vec::new();
    for hart in 0..HARTS {
        let now = 200 + hart as u64;
        for word in (0..WORDS).step_by(3) {
            let party = [Party::Transaction(hart), Party::Arbitrated(hart), Party::Device][word as usize % 3];
            let party = if engine.is_active(hart) { party } else { Party::Nontransactional(hart) };
            let write = (word % 2 == 0).then_some(word);
            log.extend(format!("{:?}", access(engine, memory, party, word, write, now)).into_bytes());
            log.extend(format!("{:?}", engine.masks(hart, word / 16)).into_bytes());
        }
        for line in 0..WORDS / 16 {
            log.extend(format!("{:?}", engine.evicted(hart, line, now, memory)).into_bytes());
        }
        engine.take_out(memory);
        engine.put_in(memory);
        log.extend(format!("{:?}", engine.take_deferred_at_commit(hart)).into_bytes());
        log.extend(format!("{:?} {:?}", engine.end(hart, now), engine.end(hart, now)).into_bytes());
        for context in [0, 16, 32] {
            let switched = engine.switch_context(hart, context);
            log.extend(format!("{switched:?} {:?}", engine.subject(hart)).into_bytes());
            log.extend(format!("{:?} {:?}", engine.pop(hart, true, now), engine.restarts(hart)).into_bytes());
        }
        log.extend(format!("{:?}", engine.reset_hart(hart, now, memory)).into_bytes());
    }
    log.extend(format!("{:?} {:?}", engine.profile().sum(), engine.counters()[0].restarts.total()).into_bytes());
    log.extend(bytes_of(engine));
    log
}

#[test]
fn a_saved_engine_continues_the_same() {
    for granularity in Granularity::ALL {
        let (mut engine, mut memory) = busy(granularity);
        let bytes = bytes_of(&engine);
        let mut again = restored(&bytes).unwrap();
        assert_eq!(bytes_of(&again), bytes);
        let mut memory_again = Words(memory.0.clone());
        assert_eq!(go_on(&mut again, &mut memory_again), go_on(&mut engine, &mut memory));
        assert_eq!(memory_again.0, memory.0);
    }
}

#[test]
fn a_state_of_another_machine_is_refused() {
    let (engine, _) = busy(Granularity::Word);
    let read = || postcard::from_bytes::<Engine<u32>>(&bytes_of(&engine)).unwrap();
    let policy = *engine.policy();
    assert!(read().restore(HARTS, &policy, |_| true).is_ok());
    assert!(read().restore(HARTS + 1, &policy, |_| true).is_err());
    let others = [Policy { backoff_base_cycles: 1, ..policy }, Policy { granularity: Granularity::Line, ..policy }];
    for other in others {
        assert!(read().restore(HARTS, &other, |_| true).is_err(), "{other:?}");
    }
    // What is not written comes from the board.
    let committed = Policy { outside_reads: OutsideReads::Committed, deferred_adds: 9, ..policy };
    let mut engine = read();
    engine.restore(HARTS, &committed, |_| true).unwrap();
    assert_eq!(*engine.policy(), committed);
    for missing in [17, 34, 80] {
        assert!(read().restore(HARTS, &policy, |word| word != missing).is_err(), "word {missing} is in a set");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any bytes give an error or a state with which an engine can continue.
    #[test]
    fn damaged_states_are_refused_or_work(changes in vec((any::<usize>(), any::<u8>()), 1..4), kind in 0..3usize) {
        let (engine, mut memory) = busy(Granularity::ALL[kind]);
        let mut bytes = bytes_of(&engine);
        for (place, value) in changes {
            let length = bytes.len();
            bytes[place % length] = value;
        }
        if let Ok(mut engine) = restored(&bytes) {
            go_on(&mut engine, &mut memory);
        }
    }
}
