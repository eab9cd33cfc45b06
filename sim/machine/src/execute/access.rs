//! Accesses that the line table does not answer: misses, devices, misaligned accesses, and atomics.

use crate::execute::door::{Door, Stop};
use crate::execute::position::Position;
use crate::machine::Machine;
use crate::planted::PlantedFault;
use concord_mem::fault::{Access, Fault, FaultKind};
use concord_mem::ram::LINE_BYTES;
use concord_mem::system::{Admission, Place};

impl Door for Machine {
    #[cold]
    #[inline(never)]
    fn load(&mut self, at: Position, address: u64, size_bytes: u64) -> Result<u64, Stop> {
        if crosses_line(address, size_bytes) {
            self.place_in_two_lines(at, address, size_bytes, Access::Load)?;
            let mut value = 0;
            for index in 0..size_bytes {
                value |= self.load_in_line(at, address.wrapping_add(index), 1, Admission::Exempt)? << (8 * index);
            }
            return Ok(value);
        }
        self.load_in_line(at, address, size_bytes, Admission::Queues)
    }

    #[cold]
    #[inline(never)]
    fn store(&mut self, at: Position, address: u64, size_bytes: u64, value: u64) -> Result<(), Stop> {
        if crosses_line(address, size_bytes) {
            // Both lines must be writable before a byte of either is written.
            self.place_in_two_lines(at, address, size_bytes, Access::Store)?;
            for index in 0..size_bytes {
                self.store_in_line(at, address.wrapping_add(index), 1, value >> (8 * index), Admission::Exempt)?;
            }
            return Ok(());
        }
        self.store_in_line(at, address, size_bytes, value, Admission::Queues)
    }

    fn read_modify_write(
        &mut self,
        at: Position,
        address: u64,
        size_bytes: u64,
        unread: Option<u64>,
        update: impl FnOnce(u64) -> u64,
    ) -> Result<u64, Stop> {
        self.note_atomic(at, address);
        if let Some(amount) = unread
            && self.defer_add(at, address, size_bytes, amount)?
        {
            return Ok(0);
        }
        let place = match self.has_fault(PlantedFault::UncheckedAtomic) {
            true => self.memory.access(at.hart, address, Access::Store, at.cycles(), Admission::Queues)?,
            false => self.place(at, address, size_bytes, Access::Store, Admission::Queues)?,
        };
        match place {
            Place::Ram(physical) => {
                let old = self.read_ram(at, physical, size_bytes)?;
                self.write_ram(at, physical, size_bytes, update(old))?;
                Ok(old)
            }
            Place::Device(_) => Err(Fault { access: Access::Store, kind: FaultKind::Access, address }.into()),
        }
    }

    fn load_reserved(&mut self, at: Position, address: u64, size_bytes: u64) -> Result<u64, Stop> {
        self.note_atomic(at, address);
        // The walk may make transactions lose, as that of any access.
        let physical = self.locate(at, address, Access::Load)?;
        self.memory.own(at.hart, physical, at.cycles())?;
        self.win_reserved(at, address, size_bytes)?;
        match self.place(at, address, size_bytes, Access::Load, Admission::Exempt)? {
            Place::Ram(physical) => {
                self.memory.core(at.hart).reservation = Some(concord_mem::cache::line_of(physical));
                self.read_ram(at, physical, size_bytes)
            }
            Place::Device(_) => Err(Fault { access: Access::Load, kind: FaultKind::Access, address }.into()),
        }
    }

    fn store_conditional(&mut self, at: Position, address: u64, size_bytes: u64, value: u64) -> Result<bool, Stop> {
        let has_stored = self.store_if_reserved(at, address, size_bytes, value);
        if let Ok(false) = has_stored {
            self.accounting.critical_sections.atomic_goes_on(at.hart);
        }
        has_stored
    }

    /// For the accounts: an atomic may be the first access of an acquisition.
    #[inline(never)]
    fn note_atomic(&mut self, at: Position, address: u64) {
        let now = self.now(at);
        let instructions = self.memory.hot[at.hart].instructions + u64::from(at.completed);
        self.accounting.critical_sections.atomic(at.hart, address, now, instructions);
    }

    fn pause(&mut self, hart: usize) {
        self.memory.hot[hart].stall_cycles += self.configuration.board.harts.pause_cycles - 1;
    }

    fn lock_hint(&mut self, at: Position, code: u16, lock: u64, call_site: u64) {
        self.note_lock_hint(at, code, lock, call_site);
    }
}

impl Machine {
    fn store_if_reserved(&mut self, at: Position, address: u64, size_bytes: u64, value: u64) -> Result<bool, Stop> {
        // Taken before the access, because bringing the line in must not count as another hart's store.
        let reservation = self.memory.core(at.hart).reservation.take();
        if reservation.is_none() {
            return Ok(false);
        }
        if self.watch.is_on
            && reservation != Some(concord_mem::cache::line_of(self.locate(at, address, Access::Store)?))
        {
            // Without the reservation there is no access, so no transaction loses.
            return Ok(false);
        }
        let place = self.place(at, address, size_bytes, Access::Store, Admission::Queues);
        if let Err(Stop::Wait { .. } | Stop::Queued) = place {
            // The same instruction executes again.
            self.memory.core(at.hart).reservation = reservation;
        }
        match place? {
            Place::Ram(physical) => {
                let holds = reservation == Some(concord_mem::cache::line_of(physical));
                if holds {
                    self.write_ram(at, physical, size_bytes, value)?;
                }
                Ok(holds)
            }
            Place::Device(_) => Err(Fault { access: Access::Store, kind: FaultKind::Access, address }.into()),
        }
    }

