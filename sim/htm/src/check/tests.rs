use super::*;

struct Words(Vec<u64>);

impl Memory for Words {
    fn load(&self, word: Word) -> u64 {
        self.0[word as usize]
    }

    fn store(&mut self, word: Word, value: u64) {
        self.0[word as usize] = value;
    }
}

const FIRST: Observer = Observer::Transaction { id: 1, hart: 0 };
const SECOND: Observer = Observer::Transaction { id: 2, hart: 1 };
const OTHER: Observer = Observer::Hart(1);

/// Transaction 1 wrote 5 over 3 in word 9.
fn written() -> (Checker, Words) {
    let mut checker = Checker::new(OutsideReads::Wins);
    let mut memory = Words(vec![3; 16]);
    memory.store(9, 5);
    checker.write(FIRST, 9, 3, 5, 0x80).unwrap();
    (checker, memory)
}

#[test]
fn only_the_writer_sees_and_overwrites_an_uncommitted_word() {
    let writer = Writer { id: 1, pc: 0x80, age_accesses: 1 };
    let walker = Observer::Walker { hart: 1, active: 2 };
    for observer in [SECOND, OTHER, Observer::Hart(0), walker, Observer::Walker { hart: 0, active: 0 }] {
        let (mut checker, _) = written();
        let violation = Violation::Uncommitted { observer, pc: 0x90, word: 9, seen: 5, committed: 3, writer };
        assert_eq!(checker.clone().read(observer, 9, 5, 0x90), Err(violation));
        assert_eq!(checker.clone().test(observer, 9, 5, 0x90), Err(violation));
        let violation = Violation::Overwritten { observer, pc: 0x90, word: 9, new: 7, committed: 3, writer };
        assert_eq!(checker.write(observer, 9, 5, 7, 0x90), Err(violation));
    }
    let (mut checker, _) = written();
    assert_eq!(checker.read(FIRST, 9, 5, 0), Ok(()));
    assert_eq!(checker.read(Observer::Walker { hart: 0, active: 1 }, 9, 5, 0), Ok(()));
    assert_eq!(checker.read(OTHER, 8, 3, 0), Ok(()));
}

#[test]
fn a_device_sees_the_committed_value() {
    let (mut checker, mut memory) = written();
    assert_eq!(checker.read(Observer::Device, 9, 3, 0), Ok(()));
    assert!(matches!(checker.read(Observer::Device, 9, 5, 0), Err(Violation::Uncommitted { .. })));
    // The transaction that wrote the word can only roll back, to the value that the device left.
    assert_eq!(checker.write(Observer::Device, 9, 3, 4, 0), Ok(()));
    assert!(matches!(checker.clone().commit(1, &memory), Err(Violation::Overwritten { new: 4, .. })));
    memory.store(9, 4);
    assert_eq!(checker.rollback(1, &memory), Ok(()));
}

#[test]
fn a_commit_needs_the_values_that_were_read_and_written() {
    let (mut checker, mut memory) = written();
    checker.read(FIRST, 10, 3, 0x84).unwrap();
    assert_eq!(checker.clone().commit(1, &memory), Ok(()));
    memory.store(10, 4);
    let violation = Violation::Order { id: 1, pc: 0x84, word: 10, seen: 3, committed: 4 };
    assert_eq!(checker.clone().commit(1, &memory), Err(violation));
    memory.store(10, 3);
    memory.store(9, 6);
    let violation = Violation::Lost { id: 1, pc: 0x80, word: 9, written: 5, found: 6 };
    assert_eq!(checker.commit(1, &memory), Err(violation));
}

#[test]
fn a_commit_is_validated_against_the_value_under_another_transactions_write() {
    let (mut checker, mut memory) = written();
    checker.read(FIRST, 10, 3, 0).unwrap();
    checker.write(SECOND, 10, 3, 4, 0).unwrap();
    memory.store(10, 4);
    assert_eq!(checker.clone().commit(1, &memory), Ok(()));
    checker.commit(2, &memory).unwrap();
    assert!(matches!(checker.commit(1, &memory), Err(Violation::Order { word: 10, .. })));
}

