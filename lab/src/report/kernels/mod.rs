//! The report of a comparison of kernels.

mod data;
mod figures;
mod seen;
mod tables;

pub use data::Data;

use super::html::escape;
use super::method;
use super::{Failure, Part, Report, Section};
use crate::experiment::plan::{Plan, PlanDescription};

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
    let plan = data.plan;
    let with_figure = |part: Part| Section { figure: figures::figures(data, &part.table().name), part };
    Report {
        title: title(&plan.description),
        inputs: inputs(plan),
        failures: failed(data),
        sections: parts.into_iter().map(with_figure).collect(),
        method: method(),
        plan: plan.document(),
    }
}

fn title(plan: &PlanDescription) -> String {
    let names: Vec<&str> = plan.variants.iter().map(|kernel| kernel.name.as_str()).collect();
    let harts: Vec<String> = plan.harts.iter().map(usize::to_string).collect();
    let (first, others) = names.split_first().expect("a plan has a kernel");
    let kernels =
        if others.is_empty() { (*first).to_owned() } else { format!("{first} against {}", others.join(", ")) };
    format!("{kernels}: {} on {} harts", plan.cases.join(", "), harts.join(", "))
}

/// What the comparison was made of.
fn inputs(plan: &Plan) -> Vec<(String, String)> {
    let plan = &plan.description;
    let mut inputs = Vec::new();
    for kernel in &plan.variants {
        let words = format!(
            "<code>{}</code> <span class=\"quiet\">Image <code>{}</code></span>",
            escape(&kernel.words),
            escape(kernel.files.get("image").map_or("", String::as_str))
        );
        inputs.push((format!("Kernel {}", escape(&kernel.name)), words));
    }
    inputs.extend(method::guests(plan));
    inputs.push(method::machine(plan, &format!("contention manager {}", plan.boards[0].transactions.manager.name())));
    let sizes = plan.sizes.join(", ");
    inputs.push(("Work".to_owned(), format!("size {sizes}, seeds 1 to {}", plan.seeds)));
    inputs.extend(method::words(plan));
    inputs
}

fn failed(data: &Data) -> Vec<Failure> {
    let of_group = |group: &data::GroupData| {
        let failure = |failure: &data::Failure| Failure {
            title: failure.run.title.clone(),
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
