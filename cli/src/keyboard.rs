//! Typed or piped input, read by a thread beside the run.

use crate::signal::Stop;
use std::io::Read;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Ctrl-A, which introduces a command to us rather than to the guest.
const PREFIX: u8 = 1;
/// How long a request to stop may go unnoticed.
const PATIENCE: Duration = Duration::from_millis(50);

/// Standard input, read by a thread of its own.
#[derive(Debug)]
pub struct Keyboard {
    typed: Receiver<Vec<u8>>,
    stop: Stop,
    /// Read, and not taken yet.
    pending: Vec<u8>,
}

impl Keyboard {
    /// Starts to read. With `commands`, Ctrl-A x asks to stop.
    ///
    /// # Errors
    /// If no thread can be had.
    pub fn open(commands: bool, stop: Stop) -> std::io::Result<Keyboard> {
        let (sender, typed) = channel();
        let asked = stop.clone();
        let read = move || read(std::io::stdin().lock(), &sender, commands, &asked);
        std::thread::Builder::new().name(String::from("keyboard")).spawn(read)?;
        Ok(Keyboard { typed, stop, pending: Vec::new() })
    }

    /// The bytes typed since the last call, after waiting for the first for at most `wait`, or until the run is to stop. None
    /// at the end of input.
    pub fn take(&self, wait: Duration) -> Option<Vec<u8>> {
        // None for a wait beyond the host's clock, which is for ever.
        let deadline = Instant::now().checked_add(wait);
        let mut bytes = loop {
            let left = deadline.map_or(PATIENCE, |deadline| deadline.saturating_duration_since(Instant::now()));
            match self.typed.recv_timeout(left.min(PATIENCE)) {
                Ok(bytes) => break bytes,
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) if left <= PATIENCE || self.stop.is_asked() => return Some(Vec::new()),
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        while let Ok(more) = self.typed.try_recv() {
            bytes.extend(more);
        }
        Some(bytes)
    }

    /// The next line, however long it takes to arrive; without its end when it is the last. Nothing when the run is to stop,
    /// and None at the end of input.
    pub fn take_line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                return Some(self.pending.drain(..=end).collect());
            }
            match self.typed.recv_timeout(PATIENCE) {
                Ok(bytes) => self.pending.extend(bytes),
                Err(RecvTimeoutError::Timeout) if self.stop.is_asked() => return Some(Vec::new()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) if self.pending.is_empty() => return None,
                Err(RecvTimeoutError::Disconnected) => return Some(std::mem::take(&mut self.pending)),
            }
        }
    }
}

fn read(mut input: impl Read, typed: &Sender<Vec<u8>>, commands: bool, stop: &Stop) {
    let mut keys = Keys { commands, after_prefix: false };
    let mut buffer = [0; 4096];
    loop {
        match input.read(&mut buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            // An input that fails is one that has ended.
            Ok(0) | Err(_) => return,
            Ok(count) => {
                let (bytes, ends) = keys.filter(&buffer[..count]);
                if ends {
                    stop.ask();
                }
                if !bytes.is_empty() && typed.send(bytes).is_err() {
                    return;
                }
            }
        }
    }
}

/// Tells the guest's keys from ours.
#[derive(Debug)]
struct Keys {
    commands: bool,
    after_prefix: bool,
}

impl Keys {
    /// The keys that go to the guest, and whether they ask to stop. Ctrl-A x stops, Ctrl-A Ctrl-A is one Ctrl-A, and
    /// before any other key Ctrl-A is itself.
    fn filter(&mut self, keys: &[u8]) -> (Vec<u8>, bool) {
        if !self.commands {
            return (keys.to_owned(), false);
        }
        let mut bytes = Vec::new();
        for key in keys.iter().copied() {
            match (std::mem::take(&mut self.after_prefix), key) {
                (false, PREFIX) => self.after_prefix = true,
                (false, key) => bytes.push(key),
                (true, b'x') => return (bytes, true),
                (true, PREFIX) => bytes.push(PREFIX),
                (true, key) => bytes.extend([PREFIX, key]),
            }
        }
        (bytes, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(commands: bool, chunks: &[&str]) -> (String, bool) {
        let mut keys = Keys { commands, after_prefix: false };
        let (mut text, mut ends) = (String::new(), false);
        for chunk in chunks {
            let (bytes, end) = keys.filter(chunk.as_bytes());
            text.push_str(&String::from_utf8(bytes).unwrap());
            ends |= end;
        }
        (text, ends)
    }

    #[test]
    fn only_the_prefix_and_x_end_the_run() {
        assert_eq!(filter(true, &["ls\x01x"]), ("ls".into(), true));
        assert_eq!(filter(true, &["ls\x01", "x"]), ("ls".into(), true));
        assert_eq!(filter(true, &["x\x01\x01x"]), ("x\x01x".into(), false));
        assert_eq!(filter(true, &["\x01c\x03"]), ("\x01c\x03".into(), false));
        assert_eq!(filter(false, &["\x01x"]), ("\x01x".into(), false));
    }

    /// A keyboard on which all of `text` has been typed.
    fn keyboard(text: &[u8]) -> Keyboard {
        let (sender, typed) = channel();
        read(text, &sender, false, &Stop::default());
        Keyboard { typed, stop: Stop::default(), pending: Vec::new() }
    }

    #[test]
    fn what_is_typed_arrives_whole_and_then_ends() {
        let text: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        let keyboard = keyboard(&text);
        assert_eq!(keyboard.take(Duration::ZERO), Some(text));
        assert_eq!(keyboard.take(Duration::MAX), None);
    }

    #[test]
    fn lines_arrive_one_by_one_however_they_were_read() {
        let long = [&[b'x'; 5000][..], b"\n"].concat();
        let mut keyboard = keyboard(&[b"a\n\nb\n", &long[..], b"end"].concat());
        for line in [&b"a\n"[..], b"\n", b"b\n", &long, b"end"] {
            assert_eq!(keyboard.take_line().as_deref(), Some(line));
        }
        assert_eq!(keyboard.take_line(), None);
    }

    #[test]
    fn a_request_to_stop_ends_the_wait() {
        let (_sender, typed) = channel();
        let stop = Stop::default();
        stop.ask();
        let mut keyboard = Keyboard { typed, stop, pending: Vec::new() };
        assert_eq!(keyboard.take(Duration::MAX), Some(Vec::new()));
        assert_eq!(keyboard.take_line(), Some(Vec::new()));
    }
}
