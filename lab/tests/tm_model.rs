//! The models of tm's locks and transactions (`tm/model`), walked by Spin as their heads ask: what is right, and what is broken on purpose.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tm/model")
}

fn check(arguments: &[&Path]) -> Output {
    Command::new(folder().join("check")).args(arguments).output().unwrap()
}

#[track_caller]
fn is_as_its_head_says(model: &str, arguments: &[&str]) {
    let path = folder().join(model);
    let arguments: Vec<&Path> = arguments.iter().map(Path::new).chain([path.as_path()]).collect();
    let output = check(&arguments);
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}\n`concord doctor` says whether a program is missing");
    assert!(text.contains("ok "), "{text}");
}

macro_rules! models {
    ($($model:ident),*) => {
        $(#[test]
        fn $model() {
            is_as_its_head_says(concat!(stringify!($model), ".pml"), &[]);
        })*

        mod long {
            $(#[test]
            #[ignore = "walks for minutes"]
            fn $model() {
                super::is_as_its_head_says(concat!(stringify!($model), ".pml"), &["--long"]);
            })*
        }

        const MODELS: &[&str] = &[$(stringify!($model)),*];
    };
}

models!(cx, mcs, paravirtualized, queued, queued_rw, solo, tl2, two_phase, tx, unfair);

#[test]
fn no_model_is_forgotten() {
    let asks = |path: &Path| fs::read_to_string(path).unwrap().lines().any(|line| line.starts_with(" * Right: "));
    let files = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let models = files.filter(|path| path.extension().is_some_and(|extension| extension == "pml") && asks(path));
    let mut models: Vec<_> = models.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    models.sort();
    let mut named = MODELS.to_vec();
    named.sort_unstable();
    assert_eq!(models, named);
}

/// A counter that two threads add to, in one step or in two.
const COUNTER: &str = "
byte counter, ended;
active [2] proctype adds() {
	byte value;
#ifdef TORN
	value = counter;
	counter = value + 1;
#else
	counter++;
#endif
	ended++
}
init { ended == 2; assert(counter == 2) }
ltl all_end { <> (ended == 2) }
";

#[test]
fn what_is_not_as_the_head_says_is_noticed() {
    let scratch = tempfile::tempdir().unwrap();
    let passes = |asked: &str| {
        let model = scratch.path().join("counter.pml");
        fs::write(&model, format!("/*\n * {asked}\n */\n{COUNTER}")).unwrap();
        check(&[&model]).status.success()
    };
    assert!(passes("Right: safety ONCE"));
    assert!(passes("Right: progress ONCE"));
    assert!(passes("Wrong: safety TORN: assertion violated (counter==2)"));
    assert!(!passes("Right: safety TORN"));
    assert!(!passes("Wrong: safety ONCE: assertion violated (counter==2)"));
    assert!(!passes("Wrong: safety TORN: invalid end state"));
    assert!(!passes("Right: liveness ONCE"));
    assert!(!passes("Right: safety counter=syntax(error"));
    assert!(!passes("asks nothing"));
}
