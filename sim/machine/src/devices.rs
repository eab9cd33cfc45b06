//! What devices do to the machine: interrupt lines, memory that they write, and the end of the run.

use crate::events::End;
use crate::machine::Machine;
use concord_abi::exit::Exit;
use concord_dev::Finish;

impl Machine {
    /// A hart accessed a device register.
    pub(crate) fn after_device_access(&mut self, hart: usize) {
        let now = self.memory.hot[hart].cycle;
        self.after_devices(now);
        let event = self.bus.next_event_cycle();
        let pending = self.harts[hart].external_interrupt;
        let hot = &mut self.memory.hot[hart];
        hot.limit = hot.limit.min(event.max(hot.cycle + 1));
        if pending {
            hot.limit = hot.limit.min(hot.cycle + 1);
        }
    }

    /// Devices did something at `now`: interrupt lines, memory and the end of the run may have changed.
    pub(crate) fn after_devices(&mut self, now: u64) {
        let written: Vec<(u64, u64)> = self.bus.dma_writes().collect();
        for (address, length) in written {
            self.resolve_device_write(address, length, now);
            self.memory.note_device_write(address, length);
        }
        self.drop_stale_code();
        let lines = self.bus.external_interrupt_harts();
        let mut changed = lines ^ self.order.external_interrupts;
        self.order.external_interrupts = lines;
        while changed != 0 {
            let hart = changed.trailing_zeros() as usize;
            changed &= changed - 1;
            self.harts[hart].external_interrupt = lines >> hart & 1 == 1;
            self.wake(hart, now);
        }
        match self.bus.take_finish() {
            None => {}
            Some(Finish::Pass) => self.end(End { exit: Exit::PoweredOff, code: 0, hart: None }),
            Some(Finish::Fail(code)) => self.end(End { exit: Exit::Failed, code: u64::from(code), hart: None }),
            Some(Finish::Reset) => self.end(End { exit: Exit::Reset, code: 0, hart: None }),
        }
    }

    /// Types at the console.
    pub fn type_at_console(&mut self, bytes: &[u8]) {
        self.bus.console_input(bytes);
        let now = self.clock();
        self.after_devices(now);
    }
}
