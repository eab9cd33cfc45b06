//! Platform-level interrupt controller, laid out as on QEMU's `virt` board: 95 sources, 7 priorities, context
//! `2h` for hart `h`'s M-mode and `2h + 1` for its S-mode.
//!
//! Semantics follow the RISC-V PLIC specification 1.0.0. All sources are levels: a gateway passes one request
//! on while the level is high, and no other until that one has been completed (section 1.2). A request once
//! passed on stays pending when the level drops (section 7). A claim takes the best enabled request whatever
//! the threshold is (section 8), where QEMU applies the threshold to the claim too.

use serde::{Deserialize, Serialize};

use crate::error::DeviceError;

/// Sources 1 to 95; source 0 does not exist.
pub const SOURCE_COUNT: usize = 96;
const WORDS: usize = SOURCE_COUNT / 32;
const PRIORITY_MASK: u32 = 7;

const PENDING_BASE: u64 = 0x1000;
const ENABLE_BASE: u64 = 0x2000;
const ENABLE_STRIDE: u64 = 0x80;
const CONTEXT_BASE: u64 = 0x20_0000;
const CONTEXT_STRIDE: u64 = 0x1000;
const CONTEXT_THRESHOLD: u64 = 0;
const CONTEXT_CLAIM: u64 = 4;

type SourceSet = [u32; WORDS];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Context {
    enabled: SourceSet,
    threshold: u32,
}

/// The whole state of the controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plic {
    priorities: Vec<u32>,
    level: SourceSet,
    pending: SourceSet,
    /// Claimed and not completed.
    in_service: SourceSet,
    contexts: Vec<Context>,
    /// Bit h: the S-mode context of hart h has a request above its threshold. Follows from the rest.
    external_interrupt_harts: u64,
}

impl Plic {
    pub fn new(harts: usize) -> Plic {
        Plic {
            priorities: vec![0; SOURCE_COUNT],
            level: [0; WORDS],
            pending: [0; WORDS],
            in_service: [0; WORDS],
            contexts: vec![Context { enabled: [0; WORDS], threshold: 0 }; 2 * harts],
            external_interrupt_harts: 0,
        }
    }

    /// Checks what indexing relies on in a state that was read from outside.
    pub fn check(&self, harts: usize) -> Result<(), DeviceError> {
        if self.contexts.len() != 2 * harts {
            return Err(DeviceError::StateMismatch {
                saved: format!("{} interrupt contexts", self.contexts.len()),
                configured: format!("{}", 2 * harts),
            });
        }
        if self.priorities.len() != SOURCE_COUNT {
            return Err(DeviceError::StateCorrupt { what: format!("{} interrupt priorities", self.priorities.len()) });
        }
        Ok(())
    }

    /// Harts whose S-mode external interrupt is asserted.
    pub fn external_interrupt_harts(&self) -> u64 {
        self.external_interrupt_harts
    }

    /// Sets the level of a source, 1 to 95.
    pub fn set_level(&mut self, source: usize, high: bool) {
        let (word, bit) = (source / 32, 1 << (source % 32));
        if (self.level[word] & bit != 0) == high {
            return;
        }
        self.level[word] ^= bit;
        self.pass_requests(word);
    }

    /// Reads a register; `offset` is a multiple of 4. Reading a claim register claims. Reserved registers
    /// read 0.
    pub fn read(&mut self, offset: u64) -> u32 {
        let word = (offset % PENDING_BASE / 4) as usize;
        if offset < PENDING_BASE {
            self.priorities.get(word).copied().unwrap_or(0)
        } else if offset < ENABLE_BASE {
            self.pending.get(word).copied().unwrap_or(0)
        } else if offset < CONTEXT_BASE {
            let (context, word) = enable_position(offset);
            let context = self.contexts.get(context);
            context.and_then(|context| context.enabled.get(word)).copied().unwrap_or(0)
        } else {
            let (context, register) = context_position(offset);
            match register {
                CONTEXT_THRESHOLD => self.contexts.get(context).map_or(0, |context| context.threshold),
                CONTEXT_CLAIM => self.claim(context),
                _ => 0,
            }
        }
    }

    /// Writes a register; `offset` is a multiple of 4. Writing a claim register completes. Priorities and
    /// thresholds keep their low three bits; reserved registers ignore the write.
    pub fn write(&mut self, offset: u64, value: u32) {
        if offset < PENDING_BASE {
            let source = (offset / 4) as usize;
            if let Some(priority) = self.priorities.get_mut(source)
                && source != 0
            {
                *priority = value & PRIORITY_MASK;
            }
        } else if offset < ENABLE_BASE {
            return;
        } else if offset < CONTEXT_BASE {
            let (context, word) = enable_position(offset);
            let context = self.contexts.get_mut(context);
            if let Some(enabled) = context.and_then(|context| context.enabled.get_mut(word)) {
                *enabled = if word == 0 { value & !1 } else { value };
            }
        } else {
            let (context, register) = context_position(offset);
            let Some(state) = self.contexts.get_mut(context) else {
                return;
            };
            match register {
                CONTEXT_THRESHOLD => state.threshold = value & PRIORITY_MASK,
                CONTEXT_CLAIM => return self.complete(context, value),
                _ => return,
            }
        }
        self.update_outputs();
    }

    /// The best enabled request: highest priority, then lowest number; 0 when there is none. Priority 0 means
    /// never.
    fn best(&self, context: &Context) -> (usize, u32) {
        let mut best = (0, 0);
        for word in 0..WORDS {
            let mut candidates = self.pending[word] & context.enabled[word];
            while candidates != 0 {
                let source = word * 32 + candidates.trailing_zeros() as usize;
                candidates &= candidates - 1;
                if self.priorities[source] > best.1 {
                    best = (source, self.priorities[source]);
                }
            }
        }
        best
    }

    fn claim(&mut self, context: usize) -> u32 {
        let Some(context) = self.contexts.get(context) else {
            return 0;
        };
        let (source, _) = self.best(context);
        if source != 0 {
            let (word, bit) = (source / 32, 1 << (source % 32));
            self.pending[word] &= !bit;
            self.in_service[word] |= bit;
            self.update_outputs();
        }
        source as u32
    }

    /// A completion of a source that the context has not enabled is ignored (section 9).
    fn complete(&mut self, context: usize, source: u32) {
        let (word, bit) = ((source / 32) as usize, 1 << (source % 32));
        if word < WORDS && self.contexts[context].enabled[word] & bit != 0 {
            self.in_service[word] &= !bit;
            self.pass_requests(word);
        }
    }

    fn pass_requests(&mut self, word: usize) {
        let before = self.pending[word];
        self.pending[word] |= self.level[word] & !self.in_service[word];
        if self.pending[word] != before {
            self.update_outputs();
        }
    }

    fn update_outputs(&mut self) {
        self.external_interrupt_harts = 0;
        if self.pending == [0; WORDS] {
            return;
        }
        for (hart, contexts) in self.contexts.chunks_exact(2).enumerate() {
            let supervisor = &contexts[1];
            if self.best(supervisor).1 > supervisor.threshold {
                self.external_interrupt_harts |= 1 << hart;
            }
        }
    }
}

fn enable_position(offset: u64) -> (usize, usize) {
    let offset = offset - ENABLE_BASE;
    ((offset / ENABLE_STRIDE) as usize, (offset % ENABLE_STRIDE / 4) as usize)
}

fn context_position(offset: u64) -> (usize, u64) {
    let offset = offset - CONTEXT_BASE;
    ((offset / CONTEXT_STRIDE) as usize, offset % CONTEXT_STRIDE)
}
