//! A run under the debugger is the run that would have been: breakpoints, watchpoints, single steps and questions move no
//! instruction and no cycle. Connections break and come again, and the run ends when it is asked to.

#[path = "../../sim/machine/tests/support/debugger_client.rs"]
mod debugger_client;
mod support;

use debugger_client::{Client, free_port};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use support::{concord, guest};
use tempfile::TempDir;

fn address_of(symbol: &str, file: &Path) -> u64 {
    let output = Command::new("riscv64-linux-gnu-nm").arg(file).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| line.ends_with(&format!(" {symbol}"))).unwrap();
    u64::from_str_radix(line.split_whitespace().next().unwrap(), 16).unwrap()
}

/// Iterations of a run of some milliseconds, and of one that lasts until somebody on the host has done something.
const SHORT: &str = "iterations=400";
const LONG: &str = "iterations=1000000";

fn run(folder: &Path, kernel: &Path, gear: &str, length: &str, more: &[&str]) -> Command {
    let mut command = concord(folder);
    command.args(["boot", "--harts", "4", "--gear", gear, "--append", length, "--quiet", "--kernel"]);
    command.arg(kernel).args(more).stdout(Stdio::null());
    command
}

fn result(folder: &Path, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join(name)).unwrap()).unwrap()
}

/// A run that waits for the debugger.
struct Debugged {
    folder: TempDir,
    child: Child,
    port: u16,
    gear: &'static str,
    length: &'static str,
}

impl Drop for Debugged {
    /// A test that fails leaves no machine behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const GEARS: [&str; 2] = ["functional", "timed"];

impl Debugged {
    fn start(kernel: &Path, gear: &'static str) -> Debugged {
        Debugged::start_of_length(kernel, gear, SHORT)
    }

    fn start_of_length(kernel: &Path, gear: &'static str, length: &'static str) -> Debugged {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let debugged = ["--result", "debugged.json", "--gdb", &port.to_string()];
        let mut command = run(folder.path(), kernel, gear, length, &debugged);
        let child = command.stderr(Stdio::piped()).spawn().unwrap();
        Debugged { folder, child, port, gear, length }
    }

    fn connect(&self) -> Client {
        Client::connect(self.port)
    }

    /// Waits for the end, which is that of a run that nobody looked at.
    fn ends_as_if_alone(mut self, kernel: &Path) {
        assert!(self.child.wait().unwrap().success());
        let folder = self.folder.path();
        assert!(run(folder, kernel, self.gear, self.length, &["--result", "alone.json"]).status().unwrap().success());
        let (alone, debugged) = (result(folder, "alone.json"), result(folder, "debugged.json"));
        for field in ["digest", "harts", "clock_cycles", "conflict_totals"] {
            assert_eq!(alone[field], debugged[field], "{field}, {}", self.gear);
        }
    }

    /// Sends SIGTERM; the exit code and the name of the end.
    fn ends_by_signal(mut self) -> (Option<i32>, String) {
        assert!(Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap().success());
        let code = self.child.wait().unwrap().code();
        (code, result(self.folder.path(), "debugged.json")["exit"].as_str().unwrap().to_owned())
    }
}

/// Continues to the end of the run; the stops on the way.
fn run_to_end(client: &mut Client) -> Vec<String> {
    let mut stops = Vec::new();
    loop {
        let stop = client.ask("vCont;c");
        if stop.starts_with('W') {
            assert_eq!(stop, "W00");
            return stops;
        }
        assert!(stop.starts_with("T05"), "{stop}");
        stops.push(stop);
    }
}

/// The little-endian bytes that a packet has as hexadecimal digits.
fn number(digits: &str) -> u64 {
    let byte = |at: usize| u64::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).rev().fold(0, |value, at| value << 8 | byte(at))
}

