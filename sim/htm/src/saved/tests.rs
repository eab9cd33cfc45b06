use super::*;
use crate::DeferredAdd;
use crate::Memory;
use crate::context::Frame;
use crate::policy::{Granularity, Policy};
use crate::transaction::Restart;
use concord_abi::htm::Cause;

struct Words;

impl Memory for Words {
    fn load(&self, _: Word) -> u64 {
        0
    }

    fn store(&mut self, _: Word, _: u64) {}
}

/// Slot 0 is suspended in hart 0's context 5, slot 1 is active on hart 1, and slot 2 is parked in context 6. All have
/// read words 0 and 16, and defer an addition to word 8; slot n has written word 1 + n.
fn engine() -> Engine<()> {
    let policy = Policy { granularity: Granularity::Word32, deferred_adds: 1, ..Policy::default() };
    let mut engine = Engine::new(2, policy, 1);
    for (hart, context, write) in [(0, 6, 3), (0, 5, 1), (1, 0, 2)] {
        engine.switch_context(hart, context).unwrap();
        engine.begin(hart, 0, &mut Words, || ());
        engine.join(hart, 0, 1, false, 0, &Words);
        engine.join(hart, 1, 1, false, 0, &Words);
        engine.join(hart, 0, 1 << write, true, 0, &Words);
        assert!(engine.defer(hart, DeferredAdd { address: 8 << 2, size_bytes: 4, amount: 1, pc: 0 }));
        if hart == 0 {
            engine.push(hart, true).unwrap();
        }
    }
    engine.transactions.swap(0, 1);
    engine.transactions.swap(1, 2);
    engine.parked.clear();
    engine.parked.insert(6, vec![Frame { transaction: Some(2), privileged: true }]);
    engine.harts[0].frames[0].transaction = Some(0);
    engine.harts[1].active = Some(1);
    engine.directory = Default::default();
    engine
}

fn live(engine: &mut Engine<()>, slot: Slot) -> &mut Transaction<()> {
    engine.transaction_mut(slot)
}

#[test]
fn impossible_states_are_refused() {
    let restored = |engine: &mut Engine<()>| {
        let policy = engine.policy;
        engine.restore(2, &policy, |word| word < 64).map_err(|error| error.0)
    };
    assert_eq!(restored(&mut engine()), Ok(()));
    type Damage = fn(&mut Engine<()>);
    let cases: [(&str, Damage); 33] = [
        ("the number of harts differs from the board's", |engine| engine.harts.push(engine.harts[0].clone())),
        ("the number of harts differs from the board's", |engine| engine.counters.clear()),
        ("the generator of random numbers is at its fixed point", |engine| engine.random = 0),
        ("the count of live transactions is wrong", |engine| engine.live = 2),
        ("the next id is too large", |engine| engine.next_id = u64::MAX),
        ("a counter is higher than a run can count", |engine| {
            *engine.counters[1].restarts.of_mut(Cause::Depth) = u64::MAX
        }),
        ("a hart or a frame names a transaction that does not exist", |engine| engine.harts[1].active = Some(3)),
        ("a transaction's suspension mark is wrong", |engine| live(engine, 0).suspended = false),
        ("a transaction's suspension mark is wrong", |engine| live(engine, 1).suspended = true),
        ("a transaction has two owners", |engine| engine.parked.get_mut(&6).unwrap()[0].transaction = Some(0)),
        ("an active transaction is on another hart", |engine| live(engine, 1).hart = 0),
        ("an active transaction is doomed", |engine| {
            live(engine, 1).doom = Some(Restart { status: 1, backoff_cycles: 0, defeat: None });
        }),
        ("an active transaction has no room to be suspended", |engine| {
            engine.harts[1].frames = vec![Frame { transaction: None, privileged: false }; FRAMES_MAX];
        }),
        ("a context is current on two harts", |engine| engine.harts[1].context = 5),
        ("a hart's own context is current and parked", |engine| {
            engine.harts[1].own_frames = vec![Frame { transaction: None, privileged: false }];
        }),
        ("a context is current and parked", |engine| engine.harts[1].context = 6),
        ("a context has too many frames", |engine| {
            engine.harts[0].own_frames = vec![Frame { transaction: None, privileged: false }; FRAMES_MAX + 1];
        }),
        ("a transaction has no owner", |engine| engine.parked.clear()),
        ("a transaction names a hart that does not exist", |engine| live(engine, 0).hart = 2),
        ("a transaction has an impossible depth", |engine| live(engine, 0).depth = 0),
        ("a transaction has an impossible id", |engine| live(engine, 0).id = engine.next_id),
        ("a doomed transaction has sets", |engine| {
            live(engine, 0).doom = Some(Restart { status: 1, backoff_cycles: 0, defeat: None });
        }),
        ("a word of a write set does not exist", |engine| live(engine, 0).undo[0].word = 1 << 62),
        ("a word of a read set does not exist", |engine| live(engine, 0).reads[0].word = 64),
        ("a word is in a write set twice", |engine| live(engine, 0).undo[0].word = 2),
        ("a word is in a read set and in another's write set", |engine| live(engine, 0).reads[0].word = 2),
        ("a transaction's size differs from its sets'", |engine| live(engine, 0).size_words = 2),
        ("a doomed transaction has sets", |engine| {
            let transaction = live(engine, 0);
            transaction.reads.clear();
            transaction.undo.clear();
            transaction.doom = Some(Restart { status: 1, backoff_cycles: 0, defeat: None });
        }),
        ("a transaction defers too many additions", |engine| engine.policy.deferred_adds = 0),
        ("a deferred addition has an impossible place", |engine| live(engine, 0).adds[0].address += 1),
        ("a deferred addition has an impossible place", |engine| live(engine, 0).adds[0].address = 64 << 2),
        ("a deferred addition is not alone", |engine| live(engine, 0).adds[0].address = 16 << 2),
        ("a part of a granule is in a set", |engine| {
            engine.policy.granularity = Granularity::Word;
            engine.transactions.iter_mut().flatten().for_each(|transaction| transaction.size_words = 1);
        }),
    ];
    for (what, damage) in cases {
        let mut engine = engine();
        damage(&mut engine);
        assert_eq!(restored(&mut engine), Err(what));
    }
    for lines in [vec![0], vec![0, 0], vec![0, 1, 1], vec![0, 2]] {
        let mut engine = engine();
        live(&mut engine, 0).lines = lines;
        assert_eq!(restored(&mut engine), Err("a transaction's lines differ from its words'"));
    }
    for overflowed in [vec![2], vec![1, 1]] {
        let mut engine = engine();
        live(&mut engine, 0).overflowed = overflowed;
        assert_eq!(restored(&mut engine), Err("an overflowed line is in no set, or is listed twice"));
    }
}
