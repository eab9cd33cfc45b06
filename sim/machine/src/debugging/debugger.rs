//! gdb's view of the machine: harts are threads, memory is what the current hart's translation says.
//!
//! The protocol is the gdbstub crate's; these files map it to the machine. Breakpoints and watchpoints change nothing in guest
//! memory, so the debugged run is the run that would have been (see `debug.rs`), unless the person at the debugger writes to it.
//!
//! The machine stands still until gdb connects, and again when a connection breaks; it runs on when gdb detaches. In each of these
//! states another connection may follow, and a request to stop ends the run.

mod monitor;
mod registers;
mod target;

use crate::debugging::debug::Break;
use crate::error::MachineError;
use crate::events::End;
use crate::machine::Machine;
use crate::run::{Host, Options, Outcome, Runner};
use concord_abi::exit::Exit;
use gdbstub::common::Signal;
use gdbstub::stub::state_machine::GdbStubStateMachine;
use gdbstub::stub::{DisconnectReason, GdbStub, GdbStubError, MultiThreadStopReason};
use std::io::{ErrorKind, Read};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};
use target::{Debugger, thread_of, watch_kind_of_gdb};

/// How long gdb, and while the machine stands still a request to stop, may go unnoticed.
const PATIENCE: Duration = Duration::from_millis(20);
/// Bytes of gdb's that are read at once.
const BUFFER_BYTES: usize = 4096;

type Stop = MultiThreadStopReason<u64>;
type Stub<'s, 'a> = GdbStubStateMachine<'s, Debugger<'a>, TcpStream>;
type StubError = GdbStubError<MachineError, std::io::Error>;

/// A port of the loopback interface at which gdb may connect.
#[derive(Debug)]
pub struct Port {
    number: u16,
    listener: TcpListener,
}

/// How a connection to gdb ended.
enum Parting {
    /// The run is over.
    Over(Outcome),
    /// gdb lets the machine run.
    Detached,
    /// The connection broke; the line says why.
    Lost(String),
}

/// What gdb sent.
enum Received {
    Bytes(Vec<u8>),
    Nothing,
    /// The connection is closed.
    End,
}

impl Port {
    /// Takes a port, so that gdb may connect from now on.
    ///
    /// # Errors
    /// When the port is somebody else's.
    pub fn open(number: u16) -> Result<Port, MachineError> {
        let open = || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, number))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listener = open().map_err(|error| MachineError::Debugger { port: number, error })?;
        Ok(Port { number, listener })
    }

    /// A connection, if gdb has asked for one.
    fn accept(&self) -> Result<Option<TcpStream>, MachineError> {
        let accept = || match self.listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                Ok(Some(stream))
            }
            // gdb may have gone again before it was answered.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionAborted) => Ok(None),
            Err(error) => Err(error),
        };
        accept().map_err(|error| MachineError::Debugger { port: self.number, error })
    }
}

/// Waits for gdb, and runs the machine under it to the end of the run.
///
/// When gdb kills the machine, the run ends as one that a person stopped.
///
/// # Errors
/// When the host fails or the run itself does. A connection that breaks is no error: the machine waits for the next one.
pub fn serve(
    machine: &mut Machine,
    port: &Port,
    options: &Options,
    host: &mut dyn Host,
) -> Result<Outcome, MachineError> {
    let mut debugger = Debugger::new(Runner::new(machine, options, host)?);
    debugger.runner.waits_briefly = true;
    let mut connection = wait(&mut debugger, port)?;
    let outcome = loop {
        let stream = match connection {
            Ok(stream) => stream,
            Err(outcome) => break outcome,
        };
        let parting = attend(&mut debugger, stream)?;
        // The next connection asks for its own breakpoints.
        debugger.runner.machine.debug.clear();
        connection = match parting {
            Parting::Over(outcome) => break outcome,
            Parting::Detached => run_alone(&mut debugger, port)?,
            Parting::Lost(why) => {
                let line = format!("{why}; waiting for gdb: target remote localhost:{}", port.number);
                debugger.runner.host.announce(&line);
                wait(&mut debugger, port)?
            }
        };
    };
    debugger.runner.finish(outcome)
}

/// Waits for gdb while the machine stands still. The error is the outcome of a run that is to end instead.
fn wait(debugger: &mut Debugger, port: &Port) -> Result<Result<TcpStream, Outcome>, MachineError> {
    loop {
        if let Some(stream) = port.accept()? {
            return Ok(Ok(stream));
        }
        if let Some(outcome) = debugger.stopped()? {
            return Ok(Err(outcome));
        }
        std::thread::sleep(PATIENCE);
    }
}

/// Runs without gdb, until it connects again or the run is over.
fn run_alone(debugger: &mut Debugger, port: &Port) -> Result<Result<TcpStream, Outcome>, MachineError> {
    loop {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            if let Some(outcome) = debugger.runner.turn(u64::MAX)? {
                return Ok(Err(outcome));
            }
        }
        if let Some(stream) = port.accept()? {
            return Ok(Ok(stream));
        }
    }
}

