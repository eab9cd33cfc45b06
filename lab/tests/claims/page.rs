//! Pages with placeholders.
//!
//! | placeholder | stands for |
//! | --- | --- |
//! | `{{ID}}` | the figure of an entry with its interval and unit |
//! | `{{ID mean}}`, `{{ID round}}` | the same without its interval; and without decimals as well |
//! | `{{date RUN}}` | the day on which a run was recorded |
//! | `{{table ID}}` | a table that an entry `[[table]]` describes |
//! | `{{claims GROUP}}` | the entries of `experiments/claims/GROUP.toml` as a table |
//! | `{{runs}}` | the recorded runs as a table |

use crate::entry::{Claim, Claims, PageColumn, PageTable};
use crate::prose::RESOLVED;
use crate::recorded::{Filter, Recorded};
use crate::value::Show;

/// What placeholders are resolved from.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    pub claims: &'a Claims,
    pub recorded: &'a Recorded,
}

/// A page.
#[derive(Debug, Default)]
pub struct Page {
    pub text: String,
    /// The page's text with a mark in place of everything that has a source. A figure in it has none.
    pub unsourced: String,
}

/// A digest's length on a page.
const DIGEST_DIGITS: usize = 12;

impl Page {
    fn literal(&mut self, text: &str) {
        self.text.push_str(text);
        self.unsourced.push_str(text);
    }

    fn resolved(&mut self, text: &str) {
        self.text.push_str(text);
        self.unsourced.push(RESOLVED);
    }

    /// A row of a table, whose cells are written by the functions.
    fn row(&mut self, cells: impl IntoIterator<Item = (bool, String)>) {
        self.literal("|");
        for (is_resolved, cell) in cells {
            self.literal(" ");
            if is_resolved {
                self.resolved(&cell)
            } else {
                self.literal(&cell)
            }
            self.literal(" |");
        }
        self.literal("\n");
    }

    fn heading(&mut self, headings: &[&str]) {
        self.row(headings.iter().map(|heading| (false, (*heading).to_owned())));
        self.literal(&format!("|{}\n", " --- |".repeat(headings.len())));
    }
}

/// Resolves a page's placeholders.
///
/// # Errors
/// Names the page, the line, the placeholder and what is wrong with it.
pub fn render(name: &str, source: &str, sources: &Sources) -> Result<Page, String> {
    let mut page = Page::default();
    page.literal(&format!(
        "<!-- Made from experiments/pages/{name} and recorded tables: edit that, and then\n     \
         CONCORD_UPDATE=1 cargo test -p concord-lab --test claims -->\n\n"
    ));
    for (index, line) in source.lines().enumerate() {
        let mut rest = line;
        while let Some((before, after)) = rest.split_once("{{") {
            page.literal(before);
            let wrong = |why: &str| format!("experiments/pages/{name}:{}: {why}", index + 1);
            let (placeholder, after) = after.split_once("}}").ok_or_else(|| wrong("`{{` has no `}}`"))?;
            resolve(&mut page, placeholder, sources).map_err(|why| wrong(&format!("{{{{{placeholder}}}}}: {why}")))?;
            rest = after;
        }
        page.literal(rest);
        // A placeholder of a table has ended its last line already.
        if !(line.starts_with("{{") && page.text.ends_with("|\n")) {
            page.literal("\n");
        }
    }
    Ok(page)
}

fn resolve(page: &mut Page, placeholder: &str, sources: &Sources) -> Result<(), String> {
    let words: Vec<&str> = placeholder.split_whitespace().collect();
    match words.as_slice() {
        ["runs"] => runs(page, sources.recorded),
        ["date", run] => {
            let run = sources.recorded.runs.get(*run).ok_or("no such run is recorded")?;
            page.resolved(&run.origin.recorded);
        }
        ["table", id] => table(page, sources.claims.tables.get(*id).ok_or("no such table")?, sources.recorded)?,
        ["claims", group] => {
            claims(page, sources.claims.groups.get(*group).ok_or("no such file of entries")?, sources.recorded)?;
        }
        [id, how @ ..] => {
            let claim = sources.claims.entries().find(|claim| claim.id == *id).ok_or("no such entry")?;
            let text = match how {
                [] => claim.shown(sources.recorded)?,
                ["mean"] => claim.mean(sources.recorded, None)?,
                ["round"] => claim.mean(sources.recorded, Some(0))?,
                _ => return Err("after an entry's name only `mean` and `round` are known".to_owned()),
            };
            page.resolved(&text);
        }
        [] => return Err("it is empty".to_owned()),
    }
    Ok(())
}

