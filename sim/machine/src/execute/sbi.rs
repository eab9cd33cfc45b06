//! The supervisor binary interface, answered by the machine itself (RISC-V SBI specification 2.0): base, time, IPI, remote
//! fences, hart state management, system reset and the debug console. Every other extension is probed as absent.

use crate::events::End;
use crate::hart::Activity;
use crate::machine::Machine;
use concord_abi::exit::Exit;

const EXTENSION_BASE: u64 = 0x10;
const EXTENSION_TIME: u64 = 0x5449_4d45;
const EXTENSION_IPI: u64 = 0x0073_5049;
const EXTENSION_REMOTE_FENCE: u64 = 0x5246_4e43;
const EXTENSION_HART_STATE: u64 = 0x0048_534d;
const EXTENSION_SYSTEM_RESET: u64 = 0x5352_5354;
const EXTENSION_DEBUG_CONSOLE: u64 = 0x4442_434e;
const EXTENSIONS: [u64; 7] = [
    EXTENSION_BASE,
    EXTENSION_TIME,
    EXTENSION_IPI,
    EXTENSION_REMOTE_FENCE,
    EXTENSION_HART_STATE,
    EXTENSION_SYSTEM_RESET,
    EXTENSION_DEBUG_CONSOLE,
];

/// Specification version 2.0, as `major << 24 | minor`.
const SPECIFICATION_VERSION: u64 = 2 << 24;
/// The implementation number has no registered owner here; the experimental values serve such cases.
const IMPLEMENTATION: u64 = 0x00c0_9c0d;
const IMPLEMENTATION_VERSION: u64 = 1;

/// SBI error codes.
#[derive(Clone, Copy)]
#[repr(i64)]
enum Failure {
    NotSupported = -2,
    InvalidParameter = -3,
    InvalidAddress = -5,
    AlreadyAvailable = -6,
}

type Answer = Result<u64, Failure>;

impl Machine {
    /// Answers the call in a7, a6 and a0 to a5 of a hart that has passed its `ecall`.
    pub(crate) fn call_sbi(&mut self, hart: usize) {
        let a: [u64; 8] = std::array::from_fn(|index| self.memory.hot[hart].x[10 + index]);
        let (extension, function) = (a[7], a[6]);
        let answer = match extension {
            EXTENSION_BASE => base(function, a[0]),
            EXTENSION_TIME if function == 0 => {
                self.set_timer(hart, a[0]);
                Ok(0)
            }
            EXTENSION_IPI if function == 0 => self.send_interrupt(hart, a[0], a[1]),
            EXTENSION_REMOTE_FENCE => self.remote_fence(function, &a),
            EXTENSION_HART_STATE => match self.hart_state(hart, function, &a) {
                Some(answer) => answer,
                // This call does not return to the caller.
                None => return,
            },
            EXTENSION_SYSTEM_RESET if function == 0 => self.system_reset(hart, a[0], a[1]),
            EXTENSION_DEBUG_CONSOLE => self.with_committed_memory(|machine| machine.debug_console(hart, function, &a)),
            _ => Err(Failure::NotSupported),
        };
        let (error, value) = match answer {
            Ok(value) => (0, value),
            Err(failure) => (failure as i64, 0),
        };
        self.memory.hot[hart].x[10] = error as u64;
        self.memory.hot[hart].x[11] = value;
    }

    /// Calls that change no state, which a transaction may make: those of the base extension, and the query of a hart's
    /// state.
    pub(crate) fn is_query(&self, hart: usize) -> bool {
        let x = &self.memory.hot[hart].x;
        let (extension, function) = (x[17], x[16]);
        extension == EXTENSION_BASE || extension == EXTENSION_HART_STATE && function == 2
    }

    fn set_timer(&mut self, hart: usize, time: u64) {
        let cycles_per_tick = self.order.cycles_per_tick;
        let (state, hot) = (&mut self.harts[hart], &mut self.memory.hot[hart]);
        state.stimecmp = time;
        hot.limit = hot.limit.min(state.timer_cycle(cycles_per_tick).max(hot.cycle + 1));
    }

    /// The harts that a hart mask names, or an error if one of them does not exist.
    fn harts_of_mask(&self, mask: u64, base: u64) -> Result<u64, Failure> {
        let count = self.harts.len() as u64;
        let all = u64::MAX >> (64 - count);
        if base == u64::MAX {
            return Ok(all);
        }
        if base >= count || mask & !(all >> base) != 0 {
            return Err(Failure::InvalidParameter);
        }
        Ok(mask << base)
    }

    fn send_interrupt(&mut self, sender: usize, mask: u64, base: u64) -> Answer {
        let targets = self.harts_of_mask(mask, base)?;
        let now = self.memory.hot[sender].cycle;
        for target in bits(targets) {
            self.harts[target].software_interrupt = true;
            self.wake(target, now);
        }
        self.yield_soon(sender);
        Ok(0)
    }

    fn remote_fence(&mut self, function: u64, a: &[u64; 8]) -> Answer {
        let targets = self.harts_of_mask(a[0], a[1])?;
        if function > 2 {
            // The other fences are for hypervisors.
            return Err(Failure::NotSupported);
        }
        let (start, size) = (a[2], a[3]);
        for target in bits(targets) {
            if function == 0 {
                self.memory.flush_fetch(target);
            } else if size == 0 || size > FENCE_PAGES_MAX << 12 {
                self.memory.flush_translations(target, None);
            } else {
                // The range may end with the address space.
                let last = start.saturating_add(size - 1);
                for page in start >> 12..=last >> 12 {
                    self.memory.flush_translations(target, Some(page << 12));
                }
            }
        }
        Ok(0)
    }

