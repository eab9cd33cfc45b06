//! The report of a comparison of kernels.

mod data;
mod figures;
mod seen;
mod tables;

pub use data::Data;

use super::html::escape;
use super::method;
use super::{Failure, Part, Report, Section};
use crate::compare::plan::Description;
use crate::compare::schedule::run_title;

/// Works everything out.
pub fn report(data: &Data) -> Report {
    let mut parts = vec![Part::Main(tables::time(data))];
    if data.has_sections() {
        parts.extend([
            Part::Main(tables::synchronization(data)),
            Part::Main(tables::locks(data)),
            Part::Main(tables::spinlocks(data)),
            Part::Main(tables::conversion(data)),
            Part::Main(tables::concurrency(data)),
            Part::Main(tables::restarts_by_cause(data)),
            Part::Detail(tables::restarts_by_site(data)),
            Part::Main(tables::io(data)),
            Part::Detail(tables::io_sites(data)),
        ]);
    }
    parts.extend([Part::Main(tables::conflicts(data)), Part::Main(tables::modes(data))]);
    if data.has_sections() {
        parts.push(Part::Detail(tables::lock_addresses(data)));
    }
    let failures = tables::failures(data);
    if !failures.rows.is_empty() {
        parts.push(Part::Main(failures));
    }
    parts.push(Part::Detail(tables::runs(data)));
    let plan = &data.plan.description;
    let with_figure = |part: Part| Section { figure: figures::figures(data, &part.table().name), part };
    Report {
        title: title(plan),
        inputs: inputs(plan),
        failures: failed(data),
        sections: parts.into_iter().map(with_figure).collect(),
        method: method(),
        plan: serde_json::to_value(plan).expect("plain data"),
    }
}

fn title(plan: &Description) -> String {
    let names: Vec<&str> = plan.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    let harts: Vec<String> = plan.harts.iter().map(usize::to_string).collect();
    let (first, others) = names.split_first().expect("a plan has a kernel");
    let kernels =
        if others.is_empty() { (*first).to_owned() } else { format!("{first} against {}", others.join(", ")) };
    format!("{kernels}: {} on {} harts", plan.workloads.join(", "), harts.join(", "))
}

/// What the comparison was made of.
fn inputs(plan: &Description) -> Vec<(String, String)> {
    let mut inputs = Vec::new();
    for kernel in &plan.kernels {
        let words = format!(
            "<code>{}</code> <span class=\"quiet\">Image <code>{}</code></span>",
            escape(&kernel.words),
            escape(&kernel.image)
        );
        inputs.push((format!("Kernel {}", escape(&kernel.name)), words));
    }
    for (name, digest) in &plan.roots {
        let digest = format!("<span class=\"quiet\"><code>{}</code></span>", escape(digest));
        inputs.push((format!("Guest {name}"), digest));
    }
    let board = &plan.board;
    let checked = if plan.check_isolation { ", isolation checked" } else { "" };
    let machine = format!(
        "board {}, contention manager {}{checked}, version {} <span class=\"quiet\">source <code>{}</code></span>",
        escape(&board.name),
        board.transactions.manager.name(),
        plan.program.version,
        plan.program.machine
    );
    inputs.push(("Machine".to_owned(), machine));
    inputs.push(("Work".to_owned(), format!("size {}, seeds 1 to {}", plan.size.name(), plan.seeds)));
    if !plan.append.is_empty() {
        inputs.push(("Command line".to_owned(), format!("<code>{}</code>", escape(&plan.append))));
    }
    inputs
}

fn failed(data: &Data) -> Vec<Failure> {
    let of_group = |group: &data::GroupData| {
        let failure = |failure: &data::Failure| Failure {
            title: run_title(group.group, failure.run),
            why: failure.why.clone(),
            console: failure.console.to_vec(),
        };
        group.failures.iter().map(failure).collect::<Vec<_>>()
    };
    data.groups.iter().flat_map(of_group).collect()
}

/// How the numbers came about, in HTML.
fn method() -> String {
    format!(
        "<p>Each workload was booted once on each kernel and number of harts, in the functional gear, up to its region of interest. From \
         there each seed is a run of its own in the timed gear. The seed perturbs the latency of misses, so that the runs sample the ways in \
         which the same work can go (Alameldeen and Wood, HPCA 2003).</p>\n{}{}{}",
        method::intervals(),
        method::changes("kernel"),
        method::files()
    )
}
