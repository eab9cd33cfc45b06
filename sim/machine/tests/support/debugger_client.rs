//! The client's side of the remote serial protocol, as far as the tests of the debugger speak it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// A connection to a machine that waits for a debugger.
pub struct Client {
    stream: TcpStream,
}

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

    pub fn ask(&mut self, body: &str) -> String {
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

/// A port that was free a moment ago; nobody else on this machine is likely to take it in between.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
