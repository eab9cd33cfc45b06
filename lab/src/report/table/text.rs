//! Tables as text of 80 columns: a line above each group of rows, headings broken at their words, notes wrapped.

use super::{Cell, Show, Table};
use std::fmt::Write;

/// The width of a terminal that nobody has widened.
const WIDTH: usize = 80;
/// Between columns.
const GAP: usize = 2;
/// Before the rows of a group.
const INDENT: usize = 2;
/// Words of a cell of text are broken into lines of at most this many characters, or of fewer where the table is too wide.
const TEXT_WIDTH_MAX: usize = 60;
const TEXT_WIDTH_MIN: usize = 22;

/// A printed column.
struct Printed {
    index: usize,
    show: Show,
    heading: Vec<String>,
    width: usize,
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// Words in lines of at most so many characters. A word that is longer has a line of its own, or several where `breaks_words`.
fn wrap(text: &str, width_max: usize, breaks_words: bool) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        if let Some(line) = lines.last_mut()
            && width(line) + 1 + width(word) <= width_max
        {
            line.push(' ');
            line.push_str(word);
            continue;
        }
        if !breaks_words {
            lines.push(word.to_owned());
            continue;
        }
        let characters: Vec<char> = word.chars().collect();
        lines.extend(characters.chunks(width_max).map(|part| part.iter().collect::<String>()));
    }
    if lines.is_empty() { vec![String::new()] } else { lines }
}

fn lines_of(cell: &Cell, show: Show, text_width: usize) -> Vec<String> {
    match show {
        Show::Text | Show::Runs => wrap(&cell.text(show), text_width, true),
        _ => vec![cell.text(show)],
    }
}

/// The printed columns of a table whose texts are so wide at most.
fn columns_of(table: &Table, text_width: usize) -> Vec<Printed> {
    let mut columns = Vec::new();
    let printed = table.columns.iter().enumerate().skip(table.group_columns).filter(|(_, column)| column.is_printed);
    for (index, column) in printed {
        let cells = table.rows.iter().flat_map(|row| lines_of(&row[index], column.show, text_width));
        let body = cells.map(|line| width(&line)).max().unwrap_or(0);
        let heading = wrap(&column.heading, body, false);
        let width = heading.iter().map(|line| width(line)).max().unwrap_or(0).max(body);
        columns.push(Printed { index, show: column.show, heading, width });
    }
    columns
}

/// The table as text.
pub fn of(table: &Table) -> String {
    let mut text = format!("{}\n", table.title);
    let grouped = table.group_columns;
    let fits = |columns: &[Printed]| {
        INDENT + columns.iter().map(|column| column.width).sum::<usize>() + GAP * columns.len().saturating_sub(1)
            <= WIDTH
    };
    let widths = (TEXT_WIDTH_MIN..=TEXT_WIDTH_MAX).rev();
    let text_width = widths.into_iter().find(|width| fits(&columns_of(table, *width))).unwrap_or(TEXT_WIDTH_MIN);
    let columns = columns_of(table, text_width);
    let heading_height = columns.iter().map(|column| column.heading.len()).max().unwrap_or(0);
    for line in 0..heading_height {
        // Headings stand on the rows.
        let part = |column: &Printed| {
            let above = heading_height - column.heading.len();
            line.checked_sub(above).map_or("", |line| &column.heading[line]).to_owned()
        };
        push_line(&mut text, &columns, part);
    }
    let mut above: Option<&[Cell]> = None;
    for row in &table.rows {
        let group = &row[..grouped];
        if grouped > 0 && above != Some(group) {
            let _ = writeln!(text, "{}", group_name(table, group));
        }
        above = Some(group);
        let cells: Vec<Vec<String>> =
            columns.iter().map(|column| lines_of(&row[column.index], column.show, text_width)).collect();
        for line in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
            let mut cells = cells.iter();
            push_line(&mut text, &columns, |_| {
                cells.next().and_then(|lines| lines.get(line)).cloned().unwrap_or_default()
            });
        }
    }
    text.push_str(&paragraph(&table.note));
    text
}

/// A paragraph.
pub fn paragraph(text: &str) -> String {
    wrap(text, WIDTH, false).iter().fold(String::new(), |text, line| text + line + "\n")
}

/// Texts by themselves, numbers with what they count: "find, 8 harts".
fn group_name(table: &Table, group: &[Cell]) -> String {
    let name = |(cell, column): (&Cell, &super::Column)| match column.show {
        Show::Text => cell.text(column.show),
        show => format!("{} {}", cell.text(show), column.heading),
    };
    group.iter().zip(&table.columns).map(name).collect::<Vec<_>>().join(", ")
}

fn push_line(text: &mut String, columns: &[Printed], mut part: impl FnMut(&Printed) -> String) {
    let mut line = " ".repeat(INDENT);
    for column in columns {
        let part = part(column);
        let room = " ".repeat(column.width - width(&part));
        match column.show {
            Show::Text | Show::Runs => line.extend([part, room]),
            _ => line.extend([room, part]),
        }
        line.push_str(&" ".repeat(GAP));
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn wrapped_text_keeps_its_words_and_its_width(text in "[a-z ]{0,80}", width_max in 1_usize..30) {
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            prop_assert_eq!(words(&wrap(&text, width_max, false).join(" ")), words(&text));
            let broken = wrap(&text, width_max, true);
            prop_assert!(broken.iter().all(|line| width(line) <= width_max));
            let letters = |text: &str| text.replace(' ', "");
            prop_assert_eq!(letters(&broken.concat()), letters(&text));
        }
    }
}
