//! Directed tests of the engine: the limits, suspended transactions, contexts, evictions, refused compare-and-swaps.

mod support;

use concord_abi::htm::{Cause, DEPTH_MAX, FRAMES_MAX, RESTARTS_MAX};
use concord_htm::kinds::ConflictKind;
use concord_htm::manager::Manager;
use concord_htm::policy::{Backoff, Granularity, Mode, Policy};
use concord_htm::{Begun, ContextError, Ended, Engine, Evicted, Party, Popped, Verdict, WORD_SHIFT};
use support::{Words, access};

fn engine(harts: usize, policy: Policy) -> (Engine<u32>, Words) {
    (Engine::new(harts, policy, 1), Words(vec![7; 64]))
}

/// The default policy by the smallest granules, so that each word of these tests is one.
fn policy() -> Policy {
    Policy { granularity: Granularity::Word32, ..Policy::default() }
}

fn with_manager(manager: Manager) -> Policy {
    Policy { manager, ..policy() }
}

fn best_effort() -> Policy {
    Policy { mode: Mode::BestEffort, ..policy() }
}

fn begin(engine: &mut Engine<u32>, memory: &mut Words, hart: usize, now: u64) -> u64 {
    assert_eq!(engine.begin(hart, now, memory, || now as u32), Begun::Outermost);
    engine.active_id(hart)
}

/// Whether an end committed.
fn commits(engine: &mut Engine<u32>, hart: usize) -> bool {
    matches!(engine.end(hart, 0), Ended::Committed { .. })
}

#[test]
fn a_transaction_nests_to_the_limit_and_restarts_beyond() {
    let (mut engine, mut memory) = engine(1, policy());
    let id = begin(&mut engine, &mut memory, 0, 1);
    access(&mut engine, &mut memory, Party::Transaction(0), 3, Some(8), 2);
    for depth in 2..=DEPTH_MAX {
        assert_eq!(engine.begin(0, 2, &mut memory, || 0), Begun::Nested);
        assert_eq!(engine.subject(0).map(|subject| subject.depth), Some(depth));
    }
    let Begun::TooDeep(loss) = engine.begin(0, 9, &mut memory, || 0) else {
        panic!("the transaction is at the greatest depth")
    };
    assert_eq!((loss.id, loss.status, loss.backoff_cycles), (id, Cause::Depth.status(0), 0));
    assert_eq!((loss.active, &loss.lines[..], &loss.restored[..]), (true, &[0][..], &[3][..]));
    assert_eq!(memory.0[3], 7);
    let subject = engine.subject(0).unwrap();
    assert_eq!((subject.id, subject.depth, subject.size_words, *subject.checkpoint), (id, 1, 0, 1));
    assert!(commits(&mut engine, 0));
    assert_eq!(engine.end(0, 9), Ended::NotActive);
    assert_eq!(engine.last_status(0), Cause::Depth.status(0));
    assert_eq!(engine.counters()[0].depth_max, DEPTH_MAX);
}

#[test]
fn a_context_is_full_at_the_limit_and_an_active_transaction_has_room() {
    let (mut engine, mut memory) = engine(1, policy());
    for _ in 1..FRAMES_MAX {
        engine.push(0, false).unwrap();
    }
    begin(&mut engine, &mut memory, 0, 0);
    assert!(engine.trap(0, 0, &mut memory).1.is_none());
    assert_eq!(engine.frames(0), FRAMES_MAX);
    assert_eq!(engine.push(0, false), Err(ContextError::Full));
    assert_eq!(engine.begin(0, 0, &mut memory, || 0), Begun::NoRoom);
    assert_eq!(engine.pop(0, false, 0), Err(ContextError::Privileged));
    assert_eq!(engine.pop(0, true, 0), Ok(Popped::Resumed));
    assert_eq!(engine.pop(0, true, 0), Err(ContextError::Active));
    assert!(commits(&mut engine, 0));
    for _ in 1..FRAMES_MAX {
        assert_eq!(engine.pop(0, false, 0), Ok(Popped::Nothing));
    }
    assert_eq!(engine.pop(0, true, 0), Err(ContextError::Empty));
}

