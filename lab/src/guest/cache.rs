//! The cache of built guests: `<cache>/concord/guests/<name>-<first 16 digits of the digest>/`, each folder with `guest.json`.
//!
//! A guest is built in a folder of its own beside its final place and renamed into it when everything is there, so that a folder
//! under its final name is always complete. The next build removes what an interrupted one has left. Builds of guests of one name wait for
//! each other.

use super::error::Error;
use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, retry_on_intr};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub(super) const MANIFEST: &str = "guest.json";
const STAGING_PREFIX: &str = ".building-";

/// What `guest.json` says of one file of a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// Path relative to the guest's folder.
    pub file: String,
    /// Size in bytes.
    pub size_bytes: u64,
    /// BLAKE3 digest of the content, hexadecimal.
    pub blake3: String,
}

/// What `guest.json` says of a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The guest's name.
    pub name: String,
    /// Digest of all inputs, hexadecimal.
    pub digest: String,
    /// Every input: its label, and its version or digest.
    pub inputs: Vec<String>,
    /// The files by their role, such as `Image`.
    pub artifacts: BTreeMap<String, Artifact>,
}

/// A built guest in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    /// Its folder.
    pub directory: PathBuf,
    /// Its description.
    pub manifest: Manifest,
}

impl Guest {
    /// The path of an artifact (such as `Image`); `None` when this guest has no such file.
    pub fn artifact(&self, role: &str) -> Option<PathBuf> {
        self.manifest.artifacts.get(role).map(|artifact| self.directory.join(&artifact.file))
    }
}

/// The folder that holds everything the builder keeps.
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// The user's cache: `$XDG_CACHE_HOME/concord` or `~/.cache/concord` (XDG Base Directory Specification: a relative path in
    /// the variable is to be ignored). Nothing is created yet.
    pub fn of_user() -> Result<Cache, Error> {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        absolute("XDG_CACHE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
            .map(|base| Cache { root: base.join("concord") })
            .ok_or(Error::NoCacheFolder)
    }

    /// A cache in another folder, for tests.
    pub fn at(root: impl Into<PathBuf>) -> Cache {
        Cache { root: root.into() }
    }

    /// A folder of the cache, created when it is not there.
    pub fn folder(&self, name: &str) -> Result<PathBuf, Error> {
        let path = self.root.join(name);
        fs::create_dir_all(&path).map_err(Error::file("create", &path))?;
        Ok(path)
    }

    fn place(&self, name: &str, digest: &str) -> PathBuf {
        self.root.join("guests").join(format!("{name}-{}", &digest[..16]))
    }

    /// Waits until nobody else builds a guest called `name`, and keeps others from it until the value is dropped or the process ends.
    /// `waits` is called when there is somebody to wait for.
    pub fn lock(&self, name: &str, waits: impl FnOnce()) -> Result<BuildLock, Error> {
        let path = self.folder("locks")?.join(name);
        let file = fs::File::options().create(true).append(true).open(&path).map_err(Error::file("open", &path))?;
        let locked = match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => {
                waits();
                retry_on_intr(|| flock(&file, FlockOperation::LockExclusive))
            }
            result => result,
        };
        locked.map_err(|error| Error::file("lock", &path)(error.into()))?;
        Ok(BuildLock { _file: file })
    }

    /// Removes the folder of the guest with this digest.
    pub fn remove(&self, name: &str, digest: &str) -> Result<(), Error> {
        let directory = self.place(name, digest);
        fs::remove_dir_all(&directory).map_err(Error::file("remove", &directory))
    }

    /// The guest with this digest, if it has been built.
    ///
    /// # Errors
    /// [`Error::Damaged`] when its folder lacks files, or has files of other sizes than its manifest says.
    pub fn find(&self, name: &str, digest: &str) -> Result<Option<Guest>, Error> {
        let directory = self.place(name, digest);
        if !directory.exists() {
            return Ok(None);
        }
        let damaged = |reason: String| Error::Damaged { name: name.to_owned(), path: directory.clone(), reason };
        let text = fs::read(directory.join(MANIFEST)).map_err(|error| damaged(format!("{MANIFEST}: {error}")))?;
        let manifest: Manifest =
            serde_json::from_slice(&text).map_err(|error| damaged(format!("{MANIFEST}: {error}")))?;
        if manifest.digest != digest || manifest.name != name {
            return Err(damaged(format!("{MANIFEST} describes another guest")));
        }
        for artifact in manifest.artifacts.values() {
            match fs::metadata(directory.join(&artifact.file)) {
                Ok(metadata) if metadata.len() == artifact.size_bytes => {}
                Ok(metadata) => {
                    let sizes = format!("{} has {} bytes, not {}", artifact.file, metadata.len(), artifact.size_bytes);
                    return Err(damaged(sizes));
                }
                Err(error) => return Err(damaged(format!("{}: {error}", artifact.file))),
            }
        }
        Ok(Some(Guest { directory, manifest }))
    }

    /// A fresh folder to build in. It goes away when it is dropped without [`Staging::complete`].
    pub fn stage(&self, name: &'static str) -> Result<Staging, Error> {
        let guests = self.folder("guests")?;
        sweep(&guests)?;
        let path = guests.join(format!("{STAGING_PREFIX}{name}-{}", std::process::id()));
        if path.exists() {
            fs::remove_dir_all(&path).map_err(Error::file("remove", &path))?;
        }
        for folder in [path.join("work"), path.join("out")] {
            fs::create_dir_all(&folder).map_err(Error::file("create", &folder))?;
        }
        Ok(Staging { path })
    }
}

