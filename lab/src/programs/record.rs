//! What check programs print: an object of JSON on a line of its own for each measurement and each test, among other lines.

use super::family::Family;
use super::plan::Run;
use crate::compare::record::lasting;
use crate::compare::store::Identified;
use concord_machine::result::ResultDocument;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A measurement: what was measured, and the quantities.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    pub case: String,
    pub subject: String,
    pub threads: u64,
    /// The quantity that subjects are compared by, and its unit: ns or cycles.
    pub main: &'static str,
    pub unit: &'static str,
    /// By their names: times, which end with their unit and are those of one pair where there was a loop of pairs; ratios; counts.
    pub quantities: BTreeMap<String, f64>,
}

impl Measurement {
    /// The name of the main quantity, with its unit.
    pub fn main_name(&self) -> String {
        format!("{}_{}", self.main, self.unit)
    }

    /// The same without times.
    pub fn counts(mut self) -> Measurement {
        self.quantities.retain(|name, _| unit_of(name).is_none());
        self
    }
}

/// Main quantities: of the loop, of throughput, of uncontended locks, of transactions.
pub const LOOP_TIME: &str = "thread_mean";
pub const SECTION_TIME: &str = "section_median";
pub const LATENCY: &str = "latency_median";
pub const OPERATION_TIME: &str = "operation";
const MAIN: [&str; 4] = [LOOP_TIME, SECTION_TIME, LATENCY, OPERATION_TIME];

/// Units of time.
const UNITS: [&str; 2] = ["ns", "cycles"];

/// The unit with which the name of a time ends.
pub fn unit_of(name: &str) -> Option<&'static str> {
    UNITS.into_iter().find(|unit| name.strip_suffix(unit).is_some_and(|rest| rest.ends_with('_')))
}

/// What came of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub subject: String,
    pub test: String,
    /// What was wrong.
    pub failure: Option<String>,
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    Measurement(Measurement),
    Verdict(Verdict),
}

/// Numbers that say how a measurement was made and are no result of it.
const CONDITIONS: [&str; 8] =
    ["threads", "runs", "rounds", "seed", "iterations", "idle_peer", "clock_hz", "ratio_to_best_of_kind"];

/// Reads a line of a program; none is one that is for people.
///
/// # Errors
/// Says what is wrong with an object.
pub fn read(family: Family, line: &str) -> Result<Option<Line>, String> {
    let line = line.trim();
    if !line.starts_with('{') {
        return Ok(None);
    }
    let object: Map<String, Value> =
        serde_json::from_str(line).map_err(|error| format!("no object of JSON: {error}"))?;
    let is_verdict = object.contains_key("validate");
    Ok(Some(if is_verdict {
        Line::Verdict(verdict(family, &object)?)
    } else {
        Line::Measurement(measurement(family, &object)?)
    }))
}

fn text<'a>(object: &'a Map<String, Value>, member: &str) -> Result<&'a str, String> {
    let value = object.get(member).ok_or_else(|| format!("no member {member:?}"))?;
    value.as_str().ok_or_else(|| format!("member {member:?} is no text"))
}

fn verdict(family: Family, object: &Map<String, Value>) -> Result<Verdict, String> {
    let failure = match text(object, "result")? {
        "passed" => None,
        _ => Some(text(object, "failure").unwrap_or("failed").to_owned()),
    };
    let subject = match family {
        Family::Locks => text(object, "lock")?,
        Family::Stm => text(object, "library")?,
    };
    Ok(Verdict { subject: subject.to_owned(), test: text(object, "test")?.to_owned(), failure })
}

fn measurement(family: Family, object: &Map<String, Value>) -> Result<Measurement, String> {
    let (case, subject) = match family {
        Family::Locks => (text(object, "test")?.to_owned(), text(object, "lock")?.to_owned()),
        Family::Stm => {
            let idle_peer = object.get("idle_peer").and_then(Value::as_u64).unwrap_or(0);
            let peer = if idle_peer == 0 { "" } else { ", idle peer" };
            let parts = [text(object, "backend")?, text(object, "library")?, text(object, "method")?];
            let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            (format!("{}{peer}", text(object, "workload")?), parts.join("-"))
        }
    };
    let threads = object.get("threads").and_then(Value::as_u64).filter(|threads| *threads > 0);
    let threads = threads.ok_or("member \"threads\" is no count")?;
    let mut quantities = BTreeMap::new();
    for (name, value) in object {
        if let Some(value) = value.as_f64().filter(|_| !CONDITIONS.contains(&name.as_str())) {
            quantities.insert(name.clone(), value);
        }
    }
    let iterations = object.get("iterations").and_then(Value::as_f64).filter(|iterations| *iterations > 0.0);
    if let Some(iterations) = iterations {
        for (_, time) in quantities.iter_mut().filter(|(name, _)| unit_of(name).is_some()) {
            *time /= iterations;
        }
    }
    let names = MAIN.iter().flat_map(|main| UNITS.iter().map(move |unit| (*main, *unit)));
    let main = names.into_iter().find(|(main, unit)| quantities.contains_key(&format!("{main}_{unit}")));
    let (main, unit) = main.ok_or_else(|| format!("no member of {}, with its unit", MAIN.join(", ")))?;
    Ok(Measurement { case, subject, threads, main, unit, quantities })
}

