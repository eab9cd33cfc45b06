//! ARCHITECTURE.md says in a table which rooms a room may use. Manifests, sources and makefiles must use no others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Rooms, by the folders that they are in.
type Rooms = BTreeSet<String>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What stands between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The table of ARCHITECTURE.md: what each room may use. A name such as `sim` stands for everything below it.
fn table(text: &str) -> BTreeMap<String, Rooms> {
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    let mut table = BTreeMap::new();
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, rooms, _, may_use, _] = cells[..] else { panic!("not three cells: {row}") };
        for room in quoted(rooms) {
            table.insert(room.to_owned(), quoted(may_use).map(str::to_owned).collect());
        }
    }
    table
}

fn may_use(allowed: &Rooms, used: &str) -> bool {
    allowed.iter().any(|room| Path::new(used).starts_with(room) || Path::new(room).starts_with(used))
}

/// The folders of the workspace's crates, by the crates' names.
fn crates() -> BTreeMap<String, String> {
    let workspace: toml::Table = read(&root().join("Cargo.toml")).parse().unwrap();
    let members = workspace["workspace"]["members"].as_array().unwrap();
    let name = |folder: &str| {
        let manifest: toml::Table = read(&root().join(folder).join("Cargo.toml")).parse().unwrap();
        manifest["package"]["name"].as_str().unwrap().to_owned()
    };
    members.iter().map(|member| member.as_str().unwrap()).map(|folder| (name(folder), folder.to_owned())).collect()
}

/// The rooms whose crates a manifest names, for the program, its tests or its build script.
fn dependencies(manifest: &str, crates: &BTreeMap<String, String>) -> Rooms {
    let manifest: toml::Table = manifest.parse().unwrap();
    let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
    let names = kinds.iter().filter_map(|kind| manifest.get(*kind)?.as_table()).flat_map(toml::Table::keys);
    names.filter_map(|name| crates.get(name).cloned()).collect()
}

/// The rooms that paths in a text lead to: `../../tm/Makefile` leads to `tm`.
fn reached(text: &str, rooms: &[&str]) -> Rooms {
    let steps = text.match_indices("../").map(|(at, step)| &text[at + step.len()..]);
    let room =
        |rest: &str| rooms.iter().find(|room| rest.strip_prefix(**room).is_some_and(|rest| rest.starts_with('/')));
    steps.filter_map(|rest| room(rest).map(|room| (*room).to_owned())).collect()
}

/// Every text that people write for a compiler, a linker or make below a folder. Tests may read what they hold to be true of other rooms.
fn sources(folder: &Path) -> Vec<PathBuf> {
    const LEFT_OUT: [&str; 4] = ["build", "check", "target", "tests"];
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            if !LEFT_OUT.contains(&name) {
                found.extend(sources(&path));
            }
        } else if ["c", "h", "S", "ld", "mk", "rs"].iter().any(|end| name.ends_with(&format!(".{end}")))
            || ["Makefile", "Kbuild"].contains(&name)
        {
            found.push(path);
        }
    }
    found
}

#[test]
fn crates_depend_on_the_rooms_that_their_rows_name() {
    let table = table(&read(&root().join("ARCHITECTURE.md")));
    let crates = crates();
    for room in crates.values() {
        let allowed = table.get(room).unwrap_or_else(|| panic!("ARCHITECTURE.md has no row for {room}"));
        for used in dependencies(&read(&root().join(room).join("Cargo.toml")), &crates) {
            let is_allowed = used == *room || may_use(allowed, &used);
            assert!(is_allowed, "{room} depends on {used}, which its row in ARCHITECTURE.md does not name");
        }
    }
}

#[test]
fn sources_lead_to_the_rooms_that_their_rows_name() {
    const TOP: [&str; 7] = ["cli", "experiments", "lab", "linux", "sim", "tm", "workloads"];
    let table = table(&read(&root().join("ARCHITECTURE.md")));
    for (room, allowed) in &table {
        for path in sources(&root().join(room)) {
            let text = read(&path);
            // Unit tests stand at the end of a file.
            let text = text.split("#[cfg(test)]").next().unwrap_or_default();
            for used in reached(text, &TOP) {
                let is_allowed = Path::new(room).starts_with(&used) || may_use(allowed, &used);
                assert!(is_allowed, "{} leads to {used}, which the row of {room} does not name", path.display());
            }
        }
    }
}

#[test]
fn every_row_is_that_of_a_room() {
    for (room, allowed) in table(&read(&root().join("ARCHITECTURE.md"))) {
        for name in allowed.iter().chain([&room]) {
            assert!(root().join(name).exists(), "ARCHITECTURE.md: there is no {name}");
        }
    }
}

#[test]
fn what_a_row_does_not_name_is_noticed() {
    let table = table(
        "| room | - | may know |\n| --- | --- | --- |\n| `a`, `b` | text | `sim/abi` |\n| `c` | text | all of `sim` |\n",
    );
    assert_eq!(table.keys().collect::<Vec<_>>(), ["a", "b", "c"]);
    assert!(may_use(&table["b"], "sim/abi") && !may_use(&table["b"], "sim/mem"));
    assert!(may_use(&table["c"], "sim/mem") && !may_use(&table["c"], "lab"));

    let crates =
        BTreeMap::from([("x-abi".to_owned(), "sim/abi".to_owned()), ("x-mem".to_owned(), "sim/mem".to_owned())]);
    let manifest =
        "[dependencies]\nserde = \"1\"\nx-abi = { path = \"..\" }\n[dev-dependencies]\nx-mem.workspace = true\n";
    assert_eq!(dependencies(manifest, &crates), Rooms::from(["sim/abi".to_owned(), "sim/mem".to_owned()]));

    let text = "include ../../tm/rules.mk\nINCLUDES = -I../workloads/include -I../tm-other/ -I../build/tm\n";
    assert_eq!(reached(text, &["tm", "workloads"]), Rooms::from(["tm".to_owned(), "workloads".to_owned()]));
}
