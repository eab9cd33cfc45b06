//! The terminal in raw mode while a guest has it.

use rustix::termios::{InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use std::sync::Mutex;

/// How the terminal was, while it is not. Global, because a signal must be able to put it back from any thread.
static SAVED: Mutex<Option<Termios>> = Mutex::new(None);

/// Every key goes to the reader of standard input until this is dropped.
#[derive(Debug)]
pub struct RawMode(());

impl RawMode {
    /// Switches the terminal of standard input.
    ///
    /// # Errors
    /// If standard input is no terminal, or does not obey.
    pub fn enter() -> std::io::Result<RawMode> {
        let input = std::io::stdin();
        let saved = tcgetattr(&input)?;
        let mut raw = saved.clone();
        // No line editing, echo, signals or flow control, and no translation of keys. Output stays as it is, so that our own
        // lines end where lines end.
        raw.input_modes -=
            InputModes::BRKINT | InputModes::ICRNL | InputModes::INLCR | InputModes::IGNCR | InputModes::IXON;
        raw.input_modes -= InputModes::ISTRIP | InputModes::INPCK | InputModes::PARMRK;
        raw.local_modes -= LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ICANON;
        raw.local_modes -= LocalModes::ISIG | LocalModes::IEXTEN;
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        *lock() = Some(saved);
        let guard = RawMode(());
        tcsetattr(&input, OptionalActions::Now, &raw)?;
        Ok(guard)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        restore();
    }
}

/// Puts the terminal back as it was. Does nothing when it is.
pub fn restore() {
    if let Some(saved) = lock().take() {
        // There is no better thing to do with a terminal that does not obey.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &saved);
    }
}

fn lock() -> std::sync::MutexGuard<'static, Option<Termios>> {
    // A thread that panicked while it held the lock has left a whole value.
    SAVED.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
