//! Holds the pages to what was measured.
//!
//! - `experiments/recorded/RUN/*.csv` are tables as `concord compare` and the benchmarks wrote them (`experiments/record` copies them).
//! - `experiments/claims/*.toml` has an entry for each figure that a page states ([`entry`]).
//! - `experiments/pages/**` are pages with placeholders for figures and tables ([`page`]); the pages themselves are made from them.
//! - On every page, generated or not, a figure that is no placeholder is one of an entry that names the page, or is declared in
//!   `experiments/claims/not-measured.toml` with the reason why it is no measurement ([`prose`]).
//!
//! `CONCORD_UPDATE=1 cargo test -p concord-lab --test claims` writes the pages anew.

mod entry;
mod page;
mod prose;
mod recorded;
mod value;

use entry::Claims;
use page::Sources;
use recorded::Recorded;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All files under a folder, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

fn claims() -> Claims {
    Claims::read(&root().join("experiments/claims")).unwrap_or_else(|problem| panic!("{problem}"))
}

fn recorded() -> Recorded {
    Recorded::read(&root().join("experiments/recorded")).unwrap_or_else(|problem| panic!("{problem}"))
}

/// Pages with placeholders: their source and the page made from it, relative to the tree.
fn generated_pages() -> Vec<(PathBuf, String)> {
    let folder = root().join("experiments/pages");
    let page = |source: PathBuf| {
        let name = source.strip_prefix(&folder).unwrap().to_str().unwrap().to_owned();
        (source, name)
    };
    files(&folder).into_iter().map(page).collect()
}

/// Pages that people write and that may state figures.
fn written_pages() -> Vec<String> {
    let mut pages: Vec<String> = ["README.md", "docs/guide.md", "tm/README.md"].map(str::to_owned).into();
    for folder in ["docs/notes", "docs/how-to"].map(|folder| root().join(folder)) {
        let found = if folder.is_dir() { files(&folder) } else { Vec::new() };
        pages.extend(found.iter().map(|path| path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned()));
    }
    pages
}