#[test]
fn breakpoints_and_steps_leave_the_run_as_it_was() {
    let kernel = guest("lock-swap");
    let breakpoint = address_of("run", &kernel);
    for gear in GEARS {
        let debugged = Debugged::start(&kernel, gear);
        let mut client = debugged.connect();
        assert_eq!(client.ask(&format!("Z0,{breakpoint:x},2")), "OK");
        let mut stops = 0;
        loop {
            let stop = client.ask("vCont;c");
            if stop.starts_with('W') {
                assert_eq!(stop, "W00");
                break;
            }
            assert!(stop.starts_with("T05"), "{stop}");
            stops += 1;
            for _ in 0..25 {
                let stop = client.ask("vCont;s:1;c");
                assert!(stop.starts_with("T05") || stop.starts_with("S05"), "{stop}");
            }
        }
        assert!(stops >= 1, "the breakpoint was never reached");
        debugged.ends_as_if_alone(&kernel);
    }
}

#[test]
fn a_turn_that_is_left_inside_a_run_goes_on_as_it_was_when_no_breakpoint_is_left() {
    let kernel = guest("lock-swap");
    let breakpoint = address_of("run", &kernel);
    for gear in GEARS {
        for steps in [1, 2, 3, 5, 8] {
            let debugged = Debugged::start(&kernel, gear);
            let mut client = debugged.connect();
            assert_eq!(client.ask(&format!("Z0,{breakpoint:x},2")), "OK");
            client.ask("vCont;c");
            assert_eq!(client.ask(&format!("z0,{breakpoint:x},2")), "OK");
            for _ in 0..steps {
                client.ask("vCont;s:1;c");
            }
            assert!(run_to_end(&mut client).is_empty());
            debugged.ends_as_if_alone(&kernel);
        }
    }
}

#[test]
fn watchpoints_name_each_access_and_leave_the_run_as_it_was() {
    for (guest_name, symbol, offset) in
        [("lock-swap", "shared", 64), ("lock-reservation", "shared", 0), ("bank", "accounts", 0)]
    {
        let kernel = guest(guest_name);
        let address = address_of(symbol, &kernel) + offset;
        for gear in GEARS {
            let mut counts = Vec::new();
            // Write, read, access; the value of an eight-byte counter, of a lock, and of an account.
            for (kind, name) in [(2, "watch"), (3, "rwatch"), (4, "awatch")] {
                let debugged = Debugged::start(&kernel, gear);
                let mut client = debugged.connect();
                assert_eq!(client.ask(&format!("Z{kind},{address:x},8")), "OK");
                let stops = run_to_end(&mut client);
                let expected = format!(";{name}:{address:x};");
                assert!(stops.iter().all(|stop| stop.contains(&expected)), "{stops:?}");
                counts.push(stops.len());
                debugged.ends_as_if_alone(&kernel);
            }
            let (writes, reads, accesses) = (counts[0], counts[1], counts[2]);
            match guest_name {
                // Each iteration is a load and a store; the start clears the counter, and the end reads it twice.
                "lock-swap" => assert!(writes >= 400 && reads == 402 && accesses == writes + reads, "{counts:?}"),
                // Only the release does both, once an iteration.
                "lock-reservation" => assert!(writes == 800 && accesses == writes + reads - 400, "{counts:?}"),
                _ => assert!(writes > 0 && reads > writes && accesses == writes + reads, "{counts:?}"),
            }
        }
    }
}

#[test]
fn a_watchpoint_stops_behind_the_access_on_the_hart_that_made_it() {
    let kernel = guest("lock-swap");
    let address = address_of("shared", &kernel) + 64;
    for gear in GEARS {
        let debugged = Debugged::start(&kernel, gear);
        let mut client = debugged.connect();
        let value = |client: &mut Client| number(&client.ask(&format!("m{address:x},8")));
        assert_eq!(client.ask(&format!("Z2,{:x},1", address + 3)), "OK");
        let mut last = value(&mut client);
        for _ in 0..20 {
            let stop = client.ask("vCont;c");
            assert!(stop.contains(&format!(";watch:{:x};", address + 3)), "{stop}");
            let now = value(&mut client);
            assert!(now == last + 1 || now == 0, "{now} after {last}");
            last = now;
        }
        assert!(last > 1);
        assert_eq!(client.ask(&format!("z2,{:x},1", address + 3)), "OK");
        // gdb removes what was never there, or twice.
        assert_ne!(client.ask(&format!("z2,{:x},1", address + 3)), "OK");
        assert!(run_to_end(&mut client).is_empty());
        debugged.ends_as_if_alone(&kernel);
    }
}

