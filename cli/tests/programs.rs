//! `concord locks` and `concord stm`: measured, validated, repeated, read from a file; and what cannot be is said in a line. The guest
//! `tm` must have been built: `make guests`.

mod support;

use std::fs;
use std::path::Path;
use support::{concord, streams};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder")
}

/// Runs a command; its exit code, standard output and standard error.
fn finish(folder: &Path, line: &str) -> (i32, String, String) {
    let output = concord(folder).args(line.split_whitespace()).output().expect("it starts");
    let (answer, said) = streams(&output);
    (output.status.code().expect("no signal ended it"), answer, said)
}

#[test]
fn locks_are_measured_and_compared_with_the_first() {
    let folder = folder();
    let line = "locks byte unfair --loop --harts 2,4 --iterations 100 --seeds 2 --output out";
    let (code, tables, said) = finish(folder.path(), line);
    assert_eq!(code, 0, "{said}");
    assert!(said.ends_with("concord: report: out/report.html\n"), "{said}");
    assert!(tables.starts_with("The loop of lock and unlock\n"), "{tables}");
    assert!(tables.contains("against byte") && tables.contains("Steals by position in the queue"), "{tables}");
    let out = folder.path().join("out");
    assert_eq!(fs::read_dir(out.join("runs")).unwrap().count(), 16);
    let table = fs::read_to_string(out.join("tables/thread_mean.csv")).unwrap();
    assert_eq!(table.lines().count(), 5, "{table}");
    // Each acquisition is counted: those of the loop, and each hart's meeting before it.
    let steals = fs::read_to_string(out.join("tables/steals.csv")).unwrap();
    assert!(steals.lines().any(|line| line.starts_with("loop,4,unfair,404,")), "{steals}");

    // Again, from the runs that are there alone: the same to the last digit.
    let (page, run) =
        (out.join("report.html"), fs::read_dir(out.join("runs")).unwrap().next().unwrap().unwrap().path());
    let (before, written) = (fs::read(&page).unwrap(), fs::metadata(&run).unwrap().modified().unwrap());
    let (code, again, said) = finish(folder.path(), line);
    assert_eq!((code, again), (0, tables), "{said}");
    assert_eq!(fs::read(&page).unwrap(), before);
    assert_eq!(fs::metadata(&run).unwrap().modified().unwrap(), written);
}

#[test]
fn an_experiment_has_one_result_on_both_executors() {
    let folder = folder();
    let line = "locks byte unfair --loop --harts 2 --iterations 20000 --seeds 1 --output";
    let finish = |words: &str| finish(folder.path(), &format!("{line} {words}"));
    let (code, by_default, said) = finish("default");
    assert_eq!(code, 0, "{said}");
    assert_eq!(finish("interpreted --executor interpreter").1, by_default);
    let (code, _, said) = finish("refused --executor compiler");
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("compiler") && said.contains("interpreter, translator"), "{said}");
    assert!(!folder.path().join("refused").exists());
}

#[test]
fn transactions_are_measured_and_validated() {
    let folder = folder();
    let line = "stm spinlock plain-2pl --workloads increment,bank --harts 2 --operations 100 --seeds 1 --output out";
    let (code, tables, said) = finish(folder.path(), line);
    assert_eq!(code, 0, "{said}");
    assert!(tables.contains("\nbank, 2 harts\n") && tables.contains("   against"), "{tables}");
    let (code, tables, said) =
        finish(folder.path(), "stm 2pl --validate --harts 2 --operations 100 --seeds 2 --append tests=words");
    assert_eq!(code, 0, "{said}");
    assert!(tables.starts_with("Validation\n"), "{tables}");
}

#[test]
fn a_run_that_fails_is_told_and_the_others_go_on() {
    let folder = folder();
    let line =
        "locks byte queued --measure loop --harts 2 --iterations 100 --seeds 1 --max-instructions 1000 --output out";
    let (code, tables, said) = finish(folder.path(), line);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("concord: loop of queued, 2 harts, seed 1: limit-reached"), "{said}");
    assert!(tables.starts_with("Failed runs\n"), "{tables}");
}

const NATIVE: &str = concat!(
    "measured natively\n",
    r#"{"benchmark":"lock","lock":"byte","test":"loop","threads":4,"iterations":1000,"thread_mean_ns":386000}"#,
    "\n",
    r#"{"benchmark":"lock","lock":"unfair","test":"loop","threads":4,"iterations":1000,"thread_mean_ns":454000}"#,
    "\n",
);

#[test]
fn native_measurements_have_the_same_tables() {
    let folder = folder();
    fs::write(folder.path().join("locks.jsonl"), NATIVE).unwrap();
    let (code, tables, said) = finish(folder.path(), "locks --native locks.jsonl --output out");
    assert_eq!(code, 0, "{said}");
    assert!(tables.contains("386.00") && tables.contains("+17.62"), "{tables}");
    assert_eq!(fs::read_to_string(folder.path().join("out/native.jsonl")).unwrap(), NATIVE);
}

#[test]
fn what_cannot_be_run_is_one_line() {
    let folder = folder();
    fs::create_dir(folder.path().join("other")).unwrap();
    fs::write(folder.path().join("other/thesis.tex"), "").unwrap();
    fs::write(folder.path().join("locks.jsonl"), NATIVE).unwrap();
    fs::write(folder.path().join("cut.jsonl"), &NATIVE[..NATIVE.len() - 30]).unwrap();
    fs::write(folder.path().join("text"), "nothing\n").unwrap();
    let cases: [(&str, &[&str]); 23] = [
        ("locks bite", &["no lock", "\"bite\"", "byte, test-and-set, ticket"]),
        ("locks byte byte", &["lock", "\"byte\"", "twice"]),
        ("locks --measure speed", &["no test", "\"speed\"", "uncontended"]),
        ("locks --measure loop --loop", &["--measure", "--loop"]),
        ("locks --validate --loop", &["--validate", "--loop"]),
        ("locks --iterations 0", &["--iterations", "0"]),
        ("locks --harts 0", &["0 harts", "1 to 64"]),
        ("locks --harts 8,65", &["65 harts", "1 to 64"]),
        ("locks --harts 8,8", &["hart count", "\"8\"", "twice"]),
        ("locks --harts eight", &["--harts", "'eight'"]),
        ("locks --seeds 0", &["at least one seed"]),
        ("locks --jobs 0", &["--jobs", "'0'"]),
        ("locks --gear fast", &["--gear", "fast", "functional, timed"]),
        ("locks --board pdp-11", &["pdp-11"]),
        ("locks --max-instructions 0", &["--max-instructions", "0"]),
        ("locks byte --output other", &["other is not empty", "--output"]),
        ("locks --native missing", &["missing", "No such file"]),
        ("locks --native cut.jsonl", &["cut.jsonl:3", "no object of JSON"]),
        ("locks --native text", &["text", "no line is a measurement"]),
        ("locks byte --native locks.jsonl", &["LOCK", "--native"]),
        ("stm --native locks.jsonl", &["locks.jsonl:2", "\"workload\""]),
        ("stm --workloads bonk", &["no workload", "\"bonk\"", "increment"]),
        ("stm plain-2pl --validate", &["no library", "\"plain-2pl\"", "2pl, tl2"]),
    ];
    for (line, wanted) in cases {
        let (code, answer, said) = finish(folder.path(), line);
        assert_eq!((code, answer.as_str()), (2, ""), "{line}: {said}");
        assert!(said.starts_with("concord: ") && said.trim_end().lines().count() == 1, "{line}: {said}");
        assert!(wanted.iter().all(|part| said.contains(part)), "{line}: {said}");
    }
}
