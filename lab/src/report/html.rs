//! The page: one file with everything in it, which a browser opens from disk.

use super::chart::Chart;
use super::figure::{Figure, Key};
use super::table::{Cell, Show, Table};
use super::{Failure, Report, Section};
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
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{0}</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{0}</h1>\n",
        escape(&report.title)
    );
    if let Some(summary) = &report.summary {
        draw_section(&mut page, summary);
    }
    page.push_str("<dl>\n");
    for (name, value) in &report.inputs {
        let _ = writeln!(page, "<dt>{name}</dt><dd>{value}</dd>");
    }
    page.push_str("</dl>\n");
    failures(&mut page, &report.failures);
    let _ = write!(page, "<nav aria-label=\"Contents\">");
    for section in &report.sections {
        let table = &section.table;
        let _ = write!(page, "<a href=\"#{}\">{}</a>", table.name, escape(&table.title));
    }
    page.push_str("<a href=\"#method\">Method</a></nav>\n");
    for section in &report.sections {
        draw_section(&mut page, section);
    }
    let _ = write!(page, "<section id=\"method\"><h2>Method</h2>\n{}</section>\n", report.method);
    page.push_str("</body>\n</html>\n");
    page
}

fn failures(page: &mut String, failures: &[Failure]) {
    if failures.is_empty() {
        return;
    }
    let _ = write!(
        page,
        "<div class=\"warning\"><strong>{} runs failed</strong> and are in no table but that of the runs.",
        failures.len()
    );
    for Failure { title, why, console } in failures {
        let last = &console[console.len().saturating_sub(5)..];
        let _ = write!(page, "<p>{}: {}</p><pre>{}</pre>", escape(title), escape(why), escape(&last.join("\n")));
    }
    page.push_str("</div>\n");
}

fn draw_section(page: &mut String, Section { table, is_main, sentence, figure }: &Section) {
    let heading = sentence.as_ref().unwrap_or(&table.title);
    let _ = write!(page, "<section id=\"{}\">\n<h2>{}</h2>\n", table.name, escape(heading));
    let title = if *heading == table.title { String::new() } else { format!("{}. ", escape(&table.title)) };
    let _ = writeln!(page, "<p class=\"quiet\">{title}{}</p>", escape(&table.note));
    draw(page, figure);
    if !is_main || table.rows.len() > OPEN_ROWS_MAX {
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
        let is_first = above.is_none_or(|above| above[..table.group_columns] != row[..table.group_columns]);
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
