//! gdb's view of the machine: harts are threads, memory is what the current hart's translation says.
//!
//! The protocol is the gdbstub crate's; what is here maps it to the machine. Breakpoints change nothing in guest memory, so the
//! debugged run is the run that would have been (see `debug.rs`), unless the person at the debugger writes to it.

use crate::debug::Break;
use crate::error::MachineError;
use crate::machine::{End, Machine};
use crate::run::{Host, Options, Outcome, Runner};
use concord_abi::exit::Exit;
use concord_mem::ram::PAGE_BYTES;
use gdbstub::common::{Signal, Tid};
use gdbstub::conn::ConnectionExt;
use gdbstub::stub::run_blocking::{BlockingEventLoop, Event, WaitForStopReasonError};
use gdbstub::stub::{DisconnectReason, GdbStub, MultiThreadStopReason};
use gdbstub::target::ext::base::BaseOps;
use gdbstub::target::ext::base::multithread::{
    MultiThreadBase, MultiThreadResume, MultiThreadResumeOps, MultiThreadSchedulerLocking,
    MultiThreadSchedulerLockingOps, MultiThreadSingleStep, MultiThreadSingleStepOps,
};
use gdbstub::target::ext::breakpoints::{
    Breakpoints, BreakpointsOps, HwBreakpoint, HwBreakpointOps, SwBreakpoint, SwBreakpointOps,
};
use gdbstub::target::{Target, TargetError, TargetResult};
use gdbstub_arch::riscv::Riscv64;
use gdbstub_arch::riscv::reg::RiscvCoreRegs;
use std::marker::PhantomData;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::num::NonZeroUsize;

/// Turns between two looks at whether gdb wants something.
const TURNS_PER_LOOK: u32 = 1024;

/// Waits on a port of the loopback interface for gdb, and runs the machine under it.
///
/// When gdb detaches, the run goes on to its end without it; when gdb kills the machine, it ends as if a limit was reached.
///
/// # Errors
/// When the port cannot be listened on, the connection breaks, or the run itself fails.
pub fn serve(
    machine: &mut Machine,
    port: u16,
    options: &Options,
    host: &mut dyn Host,
) -> Result<Outcome, MachineError> {
    let debugger_error = |error: std::io::Error| MachineError::Debugger { port, error };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(debugger_error)?;
    let (stream, _) = listener.accept().map_err(debugger_error)?;
    let mut target = Debugger { runner: Runner::new(machine, options, host)?, outcome: None, resumed: None };
    let reason = GdbStub::new(stream).run_blocking::<EventLoop>(&mut target);
    let Debugger { mut runner, outcome, .. } = target;
    match reason {
        Ok(DisconnectReason::TargetExited(_) | DisconnectReason::TargetTerminated(_)) => {}
        Ok(DisconnectReason::Disconnect) => {
            runner.machine.debug.breakpoints.clear();
            runner.machine.debug.step = None;
        }
        Ok(DisconnectReason::Kill) => {
            let end = End { exit: Exit::LimitReached, code: 0, hart: None };
            return runner.finish(Outcome::new(end, Some("the debugger ended the run".to_owned())));
        }
        Err(error) => {
            let text = error.to_string();
            return Err(match error.into_target_error() {
                Some(error) => error,
                None => debugger_error(std::io::Error::other(text)),
            });
        }
    }
    let outcome = match outcome {
        Some(outcome) => outcome,
        None => loop {
            if let Some(outcome) = runner.turn(u64::MAX)? {
                break outcome;
            }
        },
    };
    runner.finish(outcome)
}

struct Debugger<'a> {
    runner: Runner<'a>,
    outcome: Option<Outcome>,
    /// The hart that gdb last asked to go on.
    resumed: Option<usize>,
}

/// gdb's thread numbers begin at 1.
fn thread_of(hart: usize) -> Tid {
    NonZeroUsize::MIN.saturating_add(hart)
}

fn hart_of(thread: Tid) -> usize {
    thread.get() - 1
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

/// Runs the machine while gdb waits.
struct EventLoop<'a>(PhantomData<Debugger<'a>>);

impl<'a> BlockingEventLoop for EventLoop<'a> {
    type Target = Debugger<'a>;
    type Connection = TcpStream;
    type StopReason = MultiThreadStopReason<u64>;

    fn wait_for_stop_reason(
        target: &mut Debugger<'a>,
        connection: &mut TcpStream,
    ) -> Result<Event<Self::StopReason>, WaitForStopReasonError<MachineError, std::io::Error>> {
        loop {
            for _ in 0..TURNS_PER_LOOK {
                let ended = target.runner.turn(u64::MAX).map_err(WaitForStopReasonError::Target)?;
                if let Some(outcome) = ended {
                    let code = outcome.end.exit.code();
                    target.outcome = Some(outcome);
                    return Ok(Event::TargetStopped(MultiThreadStopReason::Exited(code)));
                }
                match target.runner.machine.debug.take_break() {
                    Some(Break::Step) => return Ok(Event::TargetStopped(MultiThreadStopReason::DoneStep)),
                    Some(Break::Breakpoint { hart }) => {
                        return Ok(Event::TargetStopped(MultiThreadStopReason::SwBreak(thread_of(hart))));
                    }
                    None => {}
                }
            }
            if ConnectionExt::peek(connection).map_err(WaitForStopReasonError::Connection)?.is_some() {
                let byte = ConnectionExt::read(connection).map_err(WaitForStopReasonError::Connection)?;
                return Ok(Event::IncomingData(byte));
            }
        }
    }

    fn on_interrupt(_: &mut Debugger<'a>) -> Result<Option<Self::StopReason>, MachineError> {
        Ok(Some(MultiThreadStopReason::Signal(Signal::SIGINT)))
    }
}
