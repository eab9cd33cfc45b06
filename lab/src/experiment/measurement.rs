//! What a system reads in a run beside the result document: quantities and verdicts that the guest printed.

use std::collections::BTreeMap;

/// A measurement: the thing that was measured, and its quantities.
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
    #[must_use]
    pub fn counts(mut self) -> Measurement {
        self.quantities.retain(|name, _| unit_of(name).is_none());
        self
    }
}

/// Units of time.
pub const UNITS: [&str; 2] = ["ns", "cycles"];

/// The unit with which the name of a time ends.
pub fn unit_of(name: &str) -> Option<&'static str> {
    UNITS.into_iter().find(|unit| name.strip_suffix(unit).is_some_and(|rest| rest.ends_with('_')))
}

/// The end of one test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub subject: String,
    pub test: String,
    /// Why it failed; none where it passed.
    pub failure: Option<String>,
}

/// Everything that a system reads in one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    pub measurements: Vec<Measurement>,
    pub verdicts: Vec<Verdict>,
}