#[test]
fn restarts_saturate_and_can_be_written() {
    let (mut engine, mut memory) = engine(1, policy());
    engine.set_restarts(0, RESTARTS_MAX << 16 | (RESTARTS_MAX - 1));
    assert_eq!(engine.restarts(0), RESTARTS_MAX - 1);
    begin(&mut engine, &mut memory, 0, 0);
    for _ in 0..3 {
        engine.restart(0, Cause::Explicit.status(5), 0, &mut memory).unwrap();
    }
    assert_eq!(engine.restarts(0), RESTARTS_MAX);
    engine.set_restarts(0, 0);
    assert_eq!(engine.restarts(0), 0);
    assert_eq!(engine.counters()[0].restarts.of(Cause::Explicit), 3);
}

#[test]
fn contexts_are_parked_up_to_the_limit() {
    let (mut engine, _) = engine(2, policy());
    let mut parked = 0;
    let refusal = loop {
        if let Err(error) = engine.switch_context(0, parked + 1) {
            break error;
        }
        engine.push(0, true).unwrap();
        parked += 1;
        assert!(parked < 1 << 20, "nothing limits the parked contexts");
    };
    assert_eq!(refusal, ContextError::TooMany);
    assert_eq!((engine.context(0), engine.frames(0)), (parked, 1));
    // A context without frames is not kept.
    engine.pop(0, true, 0).unwrap();
    engine.switch_context(0, 1).unwrap();
    assert_eq!(engine.frames(0), 1);
    assert_eq!(engine.switch_context(1, 1), Err(ContextError::Busy));
    assert_eq!(engine.switch_context(1, 2), Ok(()));
    assert_eq!(engine.frames(1), 1);
}

#[test]
fn a_hart_has_its_own_context_and_cannot_switch_during_a_transaction() {
    let (mut engine, mut memory) = engine(2, policy());
    engine.push(0, true).unwrap();
    engine.switch_context(0, 5).unwrap();
    assert_eq!(engine.frames(0), 0);
    begin(&mut engine, &mut memory, 0, 0);
    assert_eq!(engine.switch_context(0, 0), Err(ContextError::Active));
    assert!(commits(&mut engine, 0));
    // Context 0 is each hart's own, so another hart cannot occupy it.
    engine.switch_context(0, 0).unwrap();
    assert_eq!((engine.frames(0), engine.frames(1)), (1, 0));
}

#[test]
fn a_loss_of_a_suspended_transaction_counts_where_it_restarts() {
    let (mut engine, mut memory) = engine(3, policy());
    engine.switch_context(0, 9).unwrap();
    let id = begin(&mut engine, &mut memory, 0, 10);
    access(&mut engine, &mut memory, Party::Transaction(0), 20, Some(1), 11);
    engine.trap(0, 12, &mut memory);
    engine.switch_context(0, 0).unwrap();
    let (verdict, losses) = access(&mut engine, &mut memory, Party::Nontransactional(1), 20, None, 20);
    assert_eq!((verdict, losses.len(), losses[0].id, losses[0].active), (Verdict::Granted, 1, id, false));
    assert_eq!(memory.0[20], 7, "the suspended transaction is undone at once");
    assert_eq!((engine.restarts(0), engine.last_conflict(0)), (0, (0, 0)));
    // A second access finds no conflict, because the sets are empty.
    assert!(access(&mut engine, &mut memory, Party::Nontransactional(1), 20, Some(2), 21).1.is_empty());

    engine.switch_context(2, 9).unwrap();
    assert!(engine.subject(2).is_some_and(|subject| subject.doomed && subject.suspended && subject.size_words == 0));
    let Ok(Popped::Restarted(loss)) = engine.pop(2, true, 30) else { panic!("the transaction lost") };
    assert_eq!((loss.hart, loss.id, loss.active), (2, id, true));
    assert_eq!((loss.status, loss.backoff_cycles), (Cause::Nontransactional.status(0), losses[0].backoff_cycles));
    assert_eq!((engine.restarts(0), engine.restarts(2)), (0, 1));
    assert_eq!((engine.backoff_cycles(0), engine.backoff_cycles(2)), (0, loss.backoff_cycles));
    assert_eq!(engine.last_conflict(2), (20 << WORD_SHIFT, 0));
    assert_eq!(engine.checkpoint(2), Some(&10));
    assert!(commits(&mut engine, 2));
    assert_eq!((engine.begin_cycle(2), engine.begin_cycle(0)), (10, 0));
}

