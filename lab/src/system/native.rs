//! Measurements that check programs printed natively: a file of their lines, as `make -C tm bench-locks` and `bench-stm` write.

use super::System;
use super::check_lines::Line;
use super::check_programs::CheckPrograms;
use crate::experiment::Error;
use crate::experiment::files::read_text;
use crate::experiment::measurement::Measurement;
use crate::experiment::plan::ID_DIGITS;
use serde::Serialize;
use std::path::Path;

/// Most that is read of a file; a line is some 500 bytes.
const BYTES_MAX: u64 = 256 << 20;

/// The content of a file.
#[derive(Clone, Debug)]
pub struct Native {
    pub system: &'static CheckPrograms,
    pub description: NativeDescription,
    /// The file as it was.
    pub text: String,
    /// With the numbers of their lines.
    pub measurements: Vec<(usize, Measurement)>,
}

/// What `plan.json` says of native measurements.
#[derive(Clone, Debug, Serialize)]
pub struct NativeDescription {
    pub system: String,
    /// BLAKE3 of the file.
    pub native: String,
}

impl Native {
    /// Reads a file.
    ///
    /// # Errors
    /// Names the file, the line and what is wrong in it.
    pub fn from_file(system: &'static CheckPrograms, path: &Path) -> Result<Native, Error> {
        let text = read_text(path, BYTES_MAX)?;
        let mut measurements = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            let wrong = |what: &str| Error::Request(format!("{}:{number}: {what}", path.display()));
            match system.lines.read(line).map_err(|what| wrong(&what))? {
                Some(Line::Measurement(measurement)) => measurements.push((number, measurement)),
                Some(Line::Verdict(_)) => return Err(wrong("a test, where measurements are wanted")),
                None => {}
            }
        }
        if measurements.is_empty() {
            return Err(Error::Request(format!("{}: no line is a measurement", path.display())));
        }
        let native = blake3::hash(text.as_bytes()).to_hex().to_string();
        let description = NativeDescription { system: system.name().to_owned(), native };
        Ok(Native { system, description, text, measurements })
    }

    /// A name for the folder of this file's report and of no other.
    pub fn folder_name(&self) -> String {
        format!("{}-native-{}", self.system.name(), &self.description.native[..ID_DIGITS])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_told_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            let native =
                Native::from_file(super::super::locks::programs(), &path).map(|native| native.measurements.len());
            native.map_err(|error| error.to_string().replace(&folder.path().display().to_string(), "DIR"))
        };
        let line = r#"{"test":"loop","lock":"byte","threads":2,"iterations":1000,"thread_mean_ns":1.5}"#;
        assert_eq!(read(&format!("a heading\n{line}\n\n{line}\n")), Ok(2));
        assert_eq!(read("a heading\n"), Err("DIR/a.jsonl: no line is a measurement".to_owned()));
        assert_eq!(
            read(&format!("{line}\n{{\"benchmark\":\n")).unwrap_err(),
            "DIR/a.jsonl:2: no object of JSON: EOF while parsing a value at line 1 column 13"
        );
        let test = r#"{"validate":"lock","lock":"cx","test":"order","result":"passed"}"#;
        assert_eq!(read(test), Err("DIR/a.jsonl:1: a test, where measurements are wanted".to_owned()));
        assert!(Native::from_file(super::super::locks::programs(), &folder.path().join("missing")).is_err());
    }
}
