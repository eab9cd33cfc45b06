//! The page: one file with everything in it, which a browser opens from disk.

use super::chart::Chart;
use super::figures::{Figure, Key, figures};
use super::table::{Cell, Show, Table};
use super::{Part, Report};
use crate::compare::statistics::CONFIDENCE;
use std::fmt::Write;

/// Texts of cells that are longer are broken into lines.
const CELL_LENGTH_MAX: usize = 40;
/// Tables with more rows are folded.
const OPEN_ROWS_MAX: usize = 36;

const STYLE: &str = include_str!("style.css");

/// Text as HTML has it, in elements and in quoted attributes. Characters that no document may have are left out.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\t' | '\n' => escaped.push(character),
            character if character.is_control() => {}
            character => escaped.push(character),
        }
    }
    escaped
}

/// The page of a report.
pub fn page(report: &Report) -> String {
    let mut page = String::new();
    let title = title(report);
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{0}</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{0}</h1>\n",
        escape(&title)
    );
    inputs(&mut page, report);
    failures(&mut page, report);
    let _ = write!(page, "<nav aria-label=\"Contents\">");
    for part in &report.parts {
        let _ = write!(page, "<a href=\"#{}\">{}</a>", part.table().name, escape(&part.table().title));
    }
    page.push_str("<a href=\"#method\">Method</a></nav>\n");
    for part in &report.parts {
        section(&mut page, report, part);
    }
    method(&mut page);
    page.push_str("</body>\n</html>\n");
    page
}

fn title(report: &Report) -> String {
    let plan = &report.data.plan.description;
    let names: Vec<&str> = plan.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    let harts: Vec<String> = plan.harts.iter().map(usize::to_string).collect();
    let (first, others) = names.split_first().expect("a plan has a kernel");
    let kernels =
        if others.is_empty() { (*first).to_owned() } else { format!("{first} against {}", others.join(", ")) };
    format!("{kernels}: {} on {} harts", plan.workloads.join(", "), harts.join(", "))
}

/// What the comparison was made of.
fn inputs(page: &mut String, report: &Report) {
    let plan = &report.data.plan.description;
    page.push_str("<dl>\n");
    let mut entry = |name: &str, value: &str| {
        let _ = writeln!(page, "<dt>{name}</dt><dd>{value}</dd>");
    };
    for kernel in &plan.kernels {
        let words = format!(
            "<code>{}</code> <span class=\"quiet\">Image <code>{}</code></span>",
            escape(&kernel.words),
            escape(&kernel.image)
        );
        entry(&format!("Kernel {}", escape(&kernel.name)), &words);
    }
    for (name, digest) in &plan.roots {
        entry(&format!("Guest {name}"), &format!("<span class=\"quiet\"><code>{}</code></span>", escape(digest)));
    }
    let board = &plan.board;
    let checked = if plan.check_isolation { ", isolation checked" } else { "" };
    entry(
        "Machine",
        &format!(
            "board {}, contention manager {}{checked}, version {} <span class=\"quiet\">source <code>{}</code></span>",
            escape(&board.name),
            board.transactions.manager.name(),
            plan.program.version,
            plan.program.machine
        ),
    );
    entry("Work", &format!("size {}, seeds 1 to {}", plan.size.name(), plan.seeds));
    if !plan.append.is_empty() {
        entry("Command line", &format!("<code>{}</code>", escape(&plan.append)));
    }
    page.push_str("</dl>\n");
}

fn failures(page: &mut String, report: &Report) {
    let failures: Vec<_> = report
        .data
        .groups
        .iter()
        .flat_map(|group| group.failures.iter().map(move |failure| (group, failure)))
        .collect();
    if failures.is_empty() {
        return;
    }
    let _ = write!(
        page,
        "<div class=\"warning\"><strong>{} runs failed</strong> and are in no table but that of the runs.",
        failures.len()
    );
    for (group, failure) in failures {
        let last = failure.console.iter().skip(failure.console.len().saturating_sub(5));
        let _ = write!(
            page,
            "<p>{}, seed {}: {}</p><pre>{}</pre>",
            escape(&group.group.title()),
            failure.run.seed,
            escape(&failure.why),
            escape(&last.cloned().collect::<Vec<_>>().join("\n"))
        );
    }
    page.push_str("</div>\n");
}

fn section(page: &mut String, report: &Report, part: &Part) {
    let table = part.table();
    let figure = figures(&report.data, table.name);
    let heading = figure.as_ref().map_or(&table.title, |figure| &figure.seen);
    let _ = write!(page, "<section id=\"{}\">\n<h2>{}</h2>\n", table.name, escape(heading));
    let title = if *heading == table.title { String::new() } else { format!("{}. ", escape(&table.title)) };
    let _ = writeln!(page, "<p class=\"quiet\">{title}{}</p>", escape(&table.note));
    if let Some(figure) = figure {
        draw(page, &figure);
    }
    if matches!(part, Part::Detail(_)) || table.rows.len() > OPEN_ROWS_MAX {
        let _ = writeln!(page, "<details><summary>The table: {} rows</summary>", table.rows.len());
        html_table(page, table);
        page.push_str("</details>\n");
    } else {
        html_table(page, table);
    }
    page.push_str("</section>\n");
}

