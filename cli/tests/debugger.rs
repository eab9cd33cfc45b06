//! A run under the debugger is the run that would have been: breakpoints and single steps move no instruction and no cycle.

mod support;

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use support::{concord, guest};

/// The client's side of the remote serial protocol, as far as this test speaks it.
struct Client {
    stream: TcpStream,
}

impl Client {
    fn connect(port: u16) -> Client {
        for _ in 0..600 {
            if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) {
                stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
                return Client { stream };
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("nobody listens on port {port}");
    }

    fn ask(&mut self, body: &str) -> String {
        let sum = body.bytes().fold(0u8, u8::wrapping_add);
        write!(self.stream, "${body}#{sum:02x}").unwrap();
        while self.byte() != b'$' {}
        let mut answer = Vec::new();
        loop {
            match self.byte() {
                b'#' => break,
                byte => answer.push(byte),
            }
        }
        self.byte();
        self.byte();
        self.stream.write_all(b"+").unwrap();
        String::from_utf8(answer).unwrap()
    }

    fn byte(&mut self) -> u8 {
        let mut byte = [0];
        self.stream.read_exact(&mut byte).unwrap();
        byte[0]
    }
}

fn address_of(symbol: &str, file: &Path) -> u64 {
    let output = Command::new("riscv64-linux-gnu-nm").arg(file).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| line.ends_with(&format!(" {symbol}"))).unwrap();
    u64::from_str_radix(line.split_whitespace().next().unwrap(), 16).unwrap()
}

fn run(folder: &Path, kernel: &Path, gear: &str, more: &[&str]) -> Command {
    let mut command = concord(folder);
    command.args(["boot", "--harts", "4", "--gear", gear, "--append", "iterations=400", "--quiet", "--kernel"]);
    command.arg(kernel).args(more);
    command
}

fn result(folder: &Path, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join(name)).unwrap()).unwrap()
}

#[test]
fn breakpoints_and_steps_leave_the_run_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = guest("lock-swap");
    let breakpoint = address_of("run", &kernel);
    for gear in ["functional", "timed"] {
        assert!(run(folder.path(), &kernel, gear, &["--result", "alone.json"]).status().unwrap().success());
        // Free a moment ago; nobody else on this machine is likely to take it in between.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let debugged = ["--result", "debugged.json", "--gdb", &port.to_string()];
        let mut child = run(folder.path(), &kernel, gear, &debugged).spawn().unwrap();
        let mut client = Client::connect(port);
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
        assert!(child.wait().unwrap().success());
        let (alone, debugged) = (result(folder.path(), "alone.json"), result(folder.path(), "debugged.json"));
        assert_eq!(alone["digest"], debugged["digest"], "{gear}");
        assert_eq!(alone["harts"], debugged["harts"], "{gear}");
    }
}
