//! What a hart has besides its hot state: the control and status registers that few instructions touch, what it does, and how its
//! time is booked (privileged specification, "Supervisor-Level ISA").

use concord_abi::htm::{XENABLE_USER, XTRAP_PREVIOUS};
use concord_mem::hot::HotState;
pub use concord_mem::hot::SSTATUS_FS;
use concord_mem::translation::{Context, MODE_BARE, MODE_SV39, MODE_SV48};
use serde::{Deserialize, Serialize};

pub const SSTATUS_SIE: u64 = 1 << 1;
pub const SSTATUS_SPIE: u64 = 1 << 5;
pub const SSTATUS_SPP: u64 = 1 << 8;
pub const SSTATUS_SUM: u64 = 1 << 18;
pub const SSTATUS_MXR: u64 = 1 << 19;
/// UXL: user mode is 64 bits wide. Read-only.
pub const SSTATUS_UXL: u64 = 2 << 32;
pub const SSTATUS_SD: u64 = 1 << 63;
pub const SSTATUS_WRITABLE: u64 = SSTATUS_SIE | SSTATUS_SPIE | SSTATUS_SPP | SSTATUS_FS | SSTATUS_SUM | SSTATUS_MXR;

pub const INTERRUPT_SOFTWARE: u64 = 1 << 1;
pub const INTERRUPT_TIMER: u64 = 1 << 5;
pub const INTERRUPT_EXTERNAL: u64 = 1 << 9;
pub const INTERRUPTS: u64 = INTERRUPT_SOFTWARE | INTERRUPT_TIMER | INTERRUPT_EXTERNAL;

/// Exception codes that the harts raise themselves; those of memory accesses are `concord_mem::fault`'s.
pub const CAUSE_ILLEGAL_INSTRUCTION: u64 = 2;
pub const CAUSE_BREAKPOINT: u64 = 3;
pub const CAUSE_LOAD_MISALIGNED: u64 = 4;
pub const CAUSE_STORE_MISALIGNED: u64 = 6;
pub const CAUSE_USER_CALL: u64 = 8;

/// No clock comes here (it would take 146 years of guest time), so that a sum of a clock and a duration cannot overflow.
pub(crate) const TIME_CYCLES_MAX: u64 = 1 << 62;

/// Privilege modes that the machine has; machine mode is the machine itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Privilege {
    User,
    Supervisor,
}

/// What a hart does (SBI specification, "Hart State Management").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Activity {
    Stopped,
    Running,
    /// In `wfi`, until an interrupt that `sie` enables is pending.
    Waiting,
    /// In a non-retentive suspend: on an interrupt it starts again at `address` with `argument` in a1.
    Suspended {
        address: u64,
        argument: u64,
    },
    /// In a transaction that backs off or waits for another one, until this clock value or an interrupt.
    BackingOff {
        until: u64,
    },
}

/// Cycles by what a hart did with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeCycles {
    pub user_cycles: u64,
    pub supervisor_cycles: u64,
    pub idle_cycles: u64,
    /// Those of them in which a disk had a request in flight.
    pub io_wait_cycles: u64,
}

/// One hart's part of the state that is not hot. The rest is in `concord_mem::hot::HotState`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hart {
    pub privilege: Privilege,
    pub activity: Activity,
    pub sie: u64,
    pub stvec: u64,
    pub scounteren: u64,
    pub senvcfg: u64,
    pub sscratch: u64,
    pub sepc: u64,
    pub scause: u64,
    pub stval: u64,
    pub satp: u64,
    pub stimecmp: u64,
    /// `xtrap` of Xmetatm: whether the last trap suspended a transaction.
    pub xtrap: u64,
    /// `xenable` of Xmetatm.
    pub xenable: u64,
    /// The translation caches hold what the walker made of page-table entries that the active transaction wrote.
    pub translations_tainted: bool,
    /// `sip.SSIP`.
    pub software_interrupt: bool,
    /// `sip.SEIP`, driven by the interrupt controller.
    pub external_interrupt: bool,
    /// Clock value up to which [`Hart::modes`] accounts.
    pub accounted_cycle: u64,
    pub modes: ModeCycles,
    /// [`concord_dev::Bus::disk_use_cycles`] up to there.
    pub disk_use_cycles: u64,
}

impl Default for Hart {
    /// A hart that was never started.
    fn default() -> Hart {
        Hart {
            privilege: Privilege::Supervisor,
            activity: Activity::Stopped,
            sie: 0,
            stvec: 0,
            scounteren: 0,
            senvcfg: 0,
            sscratch: 0,
            sepc: 0,
            scause: 0,
            stval: 0,
            satp: 0,
            stimecmp: u64::MAX,
            xtrap: 0,
            xenable: 0,
            translations_tainted: false,
            software_interrupt: false,
            external_interrupt: false,
            accounted_cycle: 0,
            modes: ModeCycles::default(),
            disk_use_cycles: 0,
        }
    }
}

