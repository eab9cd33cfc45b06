//! What the command says about itself.

mod support;

use support::{concord, streams};

const COMMANDS: [&[&str]; 9] =
    [&[], &["boot"], &["resume"], &["compare"], &["locks"], &["stm"], &["build"], &["doctor"], &["completions"]];

fn help(command: &[&str], columns: &str) -> String {
    let output = concord(".".as_ref()).args(command).arg("--help").env("COLUMNS", columns).output().unwrap();
    let (text, errors) = streams(&output);
    assert_eq!((output.status.code(), errors.as_str()), (Some(0), ""), "{command:?}");
    text
}

#[test]
fn help_is_as_documented() {
    let text: Vec<String> = COMMANDS.iter().map(|command| help(command, "100")).collect();
    insta::assert_snapshot!(text.join("\n========\n"));
}

#[test]
fn help_fits_the_terminal() {
    for columns in [60, 80, 100] {
        for command in COMMANDS {
            for line in help(command, &columns.to_string()).lines() {
                assert!(line.chars().count() <= columns, "{command:?} at {columns}: {line}");
            }
        }
    }
}

#[test]
fn every_shell_gets_completions_that_know_the_options() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = concord(".".as_ref()).args(["completions", shell]).output().unwrap();
        let script = streams(&output).0;
        assert_eq!(output.status.code(), Some(0), "{shell}");
        assert!(
            ["max-instructions", "snapshot-at", "contention-manager"].iter().all(|option| script.contains(option)),
            "{shell}"
        );
    }
}

#[test]
fn the_version_is_the_packages() {
    let output = concord(".".as_ref()).arg("--version").output().unwrap();
    assert_eq!(streams(&output).0, format!("concord {}\n", env!("CARGO_PKG_VERSION")));
}