#[test]
fn the_loser_learns_the_word_and_the_winner() {
    let (mut engine, mut memory) = engine(2, with_manager(Manager::RequesterWins));
    begin(&mut engine, &mut memory, 0, 1);
    let winner = begin(&mut engine, &mut memory, 1, 2);
    access(&mut engine, &mut memory, Party::Transaction(0), 9, None, 3);
    access(&mut engine, &mut memory, Party::Transaction(0), 10, None, 3);
    let (_, losses) = access(&mut engine, &mut memory, Party::Transaction(1), 10, Some(1), 4);
    assert_eq!(losses[0].status, Cause::Conflict.status(0));
    assert_eq!((engine.last_conflict(0), engine.last_conflict(1)), ((10 << WORD_SHIFT, winner), (0, 0)));
    // A restart with another cause leaves both unchanged.
    engine.restart(0, Cause::Explicit.status(0), 5, &mut memory).unwrap();
    assert_eq!(engine.last_conflict(0), (10 << WORD_SHIFT, winner));
}

#[test]
fn the_requester_must_win_against_every_holder_or_none_loses() {
    let (mut engine, mut memory) = engine(3, with_manager(Manager::Timestamp));
    for (hart, now) in [(0, 5), (1, 3), (2, 1)] {
        begin(&mut engine, &mut memory, hart, now);
    }
    for hart in [0, 2] {
        access(&mut engine, &mut memory, Party::Transaction(hart), 4, None, 6);
    }
    let (verdict, losses) = access(&mut engine, &mut memory, Party::Transaction(1), 4, Some(1), 7);
    assert_eq!((verdict, losses.len(), losses[0].hart), (Verdict::Lost, 1, 1));
    assert!(engine.active_lines(0) == [0] && engine.active_lines(2) == [0]);
}

#[test]
fn the_requester_wins_only_against_transactions_suspended_in_its_own_context() {
    let (mut engine, mut memory) = engine(2, with_manager(Manager::Timestamp));
    let old = begin(&mut engine, &mut memory, 0, 1);
    access(&mut engine, &mut memory, Party::Transaction(0), 4, Some(1), 1);
    engine.push(0, false).unwrap();
    begin(&mut engine, &mut memory, 1, 2);
    assert_eq!(access(&mut engine, &mut memory, Party::Transaction(1), 4, None, 3).0, Verdict::Lost);
    begin(&mut engine, &mut memory, 0, 4);
    let (verdict, losses) = access(&mut engine, &mut memory, Party::Transaction(0), 4, None, 5);
    assert_eq!((verdict, losses[0].id), (Verdict::Granted, old));
}

#[test]
fn two_handlers_do_not_wait_for_the_transactions_that_each_other_interrupted() {
    for manager in [Manager::Timestamp, Manager::SizeMatters, Manager::OsPrio] {
        for is_transactional in [false, true] {
            let (mut engine, mut memory) = engine(2, with_manager(manager));
            for hart in [0, 1] {
                engine.set_priority(hart, 9);
                begin(&mut engine, &mut memory, hart, 1);
                access(&mut engine, &mut memory, Party::Transaction(hart), 8 * hart as u64, Some(1), 2);
                engine.trap(hart, 3, &mut memory);
                engine.set_priority(hart, 0);
                if is_transactional {
                    begin(&mut engine, &mut memory, hart, 4);
                }
            }
            let party = |hart| if is_transactional { Party::Transaction(hart) } else { Party::Arbitrated(hart) };
            let (verdict, losses) = access(&mut engine, &mut memory, party(0), 8, Some(2), 5);
            assert_eq!((verdict, losses.len(), losses[0].hart), (Verdict::Granted, 1, 1), "{}", manager.name());
            // The transaction that hart 1 interrupted holds no words any more, so hart 1 blocks no other hart, and the
            // manager decides.
            let (verdict, _) = access(&mut engine, &mut memory, party(1), 0, Some(2), 6);
            assert_eq!(verdict, if is_transactional { Verdict::Lost } else { Verdict::Refused }, "{}", manager.name());
        }
    }
}

