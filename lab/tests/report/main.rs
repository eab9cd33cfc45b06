//! Reports of comparisons with invented runs: the same text each time, and a page that a browser shows whole.

mod browser;
mod fixture;
mod judgement;
mod programs;
mod subject;

use browser::open;
use concord_lab::experiment::cell::CellFile;
use concord_lab::experiment::plan::Plan;
use concord_lab::experiment::store::Store;
use concord_lab::report::kernels::{self, Data};
use concord_lab::system::{locks, stm};
use concord_machine::result::ResultDocument;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Writes the report of a comparison into a folder of its own; the main tables.
fn write(folder: &Path, failing: bool, size: (&[&str], &[&str], &[usize], u64)) -> String {
    let (workloads, kernels, harts, seeds) = size;
    let plan = fixture::plan(workloads, kernels, harts, seeds);
    let mut outcomes = fixture::outcomes(&plan);
    if failing {
        fixture::fail_some(&mut outcomes);
    }
    let store = Store::open(folder, &plan.document()).unwrap();
    let report = kernels::report(&Data::new(&plan, &outcomes));
    report.write(&store).unwrap();
    report.text()
}

const SMALL: (&[&str], &[&str], &[usize], u64) = (&["dpunish", "find"], &["linux", "txlinux-cx"], &[8], 3);
const LARGE: (&[&str], &[&str], &[usize], u64) = (
    &["pmake", "bonnie++", "mab", "configure", "find", "dpunish"],
    &["linux", "txlinux-ss", "txlinux-cx", "no-ipi"],
    &[4, 8, 16, 32],
    2,
);

/// A text with the seeds in the place of the names of runs, which change with the machine.
fn without_names(text: &str, plan: &Plan) -> String {
    let runs = plan.groups.iter().flat_map(|group| &group.cells);
    runs.fold(text.to_owned(), |text, run| text.replace(&run.id, &format!("[run {}]", run.seed)))
}

/// Every file below a folder.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for part in ["", "tables"] {
        for entry in std::fs::read_dir(folder.join(part)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                files.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    files
}

#[test]
fn tables_are_as_recorded() {
    let folder = tempfile::tempdir().unwrap();
    insta::assert_snapshot!("text", write(folder.path(), false, SMALL));
    let csv: Vec<String> = files(folder.path())
        .into_iter()
        .filter(|(name, _)| name.ends_with(".csv"))
        .map(|(name, content)| format!("{name}\n{}", String::from_utf8(content).unwrap()))
        .collect();
    let plan = fixture::plan(SMALL.0, SMALL.1, SMALL.2, SMALL.3);
    insta::assert_snapshot!("csv", without_names(&csv.join("\n"), &plan));
}

#[test]
fn printed_tables_fit_a_terminal_of_80_columns() {
    let folder = tempfile::tempdir().unwrap();
    let lines = programs::locks(&["byte", "unfair", "tx"], &[4, 32]);
    let texts = [
        write(&folder.path().join("small"), false, SMALL),
        write(&folder.path().join("large"), true, LARGE),
        programs::write(&folder.path().join("locks"), locks::programs(), &lines),
        programs::write(&folder.path().join("stm"), stm::programs(), &programs::stm()),
    ];
    for line in texts.iter().flat_map(|text| text.lines()) {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
    }
}

#[test]
fn a_subject_is_added_with_its_table_its_chart_and_its_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let plan = fixture::plan(SMALL.0, SMALL.1, SMALL.2, SMALL.3);
    let outcomes = fixture::outcomes(&plan);
    let data = Data::new(&plan, &outcomes);
    let mut report = kernels::report(&data);
    report.add(&subject::Idleness, &data);
    report.write(&Store::open(folder.path(), &plan.document()).unwrap()).unwrap();
    assert!(report.text().contains("\nIdle harts\n"));
    assert!(folder.path().join("tables/idleness.csv").exists());
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("<h2>Cycles of idle harts: linux idles "));
    assert!(page.contains("aria-label=\"Idle harts, 8 harts: cycles (%)\""));
}

/// Fields that result documents had once.
const RETIRED: [&str; 1] = ["locks"];

#[test]
fn a_result_of_version_0_1_is_read_and_no_field_of_it_is_lost() {
    let document: ResultDocument = serde_json::from_str(fixture::RECORDED).unwrap();
    assert_eq!(document.conflicts.len(), 10);
    let written = serde_json::to_value(&document).unwrap();
    let recorded: Value = serde_json::from_str(fixture::RECORDED).unwrap();
    for (name, value) in recorded.as_object().unwrap() {
        assert!(RETIRED.contains(&name.as_str()) || holds(&written[name], value), "{name} is lost");
    }
}

