//! Accesses to memory: ask, roll the losers back, join the sets, access.

use super::{Failure, Flow, World};
use crate::fault::{Fault, Undoing, word_beside};
use crate::program::WORDS;
use crate::serial::Access;
use concord_htm::check::Observer;
use concord_htm::policy::OutsideReads;
use concord_htm::{DeferredAdd, Evicted, Party, Request, Verdict, WORD_SHIFT, Word};
use std::collections::BTreeMap;

/// The bit that a walker sets in a word.
const MARK: u64 = 1 << 63;

impl World<'_> {
    pub(super) fn load(&mut self, hart: usize, index: usize, words: &[Word]) -> Result<Flow, Failure> {
        if !self.enter(hart, words, false, false)? {
            return Ok(Flow::Stay);
        }
        for word in words {
            let value = self.read(hart, *word)?;
            self.threads[index].register = mix(self.threads[index].register, value);
        }
        Ok(Flow::Next)
    }

    pub(super) fn store(&mut self, hart: usize, words: &[Word], value: u64) -> Result<Flow, Failure> {
        if !self.enter(hart, words, true, false)? {
            return Ok(Flow::Stay);
        }
        for word in words {
            self.write(hart, *word, mix(value, *word))?;
        }
        Ok(Flow::Next)
    }

    pub(super) fn swap(&mut self, hart: usize, index: usize, word: Word, salt: u8) -> Result<Flow, Failure> {
        if !self.enter(hart, &[word], true, true)? {
            return Ok(Flow::Stay);
        }
        let old = self.read(hart, word)?;
        let register = std::mem::replace(&mut self.threads[index].register, old);
        self.write(hart, word, mix(register, salt.into()))?;
        Ok(Flow::Next)
    }

    /// An addition whose result nobody reads. Words keep 32 bits of the sum.
    pub(super) fn add(&mut self, hart: usize, word: Word, amount: u64) -> Result<Flow, Failure> {
        let add = DeferredAdd { address: word << WORD_SHIFT, size_bytes: 4, amount, pc: self.now };
        if self.engine.defer(hart, add) {
            if let Some(checker) = &mut self.checker {
                checker.defer(self.engine.active_id(hart), &add);
            }
            return Ok(Flow::Next);
        }
        if !self.enter(hart, &[word], true, true)? {
            return Ok(Flow::Stay);
        }
        let old = self.read(hart, word)?;
        self.write(hart, word, add.apply(old))?;
        Ok(Flow::Next)
    }

    /// Makes ordinary accesses of deferred additions to the granules of words that are about to be accessed; returns false if
    /// the access must not happen now.
    fn add_before(&mut self, hart: usize, words: &[Word]) -> Result<bool, Failure> {
        for (line, mask) in lines(words) {
            while let Some(add) = self.engine.deferred_at(hart, line, mask) {
                let word = add.address >> WORD_SHIFT;
                if self.ask(Party::Transaction(hart), &[word], true, false)? != Verdict::Granted {
                    return Ok(false);
                }
                self.join(hart, &[word], true);
                self.engine.forget_deferred(hart, &add);
                self.seen.undeferred += 1;
                let old = self.read(hart, word)?;
                self.write(hart, word, add.apply(old))?;
                self.check_add(hart, &add, old)?;
            }
        }
        Ok(true)
    }

    pub(super) fn add_at_commit(&mut self, hart: usize) -> Result<(), Failure> {
        let adds = self.engine.take_deferred_at_commit(hart);
        for add in &adds {
            let verdict = self.ask(Party::Nontransactional(hart), &[add.address >> WORD_SHIFT], true, false)?;
            assert_eq!(verdict, Verdict::Granted, "a commit cannot fail");
        }
        let times = if self.options.fault == Some(Fault::AddedTwice) { 2 } else { 1 };
        for add in adds.iter().flat_map(|add| std::iter::repeat_n(add, times)) {
            let word = add.address >> WORD_SHIFT;
            let (observer, old) = (self.observer(hart), self.memory[word as usize]);
            if let Some(checker) = &mut self.checker {
                checker.write(observer, word, old, add.apply(old), self.now)?;
            }
            self.memory[word as usize] = add.apply(old);
            self.check_add(hart, add, old)?;
        }
        self.seen.added += adds.len() as u64;
        for add in adds {
            self.log(hart, Access::Add { word: add.address >> WORD_SHIFT, amount: add.amount });
        }
        Ok(())
    }

    fn check_add(&mut self, hart: usize, add: &DeferredAdd, old: u64) -> Result<(), Failure> {
        let id = self.engine.active_id(hart);
        if let Some(checker) = &mut self.checker {
            checker.add(id, add, old, add.apply(old))?;
        }
        Ok(())
    }

    pub(super) fn compare_and_swap(
        &mut self,
        hart: usize,
        index: usize,
        word: Word,
        hits: bool,
        salt: u8,
    ) -> Result<Flow, Failure> {
        let party = if self.engine.is_active(hart) { Party::Transaction(hart) } else { Party::Arbitrated(hart) };
        if !self.add_before(hart, &[word])? {
            return Ok(Flow::Stay);
        }
        let expected = self.expected(word, hits);
        if self.ask(party, &[word], false, false)? != Verdict::Granted {
            return Ok(Flow::Stay);
        }
        let equal = self.memory[word as usize] == expected;
        if equal && self.ask(party, &[word], true, false)? != Verdict::Granted {
            // Refused software tries again.
            return Ok(Flow::Stay);
        }
        self.join(hart, &[word], false);
        let value = self.read(hart, word)?;
        if equal {
            self.join(hart, &[word], true);
            self.write(hart, word, mix(value, salt.into()))?;
        }
        let register = &mut self.threads[index].register;
        *register = mix(*register, equal.into());
        Ok(Flow::Next)
    }

    pub(super) fn test(&mut self, hart: usize, index: usize, word: Word, hits: bool) -> Result<Flow, Failure> {
        if !self.add_before(hart, &[word])? {
            return Ok(Flow::Stay);
        }
        let expected = self.expected(word, hits);
        if self.ask(self.reader(hart), &[word], false, false)? != Verdict::Granted {
            return Ok(Flow::Stay);
        }
        let value = self.seen(hart, word);
        let equal = value == expected;
        if equal {
            self.join(hart, &[word], false);
            self.read(hart, word)?;
        } else {
            let observer = self.observer(hart);
            if let Some(checker) = &mut self.checker {
                checker.test(observer, word, value, self.now)?;
            }
            // The observed value was committed at that time, whatever happens to its transaction.
            if !self.wrote(hart, word) {
                self.events.push(vec![Access::Read { word, value }]);
            }
        }
        let register = &mut self.threads[index].register;
        *register = mix(*register, equal.into());
        Ok(Flow::Next)
    }

    pub(super) fn evict(&mut self, hart: usize, line: u64) -> Result<Flow, Failure> {
        let memory = &mut Undoing::new(&mut self.memory, self.options.fault);
        match self.engine.evicted(hart, line, self.now, memory) {
            Evicted::Nothing => {}
            Evicted::Overflowed
                if self.options.fault == Some(Fault::ForgottenOnEviction)
                    && self.engine.active_lines(hart).contains(&line) =>
            {
                self.forgotten.insert(line, self.engine.active_id(hart));
            }
            Evicted::Overflowed => {}
            Evicted::Lost(losses) => {
                self.losses.extend(losses);
                self.settle()?;
            }
        }
        Ok(Flow::Next)
    }

    /// A device reads committed memory, and wins when it writes.
    pub(super) fn device(&mut self, word: Word, is_write: bool) -> Result<Flow, Failure> {
        self.engine.take_out(&mut Undoing::new(&mut self.memory, None));
        let value = self.memory[word as usize];
        let mut event = vec![Access::Read { word, value }];
        if let Some(checker) = &mut self.checker {
            checker.read(Observer::Device, word, value, 0)?;
        }
        if is_write {
            self.ask(Party::Device, &[word], true, false)?;
            let new = mix(value, self.now);
            if let Some(checker) = &mut self.checker {
                checker.write(Observer::Device, word, value, new, 0)?;
            }
            self.memory[word as usize] = new;
            event.push(Access::Write { word, value: new });
        }
        self.events.push(event);
        self.engine.put_in(&mut Undoing::new(&mut self.memory, None));
        Ok(Flow::Next)
    }

    pub(super) fn walk(&mut self, hart: usize, word: Word, marks: bool) -> Result<Flow, Failure> {
        self.ask(Party::Nontransactional(hart), &[word], marks, false)?;
        let id = self.engine.active_id(hart);
        let walker = Observer::Walker { hart, active: id };
        let value = self.memory[word as usize];
        if let Some(checker) = &mut self.checker {
            checker.read(walker, word, value, self.now)?;
        }
        let new = value | MARK;
        if self.engine.active_wrote(hart, word) {
            if marks && new != value {
                self.write(hart, word, new)?;
            }
            return Ok(Flow::Next);
        }
        self.events.push(vec![Access::Read { word, value }]);
        if marks && new != value {
            if let Some(checker) = &mut self.checker {
                checker.write(walker, word, value, new, self.now)?;
            }
            self.memory[word as usize] = new;
            self.events.push(vec![Access::Write { word, value: new }]);
            // The walker does not conflict with its own transaction, which then behaves as if it had read the mark.
            let own = self.open.get_mut(&id).into_iter().flatten().filter(|access| access.word() == word);
            own.for_each(|access| *access = Access::Read { word, value: new });
        }
        Ok(Flow::Next)
    }

    /// An expected value that equals the word in memory or differs from it, as `hits` demands.
    fn expected(&self, word: Word, hits: bool) -> u64 {
        let value = self.memory[word as usize];
        if hits { value } else { !value }
    }

    fn party(&self, hart: usize) -> Party {
        if self.engine.is_active(hart) { Party::Transaction(hart) } else { Party::Nontransactional(hart) }
    }

    /// The party of a load.
    fn reader(&self, hart: usize) -> Party {
        if self.engine.is_active(hart) { Party::Transaction(hart) } else { Party::Reader(hart) }
    }

    /// A word as a hart's load returns it.
    fn seen(&mut self, hart: usize, word: Word) -> u64 {
        let is_outside = !self.engine.is_active(hart);
        let reads_around = is_outside && self.engine.policy().outside_reads == OutsideReads::Committed;
        match self.engine.committed(word).filter(|_| reads_around && self.options.fault != Some(Fault::SeenWrite)) {
            Some(committed) => {
                self.seen.around += 1;
                committed
            }
            None => self.memory[word as usize],
        }
    }

    fn observer(&self, hart: usize) -> Observer {
        match self.engine.active_id(hart) {
            0 => Observer::Hart(hart),
            id => Observer::Transaction { id, hart },
        }
    }

    fn wrote(&self, hart: usize, word: Word) -> bool {
        let accesses = self.open.get(&self.engine.active_id(hart)).into_iter().flatten();
        accesses.into_iter().any(|access| matches!(access, Access::Write { word: written, .. } if *written == word))
    }

    /// Resolves the conflicts of an access and adds it to the sets; returns false if the access must not happen now.
    /// Half of the time it takes the short way through the sets, if that is possible.
    fn enter(&mut self, hart: usize, words: &[Word], write: bool, is_swap: bool) -> Result<bool, Failure> {
        if !self.add_before(hart, words)? {
            return Ok(false);
        }
        let lines = lines(words);
        if let (Some((line, mask)), 1) = (lines.first_key_value(), lines.len())
            && self.options.fault.is_none()
            && self.operations.is_multiple_of(2)
        {
            let memory = &Undoing::new(&mut self.memory, None);
            if let Some(joined) = self.engine.join_alone(hart, *line, *mask, write, self.now, memory) {
                let masks = self.engine.masks(hart, *line);
                assert!(masks.line_is_writable, "another transaction has something of line {line}");
                assert_eq!((joined.readable, joined.writable), (masks.readable, masks.writable));
                return Ok(true);
            }
        }
        let party = if write { self.party(hart) } else { self.reader(hart) };
        let is_granted = self.ask(party, words, write, is_swap)? == Verdict::Granted;
        if is_granted {
            self.join(hart, words, write);
        }
        Ok(is_granted)
    }

    /// Resolves the conflicts of an access, line by line. The access itself has not happened yet.
    fn ask(&mut self, party: Party, words: &[Word], write: bool, is_swap: bool) -> Result<Verdict, Failure> {
        if is_swap && self.options.fault == Some(Fault::UncheckedSwap) {
            return Ok(Verdict::Granted);
        }
        let now = self.now;
        let request = |(line, words)| Request { party, line, words, write, pc: now, now };
        let requests: Vec<Request> = lines(words).into_iter().map(request).collect();
        // An access in two lines that does not win in both makes no transaction lose in either.
        if let [first, second] = requests[..]
            && let Some(request) = [first, second].iter().find(|request| !self.engine.wins(request))
        {
            let verdict = self.resolve(request)?;
            assert!(verdict != Verdict::Granted || self.options.fault.is_some(), "it does not win in {request:?}");
            return Ok(verdict);
        }
        for request in &requests {
            let verdict = self.resolve(request)?;
            if verdict != Verdict::Granted {
                assert!(requests.len() == 1 || self.options.fault.is_some(), "it wins in both lines");
                return Ok(verdict);
            }
        }
        Ok(Verdict::Granted)
    }

    fn resolve(&mut self, request: &Request) -> Result<Verdict, Failure> {
        if self.forgotten.contains_key(&request.line) {
            return Ok(Verdict::Granted);
        }
        let is_free = self.is_free(request.party, request.line, request.words, request.write);
        let memory = &mut Undoing::new(&mut self.memory, self.options.fault).beside(&self.beside);
        let verdict = self.engine.resolve(request, memory, &mut self.losses);
        let is_silent = verdict == Verdict::Granted && self.losses.is_empty();
        assert!(!is_free || is_silent || self.options.fault.is_some(), "a mask allowed {request:?}");
        self.settle()?;
        if let (Verdict::Wait { cycles }, Some(hart)) = (verdict, request.party.hart()) {
            self.seen.waits += 1;
            self.harts[hart].ready_cycle = self.now + cycles;
        }
        Ok(verdict)
    }

    /// Whether the masks let the machine make the access without asking.
    fn is_free(&self, party: Party, line: u64, words: u16, write: bool) -> bool {
        let Some(hart) = party.hart() else { return false };
        let masks = self.engine.masks(hart, line);
        let (own, others) =
            if write { (masks.writable, masks.line_is_writable) } else { (masks.readable, masks.line_is_readable) };
        words & !own == 0 || others
    }

    fn join(&mut self, hart: usize, words: &[Word], write: bool) {
        if write && self.options.fault == Some(Fault::WideUndo) {
            let beside = words.iter().map(|word| (word_beside(*word), self.memory[word_beside(*word) as usize]));
            self.beside.extend(beside);
        }
        for (line, mask) in lines(words) {
            self.engine.join(hart, line, mask, write, self.now, &Undoing::new(&mut self.memory, None));
        }
    }

    fn log(&mut self, hart: usize, access: Access) {
        match self.engine.active_id(hart) {
            0 => self.events.push(vec![access]),
            id => self.open.entry(id).or_default().push(access),
        }
    }

    fn read(&mut self, hart: usize, word: Word) -> Result<u64, Failure> {
        let value = self.seen(hart, word);
        let observer = self.observer(hart);
        if let Some(checker) = &mut self.checker {
            checker.read(observer, word, value, self.now)?;
        }
        self.log(hart, Access::Read { word, value });
        Ok(value)
    }

    fn write(&mut self, hart: usize, word: Word, value: u64) -> Result<(), Failure> {
        let observer = self.observer(hart);
        if let Some(checker) = &mut self.checker {
            checker.write(observer, word, self.memory[word as usize], value, self.now)?;
        }
        self.memory[word as usize] = value;
        self.log(hart, Access::Write { word, value });
        Ok(())
    }
}

/// One word, or two adjoining words that may lie in two lines.
pub(super) fn words(word: Word, is_wide: bool) -> Vec<Word> {
    (word..=word + Word::from(is_wide && word + 1 < WORDS)).collect()
}

/// The lines of an access, with the words of each.
fn lines(words: &[Word]) -> BTreeMap<u64, u16> {
    let mut lines = BTreeMap::new();
    for word in words {
        *lines.entry(word / 16).or_default() |= 1 << (word % 16);
    }
    lines
}

pub(super) fn mix(register: u64, value: u64) -> u64 {
    (register ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_add(1)
}