/// Entries as a table: figures with their source, or statements with what holds them.
fn claims(page: &mut Page, claims: &[Claim], recorded: &Recorded) -> Result<(), String> {
    if claims.iter().all(|claim| claim.held_by.is_some()) {
        page.heading(&["claim", "held by"]);
        for claim in claims {
            page.row([(false, claim.says.clone()), (true, claim.source())]);
        }
        return Ok(());
    }
    page.heading(&["claim", "figure", "from"]);
    for claim in claims {
        let figure = if claim.held_by.is_some() { "yes".to_owned() } else { claim.shown(recorded)? };
        page.row([(false, claim.says.clone()), (true, figure), (true, claim.source())]);
    }
    Ok(())
}

/// The recorded runs: what each was, and of which machine and kernel.
fn runs(page: &mut Page, recorded: &Recorded) {
    page.heading(&["run", "command", "recorded", "size", "harts", "seeds", "machine", "kernel image"]);
    let short = |digest: &str| digest.chars().take(DIGEST_DIGITS).collect::<String>();
    for (name, run) in &recorded.runs {
        let origin = &run.origin;
        let mut images: Vec<String> = origin.images.values().map(|digest| short(digest)).collect();
        images.sort();
        images.dedup();
        page.row([
            (true, format!("[`{name}`](experiments/recorded/{name}/run.toml)")),
            (true, format!("`{}`", origin.command)),
            (true, origin.recorded.clone()),
            (true, origin.size.clone().unwrap_or_default()),
            (true, origin.harts.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
            (true, origin.seeds.map(|seeds| seeds.to_string()).unwrap_or_default()),
            (true, origin.machine.as_deref().map(short).unwrap_or_default()),
            (true, images.join(", ")),
        ]);
    }
}

/// A page's table.
fn table(page: &mut Page, spec: &PageTable, recorded: &Recorded) -> Result<(), String> {
    if spec.keys.len() != spec.headings.len() {
        return Err(format!("{} keys have {} headings", spec.keys.len(), spec.headings.len()));
    }
    let source = recorded.table(&spec.run, &spec.rows)?;
    let mut rows: Vec<Filter> = Vec::new();
    for row in source.matching(&spec.filter)? {
        let key = |name: &String| Ok((name.clone(), source.cell(row, name)?.to_owned()));
        let keys = spec.keys.iter().map(key).collect::<Result<Filter, String>>()?;
        if !rows.contains(&keys) {
            rows.push(keys);
        }
    }
    if rows.is_empty() {
        return Err(format!("no row of {}/{}.csv has {:?}", spec.run, spec.rows, spec.filter));
    }
    let headings = spec.headings.iter().chain(spec.columns.iter().map(|column| &column.heading));
    page.heading(&headings.map(String::as_str).collect::<Vec<_>>());
    for keys in rows {
        let mut cells: Vec<(bool, String)> = Vec::new();
        for name in &spec.keys {
            let value = &keys[name];
            cells.push((true, spec.labels.get(value).unwrap_or(value).clone()));
        }
        for column in &spec.columns {
            cells.push((true, cell(spec, column, &keys, recorded)?));
        }
        page.row(cells);
    }
    Ok(())
}

/// A cell: the number of the one row that matches, or nothing where there is no such row or no number in it.
fn cell(spec: &PageTable, column: &PageColumn, keys: &Filter, recorded: &Recorded) -> Result<String, String> {
    let run = column.run.as_deref().unwrap_or(&spec.run);
    let table = recorded.table(run, column.table.as_deref().unwrap_or(&spec.rows))?;
    let mut filter: Filter = spec.filter.clone();
    filter.extend(keys.clone());
    filter.extend(column.filter.clone());
    let rows = table.matching(&filter)?;
    let value = match rows.as_slice() {
        [] => None,
        [row] => table.value(row, &column.column)?,
        several => return Err(format!("column {:?}: {} rows have {filter:?}", column.heading, several.len())),
    };
    let show = Show { kind: column.show, decimals: column.decimals, has_interval: !column.without_interval };
    Ok(value.map_or_else(|| "-".to_owned(), |value| show.number(value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prose;
    use std::fs;

    const TIME: &str =
        "workload,kernel,change,change_low,change_high\nfind,linux,,,\nfind,whole,0.0936,0.0663,0.1209\n";
    const ENTRY: &str = r#"
        [[claim]]
        id = "find-time"
        says = "`find`: kernel time against locks"
        run = "quick"
        table = "time"
        row = { workload = "find", kernel = "whole" }
        column = "change"
        show = "change"
        between = [5, 20]

        [[table]]
        id = "times"
        run = "quick"
        rows = "time"
        keys = ["workload", "kernel"]
        headings = ["workload", "kernel"]
        columns = [{ heading = "change (%)", column = "change", show = "change" }]
    "#;

    /// What these entries and this table make of a page.
    fn with<T>(entries: &str, time: &str, then: impl Fn(&Sources) -> T) -> T {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("recorded/quick");
        fs::create_dir_all(&run).unwrap();
        fs::create_dir(folder.path().join("claims")).unwrap();
        fs::write(folder.path().join("claims/time.toml"), entries).unwrap();
        fs::write(run.join("time.csv"), time).unwrap();
        fs::write(run.join("run.toml"), "command = \"compare\"\nrecorded = \"2026-11-20\"\n").unwrap();
        let claims = Claims::read(&folder.path().join("claims")).unwrap();
        let recorded = Recorded::read(&folder.path().join("recorded")).unwrap();
        then(&Sources { claims: &claims, recorded: &recorded })
    }

    /// A page without the lines that say how it was made.
    fn rendered(source: &str, time: &str) -> Result<String, String> {
        let text = with(ENTRY, time, |sources| render("a.md", source, sources).map(|page| page.text))?;
        Ok(text.split_once("-->\n\n").unwrap().1.to_owned())
    }

    #[test]
    fn a_placeholder_becomes_its_figure() {
        let page = rendered("It changes by {{find-time}}, {{find-time mean}}, {{find-time round}}.\n", TIME);
        assert_eq!(page.unwrap(), "It changes by +9.36 ± 2.73%, +9.36%, +9%.\n");
        let page = rendered("{{table times}}\nend\n", TIME).unwrap();
        let rows = "| workload | kernel | change (%) |\n| --- | --- | --- |\n| find | linux | - |\n| find | whole | +9.36 ± 2.73 |\n";
        assert_eq!(page, format!("{rows}end\n"));
        let page = rendered("{{claims time}}\n", TIME).unwrap();
        assert!(page.contains("| `find`: kernel time against locks | +9.36 ± 2.73% | `quick`, `time` |\n"), "{page}");
        assert!(rendered("{{runs}}\n", TIME).unwrap().contains("| 2026-11-20 |"));
    }

    #[test]
    fn a_changed_table_changes_the_page() {
        let changed = TIME.replace("0.0936", "0.0937");
        assert_ne!(rendered("{{find-time}}\n", TIME), rendered("{{find-time}}\n", &changed));
        assert_ne!(rendered("{{table times}}\n", TIME), rendered("{{table times}}\n", &changed));
    }

    #[test]
    fn a_mistake_is_told_with_its_place() {
        for (source, why) in [
            ("a\n{{find-tme}}\n", "experiments/pages/a.md:2: {{find-tme}}: no such entry"),
            ("{{find-time exactly}}\n", "only `mean` and `round` are known"),
            ("{{find-time\n", "experiments/pages/a.md:1: `{{` has no `}}`"),
            ("{{table rows}}\n", "no such table"),
        ] {
            let problem = rendered(source, TIME).unwrap_err();
            assert!(problem.contains(why), "{problem}");
        }
        let problem = rendered("{{find-time}}\n", "workload,kernel,change\nfind,linux,1\n").unwrap_err();
        assert!(problem.contains("no row has a number"), "{problem}");
        let problem = rendered("{{find-time}}\n", &format!("{TIME}find,whole,1,1,1\n")).unwrap_err();
        assert!(problem.contains("2 rows match"), "{problem}");
    }

    #[test]
    fn a_figure_outside_of_its_range_is_told() {
        let check =
            |time: &str| with(ENTRY, time, |sources| sources.claims.entries().next().unwrap().check(sources.recorded));
        assert_eq!(check(TIME), Ok(()));
        let problem = check(&TIME.replace("0.0936", "-0.02")).unwrap_err();
        assert!(problem.contains("-2.00 lies outside of 5 to 20"), "{problem}");
        let entry = ENTRY.replace("between = [5, 20]", "includes-zero = true");
        let check =
            |time: &str| with(&entry, time, |sources| sources.claims.entries().next().unwrap().check(sources.recorded));
        assert_eq!(check(&TIME.replace("0.0663,0.1209", "-0.01,0.2")), Ok(()));
        assert!(check(TIME).unwrap_err().contains("+9.36 ± 2.73% is distinct from zero"));
    }

    #[test]
    fn a_figure_typed_into_a_page_with_placeholders_has_no_source() {
        let unsourced = |source: &str| {
            with(ENTRY, TIME, |sources| {
                prose::unsourced("a.md", &render("a.md", source, sources).unwrap().unsourced, &[], &[])
            })
        };
        assert_eq!(
            unsourced("It is {{find-time}} and {{find-time round}}.\n\n{{table times}}\n"),
            Vec::<String>::new()
        );
        assert_eq!(unsourced("It is 9.36%.\n").len(), 1);
    }
}