/// Under requester-stalls, transactions of as many harts as `begins` each write a word, and then the next one's in a
/// circle. Returns who lost by then.
fn losers_of_a_circle(begins: &[u64]) -> Vec<usize> {
    let harts = begins.len();
    let (mut engine, mut memory) = engine(harts, with_manager(Manager::RequesterStalls));
    for (hart, now) in begins.iter().enumerate() {
        begin(&mut engine, &mut memory, hart, *now);
        access(&mut engine, &mut memory, Party::Transaction(hart), hart as u64, Some(1), 10);
    }
    let mut losers = Vec::new();
    for round in 0..2 {
        for hart in 0..harts {
            let word = (hart + 1) % harts;
            let party = Party::Transaction(hart);
            let (verdict, losses) = access(&mut engine, &mut memory, party, word as u64, Some(1), 20 + round);
            losers.extend(losses.iter().map(|loss| loss.hart));
            assert_eq!(verdict == Verdict::Lost, losses.iter().any(|loss| loss.hart == hart));
        }
    }
    losers
}

#[test]
fn transactions_that_wait_in_a_circle_do_not_wait_for_ever() {
    assert_eq!(losers_of_a_circle(&[1, 2]), [1]);
    assert_eq!(losers_of_a_circle(&[2, 1]), [0]);
    // The one that loses is younger than the one before it and than the one behind it.
    assert_eq!(losers_of_a_circle(&[1, 2, 3]), [2]);
    assert_eq!(losers_of_a_circle(&[2, 1, 3]), [2]);
    assert_eq!(losers_of_a_circle(&[3, 1, 2, 4]), [3]);
}

#[test]
fn a_transaction_that_restarts_blocks_nobody() {
    let (mut engine, mut memory) = engine(2, with_manager(Manager::RequesterStalls));
    begin(&mut engine, &mut memory, 0, 1);
    begin(&mut engine, &mut memory, 1, 2);
    access(&mut engine, &mut memory, Party::Transaction(0), 3, Some(1), 3);
    access(&mut engine, &mut memory, Party::Transaction(1), 4, Some(1), 3);
    let (verdict, _) = access(&mut engine, &mut memory, Party::Transaction(0), 4, Some(1), 4);
    assert!(matches!(verdict, Verdict::Wait { .. }));
    engine.restart(1, Cause::Explicit.status(0), 5, &mut memory).unwrap();
    let (verdict, _) = access(&mut engine, &mut memory, Party::Transaction(1), 3, Some(1), 6);
    assert!(matches!(verdict, Verdict::Wait { .. }), "its mark is gone");
}

#[test]
fn a_handler_does_not_wait_long_behind_a_wait_for_the_transaction_that_it_interrupted() {
    let (mut engine, mut memory) = engine(2, with_manager(Manager::RequesterStalls));
    begin(&mut engine, &mut memory, 0, 1);
    access(&mut engine, &mut memory, Party::Transaction(0), 3, Some(1), 2);
    engine.trap(0, 3, &mut memory);
    begin(&mut engine, &mut memory, 1, 4);
    access(&mut engine, &mut memory, Party::Transaction(1), 4, Some(1), 5);
    // The handler's compare-and-swap leaves no mark, so age alone would end no wait.
    let swap = |engine: &mut Engine<u32>, memory: &mut Words, now| {
        access(engine, memory, Party::Arbitrated(0), 4, Some(2), now).0
    };
    assert_eq!(swap(&mut engine, &mut memory, 6), Verdict::Refused);
    let mut now = 7;
    while let (Verdict::Wait { cycles }, _) = access(&mut engine, &mut memory, Party::Transaction(1), 3, Some(1), now) {
        now += cycles;
        assert!(now < 20_000, "the holder is suspended");
    }
    assert_eq!(swap(&mut engine, &mut memory, now), Verdict::Granted);
}

