//! Comparisons of kernels: interrupted, resumed and repeated ones end alike, and what cannot be compared is said in a line. The guests
//! `kernel` and `rootfs` must have been built: `make guests`.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use support::{concord, streams};

const COMPARISON: &str =
    "compare dpunish --kernels linux --kernel other=loglevel=3 --harts 2 --size tiny --seeds 2 --output";

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder")
}

fn words(folder: &Path, words: &str) -> Command {
    let mut command = concord(folder);
    command.args(words.split_whitespace());
    command
}

/// Runs a command; its exit code, standard output and standard error.
fn finish(folder: &Path, line: &str) -> (i32, String, String) {
    let output = words(folder, line).output().expect("it starts");
    let (answer, said) = streams(&output);
    (output.status.code().expect("no signal ended it"), answer, said)
}

/// Every file below a folder, with its content.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).expect("a folder") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.insert(path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).expect("readable"));
            }
        }
    }
    files
}

fn runs(folder: &Path) -> Vec<PathBuf> {
    let list = fs::read_dir(folder.join("runs")).into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut runs: Vec<PathBuf> = list.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    runs.sort();
    runs
}

/// Starts a comparison on one thread, and signals it when it has so many runs; its exit code (none for the signal's) and its words.
fn interrupt(folder: &Path, output: &str, runs_wanted: usize, signal: &str) -> (Option<i32>, String) {
    let line = format!("{COMPARISON} {output} --jobs 1");
    let child = words(folder, &line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let begin = Instant::now();
    while runs(&folder.join(output)).len() < runs_wanted {
        assert!(begin.elapsed() < Duration::from_secs(600), "no run was finished");
        sleep(Duration::from_millis(5));
    }
    let kill = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill");
    assert!(kill.success());
    let output = child.wait_with_output().expect("it ends");
    (output.status.code(), streams(&output).1)
}

#[test]
fn an_interrupted_comparison_ends_as_if_it_had_not_been() {
    let folder = folder();
    let (whole, cut) = (folder.path().join("whole"), folder.path().join("cut"));
    let (code, tables, said) = finish(folder.path(), &format!("{COMPARISON} whole"));
    assert_eq!(code, 0, "{said}");
    assert!(said.ends_with("concord: report: whole/report.html\n"), "{said}");
    assert_eq!(runs(&whole).len(), 4);
    assert!(tables.contains("\ndpunish, 2 harts\n  linux ") && tables.contains("\n  other "), "{tables}");

    let (code, said) = interrupt(folder.path(), "cut", 1, "-INT");
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains(" of 4 runs finished in cut; the same command goes on"), "{said}");
    assert!(!cut.join("report.html").exists());
    let finished = runs(&cut).len();
    assert!(finished < 4);
    let (code, _) = interrupt(folder.path(), "cut", finished + 1, "-KILL");
    assert_eq!(code, None, "a killed process has no exit code");
    // What is there already is kept, but for a file that lost its end.
    let kept = runs(&cut);
    let first = fs::read(&kept[0]).unwrap();
    fs::write(&kept[0], &first[..first.len() / 2]).unwrap();
    let (code, resumed, said) = finish(folder.path(), &format!("{COMPARISON} cut"));
    assert_eq!(code, 0, "{said}");
    let name = kept[0].file_name().unwrap().to_str().unwrap();
    assert!(said.contains(&format!("{name}: damaged (")) && said.contains("so this run is made again"), "{said}");
    assert_eq!(resumed, tables);
    assert_eq!(files(&cut).keys().collect::<Vec<_>>(), files(&whole).keys().collect::<Vec<_>>());
    for (name, content) in files(&whole) {
        assert!(files(&cut)[&name] == content, "{} differs", name.display());
    }

    // Again, from the runs that are there alone: the same to the last digit.
    let before = files(&whole);
    let (code, again, _) = finish(folder.path(), &format!("{COMPARISON} whole"));
    assert_eq!((code, again), (0, tables));
    assert!(files(&whole) == before);
}

