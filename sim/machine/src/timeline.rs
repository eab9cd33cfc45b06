//! Timelines in the JSON trace format that Perfetto and Chrome's tracer open.
//!
//! The format is described in "Trace Event Format" (Google, 2016). The guest is one process with
//! a thread for each hart. Times are in microseconds there; one cycle is one nanosecond here, so
//! a time has exactly three digits after its point and none is lost.

use std::io::{self, Write};
use std::path::Path;

use crate::output::{AtomicFile, OutputError};

/// All events belong to one process, the machine.
const PROCESS: u32 = 1;

/// A timeline that is being written, in any order of times: the viewer sorts. Nothing has the
/// file's name until [`Timeline::finish`].
#[derive(Debug)]
pub struct Timeline {
    file: AtomicFile,
    /// Harts that have a name and a place in the file.
    named: Vec<bool>,
}

/// A time in cycles as microseconds.
struct Microseconds(u64);

impl std::fmt::Display for Microseconds {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// A JSON string, escaped and in quotes.
fn quoted(text: &str) -> io::Result<String> {
    serde_json::to_string(text).map_err(io::Error::from)
}

/// Thread numbers start at 1: Perfetto takes thread 0 for the idle task.
fn thread(hart: usize) -> usize {
    hart + 1
}

impl Timeline {
    /// Starts a timeline in a file.
    ///
    /// # Errors
    /// As [`AtomicFile::create`].
    pub fn create(path: &Path) -> Result<Self, OutputError> {
        let mut timeline = Self { file: AtomicFile::create(path)?, named: Vec::new() };
        // The first event has no comma before it, so it is here: the others need not know.
        timeline.write(|file| {
            write!(
                file,
                "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n\
                 {{\"ph\":\"M\",\"pid\":{PROCESS},\"name\":\"process_name\",\"args\":{{\"name\":\"concord\"}}}}"
            )
        })?;
        Ok(timeline)
    }

    /// Something that a hart did from one cycle to another. A slice that ends before it begins is
    /// drawn as an empty one.
    ///
    /// # Errors
    /// [`OutputError`] if it cannot be written, for instance to a full disk.
    pub fn hart_slice(
        &mut self,
        hart: usize,
        name: &str,
        begin_cycles: u64,
        end_cycles: u64,
    ) -> Result<(), OutputError> {
        let duration = Microseconds(end_cycles.saturating_sub(begin_cycles));
        self.name_hart(hart)?;
        self.write(|file| {
            write!(
                file,
                ",\n{{\"ph\":\"X\",\"pid\":{PROCESS},\"tid\":{},\"ts\":{},\"dur\":{duration},\"name\":{}}}",
                thread(hart),
                Microseconds(begin_cycles),
                quoted(name)?
            )
        })
    }

    /// Something that happened on a hart at one cycle.
    ///
    /// # Errors
    /// As [`Timeline::hart_slice`].
    pub fn instant(&mut self, hart: usize, name: &str, cycles: u64) -> Result<(), OutputError> {
        self.name_hart(hart)?;
        self.write(|file| {
            write!(
                file,
                ",\n{{\"ph\":\"i\",\"s\":\"t\",\"pid\":{PROCESS},\"tid\":{},\"ts\":{},\"name\":{}}}",
                thread(hart),
                Microseconds(cycles),
                quoted(name)?
            )
        })
    }

    /// The value that a counter of the whole machine has from a cycle on.
    ///
    /// # Errors
    /// As [`Timeline::hart_slice`].
    pub fn counter(&mut self, name: &str, cycles: u64, value: u64) -> Result<(), OutputError> {
        self.write(|file| {
            write!(
                file,
                ",\n{{\"ph\":\"C\",\"pid\":{PROCESS},\"ts\":{},\"name\":{},\"args\":{{\"value\":{value}}}}}",
                Microseconds(cycles),
                quoted(name)?
            )
        })
    }

    /// Ends the document and gives the file its name.
    ///
    /// # Errors
    /// As [`AtomicFile::commit`]; an existing file is untouched.
    pub fn finish(mut self) -> Result<(), OutputError> {
        self.write(|file| file.write_all(b"\n]}\n"))?;
        self.file.commit()
    }

