//! Under no manager do transactions end each other for ever, however long they are.

mod support;

use concord_htm::manager::Manager;
use concord_htm::policy::{Backoff, Policy};
use concord_htm::{Begun, Ended, Engine, Party, Verdict};
use support::{Words, access};

const ROUNDS: u32 = 5;

/// The next step of a hart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Begin,
    Access,
    End,
}

/// Lets all harts write to one word at the begin of transactions of `duration_cycles` cycles. Returns the restarts.
fn restarts(manager: Manager, backoff: Backoff, harts: usize, duration_cycles: u64) -> u64 {
    let mut engine = Engine::new(harts, Policy { manager, backoff, ..Policy::default() }, 7);
    let mut memory = Words(vec![0; 8]);
    let mut todo = vec![(0u64, Next::Begin, ROUNDS); harts];
    while let Some(hart) = (0..harts).filter(|hart| todo[*hart].2 > 0).min_by_key(|hart| todo[*hart].0) {
        let (now, next, rounds) = todo[hart];
        let mut committed = None;
        todo[hart] = match next {
            Next::Begin => {
                assert_eq!(engine.begin(hart, now, &mut memory, || ()), Begun::Outermost);
                (now + 1, Next::Access, rounds)
            }
            Next::Access => {
                let value = memory.0[0] + 1;
                let (verdict, losses) = access(&mut engine, &mut memory, Party::Transaction(hart), 0, Some(value), now);
                for loss in losses {
                    todo[loss.hart] = (now + 1 + loss.backoff_cycles, Next::Access, todo[loss.hart].2);
                }
                match verdict {
                    Verdict::Granted => (now + duration_cycles, Next::End, rounds),
                    Verdict::Wait { cycles } => (now + cycles, Next::Access, rounds),
                    _ => todo[hart],
                }
            }
            Next::End => {
                let Ended::Committed { id, .. } = engine.end(hart, now) else { panic!("the transaction is active") };
                committed = Some(id);
                (now + 1, Next::Begin, rounds - 1)
            }
        };
        for loser in committed.into_iter().flat_map(|id| engine.release_losers(id)) {
            todo[loser].0 = todo[loser].0.min(now + 1);
        }
        let restarts: u64 = engine.counters().iter().map(|counters| counters.restarts.total()).sum();
        assert!(restarts < 100_000, "{} lets {harts} harts restart for ever", manager.name());
    }
    assert_eq!(
        engine.counters().iter().map(|counters| counters.committed).sum::<u64>(),
        u64::from(ROUNDS) * harts as u64
    );
    engine.counters().iter().map(|counters| counters.restarts.total()).sum()
}

#[test]
fn long_transactions_commit_under_every_manager() {
    for manager in Manager::ALL {
        for backoff in Backoff::ALL {
            for harts in [2, 8] {
                for duration_cycles in [100, 30_000, 1_000_000] {
                    let restarts = restarts(manager, backoff, harts, duration_cycles);
                    // A requester that stalls has nobody restart before age decides, after half a million cycles.
                    let all_cycles = u64::from(ROUNDS) * harts as u64 * duration_cycles;
                    let stalls = manager == Manager::RequesterStalls && all_cycles < 500_000;
                    let why = format!("{} {} with {harts} harts", manager.name(), backoff.name());
                    assert_eq!(restarts == 0, stalls, "{why}");
                }
            }
        }
    }
}
