//! Hardware transactions, as the command shows them.

mod support;

use serde_json::Value;
use std::path::Path;
use support::{concord, guest, streams};

/// Boots a guest on four harts with more arguments, successfully, and returns the result document.
fn document(folder: &Path, name: &str, arguments: &[&str]) -> Value {
    let mut command = concord(folder);
    command.arg("boot").arg("--kernel").arg(guest(name)).args(["--harts", "4", "--json", "--quiet"]).args(arguments);
    let output = command.output().unwrap();
    let (text, words) = streams(&output);
    assert_eq!(output.status.code(), Some(0), "{name} {arguments:?}: {words}");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn options_choose_the_policies_instead_of_the_board() {
    let folder = tempfile::tempdir().unwrap();
    let chosen = |arguments: &[&str]| {
        let transactions = document(folder.path(), "hello", arguments)["configuration"]["board"]["transactions"].take();
        ["manager", "granularity", "mode"].map(|key| transactions[key].as_str().unwrap().to_owned())
    };
    assert_eq!(chosen(&[]), ["size-matters", "word", "virtualized"]);
    for manager in ["timestamp", "size-matters", "os-prio", "polka", "requester-wins"] {
        assert_eq!(chosen(&["--contention-manager", manager]), [manager, "word", "virtualized"]);
    }
    assert_eq!(chosen(&["--granularity", "line"]), ["size-matters", "line", "virtualized"]);
    assert_eq!(chosen(&["--transactions", "best-effort"]), ["size-matters", "word", "best-effort"]);

    let board = include_str!("../../experiments/boards/metatm-2007.toml");
    let other = [("\"size-matters\"", "\"polka\""), ("\"word\"", "\"line\""), ("\"virtualized\"", "\"best-effort\"")];
    let text = other.iter().fold(board.to_owned(), |text, (from, to)| text.replace(from, to));
    std::fs::write(folder.path().join("board.toml"), text).unwrap();
    assert_eq!(chosen(&["--board", "board.toml"]), ["polka", "line", "best-effort"]);
    let back = ["--contention-manager", "timestamp", "--granularity", "word", "--transactions", "virtualized"];
    assert_eq!(chosen(&[&["--board", "board.toml"], &back[..]].concat()), ["timestamp", "word", "virtualized"]);
}
