//! What gdb may ask of the machine.

use super::registers;
use crate::debugging::debug::{WatchKind, Watchpoint};
use crate::error::MachineError;
use crate::hart::{Activity, Privilege};
use crate::run::{Outcome, Runner};
use concord_mem::ram::PAGE_BYTES;
use gdbstub::common::{Signal, Tid};
use gdbstub::target::ext::base::BaseOps;
use gdbstub::target::ext::base::multithread::{
    MultiThreadBase, MultiThreadResume, MultiThreadResumeOps, MultiThreadSchedulerLocking,
    MultiThreadSchedulerLockingOps, MultiThreadSingleStep, MultiThreadSingleStepOps,
};
use gdbstub::target::ext::base::single_register_access::{SingleRegisterAccess, SingleRegisterAccessOps};
use gdbstub::target::ext::breakpoints::{
    Breakpoints, BreakpointsOps, HwBreakpoint, HwBreakpointOps, HwWatchpoint, HwWatchpointOps, SwBreakpoint,
    SwBreakpointOps, WatchKind as GdbWatchKind,
};
use gdbstub::target::ext::monitor_cmd::{ConsoleOutput, MonitorCmd, MonitorCmdOps};
use gdbstub::target::ext::target_description_xml_override::{
    TargetDescriptionXmlOverride, TargetDescriptionXmlOverrideOps,
};
use gdbstub::target::ext::thread_extra_info::{ThreadExtraInfo, ThreadExtraInfoOps};
use gdbstub::target::{Target, TargetError, TargetResult};
use gdbstub_arch::riscv::Riscv64;
use gdbstub_arch::riscv::reg::RiscvCoreRegs;
use gdbstub_arch::riscv::reg::id::RiscvRegId;
use std::num::NonZeroUsize;

/// The run that gdb looks at.
pub(super) struct Debugger<'a> {
    pub runner: Runner<'a>,
    /// How the run ended, until gdb has been told.
    pub outcome: Option<Outcome>,
    /// The hart that gdb last asked to go on.
    resumed: Option<usize>,
    /// The target description, which names every register.
    description: String,
}

impl<'a> Debugger<'a> {
    pub fn new(runner: Runner<'a>) -> Debugger<'a> {
        let description = registers::description(runner.machine);
        Debugger { runner, outcome: None, resumed: None, description }
    }

    /// The outcome of a run that a person asked to stop, while the machine stands still.
    pub fn stopped(&mut self) -> Result<Option<Outcome>, MachineError> {
        if self.runner.host.wants_to_stop() { self.runner.over() } else { Ok(None) }
    }
}

/// gdb's thread numbers begin at 1.
pub(super) fn thread_of(hart: usize) -> Tid {
    NonZeroUsize::MIN.saturating_add(hart)
}

fn hart_of(thread: Tid) -> usize {
    thread.get() - 1
}

pub(super) fn watch_kind_of_gdb(kind: WatchKind) -> GdbWatchKind {
    match kind {
        WatchKind::Read => GdbWatchKind::Read,
        WatchKind::Write => GdbWatchKind::Write,
        WatchKind::Access => GdbWatchKind::ReadWrite,
    }
}

fn watch_kind(kind: GdbWatchKind) -> WatchKind {
    match kind {
        GdbWatchKind::Read => WatchKind::Read,
        GdbWatchKind::Write => WatchKind::Write,
        GdbWatchKind::ReadWrite => WatchKind::Access,
    }
}

impl Target for Debugger<'_> {
    type Arch = Riscv64;
    type Error = MachineError;

    fn base_ops(&mut self) -> BaseOps<'_, Self::Arch, Self::Error> {
        BaseOps::MultiThread(self)
    }

    fn support_breakpoints(&mut self) -> Option<BreakpointsOps<'_, Self>> {
        Some(self)
    }

    fn support_monitor_cmd(&mut self) -> Option<MonitorCmdOps<'_, Self>> {
        Some(self)
    }

    fn support_target_description_xml_override(&mut self) -> Option<TargetDescriptionXmlOverrideOps<'_, Self>> {
        Some(self)
    }
}

