//! The report of measurements of locks or of software transactions, or of their validation.

pub mod counters;
pub mod data;

pub use data::{Data, Group, NATIVE_FILE};

use super::figure::Key;
use super::group::{self, Compared};
use super::{Report, method, subject};

/// Works everything out.
pub fn report(data: &Data) -> Report {
    let mut report = Report {
        title: data.title(),
        inputs: data.inputs(),
        failures: data.failures(),
        summary: None,
        sections: Vec::new(),
        method: method(data),
        plan: data.plan.clone(),
    };
    subject::of_programs(data).iter().for_each(|subject| report.add(&**subject, data));
    report
}

/// What the page says of the value of a quantity under the pointer.
pub fn hover_of(data: &Data, group: &Group, quantity: &str, what: &str, value: &str) -> String {
    group::hover(&group.title(&data.headings()), what, value, &group.links(quantity))
}

/// A legend of the subjects of some groups.
pub fn legend(data: &Data, groups: &[Group]) -> Vec<Key> {
    let is_there = |index: usize| groups.iter().any(|group| group.subject_index == index);
    group::legend(data.subjects().into_iter().enumerate().filter(|(index, _)| is_there(*index)))
}

/// How the numbers came about, in HTML.
fn method(data: &Data) -> String {
    let noun = data.subject_noun();
    if data.is_native() {
        return format!(
            "<p>The programs ran natively, beside the other work of the host. Numbers in the last column are lines of the file.</p>\n{}{}",
            method::intervals(),
            method::changes(noun)
        );
    }
    format!(
        "<p>Each run begins a machine of its own with as many harts as the program has threads. The seed perturbs the latency of misses, so \
         that the runs sample the ways in which the same work can go (Alameldeen and Wood, HPCA 2003).</p>\n{}{}{}",
        method::intervals(),
        method::changes(noun),
        method::files()
    )
}
