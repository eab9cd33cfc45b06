//! The report of measurements of locks or of software transactions, or of their validation.

mod data;
mod figures;
mod tables;

pub use data::{Data, NATIVE_FILE};

use super::method;
use super::{Part, Report, Section};

/// Works everything out.
pub fn report(data: &Data) -> Report {
    let mut sections = Vec::new();
    if !data.tests.is_empty() {
        sections.push(Section { part: Part::Main(tables::validation(data)), figure: None });
    }
    for main in data.mains() {
        sections
            .push(Section { part: Part::Main(tables::times(data, main)), figure: Some(figures::times(data, main)) });
    }
    for counters in &tables::ALL_COUNTERS {
        if let Some(table) = counters.table(data) {
            let figure = figures::counters(data, counters);
            let part = if figure.is_some() { Part::Main(table) } else { Part::Detail(table) };
            sections.push(Section { part, figure });
        }
    }
    if !data.failures.is_empty() {
        sections.push(Section { part: Part::Main(tables::failures(data)), figure: None });
    }
    if data.machine.is_some() {
        sections.push(Section { part: Part::Detail(tables::runs(data)), figure: None });
    }
    Report {
        title: title(data),
        inputs: inputs(data),
        failures: data.failures.clone(),
        sections,
        method: method(data),
        plan: data.plan.clone(),
    }
}

fn title(data: &Data) -> String {
    let what = &data.nouns.title;
    let Some(plan) = data.machine else { return format!("{what}, natively") };
    let plan = &plan.description;
    let harts: Vec<String> = plan.harts.iter().map(usize::to_string).collect();
    let variants: Vec<&str> = plan.variants.iter().map(|variant| variant.name.as_str()).collect();
    format!("{what}: {} of {} on {} harts", plan.cases.join(", "), variants.join(", "), harts.join(", "))
}

/// What was measured.
fn inputs(data: &Data) -> Vec<(String, String)> {
    let Some(plan) = data.machine else {
        let file = format!("<a href=\"{NATIVE_FILE}\">{NATIVE_FILE}</a>, {} measurements", data.samples.len());
        return vec![("File".to_owned(), file)];
    };
    let gear = plan.cells().next().map_or("", |(_, cell)| cell.key.gear.name());
    let plan = &plan.description;
    let mut inputs = Vec::new();
    inputs.extend(method::guests(plan));
    inputs.push(method::machine(plan, &format!("{gear} gear")));
    inputs.push(("Work".to_owned(), format!("seeds 1 to {}", plan.seeds)));
    inputs.extend(method::words(plan));
    inputs
}

/// How the numbers came about, in HTML.
fn method(data: &Data) -> String {
    let noun = data.nouns.variant.as_str();
    if data.machine.is_none() {
        return format!(
            "<p>The programs ran natively, on what else the host did meanwhile. Numbers in the last column are lines of the file.</p>\n{}{}",
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
