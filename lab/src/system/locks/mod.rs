//! The locks of `tm`, measured and validated by its check programs. Locks and tests are data: `locks.toml`.

use super::check_programs::CheckPrograms;
use super::{System, data};
use std::sync::LazyLock;

static PROGRAMS: LazyLock<CheckPrograms> = LazyLock::new(|| data("locks", include_str!("locks.toml")));

/// The system.
pub fn system() -> &'static dyn System {
    programs()
}

/// The same with what only check programs have.
pub fn programs() -> &'static CheckPrograms {
    &PROGRAMS
}

/// The test that is the loop of a million pairs in "Unfair Queued Spinlocks and Transactional Locks".
pub const LOOP: &str = "loop";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::request::SystemOptions;
    use std::path::Path;

    /// The name of an adapter's lock: its file's, unless that is no word of C.
    fn lock_of(adapter: &Path) -> String {
        let text = std::fs::read_to_string(adapter).unwrap();
        let word = text.lines().find_map(|line| line.strip_prefix("#define LOCK_WORD "));
        word.unwrap_or_else(|| adapter.file_stem().unwrap().to_str().unwrap()).to_owned()
    }

    /// A lock joins the check programs with an adapter, and the command with its name in the data.
    #[test]
    fn every_adapter_is_a_lock_here() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tm/check/locks/adapters");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut adapters: Vec<String> = files
            .filter(|path| path.extension().is_some_and(|extension| extension == "h"))
            .map(|path| lock_of(&path))
            .collect();
        adapters.sort();
        let variants = system().variants(&SystemOptions::new());
        let mut locks: Vec<String> = variants.into_iter().map(|variant| variant.name).collect();
        locks.sort();
        assert_eq!(adapters, locks);
    }

    #[test]
    fn the_loop_is_a_test() {
        assert!(system().cases(&SystemOptions::new()).contains(&LOOP.to_owned()));
    }
}
