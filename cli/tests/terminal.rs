//! The terminal is the guest's while it runs, and as it was afterwards, however the run ended.

mod support;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, tcgetattr};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command, Stdio};
use support::{concord, guest};

/// A pseudo-terminal with a run of `spin` on it that has begun to print.
struct Session {
    keys: File,
    terminal: File,
    before: Termios,
    child: Child,
}

impl Session {
    fn start() -> Session {
        let mut keys = File::from(openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap());
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let name = ptsname(&keys, Vec::new()).unwrap();
        let terminal = File::options().read(true).write(true).open(OsStr::from_bytes(name.as_bytes())).unwrap();
        let before = tcgetattr(&terminal).unwrap();
        let mut command = concord(".".as_ref());
        command.arg("boot").arg("--kernel").arg(guest("spin")).args(["--harts", "1", "--interactive", "--quiet"]);
        let stream = || Stdio::from(terminal.try_clone().unwrap());
        let child = command.stdin(stream()).stdout(stream()).stderr(stream()).spawn().unwrap();
        let mut seen = [0; 14];
        keys.read_exact(&mut seen).unwrap();
        assert_eq!(&seen, b"all harts spin");
        Session { keys, terminal, before, child }
    }

    fn modes(&self) -> Termios {
        tcgetattr(&self.terminal).unwrap()
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Waits for the end; the exit code, and whether the terminal is as it was.
    fn end(mut self) -> (Option<i32>, bool) {
        let code = self.child.wait().unwrap().code();
        (code, format!("{:?}", self.modes()) == format!("{:?}", self.before))
    }
}

#[test]
fn keys_go_to_the_guest_until_the_run_is_ended_by_key() {
    let mut session = Session::start();
    let modes = session.modes().local_modes;
    for mode in [LocalModes::ECHO, LocalModes::ICANON, LocalModes::ISIG] {
        assert!(session.before.local_modes.contains(mode) && !modes.contains(mode), "{mode:?}");
    }
    // Ctrl-C and Ctrl-A c are the guest's.
    session.keys.write_all(b"\x03\x01cx").unwrap();
    session.keys.write_all(b"\x01x").unwrap();
    assert_eq!(session.end(), (Some(5), true));
}

#[test]
fn a_signal_gives_the_terminal_back() {
    let session = Session::start();
    session.signal("-TERM");
    assert_eq!(session.end(), (Some(5), true));
}
