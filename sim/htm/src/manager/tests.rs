use super::*;

const CONTENDER: Contender = Contender {
    id: 1,
    priority: 0,
    size_words: 10,
    begin_cycle: 100,
    restarts: 0,
    karma_words: 10,
    waits: 0,
    blocks_older: false,
    is_suspended: false,
};

fn decide(manager: Manager, requester: Contender, holder: Contender) -> Decision {
    manager.get().decide(&requester, &holder, &Policy::default())
}

#[test]
fn each_manager_goes_by_its_rule() {
    let holder = Contender { id: 2, ..CONTENDER };
    let older = Contender { begin_cycle: 99, ..CONTENDER };
    let larger = Contender { size_words: 11, begin_cycle: 101, ..CONTENDER };
    let urgent = Contender { priority: 1, size_words: 1, begin_cycle: 101, ..CONTENDER };
    let cases = [
        (Manager::Timestamp, older, Decision::RequesterWins(Rule::Age)),
        (Manager::Timestamp, larger, Decision::HolderWins(Rule::Age)),
        (Manager::Timestamp, CONTENDER, Decision::RequesterWins(Rule::Age)),
        (Manager::SizeMatters, larger, Decision::RequesterWins(Rule::Size)),
        (Manager::SizeMatters, older, Decision::RequesterWins(Rule::Age)),
        (Manager::SizeMatters, Contender { restarts: 8, ..larger }, Decision::HolderWins(Rule::Age)),
        (Manager::SizeMatters, urgent, Decision::HolderWins(Rule::Size)),
        (Manager::OsPrio, urgent, Decision::RequesterWins(Rule::Priority)),
        (Manager::OsPrio, larger, Decision::RequesterWins(Rule::Size)),
        (Manager::OsPrio, older, Decision::RequesterWins(Rule::Age)),
        (
            Manager::RequesterWins,
            Contender { begin_cycle: 101, size_words: 0, ..CONTENDER },
            Decision::RequesterWins(Rule::Requester),
        ),
    ];
    for (manager, requester, expected) in cases {
        assert_eq!(decide(manager, requester, holder), expected, "{} {requester:?}", manager.name());
    }
}

#[test]
fn a_poorer_requester_of_polka_waits_longer_and_longer_and_then_wins() {
    let requester = Contender { karma_words: 7, ..CONTENDER };
    let holder = Contender { id: 2, ..CONTENDER };
    let bounds: Vec<Decision> =
        (0..4).map(|waits| decide(Manager::Polka, Contender { waits, ..requester }, holder)).collect();
    let wait = |bound_cycles| Decision::Wait { bound_cycles };
    assert_eq!(bounds, [wait(64), wait(128), wait(256), Decision::RequesterWins(Rule::Karma)]);
    assert_eq!(decide(Manager::Polka, holder, requester), Decision::RequesterWins(Rule::Karma));
    let rich = Contender { karma_words: u64::MAX, ..holder };
    assert_eq!(decide(Manager::Polka, Contender { waits: 8, ..requester }, rich), Decision::RequesterWins(Rule::Karma));
}

#[test]
fn requester_stalls_waits_until_a_cycle_is_possible() {
    let decides = |requester, holder| decide(Manager::RequesterStalls, requester, holder);
    let wait = |bound_cycles| Decision::Wait { bound_cycles };
    let older = Contender { id: 2, begin_cycle: 99, ..CONTENDER };
    let blocking = |contender| Contender { blocks_older: true, ..contender };
    assert_eq!([decides(CONTENDER, older), decides(older, CONTENDER)], [wait(64), wait(64)]);
    assert_eq!(decides(blocking(CONTENDER), older), Decision::HolderWins(Rule::Age));
    assert_eq!(decides(CONTENDER, blocking(older)), wait(64), "the requester's own mark counts");
    assert_eq!(decides(blocking(older), CONTENDER), wait(64), "no cycle ends with a wait for a younger one");
}

