//! The files that a run writes: found writable before it begins, and never one that it reads.

use anyhow::anyhow;
use concord_machine::Configuration;
use concord_machine::output::AtomicFile;
use std::path::{Path, PathBuf};

/// The files that a run reads, each with its role in messages.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    files: Vec<(&'static str, PathBuf)>,
}

impl Inputs {
    /// Adds a file.
    pub fn add(&mut self, what: &'static str, path: &Path) {
        self.files.push((what, path.to_owned()));
    }

    /// Adds the files that a configuration names.
    pub fn add_configuration(&mut self, configuration: &Configuration) {
        self.add("kernel", &configuration.kernel);
        if let Some(initrd) = &configuration.initrd {
            self.add("initial RAM disk", initrd);
        }
        for disk in &configuration.disks {
            self.add("disk image", &disk.path);
        }
    }

    /// Refuses outputs that would replace one of these files, or one another. `outputs` are the options and their paths.
    ///
    /// # Errors
    /// The error names the option, the path, and the role of the file that it collides with.
    pub fn check_outputs(&self, outputs: &[(&'static str, &Path)]) -> anyhow::Result<()> {
        for (index, (option, path)) in outputs.iter().enumerate() {
            let Some(place) = place(path) else { continue };
            let same = |(_, other): &&(&'static str, PathBuf)| self::place(other).as_ref() == Some(&place);
            if let Some((what, _)) = self.files.iter().find(same) {
                return Err(anyhow!("{option} {}: is the {what} of this run", path.display()));
            }
            let same = |(_, other): &&(&'static str, &Path)| self::place(other).as_ref() == Some(&place);
            if let Some((other, _)) = outputs[..index].iter().find(same) {
                return Err(anyhow!("{option} {}: is the file of {other} too", path.display()));
            }
        }
        Ok(())
    }
}

/// Where a file is or would be, with links followed. None for a file that is not regular and cannot be replaced, and for one that
/// cannot be created, which the attempt will report.
fn place(path: &Path) -> Option<PathBuf> {
    match std::fs::canonicalize(path) {
        Ok(place) => place.is_file().then_some(place),
        Err(_) => {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            Some(std::fs::canonicalize(parent).ok()?.join(path.file_name()?))
        }
    }
}

/// Checks before a long run that a file can be created. An existing file stays unchanged.
///
/// # Errors
/// As [`AtomicFile::create`].
pub fn probe(path: &Path) -> anyhow::Result<()> {
    AtomicFile::create(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_that_is_an_input_is_refused_under_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let disk = folder.path().join("disk");
        std::fs::write(&disk, "x").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&disk, &link).unwrap();
        let mut inputs = Inputs::default();
        inputs.add("disk image", &disk);
        for path in [&disk, &link, &folder.path().join("./disk")] {
            let error = inputs.check_outputs(&[("--result", path)]).unwrap_err().to_string();
            assert!(error.ends_with("is the disk image of this run"), "{error}");
        }
        inputs.check_outputs(&[("--result", &folder.path().join("other"))]).unwrap();
    }

    #[test]
    fn two_outputs_need_two_files_but_may_share_a_device() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new");
        let inputs = Inputs::default();
        let error = inputs.check_outputs(&[("--result", &path), ("--timeline", &path)]).unwrap_err().to_string();
        assert!(error.starts_with("--timeline") && error.ends_with("is the file of --result too"), "{error}");
        let null = Path::new("/dev/null");
        inputs.check_outputs(&[("--result", null), ("--timeline", null)]).unwrap();
    }
}