#[test]
fn what_fails_is_told_and_the_others_go_on() {
    let folder = folder();
    let line =
        "compare dpunish --kernels linux --kernel lost=init=/no/such/init --harts 2 --size tiny --seeds 1 --output out";
    let (code, tables, said) = finish(folder.path(), line);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("concord: dpunish on lost, 2 harts: "), "{said}");
    assert!(said.lines().any(|line| line.starts_with("    | ") && line.contains("Kernel panic")), "{said}");
    assert!(tables.contains("Failed runs"), "{tables}");
    let failures = fs::read_to_string(folder.path().join("out/tables/failures.csv")).unwrap();
    assert!(failures.contains("before the workload's region of interest began"), "{failures}");
    let linux = tables.lines().find(|line| line.starts_with("  linux ")).unwrap();
    assert!(!linux.contains(" -  - "), "{linux}");
    let lost = tables.lines().find(|line| line.contains(" lost ") && !line.contains("lost (")).unwrap();
    assert!(lost.split_whitespace().all(|cell| cell == "lost" || cell == "-"), "{lost}");

    // A limit inside the region: the run is made and kept, and fails each time in the same way.
    let run = fs::read_to_string(&runs(&folder.path().join("out"))[0]).unwrap();
    let run: serde_json::Value = serde_json::from_str(&run).unwrap();
    let limit = run["result"]["instructions"].as_u64().unwrap() - 1_000_000;
    let line = format!(
        "compare dpunish --kernels linux --harts 2 --size tiny --seeds 1 --max-instructions {limit} --output limited"
    );
    let (code, _, said) = finish(folder.path(), &line);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains(&format!("limit-reached: the limit of {limit} instructions was reached")), "{said}");
    assert_eq!(finish(folder.path(), &line).0, 1);
}

#[test]
fn what_cannot_be_compared_is_one_line() {
    let folder = folder();
    fs::create_dir(folder.path().join("other")).unwrap();
    fs::write(folder.path().join("other/thesis.tex"), "").unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    fs::create_dir_all(folder.path().join("earlier")).unwrap();
    fs::write(folder.path().join("earlier/plan.json"), "{\"seeds\": 7}\n").unwrap();
    fs::write(folder.path().join("wrong.toml"), "workloads = 3  # a list of workloads\n").unwrap();
    let cases: [(&str, &[&str]); 24] = [
        ("compare --experiment missing.toml", &["missing.toml", "No such file"]),
        ("compare --experiment wrong.toml", &["wrong.toml:1", "invalid type"]),
        ("compare dpunish --experiment wrong.toml", &["--experiment", "cannot be used with"]),
        ("compare", &["WORKLOAD"]),
        ("compare lmbench", &["no workload", "\"lmbench\"", "dpunish", "contend:sigmask | timers | "]),
        ("compare contend", &["no workload", "\"contend\"", "contend:sigmask | timers | "]),
        ("compare contend:opens", &["no workload", "\"contend:opens\"", "contend:sigmask | timers | "]),
        ("compare dpunish dpunish", &["workload", "\"dpunish\"", "twice"]),
        ("compare dpunish --kernels linux,bsd", &["no kernel", "\"bsd\"", "txlinux-cx"]),
        ("compare dpunish --kernels linux,linux", &["kernel", "\"linux\"", "twice"]),
        ("compare dpunish --kernel cx", &["\"cx\"", "NAME=WORDS"]),
        ("compare dpunish --kernel linux=cx=on", &["\"linux=cx=on\"", "taken"]),
        ("compare dpunish --kernel a/b=cx=on", &["\"a/b=cx=on\"", "a name is"]),
        ("compare dpunish --kernel a=image=missing", &["missing", "No such file"]),
        ("compare dpunish --harts 0", &["0 harts", "1 to 64"]),
        ("compare dpunish --harts 8,65", &["65 harts", "1 to 64"]),
        ("compare dpunish --harts 8,8", &["hart count", "\"8\"", "twice"]),
        ("compare dpunish --harts eight", &["--harts", "'eight'"]),
        ("compare dpunish --seeds 0", &["at least one seed"]),
        ("compare dpunish --size huge", &["--size", "\"huge\"", "tiny, quick, paper"]),
        ("compare dpunish --jobs 0", &["--jobs", "'0'"]),
        ("compare dpunish --output other", &["other is not empty", "--output"]),
        ("compare dpunish --output earlier", &["earlier holds another comparison", "seeds"]),
        ("compare dpunish --output file", &["file"]),
    ];
    for (line, wanted) in cases {
        let (code, answer, said) = finish(folder.path(), line);
        assert_eq!((code, answer.as_str()), (2, ""), "{line}: {said}");
        assert!(said.starts_with("concord: ") && said.trim_end().lines().count() == 1, "{line}: {said}");
        assert!(wanted.iter().all(|part| said.contains(part)), "{line}: {said}");
    }
    assert_eq!(fs::read(folder.path().join("earlier/plan.json")).unwrap(), b"{\"seeds\": 7}\n");
}

/// Nobody but the superuser is refused by permissions, so for that one it is tried where nothing can be written: /proc.
#[test]
fn a_folder_that_cannot_be_written_is_found_before_any_run() {
    let folder = folder();
    let locked = folder.path().join("locked");
    fs::create_dir(&locked).unwrap();
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o555)).unwrap();
    let is_superuser = fs::write(locked.join("probe"), "").is_ok();
    let output = if is_superuser { "/proc/comparison" } else { "locked/out" };
    let (code, _, said) = finish(folder.path(), &format!("compare dpunish --output {output}"));
    assert_eq!(code, 2, "{said}");
    assert!(said.contains(output) && said.trim_end().lines().count() == 1, "{said}");
}
