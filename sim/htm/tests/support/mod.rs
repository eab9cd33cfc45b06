//! A small memory and the accesses of a machine.

use concord_htm::{Engine, Loss, Memory, Party, Request, Verdict, Word};

pub struct Words(pub Vec<u64>);

impl Memory for Words {
    fn load(&self, word: Word) -> u64 {
        self.0[word as usize]
    }

    fn store(&mut self, word: Word, value: u64) {
        self.0[word as usize] = value;
    }
}

/// The request before an access to one word.
pub fn request(party: Party, word: Word, write: bool, now: u64) -> Request {
    Request { party, line: word / 16, words: 1 << (word % 16), write, pc: 0x100 + word, now }
}

/// Makes an access: asks, and proceeds if the access is granted.
pub fn access<C>(
    engine: &mut Engine<C>,
    memory: &mut Words,
    party: Party,
    word: Word,
    write: Option<u64>,
    now: u64,
) -> (Verdict, Vec<Loss>) {
    let request = request(party, word, write.is_some(), now);
    let mut losses = Vec::new();
    let verdict = engine.resolve(&request, memory, &mut losses);
    if verdict == Verdict::Granted {
        if let Party::Transaction(hart) = party {
            engine.join(hart, request.line, request.words, request.write, request.pc, memory);
        }
        if let Some(value) = write {
            memory.store(word, value);
        }
    }
    (verdict, losses)
}
