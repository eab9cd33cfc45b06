//! The client's side of the remote serial protocol, as far as the tests of the debugger speak it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// A connection to a machine that waits for a debugger.
pub struct Client {
    stream: TcpStream,
}

#[allow(dead_code, reason = "not every test program needs all of it")]
impl Client {
    pub fn connect(port: u16) -> Client {
        for _ in 0..600 {
            if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) {
                stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
                // An answer is a few bytes, and the next question waits for it.
                stream.set_nodelay(true).unwrap();
                return Client { stream };
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("nobody listens on port {port}");
    }

    /// Sends a request and returns the answer.
    pub fn ask(&mut self, body: &str) -> String {
        self.send(body);
        self.answer()
    }

    /// Sends a request whose answer comes later, or never.
    pub fn send(&mut self, body: &str) {
        let sum = body.bytes().fold(0u8, u8::wrapping_add);
        write!(self.stream, "${body}#{sum:02x}").unwrap();
    }

    /// Interrupts a machine that runs.
    pub fn interrupt(&mut self) {
        self.stream.write_all(&[3]).unwrap();
    }

    /// The answer to a monitor command: the text of the console packets that come before its `OK`.
    pub fn monitor(&mut self, command: &str) -> String {
        let digits: String = command.bytes().map(|byte| format!("{byte:02x}")).collect();
        let mut answer = self.ask(&format!("qRcmd,{digits}"));
        let mut text = Vec::new();
        while let Some(digits) = answer.strip_prefix('O').filter(|_| answer != "OK") {
            let digit = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
            text.extend((0..digits.len()).step_by(2).map(digit));
            answer = self.answer();
        }
        assert_eq!(answer, "OK", "{command}");
        String::from_utf8(text).unwrap()
    }

    /// The next packet.
    pub fn answer(&mut self) -> String {
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
        unescape(&answer)
    }

    fn byte(&mut self) -> u8 {
        let mut byte = [0];
        self.stream.read_exact(&mut byte).unwrap();
        byte[0]
    }
}

/// The text of a packet in which runs of one character are shortened: `*` repeats the character before it as often as the one
/// behind it says (gdb manual, "Overview" of the remote protocol).
fn unescape(packet: &[u8]) -> String {
    let mut text = Vec::new();
    let mut bytes = packet.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'*' => {
                let count = usize::from(bytes.next().unwrap() - 29);
                text.extend(vec![*text.last().unwrap(); count]);
            }
            b'}' => text.push(bytes.next().unwrap() ^ 0x20),
            byte => text.push(byte),
        }
    }
    String::from_utf8(text).unwrap()
}

/// A port that was free a moment ago; nobody else on this machine is likely to take it in between.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
