//! What the programs printed natively: a file of their lines, as `make -C tm bench-locks` and `bench-stm` write.

use super::family::Family;
use super::record::{Line, Measurement, read};
use crate::compare::Error;
use crate::compare::plan::ID_DIGITS;
use serde::Serialize;
use std::path::Path;

/// What a file has.
#[derive(Clone, Debug)]
pub struct Native {
    pub family: Family,
    pub description: Description,
    /// The file as it was.
    pub text: String,
    /// With the numbers of their lines.
    pub measurements: Vec<(usize, Measurement)>,
}

/// What `plan.json` says.
#[derive(Clone, Debug, Serialize)]
pub struct Description {
    pub family: &'static str,
    /// BLAKE3 of the file.
    pub native: String,
}

impl Native {
    /// Reads a file.
    ///
    /// # Errors
    /// Names the file, the line and what is wrong in it.
    pub fn from_file(family: Family, path: &Path) -> Result<Native, Error> {
        let text = std::fs::read_to_string(path).map_err(Error::file("read", path))?;
        let mut measurements = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            let wrong = |what: &str| Error::Request(format!("{}:{number}: {what}", path.display()));
            match read(family, line).map_err(|what| wrong(&what))? {
                Some(Line::Measurement(measurement)) => measurements.push((number, measurement)),
                Some(Line::Verdict(_)) => return Err(wrong("a test, where measurements are wanted")),
                None => {}
            }
        }
        if measurements.is_empty() {
            return Err(Error::Request(format!("{}: no line is a measurement", path.display())));
        }
        let native = blake3::hash(text.as_bytes()).to_hex().to_string();
        Ok(Native { family, description: Description { family: family.name(), native }, text, measurements })
    }

    /// A name for the folder of this file's report and of no other.
    pub fn folder_name(&self) -> String {
        format!("{}-native-{}", self.family.name(), &self.description.native[..ID_DIGITS])
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
            let native = Native::from_file(Family::Locks, &path).map(|native| native.measurements.len());
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
        assert!(Native::from_file(Family::Locks, &folder.path().join("missing")).is_err());
    }
}
