//! What a guest's hints say of its locks reaches the result document and the timeline.

mod support;

use serde_json::Value;
use support::{concord, guest, streams};

#[test]
fn locks_are_counted_by_address_and_call_site() {
    let folder = tempfile::tempdir().unwrap();
    let output = concord(folder.path())
        .args(["boot", "--harts", "4", "--gear", "timed", "--append", "iterations=4000", "--quiet"])
        .args(["--result", "result.json", "--timeline", "timeline.json", "--kernel"])
        .arg(guest("lock-hints"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", streams(&output).1);
    let read =
        |name: &str| -> Value { serde_json::from_slice(&std::fs::read(folder.path().join(name)).unwrap()).unwrap() };
    let locks = read("result.json")["locks"].clone();
    let lock = &locks[0];
    assert_eq!(lock["acquisitions"], 4000, "every increment took the lock once: {locks}");
    assert!(lock["call_site"].as_str().unwrap().starts_with("run+"), "{locks}");
    let contended = lock["contended"].as_u64().unwrap();
    assert!(contended > 0 && contended < 4000, "{locks}");
    assert!(lock["spin_cycles"].as_u64().unwrap() > contended, "a spin takes more than a cycle: {locks}");
    assert!(lock["hold_cycles"].as_u64().unwrap() > 4000, "a section takes more than a cycle: {locks}");

    let timeline = read("timeline.json");
    let events = timeline["traceEvents"].as_array().or(timeline.as_array()).unwrap();
    let spins = events.iter().filter(|event| event["name"].as_str().is_some_and(|name| name.starts_with("spin ")));
    assert_eq!(spins.count() as u64, contended, "every spin is a slice of the timeline");
}
