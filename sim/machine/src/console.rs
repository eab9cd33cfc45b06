//! The guest's console as lines of text, watched for a kernel panic.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// How many of the last lines are kept for the result.
const LINES_KEPT: usize = 20;
/// The longest line that is kept whole. The host gets every line whole.
const LINE_BYTES_MAX: usize = 1000;

/// The printed text as lines.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Console {
    last: VecDeque<String>,
    line: Vec<u8>,
    panic: Option<String>,
    panic_is_over: bool,
}

impl Console {
    /// Adds bytes that the guest printed.
    pub fn print(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'\n' => self.end_line(),
                b'\r' => {}
                byte if self.line.len() < LINE_BYTES_MAX => self.line.push(*byte),
                _ => {}
            }
        }
    }

    fn end_line(&mut self) {
        let line = String::from_utf8_lossy(&self.line).into_owned();
        self.line.clear();
        if self.panic.is_none()
            && let Some(at) = line.find("Kernel panic - not syncing")
        {
            self.panic = Some(line[at..].to_owned());
        }
        self.panic_is_over |= line.contains("---[ end Kernel panic");
        self.last.push_back(line);
        if self.last.len() > LINES_KEPT {
            self.last.pop_front();
        }
    }

    /// The kernel's message, if it panicked.
    pub fn panic(&self) -> Option<&str> {
        self.panic.as_deref()
    }

    /// True when the kernel has panicked and has printed its last line.
    pub fn panic_is_over(&self) -> bool {
        self.panic_is_over
    }

    /// The last lines, the unfinished one included.
    pub fn last_lines(&self) -> Vec<String> {
        let unfinished = (!self.line.is_empty()).then(|| String::from_utf8_lossy(&self.line).into_owned());
        self.last.iter().cloned().chain(unfinished).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Console;

    #[test]
    fn a_panic_is_found_across_writes() {
        let mut console = Console::default();
        console.print(b"[ 0.1] Kernel panic - not");
        assert_eq!(console.panic(), None);
        console.print(b" syncing: no init\r\n---[ end Kernel");
        assert_eq!(console.panic(), Some("Kernel panic - not syncing: no init"));
        assert!(!console.panic_is_over());
        console.print(b" panic - not syncing ]---\n$ ");
        assert!(console.panic_is_over());
        assert_eq!(console.last_lines().last().map(String::as_str), Some("$ "));
    }

    #[test]
    fn only_the_last_lines_are_kept() {
        let mut console = Console::default();
        for index in 0..100 {
            console.print(format!("{index}\n").as_bytes());
        }
        assert_eq!(console.last_lines().first().map(String::as_str), Some("80"));
    }
}