/// Fails with all problems at once.
fn assert_none(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn pages_state_what_entries_and_tables_give() {
    let (claims, recorded) = (claims(), recorded());
    let mut problems = Vec::new();
    for (source, name) in generated_pages() {
        let path = root().join(&name);
        match page::render(&name, &read(&source), &Sources { claims: &claims, recorded: &recorded }) {
            Err(problem) => problems.push(problem),
            Ok(page) if std::env::var_os("CONCORD_UPDATE").is_some() => fs::write(&path, page.text).unwrap(),
            Ok(page) if page.text != fs::read_to_string(&path).unwrap_or_default() => problems.push(format!(
                "{name} differs from what experiments/pages/{name} and the tables give; CONCORD_UPDATE=1 writes it"
            )),
            Ok(_) => {}
        }
    }
    assert_none(&problems);
}

#[test]
fn every_figure_of_a_page_has_its_source() {
    let (claims, recorded) = (claims(), recorded());
    let mut problems = Vec::new();
    for (source, name) in generated_pages() {
        match page::render(&name, &read(&source), &Sources { claims: &claims, recorded: &recorded }) {
            Err(problem) => problems.push(problem),
            Ok(page) => problems.extend(prose::unsourced(&name, &page.unsourced, &[], &claims.not_measured)),
        }
    }
    for name in written_pages() {
        let mut stated = Vec::new();
        for claim in claims.entries().filter(|claim| claim.pages.contains(&name)) {
            match claim.shown(&recorded) {
                Ok(shown) => stated.push((claim.id.clone(), shown)),
                Err(problem) => problems.push(problem),
            }
        }
        problems.extend(prose::unsourced(&name, &read(&root().join(&name)), &stated, &claims.not_measured));
    }
    assert_none(&problems);
}

#[test]
fn figures_lie_in_the_ranges_for_which_the_sentences_hold() {
    let (claims, recorded) = (claims(), recorded());
    let problems = claims.entries().filter_map(|claim| claim.check(&recorded).err());
    assert_none(&problems.collect::<Vec<_>>());
}

#[test]
fn an_entry_names_pages_that_people_write() {
    let written = written_pages();
    let pages = claims().entries().flat_map(|claim| claim.pages.clone()).collect::<BTreeSet<_>>();
    let unknown = pages.difference(&written.into_iter().collect()).cloned().collect::<Vec<_>>();
    assert!(unknown.is_empty(), "these pages are generated or missing, and no entry can name them: {unknown:?}");
}

#[test]
fn every_recorded_table_is_cited_and_has_its_declaration() {
    let (claims, recorded) = (claims(), recorded());
    let cited = claims.cited_tables();
    let mut problems = Vec::new();
    for (run, table) in recorded.tables() {
        if !cited.contains(&(run.to_owned(), table.to_owned())) {
            problems.push(format!("experiments/recorded/{run}/{table}.csv: no entry and no page's table cites it"));
        }
    }
    for (name, run) in &recorded.runs {
        if let Some(declaration) = &run.origin.declaration
            && !root().join(declaration).is_file()
        {
            problems.push(format!("experiments/recorded/{name}/run.toml: {declaration} is missing"));
        }
    }
    assert_none(&problems);
}

/// The folder of a package of ours.
fn package_folder(package: &str) -> String {
    match package.strip_prefix("concord-") {
        None => "cli".to_owned(),
        Some("lab") => "lab".to_owned(),
        Some(room) => format!("sim/{room}"),
    }
}

/// Whether a command `cargo test -p PACKAGE --test NAME ...` names a test that exists; true for every other text.
fn names_a_test_that_exists(command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    let after = |option: &str| words.iter().position(|word| *word == option).and_then(|at| words.get(at + 1));
    let (Some(package), Some(test)) = (after("-p"), after("--test")) else { return true };
    let tests = root().join(package_folder(package)).join("tests");
    let is_declared =
        || read(&tests.with_file_name("Cargo.toml")).contains(&format!("name = \"{test}\"\npath = \"tests/"));
    tests.join(format!("{test}.rs")).is_file() || tests.join(test).join("main.rs").is_file() || is_declared()
}

#[test]
fn what_holds_a_claim_exists() {
    let mut problems = Vec::new();
    for claim in claims().entries() {
        let source = claim.source();
        for code in source.split('`').skip(1).step_by(2) {
            let is_file = code.contains('/') && !code.contains(' ') && (code.ends_with(".rs") || code.ends_with(".c"));
            if (is_file && !root().join(code).is_file()) || !names_a_test_that_exists(code) {
                problems.push(format!("`{code}` is named by the claim {:?} and is not there", claim.says));
            }
        }
    }
    assert_none(&problems);
}

#[test]
fn recorded_tables_are_compact() {
    const LINES_MAX: usize = 300;
    for path in files(&root().join("experiments/recorded")) {
        let lines = read(&path).lines().count();
        assert!(lines <= LINES_MAX, "{}: {lines} lines, {LINES_MAX} are allowed", path.display());
    }
}

#[test]
fn the_stated_size_of_the_conversion_is_that_of_the_tree() {
    // Stated by hand, because the pages need not follow every line; a tenth is what they may be off.
    const TOLERANCE: f64 = 0.1;
    let claims = claims();
    let texts = |folder: &str| files(&root().join(folder)).iter().map(|path| read(path)).collect::<Vec<_>>();
    let (overlay, patches) = (texts("linux/overlay"), texts("linux/patches"));
    let changed = |sign: char| {
        let is_changed = |line: &&str| line.starts_with(sign) && line.len() > 1 && !line[1..].starts_with(sign);
        patches.iter().flat_map(|text| text.lines()).filter(is_changed).count()
    };
    for (id, counted) in [
        ("new-files", overlay.len()),
        ("new-lines", overlay.iter().map(|text| text.lines().count()).sum()),
        ("added-lines", changed('+')),
        ("removed-lines", changed('-')),
    ] {
        let claim = claims.entries().find(|claim| claim.id == id).unwrap();
        let stated: f64 = claim.value.as_deref().unwrap().replace(',', "").parse().unwrap();
        let counted = counted as f64;
        assert!((stated - counted).abs() <= TOLERANCE * counted, "{id}: {stated} is stated, the tree has {counted}");
    }
}
