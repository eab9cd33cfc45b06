//! What every report says of its numbers, in HTML.

use super::html::escape;
use crate::experiment::plan::PlanDescription;
use crate::experiment::statistics::CONFIDENCE;

/// Names and digests of the files of guests.
pub fn guests(plan: &PlanDescription) -> Vec<(String, String)> {
    let digest = |digest: &String| format!("<span class=\"quiet\"><code>{}</code></span>", escape(digest));
    plan.guests.iter().map(|(file, blake3)| (format!("Guest {}", escape(file)), digest(blake3))).collect()
}

/// The machine, with something of its own that the report has to say of it.
pub fn machine(plan: &PlanDescription, detail: &str) -> (String, String) {
    let boards = plan.boards.iter().map(|board| escape(&board.name)).collect::<Vec<_>>().join(", ");
    let checked = if plan.check_isolation { ", isolation checked" } else { "" };
    let machine = format!(
        "board {boards}, {detail}{checked}, version {} <span class=\"quiet\">source <code>{}</code></span>",
        plan.program.version, plan.program.machine
    );
    ("Machine".to_owned(), machine)
}

/// Parameters and words of every command line.
pub fn words(plan: &PlanDescription) -> Vec<(String, String)> {
    let mut inputs = Vec::new();
    for parameter in &plan.parameters {
        inputs.push((format!("Parameter {}", escape(&parameter.name)), escape(&parameter.values.join(", "))));
    }
    if !plan.append.is_empty() {
        inputs.push(("Command line".to_owned(), format!("<code>{}</code>", escape(&plan.append))));
    }
    inputs
}

/// The intervals of means.
pub fn intervals() -> String {
    format!(
        "<p>Intervals are of {:.0}% confidence. For the mean <i>m</i> of <i>n</i> runs with standard deviation <i>s</i> the interval is \
         <i>m</i> ± <i>t</i>(0.975; <i>n</i> − 1) <i>s</i> / √<i>n</i>, with Student’s <i>t</i>.</p>\n",
        CONFIDENCE * 100.0
    )
}

/// Changes against the first of several, with their intervals.
pub fn changes(of_what: &str) -> String {
    format!(
        "<p>The change against the first {of_what} with mean <i>b</i>, deviation <i>s<sub>b</sub></i> and <i>n<sub>b</sub></i> runs is \
         <i>m</i> / <i>b</i> − 1, with the interval ± <i>t</i>(0.975; <i>f</i>) √(<i>u</i> + <i>v</i>), where by the delta method \
         <i>u</i> = <i>s</i>² / (<i>n</i> <i>b</i>²) and <i>v</i> = <i>m</i>² <i>s<sub>b</sub></i>² / (<i>n<sub>b</sub></i> <i>b</i>⁴), and after \
         Welch (Biometrika 1947) <i>f</i> = (<i>u</i> + <i>v</i>)² / (<i>u</i>² / (<i>n</i> − 1) + <i>v</i>² / (<i>n<sub>b</sub></i> − 1)). A change is \
         coloured where its interval leaves out zero. One run has no interval.</p>\n"
    )
}

/// Where the numbers are for other programs.
pub fn files() -> &'static str {
    "<p>Seeds in the tables lead to the result document of their run, under <code>runs/</code> beside this page; the same tables are in \
     <code>tables/</code> as CSV, with every digit, and in <code>report.json</code>.</p>"
}
