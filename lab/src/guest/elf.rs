//! Which shared libraries the programs of a root file system need, so that all others can stay out of it.

use object::elf;
use object::read::elf::{Dyn, FileHeader, SectionHeader};
use std::collections::{BTreeMap, BTreeSet};

/// The names in the `DT_NEEDED` entries of an ELF file (System V ABI, "Dynamic Section"); `None` for what is no 64-bit ELF file.
pub fn needed_libraries(bytes: &[u8]) -> Option<Vec<String>> {
    let header = elf::FileHeader64::<object::Endianness>::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, bytes).ok()?;
    let Some((entries, strings_index)) = sections.dynamic(endian, bytes).ok()? else { return Some(Vec::new()) };
    let strings_section = sections.section(strings_index).ok()?;
    let strings = strings_section.strings(endian, bytes).ok()??;
    let mut needed = Vec::new();
    for entry in entries {
        if entry.tag(endian) == elf::DT_NEEDED {
            let name = entry.string(endian, strings).ok()?;
            needed.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    Some(needed)
}

/// The libraries that `roots` need, directly or through others. `needs` maps every library's name to what it needs in turn.
/// `Err` names a library that is needed and not there.
pub fn reachable(roots: &BTreeSet<String>, needs: &BTreeMap<String, Vec<String>>) -> Result<BTreeSet<String>, String> {
    let mut found = BTreeSet::new();
    let mut waiting: Vec<&String> = roots.iter().collect();
    while let Some(name) = waiting.pop() {
        if found.contains(name) {
            continue;
        }
        let further = needs.get(name).ok_or_else(|| name.clone())?;
        found.insert(name.clone());
        waiting.extend(further);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_followed_through_others_and_rings() {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let needs: BTreeMap<String, Vec<String>> = [
            ("libc", own(&["ld"])),
            ("ld", own(&[])),
            ("liba", own(&["libb", "libc"])),
            ("libb", own(&["liba"])),
            ("libunused", own(&["libgone"])),
        ]
        .map(|(name, needed)| (name.to_owned(), needed))
        .into();
        let roots = BTreeSet::from([String::from("liba")]);
        let expected: BTreeSet<String> = own(&["ld", "liba", "libb", "libc"]).into_iter().collect();
        assert_eq!(reachable(&roots, &needs), Ok(expected));
        assert_eq!(reachable(&BTreeSet::from([String::from("libunused")]), &needs), Err(String::from("libgone")));
    }

    #[test]
    fn this_test_program_needs_the_c_library() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let needed = needed_libraries(&own).unwrap();
        assert!(needed.iter().any(|name| name.starts_with("libc.")), "{needed:?}");
        assert_eq!(needed_libraries(b"#!/bin/sh\n"), None);
        assert_eq!(needed_libraries(&own[..100]), None);
    }
}
