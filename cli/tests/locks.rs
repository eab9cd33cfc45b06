//! What a guest's hints say about its critical sections reaches the result document and the timeline.

mod support;

use serde_json::Value;
use support::{concord, guest, streams};

#[test]
fn critical_sections_are_counted_by_call_site_and_by_lock() {
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
    let result = read("result.json");
    let sections = &result["sections"];
    assert_eq!(sections.as_array().unwrap().len(), 1, "one call site: {sections}");
    let section = &sections[0];
    assert!(section["site"].as_str().unwrap().starts_with("run+"), "{section}");
    assert_eq!((&section["kind"], &section["lock"]), (&"spin".into(), &"shared".into()));
    assert_eq!(section["locked"], 4000, "every increment took the lock once: {section}");
    let contended = section["contended"].as_u64().unwrap();
    assert!(contended > 0 && contended < 4000, "{section}");
    let attempts = section["test_and_set_loops"].as_u64().unwrap();
    assert!(attempts >= contended, "a hart that spins tries again: {section}");
    assert!(section["spin_cycles"].as_u64().unwrap() > attempts, "an attempt takes more than a cycle: {section}");
    assert!(section["hold_cycles"].as_u64().unwrap() > 4000, "a section takes more than a cycle: {section}");
    let lock = &result["section_locks"][0];
    assert_eq!((&lock["lock"], &lock["locked"]), (&"shared".into(), &4000.into()), "{lock}");

    let timeline = read("timeline.json");
    let events = timeline["traceEvents"].as_array().or(timeline.as_array()).unwrap();
    let spins = events.iter().filter(|event| event["name"].as_str().is_some_and(|name| name.starts_with("spin ")));
    let spins: Vec<_> = spins.collect();
    assert_eq!(spins.len() as u64, contended, "every spin is a slice of the timeline");
    assert!(spins.iter().all(|spin| spin["args"]["call site"] == section["site"]), "each names its call site");
}
