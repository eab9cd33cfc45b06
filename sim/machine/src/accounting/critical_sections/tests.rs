use super::report::{SectionLockResult, SectionResult};
use super::*;
use crate::accounting::origins::Origin;
use crate::data::DataNames;
use concord_abi::htm::Cause;
use std::collections::BTreeMap;

const LOCK: u64 = 0xffff_0000;
const OTHER: u64 = 0xffff_0040;
const SITE: u64 = 0x8000_0010;
const INNER: u64 = 0x8000_0020;
const HANDLER: u64 = 0x8000_0030;

/// What one hart says, at times that the test gives.
struct Guest {
    sections: CriticalSections,
    transactions: Vec<u64>,
}

impl Guest {
    fn new(harts: usize) -> Guest {
        Guest { sections: CriticalSections::new(harts), transactions: vec![0; harts] }
    }

    fn say(&mut self, hart: usize, now: u64, code: u16, lock: u64, call_site: u64) {
        let transaction = self.transactions[hart];
        self.sections.hint(&LockHint { hart, code, lock, call_site, now, transaction });
    }

    fn locked(&mut self, hart: usize, now: u64, lock: u64, call_site: u64) {
        self.say(hart, now, Hint::SectionLocked as u16, lock, call_site);
    }

    fn transactional(&mut self, hart: usize, now: u64, lock: u64, call_site: u64) {
        self.say(hart, now, Hint::SectionTransactional as u16, lock, call_site);
    }

    fn end(&mut self, hart: usize, now: u64, lock: u64) {
        self.say(hart, now, Hint::SectionEnd as u16, lock, 0);
    }

    fn spin(&mut self, hart: usize, now: u64, lock: u64) {
        self.say(hart, now, Hint::LockSpinBegin as u16, lock, 0);
    }

    fn test(&mut self, hart: usize, now: u64) {
        self.say(hart, now, Hint::LockTest as u16, 0, 0);
    }

    /// An active transaction loses: the attempt that began at `begin` is over at `now`, and it backs off.
    fn restart(&mut self, hart: usize, cause: Cause, begin: u64, now: u64, backoff_cycles: u64) {
        let id = self.transactions[hart];
        self.sections.rolled_back(&Rollback { hart, id, cause, active: true, attempt_cycle: begin });
        self.sections.restarted(hart, id, cause, now - begin, backoff_cycles);
    }

    fn commit(&mut self, hart: usize, now: u64) {
        let id = std::mem::take(&mut self.transactions[hart]);
        self.sections.committed(hart, id, now);
    }

    /// The results by call site, as far as they are at addresses.
    fn results(&self) -> BTreeMap<u64, SectionResult> {
        let results = self.sections.profile().sections(None, &DataNames::default());
        results.into_iter().filter_map(|result| Some((address(&result.site)?, result))).collect()
    }

    fn locks(&self) -> Vec<SectionLockResult> {
        self.sections.profile().locks(&DataNames::default())
    }

    /// Nothing is open and nothing waits.
    fn is_idle(&self) -> bool {
        self.sections.open_by_hash.iter().all(|count| *count == 0)
            && self.sections.harts.iter().all(|hart| {
                hart.open.is_empty()
                    && hart.spins.is_empty()
                    && hart.abandoned.is_empty()
                    && hart.transactions.is_empty()
            })
    }
}

