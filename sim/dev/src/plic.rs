//! Platform-level interrupt controller, laid out as on QEMU's `virt` board: 95 sources, 7 priorities, context
//! `2h` for hart `h`'s M-mode and `2h + 1` for its S-mode.
//!
//! Semantics follow the RISC-V PLIC specification 1.0.0, except in one point where drivers written on QEMU rely on
//! QEMU's controller: **a gateway passes on one request for each assertion of its line.** Every device says when it
//! asserts its line ([`Plic::raise`]): the line rises, or has a new reason to be high. An assertion during service
//! becomes a request at completion, if the line is still high then. Section 1.2 has the gateway sample the line again
//! at completion instead, so that a driver that leaves a cause unacknowledged is interrupted for ever. A driver that
//! acknowledges every cause it serves sees no difference.
//!
//! A request once passed on stays pending when the line drops (section 7). A claim takes the best enabled request
//! whatever the threshold is (section 8), where QEMU applies the threshold to the claim too.

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
    /// Asserted, high ever since, and not yet passed on. Invariant: such a source is in service.
    asserted: SourceSet,
    /// Passed on and not yet claimed.
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
            asserted: [0; WORDS],
            pending: [0; WORDS],
            in_service: [0; WORDS],
            contexts: vec![Context { enabled: [0; WORDS], threshold: 0 }; 2 * harts],
            external_interrupt_harts: 0,
        }
    }

    /// Checks the lengths that indexing relies on, for a state that was read from outside.
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

    /// The device of a source, 1 to 95, asserts its line.
    pub fn raise(&mut self, source: usize) {
        let (word, bit) = (source / 32, 1 << (source % 32));
        self.asserted[word] |= bit;
        self.pass_requests(word);
    }

    /// The line of a source, 1 to 95, is low. An assertion during service is forgotten.
    pub fn lower(&mut self, source: usize) {
        self.asserted[source / 32] &= !(1 << (source % 32));
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

    /// Turns assertions of sources that are not in service into requests.
    fn pass_requests(&mut self, word: usize) {
        let before = self.pending[word];
        let passed = self.asserted[word] & !self.in_service[word];
        self.pending[word] |= passed;
        self.asserted[word] &= !passed;
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn claim_register(context: u64) -> u64 {
        CONTEXT_BASE + context * CONTEXT_STRIDE + CONTEXT_CLAIM
    }

    fn threshold_register(context: u64) -> u64 {
        CONTEXT_BASE + context * CONTEXT_STRIDE
    }

    /// Two harts; S-mode contexts 1 and 3 have all sources enabled, each at priority 1.
    fn enabled() -> Plic {
        let mut plic = Plic::new(2);
        for source in 0..SOURCE_COUNT as u64 {
            plic.write(4 * source, 1);
        }
        for context in [1, 3] {
            for word in 0..WORDS as u64 {
                plic.write(ENABLE_BASE + context * ENABLE_STRIDE + 4 * word, u32::MAX);
            }
        }
        plic
    }

    #[test]
    fn source_0_and_wide_values_do_not_stick() {
        let mut plic = enabled();
        assert_eq!(plic.read(0), 0);
        assert_eq!(plic.read(ENABLE_BASE + ENABLE_STRIDE), u32::MAX - 1);
        plic.write(4, 0xff);
        assert_eq!(plic.read(4), 7);
        plic.write(threshold_register(3), 0x1f);
        assert_eq!(plic.read(threshold_register(3)), 7);
        plic.write(PENDING_BASE, u32::MAX);
        assert_eq!(plic.read(PENDING_BASE), 0);
        for offset in [4 * 96, ENABLE_BASE + 12, threshold_register(4), 0x5f_fffc] {
            plic.write(offset, u32::MAX);
            assert_eq!(plic.read(offset), 0, "reserved at {offset:#x}");
        }
    }

    #[test]
    fn an_assertion_interrupts_once() {
        let mut plic = enabled();
        plic.raise(10);
        assert_eq!(plic.external_interrupt_harts(), 0b11);
        assert_eq!(plic.read(PENDING_BASE), 1 << 10);
        assert_eq!(plic.read(claim_register(1)), 10);
        assert_eq!(plic.external_interrupt_harts(), 0);
        assert_eq!(plic.read(claim_register(3)), 0, "one hart gets it");
        plic.write(claim_register(1), 10);
        assert_eq!(plic.external_interrupt_harts(), 0, "still high, but not asserted again");
        plic.raise(10);
        assert_eq!(plic.read(claim_register(3)), 10);
    }

    #[test]
    fn an_assertion_during_service_waits_for_completion() {
        let mut plic = enabled();
        plic.raise(10);
        assert_eq!(plic.read(claim_register(1)), 10);
        plic.raise(10);
        plic.raise(11);
        assert_eq!(plic.read(PENDING_BASE), 1 << 11, "10 is in service");
        plic.lower(11);
        assert_eq!(plic.read(claim_register(3)), 11);
        plic.write(claim_register(1), 10);
        assert_eq!(plic.external_interrupt_harts(), 0b11);
        assert_eq!(plic.read(claim_register(3)), 10);
        plic.write(claim_register(3), 10);
        assert_eq!(plic.external_interrupt_harts(), 0, "passed on once");
    }

    #[test]
    fn an_assertion_during_service_is_forgotten_when_the_line_drops() {
        let mut plic = enabled();
        plic.raise(10);
        assert_eq!(plic.read(claim_register(1)), 10);
        plic.raise(10);
        plic.lower(10);
        plic.write(claim_register(1), 10);
        assert_eq!(plic.external_interrupt_harts(), 0);
    }

    #[test]
    fn a_request_passed_on_stays_when_the_level_drops() {
        let mut plic = enabled();
        plic.raise(95);
        plic.lower(95);
        assert_eq!(plic.read(PENDING_BASE + 8), 1 << 31);
        assert_eq!(plic.read(claim_register(1)), 95);
        plic.write(claim_register(1), 95);
        assert_eq!(plic.read(claim_register(1)), 0);
    }

    #[test]
    fn priority_then_number_decides() {
        let mut plic = enabled();
        plic.write(4 * 40, 3);
        for source in [7, 8, 40] {
            plic.raise(source);
        }
        let order: Vec<u32> = (0..4).map(|_| plic.read(claim_register(1))).collect();
        assert_eq!(order, [40, 7, 8, 0]);
    }

    #[test]
    fn threshold_masks_the_signal_but_not_the_claim() {
        let mut plic = enabled();
        plic.raise(5);
        plic.write(threshold_register(1), 1);
        assert_eq!(plic.external_interrupt_harts(), 0b10);
        assert_eq!(plic.read(claim_register(1)), 5);
    }

    #[test]
    fn priority_0_never_interrupts() {
        let mut plic = enabled();
        plic.write(4 * 5, 0);
        plic.raise(5);
        assert_eq!(plic.external_interrupt_harts(), 0);
        assert_eq!(plic.read(claim_register(1)), 0);
        plic.write(4 * 5, 1);
        assert_eq!(plic.external_interrupt_harts(), 0b11);
    }

    #[test]
    fn completion_of_a_disabled_source_is_ignored() {
        let mut plic = enabled();
        plic.raise(5);
        assert_eq!(plic.read(claim_register(1)), 5);
        plic.raise(5);
        plic.write(claim_register(0), 5);
        plic.write(claim_register(1), 96);
        plic.write(claim_register(1), u32::MAX);
        assert_eq!(plic.external_interrupt_harts(), 0);
        plic.write(claim_register(1), 5);
        assert_eq!(plic.external_interrupt_harts(), 0b11);
    }

    #[test]
    fn the_64th_hart_has_a_bit() {
        let mut plic = Plic::new(64);
        plic.write(4, 1);
        plic.write(ENABLE_BASE + 127 * ENABLE_STRIDE, 2);
        plic.raise(1);
        assert_eq!(plic.external_interrupt_harts(), 1 << 63);
        assert_eq!(plic.read(claim_register(127)), 1);
    }

    proptest! {
        /// The cached outputs follow from the registers after any accesses.
        #[test]
        fn outputs_follow_the_registers(
            steps in prop::collection::vec((0..4u8, 0..0x20_4000u64, any::<u32>()), 1..60)
        ) {
            let mut plic = enabled();
            for (kind, offset, value) in steps {
                match kind {
                    0 if offset % 2 == 0 => plic.raise(1 + value as usize % 95),
                    0 => plic.lower(1 + value as usize % 95),
                    1 => plic.write(offset & !3, value),
                    2 => plic.write(4 * (offset % 96), value),
                    _ => { plic.read(claim_register(offset % 4)); }
                }
                let mut expected = 0;
                for hart in 0..2u64 {
                    let threshold = plic.read(threshold_register(2 * hart + 1));
                    let asserted = (1..96u64).any(|source| {
                        let word = source / 32 * 4;
                        let enabled = plic.read(ENABLE_BASE + (2 * hart + 1) * ENABLE_STRIDE + word);
                        let pending = plic.read(PENDING_BASE + word);
                        enabled & pending & (1 << (source % 32)) != 0
                            && plic.read(4 * source) > threshold
                    });
                    expected |= u64::from(asserted) << hart;
                }
                prop_assert_eq!(plic.external_interrupt_harts(), expected);
            }
        }
    }
}