    fn hart_state(&mut self, caller: usize, function: u64, a: &[u64; 8]) -> Option<Answer> {
        let target = usize::try_from(a[0]).ok().filter(|target| *target < self.harts.len());
        match function {
            0 => Some(match target {
                None => Err(Failure::InvalidParameter),
                Some(_) if !self.is_start_address(a[1]) => Err(Failure::InvalidAddress),
                Some(target) if self.harts[target].activity != Activity::Stopped => Err(Failure::AlreadyAvailable),
                Some(target) => {
                    self.start_hart(target, a[1], a[2], self.memory.hot[caller].cycle);
                    self.yield_soon(caller);
                    Ok(0)
                }
            }),
            1 => {
                self.account(caller);
                self.harts[caller].activity = Activity::Stopped;
                self.memory.hot[caller].limit = 0;
                None
            }
            2 => Some(match target.map(|target| self.harts[target].activity) {
                None => Err(Failure::InvalidParameter),
                Some(Activity::Running | Activity::Waiting | Activity::BackingOff { .. }) => Ok(0),
                Some(Activity::Stopped) => Ok(1),
                Some(Activity::Suspended { .. }) => Ok(4),
            }),
            3 => self.suspend(caller, a[0], a[1], a[2]),
            _ => Some(Err(Failure::NotSupported)),
        }
    }

    /// Whether a hart can start at a physical address.
    fn is_start_address(&self, address: u64) -> bool {
        address & 1 == 0 && self.memory.ram.contains(address, 2)
    }

    /// Suspends the caller: a retentive suspension waits as `wfi` does, a non-retentive one starts again at an address.
    fn suspend(&mut self, hart: usize, kind: u64, address: u64, argument: u64) -> Option<Answer> {
        let activity = match kind {
            0 => Activity::Waiting,
            0x8000_0000 if !self.is_start_address(address) => return Some(Err(Failure::InvalidAddress)),
            0x8000_0000 => Activity::Suspended { address, argument },
            _ => return Some(Err(Failure::InvalidParameter)),
        };
        self.account(hart);
        self.harts[hart].activity = activity;
        self.memory.hot[hart].limit = 0;
        if kind == 0 { Some(Ok(0)) } else { None }
    }

    fn system_reset(&mut self, hart: usize, kind: u64, reason: u64) -> Answer {
        let exit = match (kind, reason) {
            (0..=2, 1) => Exit::Failed,
            (0, 0) => Exit::PoweredOff,
            (1 | 2, 0) => Exit::Reset,
            // All other types and reasons are reserved or platform-specific.
            _ => return Err(Failure::InvalidParameter),
        };
        self.end(End { exit, code: u64::from(exit == Exit::Failed), hart: Some(hart) });
        Ok(0)
    }

    fn debug_console(&mut self, hart: usize, function: u64, a: &[u64; 8]) -> Answer {
        match function {
            0 | 1 => {
                let (length, address) = (a[0], a[1]);
                if a[2] != 0 || !self.memory.ram.contains(address, length) {
                    return Err(Failure::InvalidParameter);
                }
                let length = length.min(CONSOLE_BYTES_MAX);
                if function == 0 {
                    let bytes: Vec<u8> =
                        (0..length).map(|index| self.memory.ram.read(address + index, 1) as u8).collect();
                    self.bus.console_write(&bytes);
                    return Ok(length);
                }
                let mut count = 0;
                while count < length
                    && let Some(byte) = self.bus.console_read()
                {
                    self.memory.ram.write(address + count, 1, u64::from(byte));
                    count += 1;
                }
                self.resolve_device_write(address, count, self.memory.hot[hart].cycle);
                self.memory.note_device_write(address, count);
                self.drop_stale_code();
                Ok(count)
            }
            2 => {
                self.bus.console_write(&[a[0] as u8]);
                Ok(0)
            }
            _ => Err(Failure::NotSupported),
        }
    }

    /// Starts a stopped hart at a physical address.
    pub(crate) fn start_hart(&mut self, hart: usize, address: u64, argument: u64, now: u64) {
        let hot = &mut self.memory.hot[hart];
        let stopped = now.saturating_sub(hot.cycle);
        hot.cycle += stopped;
        self.accounting.statistics.slept(hart, stopped);
        self.account(hart);
        self.harts[hart].start(&mut self.memory.hot[hart], hart, address, argument);
        self.reset_transactions(hart, now);
        self.update_context(hart);
        self.update_next_turn(hart, now);
    }
}

/// A remote fence of more pages than this flushes everything.
const FENCE_PAGES_MAX: u64 = 64;

/// The number of bytes that one debug console call writes at most. The specification allows a partial write, and the
/// host pays for it at once.
const CONSOLE_BYTES_MAX: u64 = 64 << 10;

fn base(function: u64, argument: u64) -> Answer {
    Ok(match function {
        0 => SPECIFICATION_VERSION,
        1 => IMPLEMENTATION,
        2 => IMPLEMENTATION_VERSION,
        3 => u64::from(EXTENSIONS.contains(&argument)),
        // mvendorid, marchid, mimpid: none of these is registered.
        4..=6 => 0,
        _ => return Err(Failure::NotSupported),
    })
}

/// The numbers of the bits that are set.
fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (bit < 64).then_some(bit as usize)
    })
}