#[test]
fn a_transaction_may_commit_although_a_word_changed_that_it_only_tested() {
    let (mut checker, mut memory) = written();
    checker.test(FIRST, 10, 3, 0).unwrap();
    checker.write(OTHER, 10, 3, 4, 0).unwrap();
    memory.store(10, 4);
    assert_eq!(checker.commit(1, &memory), Ok(()));
}

#[test]
fn a_transaction_finds_the_values_that_it_left() {
    let (mut checker, _) = written();
    checker.read(FIRST, 10, 3, 0x84).unwrap();
    let changed = |word, seen, expected, known_pc| {
        Err(Violation::Changed { observer: FIRST, pc: 0x88, word, seen, expected, known_pc })
    };
    assert_eq!(checker.clone().read(FIRST, 10, 4, 0x88), changed(10, 4, 3, 0x84));
    assert_eq!(checker.clone().write(FIRST, 10, 4, 6, 0x88), changed(10, 4, 3, 0x84));
    assert_eq!(checker.clone().read(FIRST, 9, 3, 0x88), changed(9, 3, 5, 0x80));
    assert_eq!(checker.write(FIRST, 9, 3, 7, 0x88), changed(9, 3, 5, 0x80));
}

#[test]
fn a_rollback_restores_the_written_words_and_no_others() {
    let (mut checker, mut memory) = written();
    let violation = Violation::NotRestored { id: 1, pc: 0x80, word: 9, found: 5, committed: 3 };
    assert_eq!(checker.clone().rollback(1, &memory), Err(violation));
    checker.write(OTHER, 8, 3, 4, 0).unwrap();
    memory.store(9, 3);
    let violation = Violation::Clobbered { id: 1, word: 8, found: 3, expected: 4 };
    assert_eq!(checker.clone().rollback(1, &memory), Err(violation));
    memory.store(8, 4);
    assert_eq!(checker.rollback(1, &memory), Ok(()));
    assert_eq!(checker.write(OTHER, 9, 3, 8, 0), Ok(()));
    assert_eq!(checker.commit(1, &memory), Ok(()), "the checker forgets an attempt that rolled back");
    assert!(checker.footprints.is_empty() && checker.uncommitted.is_empty() && checker.neighbours.is_empty());
}

#[test]
fn a_walker_may_mark_an_entry_that_its_own_transaction_read() {
    let (mut checker, mut memory) = written();
    checker.read(FIRST, 10, 3, 0).unwrap();
    for (hart, active, is_serial) in [(0, 1, true), (1, 0, false)] {
        let mut checker = checker.clone();
        checker.write(Observer::Walker { hart, active }, 10, 3, 0x43, 0).unwrap();
        memory.store(10, 0x43);
        assert_eq!(checker.commit(1, &memory).is_ok(), is_serial);
    }
}

#[test]
fn a_checker_that_starts_late_knows_the_written_words() {
    let (_, memory) = written();
    let mut checker = Checker::new(OutsideReads::Wins);
    checker.adopt([(1, 9, 3)], [], &memory);
    assert!(matches!(checker.clone().read(OTHER, 9, 5, 0), Err(Violation::Uncommitted { committed: 3, .. })));
    assert!(matches!(checker.clone().rollback(1, &memory), Err(Violation::NotRestored { committed: 3, .. })));
    assert_eq!(checker.read(FIRST, 9, 5, 0), Ok(()));
    assert_eq!(checker.commit(1, &memory), Ok(()));
}

#[test]
fn a_violation_names_its_parties_addresses_and_values() {
    let (mut checker, _) = written();
    let violation = checker.read(OTHER, 9, 5, 0x90).unwrap_err();
    assert_eq!(
        violation.to_string(),
        "hart 1, outside any transaction, read 0x5 at address 0x24 (pc 0x90), where 0x3 is committed: transaction 1 wrote at \
         pc 0x80, 1 accesses ago, and has not committed"
    );
}