impl MultiThreadBase for Debugger<'_> {
    fn read_registers(&mut self, registers: &mut RiscvCoreRegs<u64>, thread: Tid) -> TargetResult<(), Self> {
        let hot = self.runner.machine.memory.hot.get(hart_of(thread)).ok_or(TargetError::NonFatal)?;
        registers.x.copy_from_slice(&hot.x[..32]);
        registers.pc = hot.pc;
        Ok(())
    }

    fn write_registers(&mut self, registers: &RiscvCoreRegs<u64>, thread: Tid) -> TargetResult<(), Self> {
        let hot = self.runner.machine.memory.hot.get_mut(hart_of(thread)).ok_or(TargetError::NonFatal)?;
        hot.x[1..32].copy_from_slice(&registers.x[1..]);
        hot.pc = registers.pc & !1;
        Ok(())
    }

    fn read_addrs(&mut self, start: u64, data: &mut [u8], thread: Tid) -> TargetResult<usize, Self> {
        let machine = &*self.runner.machine;
        for (index, byte) in data.iter_mut().enumerate() {
            match machine.peek_address(hart_of(thread), start.wrapping_add(index as u64)) {
                Some(physical) => *byte = machine.memory.ram.read(physical, 1) as u8,
                None if index == 0 => return Err(TargetError::NonFatal),
                None => return Ok(index),
            }
        }
        Ok(data.len())
    }

    fn write_addrs(&mut self, start: u64, data: &[u8], thread: Tid) -> TargetResult<(), Self> {
        let machine = &mut *self.runner.machine;
        let hart = hart_of(thread);
        // All of it or nothing: every page is looked at before the first byte is written.
        let last = start.wrapping_add((data.len() as u64).saturating_sub(1));
        let pages = (start / PAGE_BYTES..=last / PAGE_BYTES).map(|page| (page * PAGE_BYTES).max(start));
        if pages.into_iter().any(|address| machine.peek_address(hart, address).is_none()) {
            return Err(TargetError::NonFatal);
        }
        for (index, byte) in data.iter().enumerate() {
            if let Some(physical) = machine.peek_address(hart, start.wrapping_add(index as u64)) {
                machine.memory.ram.write(physical, 1, u64::from(*byte));
                machine.memory.note_device_write(physical, 1);
            }
        }
        machine.drop_stale_code();
        Ok(())
    }

    fn list_active_threads(&mut self, register_thread: &mut dyn FnMut(Tid)) -> Result<(), MachineError> {
        for hart in 0..self.runner.machine.harts.len() {
            register_thread(thread_of(hart));
        }
        Ok(())
    }

    fn support_resume(&mut self) -> Option<MultiThreadResumeOps<'_, Self>> {
        Some(self)
    }

    fn support_single_register_access(&mut self) -> Option<SingleRegisterAccessOps<'_, Tid, Self>> {
        Some(self)
    }

    fn support_thread_extra_info(&mut self) -> Option<ThreadExtraInfoOps<'_, Self>> {
        Some(self)
    }
}

impl SingleRegisterAccess<Tid> for Debugger<'_> {
    /// A register that the hart does not have in its present mode is unavailable, which gdb says.
    fn read_register(&mut self, thread: Tid, id: RiscvRegId<u64>, buffer: &mut [u8]) -> TargetResult<usize, Self> {
        let hart = hart_of(thread);
        if hart >= self.runner.machine.harts.len() {
            return Err(TargetError::NonFatal);
        }
        let Some(value) = registers::read(self.runner.machine, hart, id) else { return Ok(0) };
        let length = buffer.len().min(size_of::<u64>());
        buffer[..length].copy_from_slice(&value.to_le_bytes()[..length]);
        Ok(length)
    }

    fn write_register(&mut self, thread: Tid, id: RiscvRegId<u64>, bytes: &[u8]) -> TargetResult<(), Self> {
        let hart = hart_of(thread);
        if hart >= self.runner.machine.harts.len() {
            return Err(TargetError::NonFatal);
        }
        let value = bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        registers::write(self.runner.machine, hart, id, value).ok_or(TargetError::NonFatal)
    }
}

impl ThreadExtraInfo for Debugger<'_> {
    /// What `info threads` says of a hart.
    fn thread_extra_info(&self, thread: Tid, buffer: &mut [u8]) -> Result<usize, MachineError> {
        let index = hart_of(thread);
        let Some(hart) = self.runner.machine.harts.get(index) else { return Ok(0) };
        let text = format!("hart {index}, {}, {}", privilege_name(hart.privilege), activity_name(hart.activity));
        let length = text.len().min(buffer.len());
        buffer[..length].copy_from_slice(&text.as_bytes()[..length]);
        Ok(length)
    }
}

impl MonitorCmd for Debugger<'_> {
    fn handle_monitor_cmd(&mut self, command: &[u8], mut output: ConsoleOutput<'_>) -> Result<(), MachineError> {
        for line in super::monitor::answer(self.runner.machine, &String::from_utf8_lossy(command))?.lines() {
            gdbstub::outputln!(output, "{line}");
        }
        Ok(())
    }
}

