//! Adding words to sets, at a transaction's first access to a word. This is the engine's most frequent operation.

use crate::directory::Member;
use crate::engine::Engine;
use crate::policy::Policy;
use crate::transaction::{Read, Transaction, Undo};
use crate::{Line, Memory, words_of};

/// The words of a line that are in the sets of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joined {
    /// In either set.
    pub readable: u16,
    /// In the write set.
    pub writable: u16,
}

impl<C> Engine<C> {
    /// Adds words of a line to the active transaction's sets, after [`Engine::resolve`] granted the access. The undo
    /// log takes the old values, so this call comes before the store.
    pub fn join(&mut self, hart: usize, line: Line, words: u16, write: bool, pc: u64, memory: &impl Memory) {
        let Some(slot) = self.harts[hart].active else { return };
        let policy = &self.policy;
        let transaction = self.transactions[slot as usize].as_mut().expect("the active transaction exists");
        let (member, is_new) = self.directory.member(line, slot);
        enter(policy, transaction, member, is_new, line, words, write, pc, memory);
    }

    /// As [`Engine::join`], but without a call of [`Engine::resolve`]. It applies if no other transaction has a word of
    /// the line, so that no conflict is possible. Returns `None` otherwise, and outside a transaction.
    #[inline]
    pub fn join_alone(
        &mut self,
        hart: usize,
        line: Line,
        words: u16,
        write: bool,
        pc: u64,
        memory: &impl Memory,
    ) -> Option<Joined> {
        let slot = self.harts[hart].active?;
        let policy = &self.policy;
        let transaction = self.transactions[slot as usize].as_mut()?;
        let (member, is_new) = self.directory.member_alone(line, slot)?;
        enter(policy, transaction, member, is_new, line, words, write, pc, memory);
        Some(Joined { readable: member.read | member.write, writable: member.write })
    }
}

#[expect(clippy::too_many_arguments, reason = "the parts of an access, of which each is used once")]
#[inline]
fn enter<C>(
    policy: &Policy,
    transaction: &mut Transaction<C>,
    member: &mut Member,
    is_new: bool,
    line: Line,
    words: u16,
    write: bool,
    pc: u64,
    memory: &impl Memory,
) {
    if is_new {
        transaction.lines.push(line);
    }
    let words = policy.span(words);
    let known = member.read | member.write;
    transaction.size_words += policy.units((words & !known).count_ones().into());
    transaction.stalls.waits = 0;
    if write {
        for word in words_of(line, words & !member.write) {
            transaction.undo.push(Undo { word, old: memory.load(word), pc });
        }
        member.write |= words;
    } else {
        for word in words_of(line, words & !known) {
            transaction.reads.push(Read { word, pc });
        }
        member.read |= words & !member.write;
    }
}