/// A transaction of hart 1 that lost to one of hart 0, which backs off for it, with the winner's id and the loser's
/// back-off.
fn loser_of_a_winner(is_suspended: bool) -> (Engine<u32>, Words, u64, u64) {
    let (mut engine, mut memory) =
        engine(2, Policy { backoff: Backoff::Winner, ..with_manager(Manager::RequesterWins) });
    let winner = begin(&mut engine, &mut memory, 0, 1);
    begin(&mut engine, &mut memory, 1, 2);
    access(&mut engine, &mut memory, Party::Transaction(1), 3, None, 3);
    if is_suspended {
        engine.push(1, false).unwrap();
    }
    let (_, losses) = access(&mut engine, &mut memory, Party::Transaction(0), 3, Some(1), 4);
    let backoff_cycles = losses[0].backoff_cycles;
    assert!(
        (1 << 16..(1 << 16) + 64).contains(&backoff_cycles),
        "the greatest bound, and a random time below the first"
    );
    (engine, memory, winner, backoff_cycles)
}

/// The back-off of hart 1 in its counters, in its register, and in the account of conflicts.
fn backoff_cycles(engine: &Engine<u32>) -> [u64; 3] {
    let accounted = engine.kinds().of(ConflictKind::Transactions).backoff_cycles;
    [engine.counters()[1].backoff_cycles, engine.backoff_cycles(1), accounted]
}

#[test]
fn a_loser_backs_off_until_the_winner_has_committed() {
    let (mut engine, mut memory, winner, unspent_cycles) = loser_of_a_winner(false);
    assert_eq!(backoff_cycles(&engine), [unspent_cycles; 3]);
    assert!(engine.release_losers(winner + 1).is_empty(), "its own end");
    assert!(commits(&mut engine, 0));
    assert_eq!(engine.release_losers(winner)[..], [1]);
    engine.shorten_backoff(1, unspent_cycles - 100);
    assert_eq!(backoff_cycles(&engine), [100; 3]);
    // What no transaction won is no account of the last winner's.
    access(&mut engine, &mut memory, Party::Transaction(1), 5, None, 300);
    let (_, losses) = access(&mut engine, &mut memory, Party::Nontransactional(0), 5, Some(1), 301);
    assert!(losses[0].backoff_cycles < 128, "random");
    assert!(engine.release_losers(winner).is_empty());
    engine.shorten_backoff(1, losses[0].backoff_cycles);
    assert_eq!(backoff_cycles(&engine), [100; 3]);
}

#[test]
fn a_suspended_loser_does_not_back_off_for_a_winner_that_has_committed() {
    let (mut engine, _, winner, unspent_cycles) = loser_of_a_winner(true);
    assert_eq!(backoff_cycles(&engine), [unspent_cycles, 0, unspent_cycles]);
    assert!(commits(&mut engine, 0));
    assert!(engine.release_losers(winner).is_empty(), "nobody is active");
    assert_eq!(backoff_cycles(&engine), [0; 3]);
    let Ok(Popped::Restarted(loss)) = engine.pop(1, false, 10) else { panic!("the transaction lost") };
    assert_eq!(loss.backoff_cycles, 0);
}

