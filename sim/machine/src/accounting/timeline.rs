//! Timelines in the JSON trace format that Perfetto and Chrome's tracer open.
//!
//! The format is described in "Trace Event Format" (Google, 2016). The guest is one process with
//! a thread for each hart, and one for its transactions, which begin and end in the middle of what
//! the hart does: slices of a thread must not overlap. Times are in microseconds there; one cycle is one nanosecond here, so
//! a time has exactly three digits after its point and none is lost.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

use crate::output::{AtomicFile, OutputError};

/// All events belong to one process, the machine.
const PROCESS: u32 = 1;
/// As many as a board can have.
const HARTS_MAX: usize = 64;

/// A timeline that is being written, in any order of times: the viewer sorts. Nothing has the
/// file's name until [`Timeline::finish`].
#[derive(Debug)]
pub struct Timeline {
    file: AtomicFile,
    /// Tracks that have a name and a place in the file.
    named: BTreeSet<Track>,
}

/// A line of the drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Track {
    Hart(usize),
    /// A hart's transactions.
    Transactions(usize),
}

impl Track {
    /// Thread numbers start at 1: Perfetto takes thread 0 for the idle task.
    fn thread(self) -> usize {
        match self {
            Track::Hart(hart) => hart + 1,
            Track::Transactions(hart) => HARTS_MAX + hart + 1,
        }
    }

    /// A hart's transactions are drawn below the hart.
    fn place(self) -> usize {
        match self {
            Track::Hart(hart) => 2 * hart,
            Track::Transactions(hart) => 2 * hart + 1,
        }
    }

    fn name(self) -> String {
        match self {
            Track::Hart(hart) => format!("hart {hart}"),
            Track::Transactions(hart) => format!("hart {hart} transactions"),
        }
    }
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

/// Ends the object of an event with its details.
fn end_event(file: &mut AtomicFile, arguments: &[(&str, &str)]) -> io::Result<()> {
    for (index, (name, value)) in arguments.iter().enumerate() {
        let before = if index == 0 { ",\"args\":{" } else { "," };
        write!(file, "{before}{}:{}", quoted(name)?, quoted(value)?)?;
    }
    file.write_all(if arguments.is_empty() { b"}" } else { b"}}" })
}

impl Timeline {
    /// Starts a timeline in a file.
    ///
    /// # Errors
    /// As [`AtomicFile::create`].
    pub fn create(path: &Path) -> Result<Self, OutputError> {
        let mut timeline = Self { file: AtomicFile::create(path)?, named: BTreeSet::new() };
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

    /// Writes an activity that lasted from one cycle to another, with details by name. A slice that ends before it begins is
    /// drawn as an empty one.
    ///
    /// # Errors
    /// [`OutputError`] if it cannot be written, for instance to a full disk.
    pub fn slice(
        &mut self,
        track: Track,
        name: &str,
        (begin_cycles, end_cycles): (u64, u64),
        arguments: &[(&str, &str)],
    ) -> Result<(), OutputError> {
        let duration = Microseconds(end_cycles.saturating_sub(begin_cycles));
        self.name_track(track)?;
        self.write(|file| {
            write!(
                file,
                ",\n{{\"ph\":\"X\",\"pid\":{PROCESS},\"tid\":{},\"ts\":{},\"dur\":{duration},\"name\":{}",
                track.thread(),
                Microseconds(begin_cycles),
                quoted(name)?
            )?;
            end_event(file, arguments)
        })
    }

    /// Writes an event of one cycle, with details by name.
    ///
    /// # Errors
    /// As [`Timeline::slice`].
    pub fn instant(
        &mut self,
        track: Track,
        name: &str,
        cycles: u64,
        arguments: &[(&str, &str)],
    ) -> Result<(), OutputError> {
        self.name_track(track)?;
        self.write(|file| {
            write!(
                file,
                ",\n{{\"ph\":\"i\",\"s\":\"t\",\"pid\":{PROCESS},\"tid\":{},\"ts\":{},\"name\":{}",
                track.thread(),
                Microseconds(cycles),
                quoted(name)?
            )?;
            end_event(file, arguments)
        })
    }

    /// The value that a counter of the whole machine has from a cycle on.
    ///
    /// # Errors
    /// As [`Timeline::slice`].
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

    /// Names a track, and puts it in its place, before its first event.
    fn name_track(&mut self, track: Track) -> Result<(), OutputError> {
        if !self.named.insert(track) {
            return Ok(());
        }
        let (thread, name, place) = (track.thread(), track.name(), track.place());
        self.write(|file| {
            write!(
                file,
                ",\n{{\"ph\":\"M\",\"pid\":{PROCESS},\"tid\":{thread},\"name\":\"thread_name\",\"args\":{{\"name\":\"{name}\"}}}},\n\
                 {{\"ph\":\"M\",\"pid\":{PROCESS},\"tid\":{thread},\"name\":\"thread_sort_index\",\"args\":{{\"sort_index\":{place}}}}}"
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
        timeline.slice(Track::Hart(1), "sys_read", (1_000, 2_345), &[("call site", "sys_read+0x4")]).expect("written");
        timeline.slice(Track::Hart(0), "\"quoted\" \\ \n \u{1} é", (0, 1), &[]).expect("written");
        timeline.instant(Track::Hart(1), "interrupt 5", 2_000_001, &[]).expect("written");
        timeline.slice(Track::Transactions(1), "transaction", (1_500, 2_500), &[]).expect("written");
        let arguments = [("rule", "size"), ("address", "\"there\"")];
        timeline.instant(Track::Transactions(1), "conflict", 2_000, &arguments).expect("written");
        timeline.counter("misses", u64::MAX, u64::MAX).expect("written");
        timeline.slice(Track::Hart(0), "backwards", (5, 4), &[]).expect("written");
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
        assert_eq!(events.len(), 1 + 3 * 2 + 7);
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
            timeline.slice(Track::Hart(hart), &name, (begin, begin.saturating_add(length)), &[]).expect("written");
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