/// Does what gdb asks over one connection.
fn attend(debugger: &mut Debugger, stream: TcpStream) -> Result<Parting, MachineError> {
    let mut stub = match GdbStub::new(stream).run_state_machine(debugger) {
        Ok(stub) => stub,
        Err(error) => return lost(error),
    };
    loop {
        let next = match stub {
            GdbStubStateMachine::Idle(mut idle) => match receive(idle.borrow_conn(), true) {
                Received::End => return Ok(Parting::Lost("gdb is gone".to_owned())),
                Received::Bytes(bytes) => pass_on(idle.into(), debugger, &bytes),
                Received::Nothing => match debugger.stopped()? {
                    Some(outcome) => return Ok(Parting::Over(outcome)),
                    None => Ok(idle.into()),
                },
            },
            GdbStubStateMachine::Running(mut running) => match advance(debugger)? {
                Some(stop) => running.report_stop(debugger, stop),
                None => match receive(running.borrow_conn(), false) {
                    Received::End => return Ok(Parting::Lost("gdb is gone".to_owned())),
                    Received::Bytes(bytes) => pass_on(running.into(), debugger, &bytes),
                    Received::Nothing => Ok(running.into()),
                },
            },
            GdbStubStateMachine::CtrlCInterrupt(interrupted) => {
                interrupted.interrupt_handled(debugger, Some(Stop::Signal(Signal::SIGINT)))
            }
            GdbStubStateMachine::Disconnected(left) => return Ok(part(debugger, left.get_reason())),
        };
        stub = match next {
            Ok(stub) => stub,
            Err(error) => return lost(error),
        };
        // What ended the run ends it even when gdb cannot be told.
        if let GdbStubStateMachine::Idle(_) = &stub
            && let Some(outcome) = debugger.outcome.take()
        {
            return Ok(Parting::Over(outcome));
        }
    }
}

/// Passes on what gdb sent, byte by byte, and answers an interrupt on the way.
fn pass_on<'s, 'a>(
    mut stub: Stub<'s, 'a>,
    debugger: &mut Debugger<'a>,
    bytes: &[u8],
) -> Result<Stub<'s, 'a>, StubError> {
    for byte in bytes {
        stub = match stub {
            GdbStubStateMachine::Idle(idle) => idle.incoming_data(debugger, *byte)?,
            GdbStubStateMachine::Running(running) => running.incoming_data(debugger, *byte)?,
            left => left,
        };
        if let GdbStubStateMachine::CtrlCInterrupt(interrupted) = stub {
            stub = interrupted.interrupt_handled(debugger, Some(Stop::Signal(Signal::SIGINT)))?;
        }
    }
    Ok(stub)
}

/// Runs the machine for a while, or until gdb is to be told something.
fn advance(debugger: &mut Debugger) -> Result<Option<Stop>, MachineError> {
    // Where the run is interrupted depends on the host's clock; what the machine does never.
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if let Some(outcome) = debugger.runner.turn(u64::MAX)? {
            let code = outcome.end.exit.code();
            debugger.outcome = Some(outcome);
            return Ok(Some(Stop::Exited(code)));
        }
        let Some(why) = debugger.runner.machine.debug.take_break() else { continue };
        return Ok(Some(match why {
            Break::Step => Stop::DoneStep,
            Break::Breakpoint { hart } => Stop::SwBreak(thread_of(hart)),
            Break::Watchpoint { hart, kind, address } => {
                Stop::Watch { tid: thread_of(hart), kind: watch_kind_of_gdb(kind), addr: address }
            }
        }));
    }
    Ok(None)
}

/// What gdb has sent; with `waits` after waiting for it for a moment.
fn receive(stream: &mut TcpStream, waits: bool) -> Received {
    let mut buffer = [0; BUFFER_BYTES];
    let mut read = || {
        stream.set_nonblocking(!waits)?;
        let count = stream.read(&mut buffer);
        // Answers wait until the host has taken them.
        stream.set_nonblocking(false)?;
        count
    };
    match read() {
        Ok(0) => Received::End,
        Ok(count) => Received::Bytes(buffer[..count].to_vec()),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {
            Received::Nothing
        }
        Err(_) => Received::End,
    }
}

/// An error of the stub: the machine's own ends the run, any other the connection.
fn lost(error: StubError) -> Result<Parting, MachineError> {
    let text = error.to_string();
    match error.into_target_error() {
        Some(error) => Err(error),
        None => Ok(Parting::Lost(format!("the connection to gdb broke ({text})"))),
    }
}

fn part(debugger: &mut Debugger, reason: DisconnectReason) -> Parting {
    match (debugger.outcome.take(), reason) {
        (Some(outcome), _) => Parting::Over(outcome),
        (None, DisconnectReason::Kill) => {
            let end = End { exit: Exit::Stopped, code: 0, hart: None };
            Parting::Over(Outcome::new(end, Some("the debugger ended the run".to_owned())))
        }
        (None, _) => Parting::Detached,
    }
}