fn address(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

fn causes<const N: usize>(causes: [(&str, u64); N]) -> BTreeMap<String, u64> {
    causes.map(|(cause, number)| (cause.to_owned(), number)).into()
}

#[test]
fn locked_sections_nest_and_end_in_any_order() {
    let mut guest = Guest::new(1);
    guest.locked(0, 100, LOCK, SITE);
    guest.locked(0, 110, OTHER, INNER);
    // Hand over hand.
    guest.end(0, 130, LOCK);
    guest.locked(0, 140, LOCK, SITE);
    guest.end(0, 190, OTHER);
    guest.end(0, 200, LOCK);
    guest.end(0, 210, LOCK);
    let results = guest.results();
    let (outer, inner) = (&results[&SITE], &results[&INNER]);
    assert_eq!((outer.totals.locked, outer.totals.hold_cycles), (2, 30 + 60));
    assert_eq!((inner.totals.locked, inner.totals.hold_cycles), (1, 80));
    assert_eq!((outer.locks, outer.totals.contended, outer.kind.as_str()), (1, 0, "spin"));
    assert!(guest.is_idle());
}

#[test]
fn a_spin_ends_with_the_lock_or_is_taken_over_by_the_next_section() {
    let mut guest = Guest::new(1);
    guest.spin(0, 100, LOCK);
    guest.test(0, 110);
    guest.test(0, 120);
    // The slow path says again that it spins.
    guest.spin(0, 125, LOCK);
    guest.say(0, 130, Hint::LockTestAndSet as u16, LOCK, 0);
    guest.locked(0, 150, LOCK, SITE);
    guest.end(0, 160, LOCK);
    guest.test(0, 165);

    guest.spin(0, 200, LOCK);
    guest.test(0, 210);
    guest.say(0, 230, Hint::LockSpinAbandoned as u16, LOCK, 0);
    guest.locked(0, 300, OTHER, INNER);
    guest.locked(0, 310, LOCK, SITE);
    guest.end(0, 320, LOCK);
    guest.end(0, 320, OTHER);
    let results = guest.results();
    let totals = &results[&SITE].totals;
    assert_eq!((totals.locked, totals.contended, totals.spin_cycles), (2, 2, 50 + 30));
    assert_eq!((totals.test_loops, totals.test_and_set_loops), (3, 1));
    assert_eq!(results[&INNER].totals.contended, 0, "it was another lock's");
    assert_eq!(guest.locks()[0].totals.spin_cycles, 80);
    assert!(guest.is_idle());
}

#[test]
fn spins_that_no_section_takes_over_belong_to_no_call_site() {
    let mut guest = Guest::new(1);
    for lock in 0..=WAITING_MAX as u64 {
        guest.spin(0, 1000 * lock, 0x1000 + 64 * lock);
        guest.say(0, 1000 * lock + 7, Hint::LockSpinAbandoned as u16, 0x1000 + 64 * lock, 0);
    }
    let results = guest.sections.profile().sections(None, &DataNames::default());
    assert_eq!((results.len(), results[0].site.as_str(), results[0].totals.spin_cycles), (1, "[others]", 7));
}

#[test]
fn what_a_handler_spins_is_not_the_spin_that_it_interrupted() {
    let mut guest = Guest::new(1);
    guest.spin(0, 100, LOCK);
    guest.spin(0, 200, OTHER);
    guest.test(0, 210);
    guest.locked(0, 240, OTHER, HANDLER);
    guest.end(0, 250, OTHER);
    guest.test(0, 260);
    guest.locked(0, 300, LOCK, SITE);
    let results = guest.results();
    assert_eq!((results[&HANDLER].totals.spin_cycles, results[&HANDLER].totals.test_loops), (40, 1));
    assert_eq!((results[&SITE].totals.spin_cycles, results[&SITE].totals.test_loops), (200 - 40, 1));
}

#[test]
fn sections_in_a_transaction_count_when_it_commits() {
    let mut guest = Guest::new(1);
    guest.transactions[0] = 5;
    guest.transactional(0, 110, LOCK, SITE);
    guest.transactional(0, 120, OTHER, INNER);
    guest.end(0, 125, OTHER);
    // A lock inside a transaction, as one that is safe there.
    guest.say(0, 126, Hint::SectionLocked as u16 + SectionKind::Raw as u16, OTHER, HANDLER);
    guest.end(0, 129, OTHER);
    guest.end(0, 140, LOCK);
    assert!(guest.results().is_empty(), "it may yet restart");
    guest.commit(0, 150);
    let results = guest.results();
    let numbers = |site| {
        let totals = &results[&site].totals;
        [totals.transactional, totals.transactional_cycles, totals.locked, totals.hold_cycles]
    };
    assert_eq!([SITE, INNER, HANDLER].map(numbers), [[1, 30, 0, 0], [1, 5, 0, 0], [0, 0, 1, 3]]);
    assert_eq!(results[&HANDLER].kind, "raw");
    assert!(guest.is_idle());
}

#[test]
fn a_restart_drops_sections_and_spins_and_belongs_to_the_outermost() {
    let mut guest = Guest::new(2);
    guest.transactions[0] = 5;
    for (begin, cause) in [(100, Cause::Conflict), (1000, Cause::NeedExclusive), (2000, Cause::NeedExclusive)] {
        guest.spin(0, begin + 2, LOCK);
        guest.test(0, begin + 3);
        guest.transactional(0, begin + 10, LOCK, SITE);
        guest.transactional(0, begin + 20, OTHER, INNER);
        if cause == Cause::NeedExclusive {
            guest.sections.needs_exclusive(0, 5, 0x8000_1000 + begin, Origin::SystemCall);
        }
        guest.restart(0, cause, begin, begin + 50, 30);
    }
    // Harts do not meet sections that were dropped.
    guest.locked(1, 2055, OTHER, HANDLER);
    // The third restart used the budget up.
    guest.commit(0, 2090);
    guest.locked(0, 2095, LOCK, SITE);
    guest.end(0, 2100, LOCK);
    let results = guest.results();
    let totals = &results[&SITE].totals;
    assert_eq!((totals.locked, totals.transactional, totals.spin_cycles, totals.test_loops), (1, 0, 0, 0));
    assert_eq!(totals.restarts, causes([("conflict", 1), ("need-exclusive", 2)]));
    assert_eq!(totals.restart_cycles, causes([("conflict", 80), ("need-exclusive", 160)]));
    assert_eq!(totals.exclusive_after, causes([("need-exclusive", 1)]));
    assert_eq!(totals.io_restarts_by_depth, [0, 2]);
    assert_eq!(results[&SITE].io_restarts_at, causes([("0x800013e8", 1), ("0x800017d0", 1)]));
    assert!(!results.contains_key(&INNER));
    assert_eq!(results[&HANDLER].totals.concurrency, [1]);
    let lock = &guest.locks()[0];
    assert_eq!((lock.lock.as_str(), lock.totals.restart_cycles, lock.totals.locked), ("0xffff0000", 240, 1));
}

#[test]
fn a_restart_that_another_try_follows_led_to_no_lock() {
    let mut guest = Guest::new(1);
    guest.transactions[0] = 5;
    guest.transactional(0, 110, LOCK, SITE);
    guest.restart(0, Cause::Conflict, 100, 150, 0);
    guest.transactional(0, 160, LOCK, SITE);
    guest.end(0, 170, LOCK);
    guest.commit(0, 180);
    guest.locked(0, 200, LOCK, SITE);
    guest.end(0, 210, LOCK);
    let totals = &guest.results()[&SITE].totals;
    assert_eq!((totals.locked, totals.transactional, totals.restarts["conflict"]), (1, 1, 1));
    assert_eq!(totals.exclusive_after, causes([]));
}

#[test]
fn a_restart_before_any_section_belongs_to_the_next_one() {
    let mut guest = Guest::new(1);
    // It loses while it subscribes to the lock, and then it is a transaction all the same ...
    guest.transactions[0] = 5;
    guest.restart(0, Cause::Nontransactional, 100, 107, 3);
    guest.transactional(0, 120, LOCK, SITE);
    guest.end(0, 130, LOCK);
    guest.commit(0, 140);
    // ... or has the lock.
    guest.transactions[0] = 6;
    guest.restart(0, Cause::Conflict, 200, 220, 0);
    guest.commit(0, 230);
    guest.locked(0, 240, OTHER, INNER);
    guest.end(0, 250, OTHER);
    let results = guest.results();
    assert_eq!(results[&SITE].totals.restart_cycles, causes([("nontransactional", 10)]));
    assert_eq!(results[&SITE].totals.exclusive_after, causes([]));
    assert_eq!(results[&INNER].totals.restart_cycles, causes([("conflict", 20)]));
    assert_eq!(results[&INNER].totals.exclusive_after, causes([("conflict", 1)]));
    assert!(guest.is_idle());
}

#[test]
fn a_handler_above_a_suspended_transaction_has_its_own() {
    let mut guest = Guest::new(1);
    guest.transactions[0] = 5;
    guest.transactional(0, 110, LOCK, SITE);
    guest.sections.suspended(0, 5, 120);
    // The handler: a lock, and a transaction that restarts once, in which the same lock is another section.
    guest.transactions[0] = 0;
    guest.locked(0, 125, OTHER, HANDLER);
    guest.transactions[0] = 6;
    guest.transactional(0, 130, LOCK, INNER);
    guest.restart(0, Cause::Explicit, 126, 136, 0);
    guest.transactional(0, 140, LOCK, INNER);
    guest.end(0, 147, LOCK);
    guest.commit(0, 150);
    guest.end(0, 155, OTHER);
    guest.sections.resumed(0, 5, 160);
    guest.transactions[0] = 5;
    // It loses after all: 10 cycles before the handler and 20 behind it.
    guest.restart(0, Cause::Conflict, 110, 180, 0);
    guest.transactional(0, 190, LOCK, SITE);
    guest.end(0, 200, LOCK);
    guest.commit(0, 201);
    let results = guest.results();
    assert_eq!(results[&SITE].totals.restart_cycles, causes([("conflict", 30)]));
    assert_eq!((results[&SITE].totals.transactional, results[&SITE].totals.transactional_cycles), (1, 10));
    assert_eq!((results[&INNER].totals.transactional, results[&INNER].totals.transactional_cycles), (1, 7));
    assert_eq!(results[&INNER].totals.restart_cycles, causes([("explicit", 10)]));
    assert_eq!((results[&HANDLER].totals.locked, results[&HANDLER].totals.hold_cycles), (1, 30));
    assert!(guest.is_idle());
}

#[test]
fn a_suspended_transaction_loses_what_it_did_until_then_and_restarts_on_another_hart() {
    let mut guest = Guest::new(2);
    guest.transactions[0] = 5;
    guest.transactional(0, 110, LOCK, SITE);
    guest.sections.suspended(0, 5, 140);
    let rollback = Rollback { hart: 0, id: 5, cause: Cause::Conflict, active: false, attempt_cycle: 100 };
    guest.sections.rolled_back(&rollback);
    guest.locked(1, 500, LOCK, INNER);
    guest.end(1, 510, LOCK);
    // The thread goes on over there.
    guest.sections.restarted(1, 5, Cause::Conflict, 0, 25);
    guest.transactions[1] = 5;
    guest.transactional(1, 1000, LOCK, SITE);
    guest.end(1, 1010, LOCK);
    guest.commit(1, 1011);
    let results = guest.results();
    assert_eq!(results[&SITE].totals.restarts, causes([("conflict", 1)]));
    assert_eq!(results[&SITE].totals.restart_cycles, causes([("conflict", 40 + 25)]));
    assert_eq!(results[&INNER].totals.concurrency, [1], "the section was gone");
    assert!(guest.is_idle());
}

#[test]
fn a_transaction_that_is_given_up_leaves_nothing() {
    let mut guest = Guest::new(1);
    guest.transactions[0] = 5;
    guest.transactional(0, 110, LOCK, SITE);
    guest.sections.suspended(0, 5, 140);
    guest.sections.rolled_back(&Rollback { hart: 0, id: 5, cause: Cause::None, active: false, attempt_cycle: 100 });
    assert!(guest.results().is_empty());
    assert!(guest.is_idle());
}

#[test]
fn a_cut_back_off_costs_what_it_took_and_waits_count_where_they_led_to_a_commit() {
    let mut guest = Guest::new(1);
    guest.transactions[0] = 5;
    guest.transactional(0, 110, LOCK, SITE);
    guest.restart(0, Cause::Conflict, 100, 120, 50);
    guest.sections.stall_was_cut(0, 5, 20);
    guest.transactional(0, 160, LOCK, SITE);
    guest.sections.waits(0, 5, 40);
    guest.sections.stall_was_cut(0, 5, 15);
    guest.commit(0, 300);
    let totals = &guest.results()[&SITE].totals;
    assert_eq!(totals.restart_cycles, causes([("conflict", 20 + 30)]));
    assert_eq!((totals.wait_cycles, totals.transactional_cycles), (25, 140));
    assert_eq!(guest.locks()[0].totals.restart_cycles, 50);
}

#[test]
fn concurrency_is_counted_by_lock_over_all_harts() {
    let mut guest = Guest::new(4);
    for hart in 0..3 {
        guest.transactions[hart] = 10 + hart as u64;
        guest.transactional(hart, 100, LOCK, SITE);
    }
    guest.locked(3, 100, OTHER, INNER);
    // The second restarts, and finds the two others.
    guest.restart(1, Cause::Conflict, 90, 110, 0);
    guest.transactional(1, 120, LOCK, SITE);
    // One's own section is no other.
    guest.transactional(1, 125, LOCK, HANDLER);
    for hart in 0..3 {
        guest.commit(hart, 200);
    }
    let results = guest.results();
    assert_eq!((&results[&SITE].totals.concurrency[..], results[&SITE].totals.concurrency_max), (&[1, 0, 2][..], 3));
    assert_eq!(results[&HANDLER].totals.concurrency, [0, 0, 1]);
    assert_eq!(results[&INNER].totals.concurrency_max, 1);
    assert_eq!(guest.locks()[0].totals.concurrency_max, 3);
}

#[test]
fn a_lock_is_released_on_another_hart() {
    let mut guest = Guest::new(3);
    guest.locked(1, 100, LOCK, SITE);
    guest.end(2, 130, OTHER);
    guest.end(2, 140, LOCK);
    assert_eq!(guest.results()[&SITE].totals.hold_cycles, 40);
    assert!(guest.is_idle());
}

#[test]
fn locks_of_a_call_site_are_counted_up_to_a_bound() {
    let mut guest = Guest::new(1);
    for lock in 0..400_u64 {
        guest.locked(0, lock, LOCK + 64 * (lock % 300), SITE);
        guest.end(0, lock, LOCK + 64 * (lock % 300));
    }
    assert_eq!(guest.results()[&SITE].locks, 256);
    assert_eq!(guest.locks().len(), 200);
}

#[test]
fn a_guest_that_only_ever_begins_fills_no_memory() {
    let mut guest = Guest::new(1);
    for count in 0..100_000_u64 {
        guest.locked(0, count, LOCK + 64 * count, SITE + 4 * count);
        guest.spin(0, count, LOCK + 64 * count);
    }
    assert_eq!((guest.sections.harts[0].open.len(), guest.sections.harts[0].spins.len()), (OPEN_MAX, OPEN_MAX));
    assert_eq!(guest.sections.sites.len(), SITES_MAX);
    guest.transactions[0] = 5;
    for count in 0..100_000_u64 {
        guest.transactional(0, count, LOCK, SITE);
        guest.end(0, count, LOCK);
    }
    assert_eq!(guest.sections.harts[0].transactions[0].sections.len(), TRANSACTION_SECTIONS_MAX);
    guest.commit(0, 200_000);
    let totals = guest.sections.profile().totals();
    assert_eq!((totals["spin"].locked, totals["spin"].transactional), (100_000, TRANSACTION_SECTIONS_MAX as u64));
}

#[test]
fn totals_are_sums_by_kind_and_the_costliest_come_first() {
    let mut guest = Guest::new(1);
    for (index, (kind, _)) in SectionKind::ALL.into_iter().enumerate() {
        for site in [SITE, INNER] {
            let begin = 1000 * index as u64;
            guest.spin(0, begin, LOCK);
            guest.say(0, begin + 10 + index as u64, Hint::SectionLocked as u16 + kind as u16, LOCK, site);
            guest.end(0, begin + 100, LOCK);
        }
    }
    let profile = guest.sections.profile();
    let spins: Vec<u64> =
        profile.sections(None, &DataNames::default()).iter().map(|result| result.totals.spin_cycles).collect();
    assert_eq!(spins, [14, 14, 13, 13, 12, 12, 11, 11, 10, 10]);
    let totals = profile.totals();
    let sums: Vec<(&str, u64)> = totals.iter().map(|(kind, totals)| (kind.as_str(), totals.spin_cycles)).collect();
    assert_eq!(sums, [("raw", 22), ("read", 24), ("seqlock", 28), ("spin", 20), ("write", 26)]);
}

#[test]
fn the_region_of_interest_begins_with_what_is_open() {
    let mut guest = Guest::new(2);
    guest.locked(0, 10, OTHER, INNER);
    guest.end(0, 20, OTHER);
    guest.locked(0, 30, LOCK, SITE);
    guest.spin(1, 40, LOCK);
    guest.sections.reset(|hart| 100 + hart as u64);
    assert!(guest.results().is_empty());
    guest.end(0, 150, LOCK);
    guest.locked(1, 160, LOCK, HANDLER);
    let results = guest.results();
    assert_eq!((results[&SITE].totals.locked, results[&SITE].totals.hold_cycles), (0, 50));
    assert_eq!(results[&HANDLER].totals.spin_cycles, 160 - 101);
    assert!(!results.contains_key(&INNER));
}

#[test]
fn saved_sections_go_on_and_impossible_ones_are_refused() {
    let mut guest = Guest::new(2);
    guest.locked(0, 10, OTHER, INNER);
    guest.spin(0, 12, LOCK);
    guest.transactions[1] = 5;
    guest.transactional(1, 20, LOCK, SITE);
    guest.restart(1, Cause::Conflict, 15, 30, 5);
    guest.transactional(1, 40, LOCK, SITE);
    let bytes = postcard::to_stdvec(&guest.sections).unwrap();
    let read = || postcard::from_bytes::<CriticalSections>(&bytes).unwrap();
    let mut restored = Guest { sections: read(), transactions: guest.transactions.clone() };
    assert!(restored.sections.restore(2));
    for guest in [&mut guest, &mut restored] {
        guest.end(0, 50, OTHER);
        guest.locked(0, 55, LOCK, HANDLER);
        guest.end(1, 60, LOCK);
        guest.commit(1, 70);
    }
    assert_eq!(restored.sections.profile(), guest.sections.profile());
    assert_eq!(restored.results()[&HANDLER].totals.concurrency, [0, 1]);
    let damaged: [&dyn Fn(&mut CriticalSections); 9] = [
        &|_| {},
        &|sections| sections.harts[0].open[0].site = 7,
        &|sections| sections.harts[0].open[0].is_open = false,
        &|sections| sections.harts[1].transactions[0].sections[0].others = 2,
        &|sections| sections.harts[1].transactions[0].depth = 2,
        &|sections| sections.harts[1].transactions[0].outermost = Some((9, 0)),
        &|sections| sections.harts[0].booked_cycles = u64::MAX,
        &|sections| sections.sites.truncate(4),
        &|sections| sections.sites[5].totals.hold_cycles = u64::MAX,
    ];
    for (index, damage) in damaged.iter().enumerate() {
        let mut sections = read();
        damage(&mut sections);
        assert_eq!(sections.restore(2), index == 0, "{index}");
        assert!(!sections.restore(1), "{index}");
    }
}