    #[inline(always)]
    fn load_in_line(&mut self, at: Position, address: u64, size_bytes: u64, admission: Admission) -> Result<u64, Stop> {
        match self.place(at, address, size_bytes, Access::Load, admission)? {
            Place::Ram(physical) => self.read_ram(at, physical, size_bytes),
            Place::Device(physical) => self.device_read(at, physical, size_bytes, address),
        }
    }

    #[inline(always)]
    fn store_in_line(
        &mut self,
        at: Position,
        address: u64,
        size_bytes: u64,
        value: u64,
        admission: Admission,
    ) -> Result<(), Stop> {
        match self.place(at, address, size_bytes, Access::Store, admission)? {
            Place::Ram(physical) => self.write_ram(at, physical, size_bytes, value),
            Place::Device(physical) => self.device_write(at, physical, size_bytes, value, address),
        }
    }

    /// The destination of an access inside one line.
    #[inline(always)]
    fn place(
        &mut self,
        at: Position,
        address: u64,
        size_bytes: u64,
        access: Access,
        admission: Admission,
    ) -> Result<Place, Stop> {
        if self.watch.is_on {
            return self.place_watched(at, address, size_bytes, access, admission);
        }
        if let Some(place) = self.supervisor_hit(at, address, size_bytes, access) {
            return Ok(place);
        }
        let place = self.memory.access(at.hart, address, access, at.cycles(), admission);
        self.drop_stale_code();
        Ok(place?)
    }

    /// The two parts of an access that crosses a line. Both are checked before either happens. Only the first queues for
    /// its line: an instruction that queued for both could lose each while it waits for the other.
    fn place_in_two_lines(&mut self, at: Position, address: u64, size_bytes: u64, access: Access) -> Result<(), Stop> {
        let second = second_line(address, size_bytes);
        let second_bytes = address.wrapping_add(size_bytes).wrapping_sub(second);
        let parts = [(address, size_bytes - second_bytes), (second, second_bytes)];
        if self.watch.is_on {
            self.foresee(at, parts, access)?;
        }
        let first = if self.watch.is_on { Admission::Exempt } else { Admission::Queues };
        for ((part, part_bytes), admission) in parts.into_iter().zip([first, Admission::Exempt]) {
            self.place_in_ram(at, part, part_bytes, access, admission)?;
        }
        Ok(())
    }

    /// One part of an access that crosses a line. Devices take naturally aligned accesses only, and those cross none.
    fn place_in_ram(
        &mut self,
        at: Position,
        address: u64,
        size_bytes: u64,
        access: Access,
        admission: Admission,
    ) -> Result<(), Stop> {
        match self.place(at, address, size_bytes, access, admission)? {
            Place::Ram(_) => Ok(()),
            Place::Device(_) => Err(Fault { access, kind: FaultKind::Access, address }.into()),
        }
    }

    /// An access of supervisor mode to a user page that the line table holds (`sstatus.SUM`). It hits like any other,
    /// but the interpreter's one comparison uses the hart's own mode.
    #[inline]
    fn supervisor_hit(&mut self, at: Position, address: u64, size_bytes: u64, access: Access) -> Option<Place> {
        let context = &self.memory.core(at.hart).context;
        if context.user || !context.supervisor_user_memory {
            return None;
        }
        self.table_hit(at, address, size_bytes, access)
    }

    fn device_read(&mut self, at: Position, physical: u64, size_bytes: u64, address: u64) -> Result<u64, Stop> {
        self.cancel_device_access(at.hart, physical, size_bytes)?;
        let now = self.now(at);
        let value = self.bus.read(physical, size_bytes as u8, now).map_err(|_| Fault {
            access: Access::Load,
            kind: FaultKind::Access,
            address,
        })?;
        self.after_device_access(at.hart);
        Ok(value)
    }

    fn device_write(
        &mut self,
        at: Position,
        physical: u64,
        size_bytes: u64,
        value: u64,
        address: u64,
    ) -> Result<(), Stop> {
        self.cancel_device_access(at.hart, physical, size_bytes)?;
        let now = self.now(at);
        self.with_committed_memory(|machine| {
            let memory = machine.memory.ram.memory();
            machine.bus.write(physical, size_bytes as u8, value, now, memory).map_err(|_| Fault {
                access: Access::Store,
                kind: FaultKind::Access,
                address,
            })?;
            machine.after_device_access(at.hart);
            Ok(())
        })
    }

    /// A transaction cannot undo a device access, so it does not make one.
    fn cancel_device_access(&self, hart: usize, physical: u64, size_bytes: u64) -> Result<(), Stop> {
        let is_cancelled = self.transactions.is_active(hart) && self.bus.claims(physical, size_bytes as u8);
        if is_cancelled { Err(Stop::Irrevocable) } else { Ok(()) }
    }

    /// The hart's clock during a run of ops, at the op that accesses memory.
    pub(crate) fn now(&self, at: Position) -> u64 {
        let hot = &self.memory.hot[at.hart];
        hot.cycle + hot.stall_cycles + at.cycles()
    }
}

fn crosses_line(address: u64, size_bytes: u64) -> bool {
    address % LINE_BYTES + size_bytes > LINE_BYTES
}

/// The address at which the second part of an access that crosses a line begins. A fault of that part reports it
/// (privileged specification, "Supervisor Trap Value Register").
fn second_line(address: u64, size_bytes: u64) -> u64 {
    address.wrapping_add(size_bytes - 1) & !(LINE_BYTES - 1)
}