    /// Names a hart's thread, and puts it in the order of the harts, before its first event.
    fn name_hart(&mut self, hart: usize) -> Result<(), OutputError> {
        if self.named.get(hart).copied().unwrap_or(false) {
            return Ok(());
        }
        if self.named.len() <= hart {
            self.named.resize(hart + 1, false);
        }
        self.named[hart] = true;
        let tid = thread(hart);
        self.write(|file| {
            write!(
                file,
                ",\n{{\"ph\":\"M\",\"pid\":{PROCESS},\"tid\":{tid},\"name\":\"thread_name\",\"args\":{{\"name\":\"hart {hart}\"}}}},\n\
                 {{\"ph\":\"M\",\"pid\":{PROCESS},\"tid\":{tid},\"name\":\"thread_sort_index\",\"args\":{{\"sort_index\":{hart}}}}}"
            )
        })
    }

    fn write(&mut self, event: impl FnOnce(&mut AtomicFile) -> io::Result<()>) -> Result<(), OutputError> {
        event(&mut self.file).map_err(|source| self.file.error(source))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn timeline(path: &Path) -> Timeline {
        let mut timeline = Timeline::create(path).expect("created");
        timeline.hart_slice(1, "sys_read", 1_000, 2_345).expect("written");
        timeline.hart_slice(0, "\"quoted\" \\ \n \u{1} é", 0, 1).expect("written");
        timeline.instant(1, "interrupt 5", 2_000_001).expect("written");
        timeline.counter("misses", u64::MAX, u64::MAX).expect("written");
        timeline.hart_slice(0, "backwards", 5, 4).expect("written");
        timeline
    }

    #[test]
    fn a_finished_timeline_is_one_document() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("timeline.json");
        timeline(&path).finish().expect("finished");
        let text = std::fs::read_to_string(&path).expect("readable");
        let document: Value = serde_json::from_str(&text).expect("JSON");
        let events = document["traceEvents"].as_array().expect("an array");
        assert_eq!(events.len(), 1 + 2 * 2 + 5);
        assert!(events.iter().any(|event| event["name"] == "\"quoted\" \\ \n \u{1} é"));
        insta::assert_snapshot!(text);
    }

    #[test]
    fn an_empty_timeline_is_a_document_too() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("timeline.json");
        Timeline::create(&path).expect("created").finish().expect("finished");
        let text = std::fs::read_to_string(&path).expect("readable");
        let document: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(document["traceEvents"].as_array().map(Vec::len), Some(1));
    }

    #[test]
    fn an_unfinished_timeline_leaves_the_file_that_was_there() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("timeline.json");
        std::fs::write(&path, "old").expect("written");
        drop(timeline(&path));
        assert_eq!(std::fs::read(&path).expect("readable"), b"old");
        assert_eq!(std::fs::read_dir(directory.path()).expect("readable").count(), 1);
    }

    #[test]
    fn a_full_disk_is_an_error_that_names_the_file() {
        let error = timeline(Path::new("/dev/full")).finish().expect_err("full");
        insta::assert_snapshot!(error, @"/dev/full: cannot write to it: No space left on device (os error 28)");
    }

    proptest! {
        #[test]
        fn any_name_and_time_come_back(
            name in any::<String>(),
            hart in 0usize..64,
            begin in any::<u64>(),
            length in 0u64..1_000_000_000,
        ) {
            let directory = tempfile::tempdir().expect("a directory");
            let path = directory.path().join("timeline.json");
            let mut timeline = Timeline::create(&path).expect("created");
            timeline.hart_slice(hart, &name, begin, begin.saturating_add(length)).expect("written");
            timeline.finish().expect("finished");
            let text = std::fs::read_to_string(&path).expect("readable");
            let document: Value = serde_json::from_str(&text).expect("JSON");
            let event = &document["traceEvents"][3];
            prop_assert_eq!(event["name"].as_str(), Some(name.as_str()));
            prop_assert_eq!(event["tid"].as_u64(), Some(hart as u64 + 1));
            // The digits themselves, as a double would round them.
            let time = format!("\"ts\":{}.{:03},", begin / 1000, begin % 1000);
            prop_assert!(text.contains(&time), "{} lacks {}", text, time);
        }
    }
}