impl Hart {
    /// Puts the hart where an S-mode payload begins (SBI specification, HSM "sbi_hart_start": translation and interrupts
    /// off, hart number in a0, an argument in a1).
    pub fn start(&mut self, hot: &mut HotState, hart: usize, address: u64, argument: u64) {
        hot.pc = address;
        self.privilege = Privilege::Supervisor;
        self.activity = Activity::Running;
        self.satp = 0;
        self.sie = 0;
        hot.sstatus = SSTATUS_FS;
        // Not specified, but what firmware hands over: a kernel without a PMU driver never sets it, and its vDSO reads time.
        self.scounteren = 7;
        self.xtrap = 0;
        self.xenable = 0;
        hot.x[10] = hart as u64;
        hot.x[11] = argument;
    }

    /// True when no register holds what no instruction can put there. For a hart that was read from a file.
    pub(crate) fn is_possible(&self, hot: &HotState) -> bool {
        let address_is_even = match self.activity {
            Activity::Suspended { address, .. } => address & 1 == 0,
            _ => true,
        };
        hot.x[0] == 0
            && hot.pc & 1 == 0
            && self.sepc & 1 == 0
            && self.stvec & 2 == 0
            && address_is_even
            && hot.sstatus & !SSTATUS_WRITABLE == 0
            && self.sie & !INTERRUPTS == 0
            && hot.fcsr >> 8 == 0
            && self.xtrap & !XTRAP_PREVIOUS == 0
            && self.xenable & !XENABLE_USER == 0
            && matches!(self.satp >> 60, MODE_BARE | MODE_SV39 | MODE_SV48)
            && hot.cycle >> 63 == 0
            && self.accounted_cycle <= hot.cycle
            && hot.instructions >> 63 == 0
    }

    pub fn context(&self, hot: &HotState) -> Context {
        Context {
            satp: self.satp,
            user: self.privilege == Privilege::User,
            supervisor_user_memory: hot.sstatus & SSTATUS_SUM != 0,
            make_executable_readable: hot.sstatus & SSTATUS_MXR != 0,
        }
    }

    /// Books the cycles up to `now` since the last call on what the hart was doing; `disk_use_cycles` is how long disks have been in use.
    ///
    /// A hart that asks a disk for something may be a quantum ahead of one that sleeps, or behind it, so that a stretch of I/O wait
    /// is known to a quantum only.
    pub fn account(&mut self, now: u64, disk_use_cycles: u64) {
        let cycles = now - self.accounted_cycle;
        self.accounted_cycle = now;
        let io_cycles = disk_use_cycles.saturating_sub(self.disk_use_cycles);
        self.disk_use_cycles = disk_use_cycles;
        match (self.is_busy(), self.privilege) {
            (true, Privilege::User) => self.modes.user_cycles += cycles,
            (true, Privilege::Supervisor) => self.modes.supervisor_cycles += cycles,
            (false, _) => {
                self.modes.idle_cycles += cycles;
                self.modes.io_wait_cycles += io_cycles.min(cycles);
            }
        }
    }

    /// True while the hart executes, or a transaction of its keeps it from executing.
    pub fn is_busy(&self) -> bool {
        matches!(self.activity, Activity::Running | Activity::BackingOff { .. })
    }

    /// True when a pending interrupt that `sie` enables would be taken.
    pub fn interrupts_are_on(&self, hot: &HotState) -> bool {
        self.privilege == Privilege::User || hot.sstatus & SSTATUS_SIE != 0
    }

    /// The interrupts that are pending at the hart's clock, as in `sip`.
    pub fn pending_interrupts(&self, hot: &HotState, cycles_per_tick: u64) -> u64 {
        let timer = hot.cycle >= self.timer_cycle(cycles_per_tick);
        let bit = |pending: bool, bit: u64| if pending { bit } else { 0 };
        bit(self.software_interrupt, INTERRUPT_SOFTWARE)
            | bit(timer, INTERRUPT_TIMER)
            | bit(self.external_interrupt, INTERRUPT_EXTERNAL)
    }

    /// The clock value at which the timer interrupt (Sstc) becomes pending; [`u64::MAX`] for never.
    pub fn timer_cycle(&self, cycles_per_tick: u64) -> u64 {
        match self.stimecmp.checked_mul(cycles_per_tick) {
            Some(cycle) if cycle < TIME_CYCLES_MAX => cycle,
            _ => u64::MAX,
        }
    }

    /// When a hart that does not run goes on if nothing more happens to it: at `now` when an interrupt that it waits for is pending
    /// by then, at its timer, at the end of its back-off, or never.
    pub fn wake_cycle(&self, hot: &HotState, now: u64, cycles_per_tick: u64) -> u64 {
        let interrupt = if self.pending_interrupts(hot, cycles_per_tick) & self.sie != 0 {
            now.max(hot.cycle)
        } else if self.sie & INTERRUPT_TIMER != 0 {
            self.timer_cycle(cycles_per_tick).max(hot.cycle)
        } else {
            u64::MAX
        };
        match self.activity {
            Activity::BackingOff { until } if self.interrupts_are_on(hot) => until.min(interrupt),
            Activity::BackingOff { until } => until,
            _ => interrupt,
        }
    }
}