#[test]
fn a_line_that_leaves_the_cache_leaves_the_sets_of_all_transactions_of_the_hart() {
    let policies = [policy(), best_effort()];
    for policy in policies {
        let (mut engine, mut memory) = engine(2, policy);
        for word in [8, 9] {
            begin(&mut engine, &mut memory, 0, 0);
            access(&mut engine, &mut memory, Party::Transaction(0), word, None, 0);
            engine.push(0, false).unwrap();
        }
        begin(&mut engine, &mut memory, 0, 0);
        access(&mut engine, &mut memory, Party::Transaction(0), 10, None, 0);
        assert_eq!(engine.evicted(1, 0, 0, &mut memory), Evicted::Nothing);
        match engine.evicted(0, 0, 0, &mut memory) {
            Evicted::Overflowed => {
                assert_eq!((policy.mode, engine.counters()[0].overflowed_lines), (Mode::Virtualized, 3));
                assert!(engine.subject(0).is_some_and(|subject| subject.overflowed));
                assert!(engine.masks(1, 0).others_overflowed);
                // The line that left the cache still conflicts.
                assert_eq!(access(&mut engine, &mut memory, Party::Nontransactional(1), 10, Some(0), 0).1.len(), 1);
                assert_eq!(access(&mut engine, &mut memory, Party::Nontransactional(1), 8, Some(0), 0).1.len(), 1);
            }
            Evicted::Lost(losses) => {
                assert_eq!((policy.mode, losses.len()), (Mode::BestEffort, 3));
                assert!(losses.iter().all(|loss| loss.status == Cause::Capacity.status(0)));
            }
            Evicted::Nothing => panic!("the line is in three sets"),
        }
        assert_eq!(engine.evicted(0, 0, 0, &mut memory), Evicted::Nothing);
    }
}

#[test]
fn in_best_effort_mode_a_trap_ends_the_attempt_and_a_push_does_not() {
    let (mut engine, mut memory) = engine(1, best_effort());
    begin(&mut engine, &mut memory, 0, 0);
    engine.push(0, false).unwrap();
    assert_eq!(engine.pop(0, false, 0), Ok(Popped::Resumed));
    let (_, loss) = engine.trap(0, 0, &mut memory);
    assert!(loss.is_some_and(|loss| loss.status == Cause::Interrupt.status(0) && !loss.active));
    assert!(matches!(engine.pop(0, true, 0), Ok(Popped::Restarted(_))));
}

/// Tries a compare-and-swap until it is granted, and returns the number of refusals.
fn refusals(engine: &mut Engine<u32>, memory: &mut Words, word: u64, now: u64) -> u32 {
    for refusals in 0..1000 {
        match access(engine, memory, Party::Arbitrated(1), word, Some(1), now).0 {
            Verdict::Granted => return refusals,
            verdict => assert_eq!(verdict, Verdict::Refused),
        }
    }
    u32::MAX
}

#[test]
fn a_compare_and_swap_grows_old_until_it_is_granted() {
    // By size a compare-and-swap loses against everything, until its refusals reach the threshold of restarts.
    let (mut engine, mut memory) = engine(2, policy());
    begin(&mut engine, &mut memory, 0, 100);
    access(&mut engine, &mut memory, Party::Transaction(0), 4, None, 100);
    assert_eq!(access(&mut engine, &mut memory, Party::Arbitrated(1), 4, Some(1), 50).0, Verdict::Refused);
    assert_eq!(refusals(&mut engine, &mut memory, 4, 200), policy().restart_threshold - 1);
    // The next compare-and-swap begins anew, even if the last one finally met no conflict.
    begin_again(&mut engine, &mut memory, 300);
    assert_eq!(access(&mut engine, &mut memory, Party::Arbitrated(1), 4, Some(1), 250).0, Verdict::Refused);
    assert!(commits(&mut engine, 0));
    assert_eq!(refusals(&mut engine, &mut memory, 4, 400), 0);
    begin(&mut engine, &mut memory, 0, 300);
    access(&mut engine, &mut memory, Party::Transaction(0), 4, None, 300);
    assert_eq!(refusals(&mut engine, &mut memory, 4, 400), u32::MAX, "it stays younger, however often it is refused");
    assert!(engine.counters()[1].refused > 1000);
}

fn begin_again(engine: &mut Engine<u32>, memory: &mut Words, now: u64) {
    assert!(commits(engine, 0));
    begin(engine, memory, 0, now);
    access(engine, memory, Party::Transaction(0), 4, None, now);
}