impl TargetDescriptionXmlOverride for Debugger<'_> {
    fn target_description_xml(
        &self,
        annex: &[u8],
        offset: u64,
        length: usize,
        buffer: &mut [u8],
    ) -> TargetResult<usize, Self> {
        if annex != b"target.xml" {
            return Err(TargetError::NonFatal);
        }
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.description.as_bytes().get(offset..).unwrap_or_default();
        let length = rest.len().min(length).min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }
}

/// A privilege mode's name.
pub(super) fn privilege_name(privilege: Privilege) -> &'static str {
    match privilege {
        Privilege::User => "user",
        Privilege::Supervisor => "supervisor",
    }
}

/// What a hart does, in a word.
pub(super) fn activity_name(activity: Activity) -> &'static str {
    match activity {
        Activity::Stopped => "stopped",
        Activity::Running => "running",
        Activity::Waiting => "waiting for an interrupt",
        Activity::Suspended { .. } => "suspended",
        Activity::BackingOff { .. } => "backing off",
    }
}

impl MultiThreadResume for Debugger<'_> {
    fn resume(&mut self) -> Result<(), MachineError> {
        // The event loop runs the machine.
        Ok(())
    }

    fn clear_resume_actions(&mut self) -> Result<(), MachineError> {
        self.runner.machine.debug.step = None;
        self.runner.machine.debug.only = None;
        self.resumed = None;
        Ok(())
    }

    fn set_resume_action_continue(&mut self, thread: Tid, _: Option<Signal>) -> Result<(), MachineError> {
        self.resumed = Some(hart_of(thread));
        Ok(())
    }

    fn support_scheduler_locking(&mut self) -> Option<MultiThreadSchedulerLockingOps<'_, Self>> {
        Some(self)
    }

    fn support_single_step(&mut self) -> Option<MultiThreadSingleStepOps<'_, Self>> {
        Some(self)
    }
}

/// gdb steps RISC-V by a breakpoint behind the instruction and asks that only one thread goes on. Holding the other harts back
/// would make another run of it, so they go on too, and only this hart's breakpoints count.
impl MultiThreadSchedulerLocking for Debugger<'_> {
    fn set_resume_action_scheduler_lock(&mut self) -> Result<(), MachineError> {
        self.runner.machine.debug.only = self.resumed;
        Ok(())
    }
}

impl MultiThreadSingleStep for Debugger<'_> {
    fn set_resume_action_step(&mut self, thread: Tid, _: Option<Signal>) -> Result<(), MachineError> {
        self.runner.machine.debug.step = Some(hart_of(thread));
        Ok(())
    }
}

impl Breakpoints for Debugger<'_> {
    fn support_sw_breakpoint(&mut self) -> Option<SwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_breakpoint(&mut self) -> Option<HwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_watchpoint(&mut self) -> Option<HwWatchpointOps<'_, Self>> {
        Some(self)
    }
}

impl SwBreakpoint for Debugger<'_> {
    fn add_sw_breakpoint(&mut self, address: u64, _: usize) -> TargetResult<bool, Self> {
        Ok(self.runner.machine.debug.breakpoints.insert(address))
    }

    fn remove_sw_breakpoint(&mut self, address: u64, _: usize) -> TargetResult<bool, Self> {
        Ok(self.runner.machine.debug.breakpoints.remove(&address))
    }
}

impl HwBreakpoint for Debugger<'_> {
    fn add_hw_breakpoint(&mut self, address: u64, kind: usize) -> TargetResult<bool, Self> {
        self.add_sw_breakpoint(address, kind)
    }

    fn remove_hw_breakpoint(&mut self, address: u64, kind: usize) -> TargetResult<bool, Self> {
        self.remove_sw_breakpoint(address, kind)
    }
}

impl HwWatchpoint for Debugger<'_> {
    fn add_hw_watchpoint(&mut self, address: u64, size_bytes: u64, kind: GdbWatchKind) -> TargetResult<bool, Self> {
        let watchpoint = Watchpoint { address, size_bytes, kind: watch_kind(kind) };
        let watchpoints = &mut self.runner.machine.debug.watchpoints;
        let is_possible = size_bytes > 0 && address.checked_add(size_bytes - 1).is_some();
        if is_possible && !watchpoints.contains(&watchpoint) {
            watchpoints.push(watchpoint);
        }
        Ok(is_possible)
    }

    fn remove_hw_watchpoint(&mut self, address: u64, size_bytes: u64, kind: GdbWatchKind) -> TargetResult<bool, Self> {
        let watchpoint = Watchpoint { address, size_bytes, kind: watch_kind(kind) };
        let watchpoints = &mut self.runner.machine.debug.watchpoints;
        let before = watchpoints.len();
        watchpoints.retain(|other| *other != watchpoint);
        Ok(watchpoints.len() < before)
    }
}
