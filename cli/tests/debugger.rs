//! A run under the debugger is the run that would have been: breakpoints and single steps move no instruction and no cycle.

#[path = "../../sim/machine/tests/support/debugger_client.rs"]
mod debugger_client;
mod support;

use debugger_client::{Client, free_port};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use support::{concord, guest};

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
        let port = free_port();
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
