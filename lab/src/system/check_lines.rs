//! Lines that check programs print: an object of JSON on a line of its own for each measurement and each test, among other lines.

use crate::experiment::measurement::{Measurement, UNITS, Verdict, unit_of};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Main quantities: of the loop, of throughput, of uncontended locks, of transactions.
pub const LOOP_TIME: &str = "thread_mean";
pub const SECTION_TIME: &str = "section_median";
pub const LATENCY: &str = "latency_median";
pub const OPERATION_TIME: &str = "operation";
const MAIN: [&str; 4] = [LOOP_TIME, SECTION_TIME, LATENCY, OPERATION_TIME];

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    Measurement(Measurement),
    Verdict(Verdict),
}

/// Numbers that say how a measurement was made and are no result of it.
const CONDITIONS: [&str; 8] =
    ["threads", "runs", "rounds", "seed", "iterations", "idle_peer", "clock_hz", "ratio_to_best_of_kind"];

/// Names of the members that say what a line is about.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LineFields {
    case: String,
    /// Those that are not empty are joined.
    subject: Vec<String>,
    verdict_subject: String,
    /// Whether a measurement may have an idle peer, which makes it another case.
    #[serde(default)]
    idle_peer: bool,
}

fn text<'a>(object: &'a Map<String, Value>, member: &str) -> Result<&'a str, String> {
    let value = object.get(member).ok_or_else(|| format!("no member {member:?}"))?;
    value.as_str().ok_or_else(|| format!("member {member:?} is no text"))
}

impl LineFields {
    /// Reads a line of a program; none is one that is for people.
    ///
    /// # Errors
    /// Says what is wrong with an object.
    pub fn read(&self, line: &str) -> Result<Option<Line>, String> {
        let line = line.trim();
        if !line.starts_with('{') {
            return Ok(None);
        }
        let object: Map<String, Value> =
            serde_json::from_str(line).map_err(|error| format!("no object of JSON: {error}"))?;
        let is_verdict = object.contains_key("validate");
        Ok(Some(if is_verdict {
            Line::Verdict(self.verdict(&object)?)
        } else {
            Line::Measurement(self.measurement(&object)?)
        }))
    }

    fn verdict(&self, object: &Map<String, Value>) -> Result<Verdict, String> {
        let failure = match text(object, "result")? {
            "passed" => None,
            _ => Some(text(object, "failure").unwrap_or("failed").to_owned()),
        };
        let subject = text(object, &self.verdict_subject)?;
        Ok(Verdict { subject: subject.to_owned(), test: text(object, "test")?.to_owned(), failure })
    }

    fn measurement(&self, object: &Map<String, Value>) -> Result<Measurement, String> {
        let is_peered = self.idle_peer && object.get("idle_peer").and_then(Value::as_u64).unwrap_or(0) != 0;
        let case = format!("{}{}", text(object, &self.case)?, if is_peered { ", idle peer" } else { "" });
        let parts = self.subject.iter().map(|member| text(object, member)).collect::<Result<Vec<_>, _>>()?;
        let subject = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
        quantities(object, case, subject)
    }
}

fn quantities(object: &Map<String, Value>, case: String, subject: String) -> Result<Measurement, String> {
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

#[cfg(test)]
mod tests {
    use super::super::check_programs::CheckPrograms;
    use super::super::{locks, stm};
    use super::*;
    use serde_json::json;

    fn measured(system: &CheckPrograms, line: &str) -> Measurement {
        match system.lines.read(line) {
            Ok(Some(Line::Measurement(measurement))) => measurement,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_loop_is_told_by_the_pair() {
        let loop_ = measured(
            locks::programs(),
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
                stm::programs(),
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
        assert_eq!(locks::programs().lines.read(line), Ok(Some(Line::Verdict(verdict))));
    }

    #[test]
    fn what_is_wrong_with_a_line_is_told() {
        assert_eq!(locks::programs().lines.read("lock   threads   ns"), Ok(None));
        let wrong = [
            "{",
            r#"{"test": "loop"}"#,
            r#"{"test": 3}"#,
            r#"{"test": "loop", "lock": "byte", "thread_mean_ns": 3}"#,
            r#"{"test": "loop", "lock": "byte", "threads": 2, "seed": 3}"#,
            r#"{"validate": "lock", "lock": "byte", "test": "order"}"#,
        ];
        let lines = wrong.map(|line| locks::programs().lines.read(line).unwrap_err());
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