#[test]
fn registers_beyond_the_integers_are_described_read_and_written() {
    let kernel = guest("lock-swap");
    let debugged = Debugged::start(&kernel, "timed");
    let mut client = debugged.connect();
    let mut description = String::new();
    loop {
        let part = client.ask(&format!("qXfer:features:read:target.xml:{:x},8000", description.len()));
        description.push_str(&part[1..]);
        if part.starts_with('l') {
            break;
        }
    }
    for register in ["pc", "fa0", "fcsr", "sstatus", "satp", "instret", "xstatus", "xwinner", "priv"] {
        assert!(description.contains(&format!("name=\"{register}\"")), "{register}: {description}");
    }
    client.ask(&format!("Z0,{:x},2", address_of("run", &kernel)));
    let stop = client.ask("vCont;c");
    assert!(stop.contains("thread:"), "{stop}");
    let register = |client: &mut Client, number_of: u64| number(&client.ask(&format!("p{number_of:x}")));
    let csr = |number: u64| 65 + number;
    assert_eq!(register(&mut client, 32), address_of("run", &kernel));
    assert!(register(&mut client, csr(0xc02)) > 0, "instret");
    assert_eq!(register(&mut client, csr(0x180)), 0, "satp");
    assert_eq!(register(&mut client, csr(0xcc0)), 0, "xstatus");
    assert_eq!(client.ask("p1041"), "01", "supervisor mode");
    // sscratch, ft0 and a read-only one.
    assert_eq!(client.ask(&format!("P{:x}=efcdab8967452301", csr(0x140))), "OK");
    assert_eq!(register(&mut client, csr(0x140)), 0x0123_4567_89ab_cdef);
    assert_eq!(client.ask("P21=000000000000f03f"), "OK");
    assert_eq!(register(&mut client, 33), 1f64.to_bits());
    assert!(client.ask(&format!("P{:x}=0000000000000000", csr(0xc02))).starts_with('E'));
    assert!(client.ask(&format!("p{:x}", csr(0x300))).contains('x'), "there is no mstatus");
    client.send("k");
    let mut debugged = debugged;
    assert_eq!(debugged.child.wait().unwrap().code(), Some(5));
    let document = result(debugged.folder.path(), "debugged.json");
    assert_eq!(document["exit"], "stopped");
    assert_eq!(document["message"], "the debugger ended the run");
}

#[test]
fn monitor_commands_look_and_change_nothing() {
    let kernel = guest("bank");
    for gear in GEARS {
        let debugged = Debugged::start(&kernel, gear);
        let mut client = debugged.connect();
        let transfer = address_of("transfer", &kernel);
        client.ask(&format!("Z0,{transfer:x},2"));
        for _ in 0..50 {
            client.ask("vCont;c");
        }
        let mut steps = 0;
        while !client.monitor("transactions").lines().any(|line| line.contains(" active, depth 1")) {
            client.ask("vCont;s:1;c");
            steps += 1;
            assert!(steps < 200, "no transaction began");
        }
        let help = client.monitor("help");
        let digest = client.monitor("digest");
        for line in help.lines().filter(|line| !line.starts_with("symbol")) {
            let command = line.split_whitespace().next().unwrap();
            assert!(!client.monitor(command).is_empty(), "{command}");
        }
        assert_eq!(client.monitor("harts").lines().count(), 4);
        assert_eq!(client.monitor(&format!("symbol {transfer:#x}")), "transfer\n");
        assert!(client.monitor("dance").starts_with("\"dance\" is no monitor command"));
        assert_eq!(client.monitor("digest"), digest);
        assert_eq!(client.ask(&format!("z0,{transfer:x},2")), "OK");
        assert!(run_to_end(&mut client).is_empty());
        debugged.ends_as_if_alone(&kernel);
    }
}