/// Whether a value has everything that another one has; objects may have more.
fn holds(value: &Value, other: &Value) -> bool {
    match (value, other) {
        (Value::Object(_), Value::Object(members)) => members.iter().all(|(name, other)| holds(&value[name], other)),
        (Value::Array(values), Value::Array(others)) => {
            values.len() == others.len() && values.iter().zip(others).all(|(value, other)| holds(value, other))
        }
        _ => value == other,
    }
}

#[test]
fn the_file_of_a_run_has_the_result_without_the_time_that_the_host_took() {
    let document: ResultDocument = serde_json::from_str(fixture::RECORDED).unwrap();
    let plan = fixture::plan(SMALL.0, SMALL.1, SMALL.2, SMALL.3);
    let file = CellFile::new(&plan.groups[0].cells[0], None, document.clone());
    let text = serde_json::to_string(&file).unwrap();
    assert!(!text.contains("host_seconds"));
    let kept = ResultDocument { host_seconds: None, ..document };
    assert_eq!(serde_json::from_str::<CellFile>(&text).unwrap().result, kept);
}

#[test]
fn failed_runs_are_in_no_table_but_theirs() {
    let folder = tempfile::tempdir().unwrap();
    insta::assert_snapshot!("failures", write(folder.path(), true, SMALL));
}

#[test]
fn equal_runs_make_equal_files() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let texts = folders.each_ref().map(|folder| write(folder.path(), true, SMALL));
    assert_eq!(texts[0], texts[1]);
    assert_eq!(files(folders[0].path()), files(folders[1].path()));
}

/// A folder for a page that stays, for whoever wants to look.
fn lasting(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

/// A page with at least some number of charts is shown whole, in a window and on a telephone.
#[track_caller]
fn is_shown_whole(folder: &Path, charts_min: usize) {
    let page = folder.join("report.html");
    let text = std::fs::read_to_string(&page).unwrap();
    for outside in ["http://", "https://", "//cdn", "@import", "url(", "<script"] {
        assert!(!text.contains(outside), "the page has {outside:?}");
    }
    for (width, height) in [(1280, 900), (390, 844)] {
        let view = open(&page, width, height);
        assert_eq!(view.complaints, Vec::<String>::new(), "at {width}");
        assert!(view.charts.len() >= charts_min, "{} charts at {width}", view.charts.len());
        for chart in &view.charts {
            assert!(chart.expected > 0 && chart.expected == chart.visible, "at {width}: {chart:?}");
        }
        assert!(view.scroll_width <= view.client_width, "the page is {} wide at {width}", view.scroll_width);
    }
}

#[track_caller]
fn shows_everything(name: &str, failing: bool, size: (&[&str], &[&str], &[usize], u64), charts_min: usize) {
    let folder = lasting(name);
    write(&folder, failing, size);
    is_shown_whole(&folder, charts_min);
}

#[test]
fn a_browser_shows_every_bar() {
    shows_everything("small", false, SMALL, 10);
}

#[test]
fn tables_of_programs_are_as_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let lines = programs::locks(&["byte", "unfair", "tx"], &[4, 32]);
    insta::assert_snapshot!("locks", programs::write(&folder.path().join("locks"), locks::programs(), &lines));
    insta::assert_snapshot!("stm", programs::write(&folder.path().join("stm"), stm::programs(), &programs::stm()));
}

#[test]
fn a_browser_shows_every_bar_of_locks_and_transactions() {
    let names =
        ["byte", "ticket", "mcs", "queued", "paravirtualized", "unfair", "queued_rw", "cx", "tx", "pthread_spin"];
    let folder = lasting("locks");
    programs::write(&folder, locks::programs(), &programs::locks(&names, &[1, 2, 4, 8, 16, 32]));
    // Uncontended, the loop, and steals and aborts on six numbers of threads.
    is_shown_whole(&folder, 14);
    let folder = lasting("stm");
    programs::write(&folder, stm::programs(), &programs::stm());
    is_shown_whole(&folder, 4);
}

#[test]
fn a_browser_shows_every_bar_of_a_large_comparison() {
    shows_everything("large", true, LARGE, 40);
}

#[test]
fn a_browser_shows_one_kernel_alone() {
    shows_everything("alone", false, (&["files"], &["linux"], &[1], 1), 4);
}
