//! Signals that ask the command to end. The first ends the run in good order, with its results; the second ends the process.

use crate::terminal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set when the run is to end.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// One that SIGHUP, SIGINT and SIGTERM set.
    ///
    /// # Errors
    /// If the host does not let signals be watched.
    pub fn on_signals() -> std::io::Result<Stop> {
        let stop = Stop::default();
        let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
        let seen = stop.clone();
        std::thread::Builder::new().name(String::from("signals")).spawn(move || {
            for signal in signals.forever() {
                if seen.is_asked() {
                    terminal::restore();
                    // As a shell reports a process that a signal ended.
                    std::process::exit(128 + signal);
                }
                seen.ask();
            }
        })?;
        Ok(stop)
    }

    /// Asks for the end of the run.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the run is to end.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
