//! The files that guests are made of and that the program carries: the build script finds them by walking folders.

/// A file: its path in the repository, and its content.
pub type Text = (&'static str, &'static str);

/// `linux`, but its model.
pub const LINUX: &[Text] = include!(concat!(env!("OUT_DIR"), "/linux_sources.rs"));

/// `workloads/linux`.
pub const ROOTFS: &[Text] = include!(concat!(env!("OUT_DIR"), "/rootfs_sources.rs"));

/// `tm` with all that its programs and modules are compiled from.
pub const TM: &[Text] = include!(concat!(env!("OUT_DIR"), "/tm_sources.rs"));

/// The files below a folder, in the order of their names, with their paths below it.
pub fn below(texts: &'static [Text], folder: &str) -> impl Iterator<Item = Text> {
    texts.iter().filter_map(move |(path, content)| Some((path.strip_prefix(folder)?.strip_prefix('/')?, *content)))
}

/// The headers for programs that speak to the machine: name, content.
pub fn machine_headers() -> [(&'static str, String); 2] {
    [("concord.h", concord_abi::header::text()), ("xmetatm.h", concord_abi::header::xmetatm_c::text())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Every list against the folder itself, counted in another way than the build script's.
    #[test]
    fn every_file_of_the_folders_is_there() {
        fn count(folder: &Path) -> usize {
            let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
            entries.map(|path| if path.is_dir() { count(&path) } else { 1 }).sum()
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let folders = [
            (LINUX, "linux/config"),
            (LINUX, "linux/overlay"),
            (LINUX, "linux/patches"),
            (LINUX, "linux/modules"),
            (ROOTFS, "workloads/linux"),
            (TM, "tm/include"),
            (TM, "tm/lock"),
            (TM, "tm/stm"),
        ];
        for (texts, folder) in folders {
            assert_eq!(below(texts, folder).count(), count(&root.join(folder)), "{folder}");
            assert!(below(texts, folder).all(|(path, content)| !path.starts_with('/') && !content.is_empty()));
        }
    }

    #[test]
    fn output_is_not_among_the_sources() {
        assert!(!TM.iter().any(|(path, _)| path.contains("/build/")));
        assert_eq!(below(LINUX, "linux/model").count(), 0);
    }

    #[test]
    fn a_folder_has_only_what_is_below_it() {
        const TEXTS: &[Text] = &[("a/b", "1"), ("a/c/d", "2"), ("ab/c", "3")];
        assert_eq!(below(TEXTS, "a").collect::<Vec<_>>(), [("b", "1"), ("c/d", "2")]);
    }
}