/// A run's file.
#[derive(Clone, Debug, Deserialize)]
pub struct RunFile {
    pub id: String,
    /// Everything that the guest printed.
    pub console: Vec<String>,
    pub result: ResultDocument,
}

impl Identified for RunFile {
    fn id(&self) -> &str {
        &self.id
    }
}

impl RunFile {
    /// What the file of a run has: its key, what it printed, and its result.
    pub fn content(run: &Run, console: &[String], document: &ResultDocument) -> Value {
        json!({
            "id": run.id,
            "case": run.case,
            "subject": run.subject,
            "harts": run.harts,
            "seed": run.seed,
            "key": run.key,
            "console": console,
            "result": lasting(document),
        })
    }

    /// The lines for programs.
    ///
    /// # Errors
    /// Why nothing may be concluded from this run.
    pub fn lines(&self, family: Family) -> Result<Vec<Line>, String> {
        let read = |(index, line): (usize, &String)| {
            read(family, line).map_err(|what| format!("line {} of the console: {what}", index + 1)).transpose()
        };
        let lines: Vec<Line> = self.console.iter().enumerate().filter_map(read).collect::<Result<_, _>>()?;
        let failed = lines.iter().find_map(|line| match line {
            Line::Verdict(Verdict { test, failure: Some(failure), .. }) => Some(format!("{test}: {failure}")),
            _ => None,
        });
        if let Some(failure) = failed {
            return Err(failure);
        }
        if self.result.exit_code != 0 {
            return Err(self.result.ending());
        }
        if lines.is_empty() { Err("the program printed no result".to_owned()) } else { Ok(lines) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(family: Family, line: &str) -> Measurement {
        match read(family, line) {
            Ok(Some(Line::Measurement(measurement))) => measurement,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_loop_is_told_by_the_pair() {
        let loop_ = measured(
            Family::Locks,
            r#"{"benchmark":"lock","lock":"unfair","test":"loop","threads":8,"runs":1,"iterations":1000,"thread_mean_cycles":1126,"steals_0":17}"#,
        );
        assert_eq!((loop_.case.as_str(), loop_.subject.as_str(), loop_.threads), ("loop", "unfair", 8));
        assert_eq!(loop_.main_name(), "thread_mean_cycles");
        assert_eq!(loop_.quantities, [("thread_mean_cycles".to_owned(), 1.126), ("steals_0".to_owned(), 17.0)].into());
        assert_eq!(loop_.counts().quantities, [("steals_0".to_owned(), 17.0)].into());
    }

    #[test]
    fn a_library_is_named_by_what_there_is_of_it() {
        let of = |backend: &str, library: &str, method: &str, idle_peer: u64| {
            let measurement = measured(
                Family::Stm,
                &json!({"workload": "tree", "backend": backend, "library": library, "method": method, "threads": 2,
                    "idle_peer": idle_peer, "operation_ns": 1.5})
                .to_string(),
            );
            (measurement.case, measurement.subject)
        };
        let pair = |case: &str, subject: &str| (case.to_owned(), subject.to_owned());
        assert_eq!(of("spinlock", "", "", 0), pair("tree", "spinlock"));
        assert_eq!(of("itm", "libitm", "ml_wt", 0), pair("tree", "itm-libitm-ml_wt"));
        assert_eq!(of("plain", "tl2", "", 1), pair("tree, idle peer", "plain-tl2"));
    }

    #[test]
    fn a_verdict_has_what_was_wrong() {
        let line =
            r#"{"validate":"lock","lock":"cx","test":"order","result":"failed","failure":"a thread was passed"}"#;
        let verdict = Verdict {
            subject: "cx".to_owned(),
            test: "order".to_owned(),
            failure: Some("a thread was passed".to_owned()),
        };
        assert_eq!(read(Family::Locks, line), Ok(Some(Line::Verdict(verdict))));
    }

    #[test]
    fn what_is_wrong_with_a_line_is_told() {
        assert_eq!(read(Family::Locks, "lock   threads   ns"), Ok(None));
        let wrong = [
            "{",
            r#"{"test": "loop"}"#,
            r#"{"test": 3}"#,
            r#"{"test": "loop", "lock": "byte", "thread_mean_ns": 3}"#,
            r#"{"test": "loop", "lock": "byte", "threads": 2, "seed": 3}"#,
            r#"{"validate": "lock", "lock": "byte", "test": "order"}"#,
        ];
        let lines = wrong.map(|line| read(Family::Locks, line).unwrap_err());
        insta::assert_snapshot!(lines.join("\n"), @r#"
        no object of JSON: EOF while parsing an object at line 1 column 1
        no member "lock"
        member "test" is no text
        member "threads" is no count
        no member of thread_mean, section_median, latency_median, operation, with its unit
        no member "result"
        "#);
    }
}