#[test]
fn requester_stalls_goes_by_age_in_the_end_and_soon_where_marks_show_no_cycle() {
    let decides = |requester, holder| decide(Manager::RequesterStalls, requester, holder);
    let outside = Contender { id: u64::MAX, size_words: 0, ..CONTENDER };
    for (party, is_suspended, rounds) in
        [(CONTENDER, false, 1 << 14), (CONTENDER, true, 1 << 7), (outside, false, 1 << 7)]
    {
        let after = |waits| Contender { waits, ..party };
        let holder = |begin_cycle| Contender { id: 2, begin_cycle, is_suspended, ..CONTENDER };
        assert_eq!(decides(after(rounds - 1), holder(101)), Decision::Wait { bound_cycles: 64 }, "{rounds}");
        assert_eq!(decides(after(rounds), holder(101)), Decision::RequesterWins(Rule::Age), "{rounds}");
        assert_eq!(decides(after(rounds), holder(99)), Decision::HolderWins(Rule::Age), "{rounds}");
    }
}

#[test]
fn polka_goes_by_age_when_a_transaction_starves() {
    let older = Contender { begin_cycle: 99, ..CONTENDER };
    let rich = Contender { id: 2, karma_words: 1000, restarts: 8, ..CONTENDER };
    assert_eq!(decide(Manager::Polka, older, rich), Decision::RequesterWins(Rule::Age));
    assert_eq!(decide(Manager::Polka, rich, older), Decision::HolderWins(Rule::Age));
}

#[test]
fn back_off_doubles_to_the_limit_and_further_where_the_requester_wins() {
    let bound = |manager, count| Policy { manager, ..Policy::default() }.backoff_bound_cycles(count);
    assert_eq!(
        [0, 1, 10, 11, u32::MAX].map(|count| bound(Manager::Timestamp, count)),
        [64, 128, 1 << 16, 1 << 16, 1 << 16]
    );
    assert_eq!(
        [0, 1, 10, 11, 30].map(|count| bound(Manager::RequesterWins, count)),
        [64, 128, 1 << 16, 1 << 17, 1 << 22]
    );
    let steep = Policy { backoff_exponent_max: u32::MAX, ..Policy::default() };
    assert_eq!(steep.backoff_bound_cycles(u32::MAX), u64::MAX);
    let none = Policy { backoff_base_cycles: 0, ..Policy::default() };
    assert_eq!(none.backoff_bound_cycles(5), 1);
}

#[test]
fn managers_without_waiting_agree_from_both_sides() {
    // Whichever of two transactions is the requester, the same one must win, or they could end each other for ever.
    let mut state = 1u64;
    let mut draw = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % bound
    };
    for _ in 0..10_000 {
        let mut contender = |id| Contender {
            id,
            priority: draw(3) as u8,
            size_words: draw(4),
            begin_cycle: draw(3),
            restarts: draw(10) as u32,
            ..CONTENDER
        };
        let (first, second) = (contender(1), contender(2));
        for manager in [Manager::Timestamp, Manager::SizeMatters, Manager::OsPrio] {
            let forward = matches!(decide(manager, first, second), Decision::RequesterWins(_));
            let backward = matches!(decide(manager, second, first), Decision::RequesterWins(_));
            assert_ne!(forward, backward, "{} {first:?} {second:?}", manager.name());
        }
    }
}

/// The manager of `docs/how-to/contention-manager.md`. Its file's contents and a line of the registry suffice.
mod toy {
    use super::super::{Contender, ContentionManager, Decision, Rule};
    use crate::policy::Policy;
    use serde::{Deserialize, Serialize};

    struct HolderWins;

    impl ContentionManager for HolderWins {
        fn decide(&self, _: &Contender, _: &Contender, _: &Policy) -> Decision {
            Decision::HolderWins(Rule::Age)
        }
    }

    managers! {
        HolderWins = "holder-wins" => HolderWins;
    }

    #[test]
    fn a_line_of_the_registry_names_parses_and_finds_a_manager() {
        assert_eq!(Manager::ALL, [Manager::HolderWins]);
        let text = serde_json::to_string(&Manager::HolderWins).unwrap();
        assert_eq!(text, "\"holder-wins\"");
        assert_eq!(text.trim_matches('"'), Manager::HolderWins.name());
        assert_eq!(serde_json::from_str::<Manager>(&text).unwrap(), Manager::HolderWins);
        let contender = super::CONTENDER;
        let decision = Manager::HolderWins.get().decide(&contender, &contender, &Policy::default());
        assert_eq!(decision, Decision::HolderWins(Rule::Age));
    }
}
