//! Conflicts by the kind of their parties, with known answers.

mod support;

use concord_htm::kinds::{ConflictKind, KindTotals, PairDetails};
use concord_htm::manager::Manager;
use concord_htm::policy::Policy;
use concord_htm::{Begun, Engine, Party, Verdict};
use support::{Words, access};

const FAIR: u64 = 1 << 6 | 20;
const FAIR_URGENT: u64 = 1 << 6 | 39;
const REAL_TIME: u64 = 2 << 6 | 1;

/// Harts whose older transactions win.
fn engine(priorities: &[u64]) -> (Engine<u32>, Words) {
    let policy = Policy { manager: Manager::Timestamp, ..Policy::default() };
    let mut engine = Engine::new(priorities.len(), policy, 1);
    for (hart, priority) in priorities.iter().enumerate() {
        engine.set_priority(hart, *priority);
    }
    (engine, Words(vec![0; 64]))
}

fn begin(engine: &mut Engine<u32>, memory: &mut Words, hart: usize, now: u64) {
    assert_eq!(engine.begin(hart, now, memory, || 0), Begun::Outermost);
}

/// The only pair's details.
fn details(engine: &Engine<u32>) -> PairDetails {
    let keys: Vec<_> = engine.profile().iter().map(|(key, _)| *key).collect();
    assert_eq!(keys.len(), 1, "{keys:?}");
    engine.kinds().of_pair(&keys[0])
}

#[test]
fn two_transactions_that_conflict_are_a_pair_with_its_back_off_and_its_inversions() {
    for (priorities, inversions, policy_inversions) in
        [([FAIR, REAL_TIME], 1, 1), ([FAIR, FAIR_URGENT], 1, 0), ([REAL_TIME, FAIR], 0, 0), ([FAIR, FAIR], 0, 0)]
    {
        let (mut engine, mut memory) = engine(&priorities);
        begin(&mut engine, &mut memory, 0, 10);
        begin(&mut engine, &mut memory, 1, 20);
        access(&mut engine, &mut memory, Party::Transaction(0), 3, Some(1), 30);
        let (verdict, losses) = access(&mut engine, &mut memory, Party::Transaction(1), 3, None, 50);
        assert_eq!(verdict, Verdict::Lost);
        let backoff_cycles = losses[0].backoff_cycles;
        let expected = KindTotals { count: 1, lost_cycles: 30, backoff_cycles, inversions, policy_inversions };
        assert_eq!(*engine.kinds().of(ConflictKind::Transactions), expected, "{priorities:?}");
        assert_eq!(details(&engine), PairDetails { holder_writes: 1, backoff_cycles });
        for kind in [ConflictKind::Asymmetric, ConflictKind::Granted, ConflictKind::Refused] {
            assert_eq!(*engine.kinds().of(kind), KindTotals::default());
        }
    }
}

#[test]
fn an_access_outside_transactions_and_a_device_conflict_asymmetrically() {
    for party in [Party::Nontransactional(1), Party::Device] {
        let (mut engine, mut memory) = engine(&[REAL_TIME, FAIR]);
        begin(&mut engine, &mut memory, 0, 10);
        access(&mut engine, &mut memory, Party::Transaction(0), 3, None, 20);
        let (_, losses) = access(&mut engine, &mut memory, party, 3, Some(1), 40);
        let backoff_cycles = losses[0].backoff_cycles;
        let expected = KindTotals { count: 1, lost_cycles: 30, backoff_cycles, ..KindTotals::default() };
        assert_eq!(*engine.kinds().of(ConflictKind::Asymmetric), expected, "no priority is asked for");
        assert_eq!(details(&engine), PairDetails { holder_writes: 0, backoff_cycles });
        assert_eq!(engine.kinds().of(ConflictKind::Transactions).count, 0);
    }
}

#[test]
fn a_compare_and_swap_outside_transactions_is_refused_or_granted() {
    let (mut engine, mut memory) = engine(&[FAIR, REAL_TIME]);
    begin(&mut engine, &mut memory, 0, 10);
    access(&mut engine, &mut memory, Party::Transaction(0), 3, None, 20);
    let (verdict, _) = access(&mut engine, &mut memory, Party::Arbitrated(1), 3, Some(1), 30);
    assert_eq!(verdict, Verdict::Refused);
    let expected = KindTotals { count: 1, inversions: 1, policy_inversions: 1, ..KindTotals::default() };
    assert_eq!(*engine.kinds().of(ConflictKind::Refused), expected, "nothing is lost");
    engine.end(0, 35);
    begin(&mut engine, &mut memory, 0, 40);
    access(&mut engine, &mut memory, Party::Transaction(0), 3, None, 45);
    let (verdict, losses) = access(&mut engine, &mut memory, Party::Arbitrated(1), 3, Some(1), 50);
    assert_eq!(verdict, Verdict::Granted, "its first try is older than the transaction");
    let granted = engine.kinds().of(ConflictKind::Granted);
    assert_eq!((granted.count, granted.lost_cycles, granted.inversions), (1, 10, 0));
    assert_eq!(granted.backoff_cycles, losses[0].backoff_cycles);
    assert_eq!(engine.kinds().of(ConflictKind::Transactions).count, 0);
    engine.reset_statistics();
    assert_eq!(*engine.kinds().of(ConflictKind::Refused), KindTotals::default());
}
