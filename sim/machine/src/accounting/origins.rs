//! Where kernel code that does I/O was entered from (table 7 of "TxLinux", SOSP 2007: system calls and interrupts).
//!
//! A thread that blocks in a system call goes on behind another thread's traps, so what a hart entered last says
//! nothing. Threads are told apart by the pointer that Linux keeps in `tp`, and in `sscratch` while user code runs
//! (`arch/riscv/kernel/entry.S`); a guest without such pointers has one thread a hart. The accounts have no effect on
//! the run.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The trap in whose handler kernel code runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    SystemCall,
    /// Another exception of user code, such as a page fault.
    Exception,
    /// An interrupt, of user code or of the kernel.
    Interrupt,
    /// No trap: a thread of the kernel.
    #[default]
    Kernel,
}

impl Origin {
    /// Every origin, with its name in results.
    pub const ALL: [(Origin, &'static str); 4] = [
        (Origin::SystemCall, "system-call"),
        (Origin::Exception, "exception"),
        (Origin::Interrupt, "interrupt"),
        (Origin::Kernel, "kernel"),
    ];
}

/// `scause` of an environment call from user mode (privileged specification, "Supervisor Cause Register").
const CAUSE_USER_CALL: u64 = 8;
/// The greatest number of threads. When there are more, all are forgotten.
const THREADS_MAX: usize = 1 << 14;
/// The mark below the traps of a thread in supervisor mode.
const BOTTOM: u64 = 1;

/// The traps of a thread that it has not returned from.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Traps {
    /// How it left user mode.
    from_user: Origin,
    /// Its traps in supervisor mode: a bit for each, set for an interrupt, the innermost in the lowest bit.
    nested: u64,
}

impl Default for Traps {
    fn default() -> Traps {
        Traps { from_user: Origin::Kernel, nested: BOTTOM }
    }
}

/// A hart, and the pointer that names its thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Running {
    pub hart: usize,
    pub pointer: u64,
}

impl Running {
    /// Numbers of harts are no pointers.
    fn thread(self) -> u64 {
        if self.pointer == 0 { self.hart as u64 } else { self.pointer }
    }
}

/// The threads that run in the kernel.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Origins {
    threads: BTreeMap<u64, Traps>,
}

impl Origins {
    /// A thread traps, with `cause` as `scause` has it.
    pub fn trapped(&mut self, running: Running, from_user: bool, cause: u64) {
        let is_interrupt = cause >> 63 == 1;
        if self.threads.len() >= THREADS_MAX {
            self.threads.clear();
        }
        let traps = self.threads.entry(running.thread()).or_default();
        if from_user {
            let from_user = match cause {
                _ if is_interrupt => Origin::Interrupt,
                CAUSE_USER_CALL => Origin::SystemCall,
                _ => Origin::Exception,
            };
            *traps = Traps { from_user, nested: BOTTOM };
        } else if traps.nested.leading_zeros() > 0 {
            traps.nested = traps.nested << 1 | u64::from(is_interrupt);
        }
    }

    /// A thread returns from a trap.
    pub fn returned(&mut self, running: Running, to_user: bool) {
        let thread = running.thread();
        let Some(traps) = self.threads.get_mut(&thread) else { return };
        if traps.nested > BOTTOM {
            traps.nested >>= 1;
        }
        if to_user || traps.nested == BOTTOM && traps.from_user == Origin::Kernel {
            self.threads.remove(&thread);
        }
    }

    /// Where the thread's code was entered from.
    pub fn of(&self, running: Running) -> Origin {
        let traps = self.threads.get(&running.thread()).copied().unwrap_or_default();
        let is_interrupted = traps.nested.count_ones() > 1;
        if is_interrupted { Origin::Interrupt } else { traps.from_user }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMER: u64 = 1 << 63 | 5;
    const PAGE_FAULT: u64 = 13;

    #[test]
    fn a_thread_is_in_its_own_trap_whatever_its_hart_did_since() {
        let mut origins = Origins::default();
        let on = |hart, pointer| Running { hart, pointer };
        let [first, second, worker] = [0x1000, 0x2000, 0x3000];
        origins.trapped(on(0, first), true, CAUSE_USER_CALL);
        // It blocks; another thread faults there, and a thread of the kernel runs.
        origins.trapped(on(0, second), true, PAGE_FAULT);
        assert_eq!(origins.of(on(0, worker)), Origin::Kernel);
        // The first goes on on another hart, and an interrupt comes, in which a fault happens.
        assert_eq!(origins.of(on(1, first)), Origin::SystemCall);
        origins.trapped(on(1, first), false, TIMER);
        origins.trapped(on(1, first), false, PAGE_FAULT);
        assert_eq!(origins.of(on(1, first)), Origin::Interrupt);
        origins.returned(on(1, first), false);
        assert_eq!(origins.of(on(1, first)), Origin::Interrupt);
        origins.returned(on(1, first), false);
        assert_eq!(origins.of(on(1, first)), Origin::SystemCall);
        assert_eq!(origins.of(on(0, second)), Origin::Exception);
        origins.returned(on(1, first), true);
        origins.returned(on(0, second), true);
        assert!(origins.threads.is_empty());
        origins.trapped(on(0, second), true, TIMER);
        assert_eq!(origins.of(on(0, second)), Origin::Interrupt);
    }

    #[test]
    fn a_thread_of_the_kernel_is_interrupted_and_goes_on() {
        let mut origins = Origins::default();
        let worker = Running { hart: 0, pointer: 0 };
        origins.trapped(worker, false, TIMER);
        assert_eq!(origins.of(worker), Origin::Interrupt);
        origins.returned(worker, false);
        assert_eq!(origins.of(worker), Origin::Kernel);
        assert!(origins.threads.is_empty());
        for _ in 0..100 {
            origins.trapped(worker, false, TIMER);
        }
        assert_eq!(origins.of(worker), Origin::Interrupt, "deeper than there are bits");
        assert_eq!(origins.of(Running { hart: 1, pointer: 0 }), Origin::Kernel);
    }

    #[test]
    fn threads_are_bounded() {
        let mut origins = Origins::default();
        for thread in 0..2 * THREADS_MAX as u64 {
            origins.trapped(Running { hart: 0, pointer: 0x1000 + thread }, true, CAUSE_USER_CALL);
        }
        assert!(origins.threads.len() <= THREADS_MAX);
    }
}
