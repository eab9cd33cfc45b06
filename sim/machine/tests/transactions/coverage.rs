//! Every sentence of the specification that says "must" is held by a guest that names it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The number that stands at the begin of `text`, as of `15]: ...`.
fn number(text: &str) -> Option<u32> {
    text.split_once(']').and_then(|(number, _)| number.parse().ok())
}

/// The numbered sentences: what follows each number, up to the next list item or paragraph.
fn sentences(specification: &str) -> BTreeMap<u32, String> {
    let mut sentences = BTreeMap::new();
    for item in specification.split("\n- [X-").skip(1) {
        let end = ["\n\n", "\n- "].iter().filter_map(|end| item.find(end)).min().unwrap_or(item.len());
        let number = number(item).expect("a number");
        assert!(sentences.insert(number, item[..end].to_owned()).is_none(), "[X-{number}] stands there twice");
    }
    sentences
}

/// The numbers that doc comments of these files name.
fn named(folder: &Path) -> BTreeSet<u32> {
    let mut named = BTreeSet::new();
    for file in std::fs::read_dir(folder).expect("the folder of the guests") {
        let text = std::fs::read_to_string(file.expect("a file").path()).expect("a source file");
        for line in text.lines().filter(|line| line.trim_start().starts_with("///")) {
            named.extend(line.split("[X-").skip(1).filter_map(number));
        }
    }
    named
}

#[test]
fn every_must_has_its_guest() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let specification = std::fs::read_to_string(root.join("../../docs/xmetatm.md")).expect("the specification");
    let sentences = sentences(&specification);
    let must: BTreeSet<u32> =
        sentences.iter().filter(|(_, text)| text.contains("must")).map(|(number, _)| *number).collect();
    let named = named(&root.join("tests/transactions"));
    assert!(must.len() > 100, "{must:?}");
    assert_eq!(&must - &named, BTreeSet::new(), "sentences without a guest");
    let there: BTreeSet<u32> = sentences.keys().copied().collect();
    assert_eq!(&named - &there, BTreeSet::new(), "guests of sentences that are not there");
}
