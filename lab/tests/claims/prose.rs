//! Finds figures in prose: numbers with a decimal fraction, numbers behind `±`, and numbers before a unit of measurements. Numbers of
//! sections are none. Code, fenced or between backticks, and the targets of links are no prose. Figures in words, and whole numbers
//! without such a unit, are not found.

use crate::entry::NotMeasured;

/// Stands in a page for what has a source.
pub const RESOLVED: char = '\u{25a1}';

/// Units that make a whole number a figure.
const UNITS: [&str; 12] =
    ["%", "per cent", "times", "million", "billion", "MiB", "GiB", "ns", "seconds", "minutes", "hours", "percent"];

/// The figures of a page that have no source: neither one of the page's figures, given with the name of its entry, nor declared as not
/// measured. Also the figures and declarations that the page does not hold.
pub fn unsourced(page: &str, text: &str, stated: &[(String, String)], not_measured: &[NotMeasured]) -> Vec<String> {
    let mut prose = without_code(text);
    let mut problems = Vec::new();
    for (entry, figure) in stated {
        if !prose.contains(figure.as_str()) {
            problems.push(format!("{page}: does not state {figure:?}, which entry {entry:?} gives for it"));
        }
        prose = mask(&prose, figure);
    }
    for declared in not_measured.iter().filter(|declared| declared.page == page || declared.page == "*") {
        if declared.page == page && !prose.contains(&declared.text) {
            problems.push(format!("{page}: does not hold {:?}, which is declared as not measured", declared.text));
        }
        prose = mask(&prose, &declared.text);
    }
    for (index, line) in prose.lines().enumerate() {
        for figure in figures(line) {
            problems.push(format!(
                "{page}: {figure:?} in text line {} has no source: make it a placeholder or an entry of experiments/claims \
                 that names the page, or declare it in experiments/claims/not-measured.toml: {}",
                index + 1,
                line.trim()
            ));
        }
    }
    problems
}

/// Replaces a text by the mark, where it is not the end of a longer number or the beginning of one.
fn mask(prose: &str, text: &str) -> String {
    let mut masked = String::new();
    let mut rest = prose;
    while let Some(at) = rest.find(text) {
        let (before, found) = rest.split_at(at);
        let after = &found[text.len()..];
        masked.push_str(before);
        let continues = text.starts_with(|first: char| first.is_ascii_digit())
            && before.ends_with(|last: char| last.is_ascii_digit() || ".,".contains(last));
        let goes_on =
            text.ends_with(|last: char| last.is_ascii_digit()) && after.starts_with(|next: char| next.is_ascii_digit());
        if continues || goes_on {
            masked.push_str(text)
        } else {
            masked.push(RESOLVED)
        }
        rest = after;
    }
    masked + rest
}

/// The page with as many lines, and nothing in those of code. Inline code and targets of links are left out.
fn without_code(text: &str) -> String {
    let mut prose = String::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code && !line.starts_with("    ") {
            let outside = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
            let mut rest = outside.as_str();
            while let Some((label, target)) = rest.split_once("](") {
                prose.push_str(label);
                rest = target.split_once(')').map_or("", |(_, after)| after);
            }
            prose.push_str(rest);
        }
        prose.push('\n');
    }
    prose
}

/// The figures of a line, each with its unit.
fn figures(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(offset) = line[at..].find(|character: char| character.is_ascii_digit()) {
        let begin = at + offset;
        let end = begin + number_length(&line[begin..]);
        at = end;
        let before = line[..begin].chars().next_back();
        let is_section = line[..begin].ends_with("section ") || line[..begin].ends_with("sections ");
        if is_section || before.is_some_and(|before| before.is_alphanumeric() || "_/.".contains(before)) {
            continue;
        }
        let number = &line[begin..end];
        let after = line[end..].trim_start();
        let unit = UNITS.iter().find(|unit| {
            let rest = after.strip_prefix(**unit);
            rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric()) || **unit == "%")
        });
        let is_half_width = line[..begin].trim_end().ends_with('±');
        if number.contains('.') || is_half_width || unit.is_some() {
            found.push(format!("{number}{}", unit.map(|unit| format!(" {unit}")).unwrap_or_default()));
        }
    }
    found
}

/// How many bytes at the beginning are a number: digits, with single points and commas between digits.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_digit = |index: usize| bytes.get(index).is_some_and(u8::is_ascii_digit);
    let mut length = 0;
    while is_digit(length) || (matches!(bytes.get(length), Some(b'.' | b',')) && is_digit(length + 1)) {
        length += 1;
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> usize {
        unsourced("a.md", text, &[], &[]).len()
    }

    #[test]
    fn figures_are_found_in_prose_and_tables() {
        for (text, count) in [
            ("It takes 9.36% more.", 1),
            ("It takes 88% fewer, and 3 times as long, in 20 minutes.", 3),
            ("| find | +0.20 ± 2.16 |", 2),
            ("44,800 restarts, 435 million cycles", 1),
            ("On 8 harts, 3 seeds, size `1.5`, in section 5.2", 0),
            ("```\n1.5\n```\n[a](b-1.5.md) x86_64 v2.5", 0),
            ("a ± 3 b", 1),
            ("2 seconds-long steps, 2 timeslices", 1),
        ] {
            assert_eq!(problems(text), count, "{text}: {:?}", unsourced("a.md", text, &[], &[]));
        }
    }

    #[test]
    fn a_stated_figure_has_its_source_until_it_changes() {
        let stated = [("time".to_owned(), "9.36 ± 2.73%".to_owned())];
        let check = |text: &str| unsourced("a.md", text, &stated, &[]).len();
        assert_eq!(check("It takes 9.36 ± 2.73% more."), 0);
        // The page lacks the entry's figure and states two numbers of its own.
        assert_eq!(check("It takes 9.37 ± 2.73% more."), 3);
        assert_eq!(check("It takes 19.36 ± 2.73% more."), 2);
        assert_eq!(check("It takes 9.36 ± 2.73% more, and 1.5% less."), 1);
    }

    #[test]
    fn a_declared_number_is_no_figure_while_the_page_holds_it() {
        let declared = |page: &str| {
            [NotMeasured { page: page.to_owned(), text: "Linux 6.12".to_owned(), why: "a version".to_owned() }]
        };
        assert_eq!(unsourced("a.md", "Linux 6.12", &[], &declared("a.md")).len(), 0);
        assert_eq!(unsourced("a.md", "Linux", &[], &declared("a.md")).len(), 1);
        assert_eq!(unsourced("a.md", "Linux", &[], &declared("*")).len(), 0);
        assert_eq!(unsourced("a.md", "Linux 6.12", &[], &declared("b.md")).len(), 1);
    }
}