fn draw(page: &mut String, figure: &Figure) {
    if figure.charts.is_empty() {
        return;
    }
    page.push_str("<ul class=\"legend\">");
    for Key { class, name } in &figure.legend {
        let _ = write!(
            page,
            "<li><svg viewBox=\"0 0 14 14\" aria-hidden=\"true\"><rect class=\"{class}\" x=\"1\" y=\"1\" width=\"12\" height=\"12\"/></svg>{}</li>",
            escape(name)
        );
    }
    page.push_str("</ul>\n<div class=\"charts\">\n");
    for chart in &figure.charts {
        let _ = writeln!(page, "<figure>{}</figure>", Chart::svg(chart));
    }
    page.push_str("</div>\n");
}

fn html_table(page: &mut String, table: &Table) {
    if table.rows.is_empty() {
        page.push_str("<p>There is none.</p>\n");
        return;
    }
    let _ = write!(page, "<div class=\"table\"><table><thead><tr>");
    let class = |show: Show| if matches!(show, Show::Text | Show::Runs) { "text" } else { "number" };
    for column in &table.columns {
        let _ = write!(page, "<th class=\"{}\" scope=\"col\">{}</th>", class(column.show), escape(&column.heading));
    }
    page.push_str("</tr></thead><tbody>\n");
    let mut above: Option<&[Cell]> = None;
    for row in &table.rows {
        // A line above each new workload or number of harts.
        let is_first = above.is_none_or(|above| above[..2] != row[..2]);
        let _ = write!(page, "<tr{}>", if is_first { " class=\"first\"" } else { "" });
        for (cell, column) in row.iter().zip(&table.columns) {
            let is_long = matches!(cell, Cell::Text(text) if text.len() > CELL_LENGTH_MAX);
            let class = if is_long { "long" } else { class(column.show) };
            let _ = write!(page, "<td class=\"{class}\">{}</td>", cell_html(cell, column.show));
        }
        page.push_str("</tr>\n");
        above = Some(row);
    }
    page.push_str("</tbody></table></div>\n");
}

fn cell_html(cell: &Cell, show: Show) -> String {
    match cell {
        Cell::Runs(runs) => {
            let link = |run: &super::table::RunLink| {
                format!("<a href=\"{}\" title=\"run {}\">{}</a>", escape(&run.file), escape(&run.id), run.seed)
            };
            runs.iter().map(link).collect::<Vec<_>>().join(" ")
        }
        Cell::Estimate(estimate) if show == Show::Change && estimate.is_distinct_from_zero() => {
            // Of every change that tables have, less is better.
            let class = if estimate.mean < 0.0 { "better" } else { "worse" };
            format!("<span class=\"{class}\">{}</span>", escape(&cell.text(show)))
        }
        cell => escape(&cell.text(show)),
    }
}

fn method(page: &mut String) {
    let _ = write!(
        page,
        "<section id=\"method\"><h2>Method</h2>\n\
         <p>Each workload was booted once on each kernel and number of harts, in the functional gear, up to its region of interest. From \
         there each seed is a run of its own in the timed gear. The seed perturbs the latency of misses, so that the runs sample the ways in \
         which the same work can go (Alameldeen and Wood, HPCA 2003).</p>\n\
         <p>Intervals are of {:.0}% confidence. For the mean <i>m</i> of <i>n</i> runs with standard deviation <i>s</i> the interval is \
         <i>m</i> ± <i>t</i>(0.975; <i>n</i> − 1) <i>s</i> / √<i>n</i>, with Student’s <i>t</i>.</p>\n\
         <p>The change against the first kernel with mean <i>b</i>, deviation <i>s<sub>b</sub></i> and <i>n<sub>b</sub></i> runs is \
         <i>m</i> / <i>b</i> − 1, with the interval ± <i>t</i>(0.975; <i>f</i>) √(<i>u</i> + <i>v</i>), where by the delta method \
         <i>u</i> = <i>s</i>² / (<i>n</i> <i>b</i>²) and <i>v</i> = <i>m</i>² <i>s<sub>b</sub></i>² / (<i>n<sub>b</sub></i> <i>b</i>⁴), and after \
         Welch (Biometrika 1947) <i>f</i> = (<i>u</i> + <i>v</i>)² / (<i>u</i>² / (<i>n</i> − 1) + <i>v</i>² / (<i>n<sub>b</sub></i> − 1)). A change is \
         coloured where its interval leaves out zero. One run has no interval.</p>\n\
         <p>Seeds in the tables lead to the result document of their run, under <code>runs/</code> beside this page; the same tables are in \
         <code>tables/</code> as CSV, with every digit, and in <code>report.json</code>.</p></section>\n",
        CONFIDENCE * 100.0
    );
}

#[cfg(test)]
mod tests {
    use super::escape;
    use proptest::prelude::*;

    #[test]
    fn markup_of_guests_stays_text() {
        assert_eq!(
            escape("<script>alert(\"&'\")</script>\u{1b}"),
            "&lt;script&gt;alert(&quot;&amp;&#39;&quot;)&lt;/script&gt;"
        );
    }

    proptest! {
        #[test]
        fn nothing_escapes(text in "\\PC{0,60}|[<>&\"'\\x00-\\x1f]{0,20}") {
            let escaped = escape(&text);
            prop_assert!(!escaped.contains(['<', '>', '"', '\'']));
            prop_assert!(!escaped.chars().any(|character| character.is_control() && !"\t\n".contains(character)));
        }
    }
}