/// Keeps other builds of a guest waiting.
#[derive(Debug)]
pub struct BuildLock {
    /// The system lets go of the lock when it closes the file.
    _file: fs::File,
}

/// A guest being built: `work` for what is thrown away, `out` for what becomes the guest's folder.
pub struct Staging {
    path: PathBuf,
}

impl Staging {
    /// The folder for intermediate files.
    pub fn work(&self) -> PathBuf {
        self.path.join("work")
    }

    /// The folder that becomes the guest's.
    pub fn out(&self) -> PathBuf {
        self.path.join("out")
    }

    /// Writes the manifest and moves the guest to its place. `artifacts` are roles and paths relative to [`Staging::out`].
    pub fn complete(
        self,
        cache: &Cache,
        name: &'static str,
        inputs: &super::digest::Inputs,
        artifacts: &[(&str, String)],
    ) -> Result<Guest, Error> {
        let mut described = BTreeMap::new();
        for (role, file) in artifacts {
            let path = self.out().join(file);
            described.insert((*role).to_owned(), describe(file, &path)?);
        }
        let manifest = Manifest {
            name: name.to_owned(),
            digest: inputs.digest(),
            inputs: inputs.describe(),
            artifacts: described,
        };
        let path = self.out().join(MANIFEST);
        let mut text = serde_json::to_vec_pretty(&manifest).map_err(|error| Error::File {
            action: "write",
            path: path.clone(),
            source: error.into(),
        })?;
        text.push(b'\n');
        fs::write(&path, text).map_err(Error::file("write", &path))?;
        let directory = cache.place(name, &manifest.digest);
        match fs::rename(self.out(), &directory) {
            Ok(()) => Ok(Guest { directory, manifest }),
            // Another process built the same guest in the meantime: it made it of the same inputs, so take that one.
            Err(_) if directory.exists() => cache.find(name, &manifest.digest)?.ok_or(Error::NotBuilt { name }),
            Err(error) => Err(Error::file("rename into place", &directory)(error)),
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // Best effort: what stays is swept by the next build.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn describe(file: &str, path: &Path) -> Result<Artifact, Error> {
    let mut hasher = blake3::Hasher::new();
    let mut content = fs::File::open(path).map_err(Error::file("open", path))?;
    let size_bytes = std::io::copy(&mut content, &mut hasher).map_err(Error::file("read", path))?;
    Ok(Artifact { file: file.to_owned(), size_bytes, blake3: hasher.finalize().to_hex().to_string() })
}

/// Removes the staging folders of processes that no longer exist.
fn sweep(guests: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(guests).map_err(Error::file("read", guests))? {
        let entry = entry.map_err(Error::file("read", guests))?;
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(STAGING_PREFIX)) else { continue };
        let Some((_, process)) = rest.rsplit_once('-') else { continue };
        if !Path::new("/proc").join(process).exists() {
            let path = entry.path();
            fs::remove_dir_all(&path).map_err(Error::file("remove", &path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::digest::Inputs;
    use super::*;

    fn inputs() -> Inputs {
        let mut inputs = Inputs::default();
        inputs.add("version", "1");
        inputs
    }

    #[test]
    fn a_guest_appears_only_when_complete() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let digest = inputs().digest();

        let staging = cache.stage("kernel").unwrap();
        fs::write(staging.out().join("Image"), b"abc").unwrap();
        assert_eq!(cache.find("kernel", &digest).unwrap(), None);
        drop(staging);
        assert_eq!(fs::read_dir(folder.path().join("guests")).unwrap().count(), 0, "an abandoned build leaves nothing");

        let staging = cache.stage("kernel").unwrap();
        fs::write(staging.out().join("Image"), b"abc").unwrap();
        let built = staging.complete(&cache, "kernel", &inputs(), &[("Image", String::from("Image"))]).unwrap();
        assert_eq!(cache.find("kernel", &digest).unwrap(), Some(built.clone()));
        assert_eq!(fs::read(built.artifact("Image").unwrap()).unwrap(), b"abc");
        assert_eq!(built.artifact("initrd"), None);
        assert_eq!(fs::read_dir(folder.path().join("guests")).unwrap().count(), 1);
    }

    #[test]
    fn a_second_builder_of_the_same_guest_takes_the_first_ones() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let complete = |content: &[u8]| {
            let staging = cache.stage("kernel").unwrap();
            fs::write(staging.out().join("Image"), content).unwrap();
            staging.complete(&cache, "kernel", &inputs(), &[("Image", String::from("Image"))]).unwrap()
        };
        let first = complete(b"first");
        assert_eq!(complete(b"second"), first);
        assert_eq!(fs::read(first.artifact("Image").unwrap()).unwrap(), b"first");
    }

    #[test]
    fn a_damaged_guest_is_an_error_that_names_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let staging = cache.stage("kernel").unwrap();
        fs::write(staging.out().join("Image"), b"abc").unwrap();
        let guest = staging.complete(&cache, "kernel", &inputs(), &[("Image", String::from("Image"))]).unwrap();
        fs::write(guest.artifact("Image").unwrap(), b"ab").unwrap();
        let error = cache.find("kernel", &inputs().digest()).unwrap_err().to_string();
        assert!(error.contains(guest.directory.to_str().unwrap()) && error.contains("2 bytes, not 3"), "{error}");
        fs::write(guest.directory.join("guest.json"), b"{").unwrap();
        assert!(matches!(cache.find("kernel", &inputs().digest()), Err(Error::Damaged { .. })));
        fs::remove_file(guest.directory.join("guest.json")).unwrap();
        assert!(matches!(cache.find("kernel", &inputs().digest()), Err(Error::Damaged { .. })));
        cache.remove("kernel", &inputs().digest()).unwrap();
        assert_eq!(cache.find("kernel", &inputs().digest()).unwrap(), None);
    }

    #[test]
    fn one_build_of_a_guest_waits_for_another() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let first = cache.lock("kernel", || panic!("nobody else builds")).unwrap();
        cache.lock("rootfs", || panic!("nobody builds this guest")).unwrap();
        let (waits, is_waiting) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| cache.lock("kernel", || waits.send(()).unwrap()).map(drop));
            is_waiting.recv().unwrap();
            drop(first);
            second.join().unwrap().unwrap();
        });
        cache.lock("kernel", || panic!("both have ended")).unwrap();
    }

    #[test]
    fn folders_of_dead_builders_are_swept() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let guests = cache.folder("guests").unwrap();
        // Process numbers end below 2^22 on Linux, so this one never lives.
        fs::create_dir(guests.join(".building-rootfs-99999999")).unwrap();
        let mine = guests.join(format!(".building-rootfs-{}", std::process::id()));
        fs::create_dir(&mine).unwrap();
        let _staging = cache.stage("kernel").unwrap();
        assert!(mine.exists());
        assert!(!guests.join(".building-rootfs-99999999").exists());
    }
}
