//! Exceptions, interrupts and returns from them (privileged specification, "Supervisor-Level ISA").

use crate::hart::{
    Activity, INTERRUPT_EXTERNAL, INTERRUPT_SOFTWARE, Privilege, SSTATUS_SIE, SSTATUS_SPIE, SSTATUS_SPP,
};
use crate::machine::Machine;

impl Machine {
    /// Raises an exception at `hart.pc`, or takes an interrupt there (`cause` with its top bit set).
    pub(crate) fn trap(&mut self, hart: usize, cause: u64, value: u64) {
        self.account(hart);
        self.memory.leave_queue(hart);
        self.suspend_for_trap(hart);
        let from_user = self.harts[hart].privilege == Privilege::User;
        let running = self.running(hart, from_user);
        self.accounting.origins.trapped(running, from_user, cause);
        let (state, hot) = (&mut self.harts[hart], &mut self.memory.hot[hart]);
        state.scause = cause;
        state.stval = value;
        state.sepc = hot.pc;
        let previous = if state.privilege == Privilege::Supervisor { SSTATUS_SPP } else { 0 };
        let enabled = if hot.sstatus & SSTATUS_SIE != 0 { SSTATUS_SPIE } else { 0 };
        hot.sstatus = hot.sstatus & !(SSTATUS_SPP | SSTATUS_SPIE | SSTATUS_SIE) | previous | enabled;
        state.privilege = Privilege::Supervisor;
        let base = state.stvec & !3;
        let vectored = state.stvec & 3 == 1 && cause >> 63 == 1;
        hot.pc = if vectored { base.wrapping_add(4 * (cause & 63)) } else { base };
        self.update_context(hart);
    }

    /// `sret`; the caller checked that the hart is in supervisor mode.
    pub(crate) fn supervisor_return(&mut self, hart: usize) {
        self.account(hart);
        self.note_trap_return(hart);
        let (state, hot) = (&mut self.harts[hart], &mut self.memory.hot[hart]);
        let enabled = if hot.sstatus & SSTATUS_SPIE != 0 { SSTATUS_SIE } else { 0 };
        state.privilege = if hot.sstatus & SSTATUS_SPP != 0 { Privilege::Supervisor } else { Privilege::User };
        hot.sstatus = hot.sstatus & !(SSTATUS_SIE | SSTATUS_SPP) | SSTATUS_SPIE | enabled;
        hot.pc = state.sepc;
        self.update_context(hart);
        self.take_interrupt(hart);
    }

    /// For the accounts: the hart's thread is about to return from a trap.
    pub(crate) fn note_trap_return(&mut self, hart: usize) {
        let to_user = self.memory.hot[hart].sstatus & SSTATUS_SPP == 0;
        let running = self.running(hart, to_user);
        self.accounting.origins.returned(running, to_user);
    }

    /// Takes the interrupt of the highest priority, if one is pending and enabled.
    pub(crate) fn take_interrupt(&mut self, hart: usize) {
        let (state, hot) = (&self.harts[hart], &self.memory.hot[hart]);
        let pending = state.pending_interrupts(hot, self.order.cycles_per_tick) & state.sie;
        if pending == 0 || !state.interrupts_are_on(hot) || state.activity != Activity::Running {
            return;
        }
        let number = if pending & INTERRUPT_EXTERNAL != 0 {
            9
        } else if pending & INTERRUPT_SOFTWARE != 0 {
            1
        } else {
            5
        };
        self.trap(hart, 1 << 63 | number, 0);
    }

    /// Gives the memory system the hart's present translation context.
    pub(crate) fn update_context(&mut self, hart: usize) {
        let context = self.harts[hart].context(&self.memory.hot[hart]);
        self.memory.set_context(hart, context);
    }
}