#[test]
fn a_connection_that_breaks_is_taken_up_again_where_it_broke() {
    let kernel = guest("lock-swap");
    let breakpoint = address_of("run", &kernel);
    for gear in GEARS {
        let debugged = Debugged::start_of_length(&kernel, gear, LONG);
        let mut client = debugged.connect();
        client.ask(&format!("Z0,{breakpoint:x},2"));
        client.ask("vCont;c");
        // Every connection begins by looking at the first hart.
        client.ask("Hg1");
        let registers = client.ask("g");
        // Once while the machine stands, once while it waits for the rest of a request, once while it runs.
        drop(client);
        let mut client = debugged.connect();
        assert_eq!(client.ask("g"), registers);
        client.send("vCont");
        drop(client);
        let mut client = debugged.connect();
        client.ask(&format!("Z2,{:x},8", u64::MAX - 15));
        client.send("vCont;c");
        drop(client);
        let mut client = debugged.connect();
        // The breakpoint went with the connection that asked for it.
        assert!(run_to_end(&mut client).is_empty());
        debugged.ends_as_if_alone(&kernel);
    }
}

#[test]
fn a_machine_runs_on_when_gdb_detaches_and_may_be_looked_at_again() {
    let kernel = guest("lock-swap");
    for gear in GEARS {
        let debugged = Debugged::start(&kernel, gear);
        let mut client = debugged.connect();
        client.ask(&format!("Z0,{:x},2", address_of("run", &kernel)));
        client.ask("vCont;c");
        assert_eq!(client.ask("D"), "OK");
        debugged.ends_as_if_alone(&kernel);
    }
    let kernel = guest("spin");
    let debugged = Debugged::start(&kernel, "functional");
    let instructions = |client: &mut Client| number(&client.ask(&format!("p{:x}", 65 + 0xc02)));
    let mut client = debugged.connect();
    let before = instructions(&mut client);
    assert_eq!(client.ask("D"), "OK");
    let mut client = debugged.connect();
    let after = instructions(&mut client);
    assert!(after > before, "{after} after {before}");
    client.send("vCont;c");
    client.interrupt();
    let stop = client.answer();
    assert!(stop.starts_with("T02") || stop.starts_with("S02"), "{stop}");
    assert_eq!(debugged.ends_by_signal(), (Some(5), "stopped".to_owned()));
}

#[test]
fn the_first_signal_ends_a_run_that_waits_for_gdb_or_stands_in_it() {
    let kernel = guest("spin");
    let waits = |debugged: &mut Debugged| {
        let mut line = String::new();
        BufReader::new(debugged.child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, format!("concord: waiting for gdb: target remote localhost:{}\n", debugged.port));
    };
    let mut debugged = Debugged::start(&kernel, "functional");
    waits(&mut debugged);
    assert_eq!(debugged.ends_by_signal(), (Some(5), "stopped".to_owned()));

    let mut debugged = Debugged::start(&kernel, "functional");
    waits(&mut debugged);
    let mut client = debugged.connect();
    client.ask("?");
    assert_eq!(debugged.ends_by_signal(), (Some(5), "stopped".to_owned()));

    let mut debugged = Debugged::start(&kernel, "functional");
    waits(&mut debugged);
    let mut client = debugged.connect();
    client.send("vCont;c");
    assert_eq!(debugged.ends_by_signal(), (Some(5), "stopped".to_owned()));
    assert_eq!(client.answer(), "W05");
}