#[test]
fn a_compare_and_swap_is_refused_instead_of_waiting() {
    let (mut engine, mut memory) = engine(2, with_manager(Manager::Polka));
    begin(&mut engine, &mut memory, 0, 0);
    for word in 0..16 {
        access(&mut engine, &mut memory, Party::Transaction(0), word, None, 0);
    }
    let refused = refusals(&mut engine, &mut memory, 4, 0);
    assert!((1..=16).contains(&refused), "{refused}");
    assert!(engine.subject(0).is_some_and(|subject| subject.status == Cause::Nontransactional.status(0)));
}

#[test]
fn sets_by_line_hold_the_whole_line() {
    let by_line = Policy { granularity: Granularity::Line, ..policy() };
    let (mut engine, mut memory) = engine(2, by_line);
    begin(&mut engine, &mut memory, 0, 0);
    access(&mut engine, &mut memory, Party::Transaction(0), 24, Some(1), 0);
    let masks = engine.masks(0, 1);
    assert_eq!((masks.readable, masks.writable), (0xffff, 0xffff));
    assert_eq!(engine.subject(0).map(|subject| subject.size_words), Some(8));
    let (_, losses) = access(&mut engine, &mut memory, Party::Nontransactional(1), 31, None, 0);
    assert_eq!(losses[0].restored, (16..32).collect::<Vec<_>>());
    assert_eq!(memory.0, [7; 64]);
}

#[test]
fn devices_see_committed_memory_and_win() {
    let (mut engine, mut memory) = engine(2, policy());
    for (hart, word) in [(0, 8), (1, 9)] {
        begin(&mut engine, &mut memory, hart, 0);
        access(&mut engine, &mut memory, Party::Transaction(hart), word, Some(1), 0);
    }
    engine.take_out(&mut memory);
    assert_eq!(memory.0, [7; 64]);
    let (verdict, losses) = access(&mut engine, &mut memory, Party::Device, 8, Some(5), 0);
    assert_eq!((verdict, losses[0].hart, losses[0].status), (Verdict::Granted, 0, Cause::Nontransactional.status(0)));
    engine.put_in(&mut memory);
    assert_eq!((memory.0[8], memory.0[9]), (5, 1));
    assert_eq!(engine.written_words().collect::<Vec<_>>(), [(engine.active_id(1), 9, 7)]);
}

#[test]
fn a_dropped_transaction_is_undone_and_never_restarts() {
    let (mut engine, mut memory) = engine(1, policy());
    engine.push(0, true).unwrap();
    begin(&mut engine, &mut memory, 0, 0);
    access(&mut engine, &mut memory, Party::Transaction(0), 8, Some(1), 0);
    assert_eq!(engine.drop_frame(0, 0, &mut memory), Err(ContextError::Active));
    engine.push(0, true).unwrap();
    let loss = engine.drop_frame(0, 0, &mut memory).unwrap().unwrap();
    assert_eq!((&loss.restored[..], memory.0[8]), (&[8][..], 7));
    assert!(!engine.is_live() && engine.subject(0).is_none());
    assert_eq!((engine.restarts(0), engine.counters()[0].restarts.total()), (0, 0));
    assert_eq!(engine.counters()[0].dropped, 1);
    assert_eq!(engine.drop_frame(0, 0, &mut memory), Ok(None));
    assert_eq!(engine.drop_frame(0, 0, &mut memory), Err(ContextError::Empty));
}

#[test]
fn a_reset_hart_keeps_no_state() {
    let (mut engine, mut memory) = engine(1, policy());
    engine.set_priority(0, 0x1ff);
    assert_eq!(engine.priority(0), 0xff);
    for word in [8, 9] {
        begin(&mut engine, &mut memory, 0, 0);
        access(&mut engine, &mut memory, Party::Transaction(0), word, Some(1), 0);
        engine.push(0, true).unwrap();
    }
    engine.switch_context(0, 4).unwrap();
    assert_eq!(engine.reset_hart(0, 0, &mut memory).len(), 2);
    assert_eq!((engine.priority(0), engine.context(0), engine.frames(0), engine.is_live()), (0, 0, 0, false));
    assert_eq!(memory.0, [7; 64]);
}
