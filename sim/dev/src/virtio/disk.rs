//! A disk image on the host, and the guest's writes on top of it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::configuration::{DiskConfiguration, DiskMode};
use crate::error::DeviceError;

pub const SECTOR_BYTES: u64 = 512;

/// Unit of the overlay.
pub const CLUSTER_BYTES: u64 = 4096;

/// One disk in the answer of [`crate::Bus::disk_digests`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskDigest {
    pub path: std::path::PathBuf,
    /// Size of the image file.
    pub size_bytes: u64,
    /// BLAKE3 of the image file as it is on the host, in hexadecimal; an overlay's clusters are not in it.
    pub image: String,
}

/// A cluster of the overlay. Saved states share it with the running disk until one of them writes.
#[derive(Clone, PartialEq, Eq)]
pub struct Cluster(Arc<[u8; CLUSTER_BYTES as usize]>);

impl fmt::Debug for Cluster {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Cluster({})", blake3::hash(&self.0[..]))
    }
}

/// As a byte string: a saved overlay holds many thousands of clusters, and formats take byte strings whole.
impl Serialize for Cluster {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0[..])
    }
}

impl<'de> Deserialize<'de> for Cluster {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Cluster, D::Error> {
        struct ClusterVisitor;
        impl<'de> Visitor<'de> for ClusterVisitor {
            type Value = Cluster;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "{CLUSTER_BYTES} bytes of a disk overlay cluster")
            }

            fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Cluster, E> {
                let content = bytes.try_into().map_err(|_| E::invalid_length(bytes.len(), &self))?;
                Ok(Cluster(Arc::new(content)))
            }

            // Formats without byte strings, such as JSON, give a sequence.
            fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Cluster, A::Error> {
                let mut content = [0; CLUSTER_BYTES as usize];
                for (index, byte) in content.iter_mut().enumerate() {
                    *byte = sequence.next_element()?.ok_or_else(|| A::Error::invalid_length(index, &self))?;
                }
                if sequence.next_element::<u8>()?.is_some() {
                    return Err(A::Error::invalid_length(content.len() + 1, &self));
                }
                Ok(Cluster(Arc::new(content)))
            }
        }
        deserializer.deserialize_bytes(ClusterVisitor)
    }
}

/// A disk's part of a saved machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskState {
    size_bytes: u64,
    read_only: bool,
    /// Digest of the image, if it was asked for since the image last changed.
    digest: Option<[u8; 32]>,
    overlay: BTreeMap<u64, Cluster>,
}

pub struct Disk {
    configuration: DiskConfiguration,
    file: File,
    size_bytes: u64,
    overlay: BTreeMap<u64, Cluster>,
    digest: Option<blake3::Hash>,
}

impl Disk {
    pub fn open(configuration: &DiskConfiguration) -> Result<Disk, DeviceError> {
        let path = configuration.path.clone();
        let write = configuration.mode == DiskMode::Write;
        let open_error = |source| DeviceError::DiskOpen { path: path.clone(), source };
        let metadata = std::fs::metadata(&path).map_err(open_error)?;
        if !metadata.is_file() {
            return Err(DeviceError::DiskNotFile { path });
        }
        // Asked of the file itself, since a privileged user can open any file for writing.
        if write && metadata.permissions().readonly() {
            return Err(DeviceError::DiskReadOnly { path });
        }
        let size_bytes = metadata.len();
        if size_bytes == 0 || !size_bytes.is_multiple_of(SECTOR_BYTES) {
            return Err(DeviceError::DiskSize { path, size_bytes });
        }
        let file = OpenOptions::new().read(true).write(write).open(&path).map_err(|source| match source.kind() {
            io::ErrorKind::ReadOnlyFilesystem => DeviceError::DiskReadOnly { path: path.clone() },
            _ => open_error(source),
        })?;
        Ok(Disk { configuration: configuration.clone(), file, size_bytes, overlay: BTreeMap::new(), digest: None })
    }

    /// Opens the image again and checks that it is the one that was saved.
    pub fn restore(configuration: &DiskConfiguration, state: &DiskState) -> Result<Disk, DeviceError> {
        let mut disk = Disk::open(configuration)?;
        let path = configuration.path.clone();
        if disk.size_bytes != state.size_bytes {
            return Err(DeviceError::DiskSavedSize {
                path,
                saved_bytes: state.size_bytes,
                found_bytes: disk.size_bytes,
            });
        }
        let name = |read_only| if read_only { "a read-only disk" } else { "a writable disk" };
        if disk.read_only() != state.read_only {
            return Err(DeviceError::StateMismatch {
                saved: name(state.read_only).to_string(),
                configured: name(disk.read_only()).to_string(),
            });
        }
        if configuration.mode != DiskMode::Overlay && !state.overlay.is_empty() {
            return Err(DeviceError::StateMismatch {
                saved: format!("{} overlay clusters", state.overlay.len()),
                configured: "a disk without an overlay".to_string(),
            });
        }
        if let Some(saved) = state.digest {
            let saved = blake3::Hash::from_bytes(saved);
            let found = disk.digest()?;
            if saved != found {
                return Err(DeviceError::DiskSavedContent {
                    path,
                    saved: saved.to_hex().to_string(),
                    found: found.to_hex().to_string(),
                });
            }
        }
        disk.overlay = state.overlay.clone();
        Ok(disk)
    }

    pub fn save(&self) -> DiskState {
        DiskState {
            size_bytes: self.size_bytes,
            read_only: self.read_only(),
            digest: self.digest.map(|digest| *digest.as_bytes()),
            overlay: self.overlay.clone(),
        }
    }

    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    pub fn read_only(&self) -> bool {
        self.configuration.mode == DiskMode::ReadOnly
    }

    pub fn configuration(&self) -> &DiskConfiguration {
        &self.configuration
    }

    /// Which file this is, whatever its path.
    pub fn identity(&self) -> Result<(u64, u64), DeviceError> {
        let metadata = self.file.metadata();
        let metadata =
            metadata.map_err(|source| DeviceError::DiskOpen { path: self.configuration.path.clone(), source })?;
        Ok((metadata.dev(), metadata.ino()))
    }

    /// The digest of the image; computed when it is not known.
    pub fn digest(&mut self) -> Result<blake3::Hash, DeviceError> {
        if let Some(digest) = self.digest {
            return Ok(digest);
        }
        self.check_size()?;
        let mut hasher = blake3::Hasher::new();
        let mut buffer = vec![0; 1 << 20];
        let mut offset_bytes = 0;
        while offset_bytes < self.size_bytes {
            let length_bytes = (buffer.len() as u64).min(self.size_bytes - offset_bytes);
            let part = &mut buffer[..length_bytes as usize];
            self.read_image(offset_bytes, part)?;
            hasher.update(part);
            offset_bytes += length_bytes;
        }
        let digest = hasher.finalize();
        self.digest = Some(digest);
        Ok(digest)
    }

    pub fn describe(&mut self) -> Result<DiskDigest, DeviceError> {
        Ok(DiskDigest {
            image: self.digest()?.to_hex().to_string(),
            path: self.configuration.path.clone(),
            size_bytes: self.size_bytes,
        })
    }

    /// Fails when the image no longer has the size it was opened with. Called before each request: a read
    /// past a new end would fail anyway, but a write would silently make the image grow again.
    pub fn check_size(&self) -> Result<(), DeviceError> {
        let found_bytes =
            self.file.metadata().map_err(|source| self.access_error("inspect", 0, self.size_bytes, source))?.len();
        if found_bytes != self.size_bytes {
            return Err(DeviceError::DiskResized {
                path: self.configuration.path.clone(),
                expected_bytes: self.size_bytes,
                found_bytes,
            });
        }
        Ok(())
    }

    /// Reads inside the disk's size.
    pub fn read(&self, offset_bytes: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        if self.overlay.is_empty() {
            return self.read_image(offset_bytes, bytes);
        }
        for (offset_bytes, part) in parts_mut(offset_bytes, bytes) {
            let start = (offset_bytes % CLUSTER_BYTES) as usize;
            match self.overlay.get(&(offset_bytes / CLUSTER_BYTES)) {
                Some(cluster) => part.copy_from_slice(&cluster.0[start..start + part.len()]),
                None => self.read_image(offset_bytes, part)?,
            }
        }
        Ok(())
    }

    /// Writes inside the disk's size. The caller has checked that the disk is not read-only.
    pub fn write(&mut self, offset_bytes: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        if self.configuration.mode == DiskMode::Write {
            self.digest = None;
            return self
                .file
                .write_all_at(bytes, offset_bytes)
                .map_err(|source| self.access_error("write", offset_bytes, bytes.len() as u64, source));
        }
        let mut rest = bytes;
        let mut offset_bytes = offset_bytes;
        while !rest.is_empty() {
            let start = (offset_bytes % CLUSTER_BYTES) as usize;
            let length = rest.len().min(CLUSTER_BYTES as usize - start);
            let (part, after) = rest.split_at(length);
            let index = offset_bytes / CLUSTER_BYTES;
            let mut cluster = match self.overlay.remove(&index) {
                Some(cluster) => cluster,
                None => self.read_cluster(index, length)?,
            };
            Arc::make_mut(&mut cluster.0)[start..start + length].copy_from_slice(part);
            self.overlay.insert(index, cluster);
            rest = after;
            offset_bytes += length as u64;
        }
        Ok(())
    }

    /// Syncs a written image to the host's storage.
    pub fn sync(&self) -> Result<(), DeviceError> {
        if self.configuration.mode != DiskMode::Write {
            return Ok(());
        }
        self.file.sync_all().map_err(|source| DeviceError::DiskSync { path: self.configuration.path.clone(), source })
    }

    /// A cluster of the image; zeroes when all of it is about to be written.
    fn read_cluster(&self, index: u64, written: usize) -> Result<Cluster, DeviceError> {
        let mut content = [0; CLUSTER_BYTES as usize];
        if written < content.len() {
            let offset_bytes = index * CLUSTER_BYTES;
            let length_bytes = CLUSTER_BYTES.min(self.size_bytes - offset_bytes);
            self.read_image(offset_bytes, &mut content[..length_bytes as usize])?;
        }
        Ok(Cluster(Arc::new(content)))
    }

    fn read_image(&self, offset_bytes: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let length_bytes = bytes.len() as u64;
        self.file
            .read_exact_at(bytes, offset_bytes)
            .map_err(|source| self.access_error("read", offset_bytes, length_bytes, source))
    }

    fn access_error(
        &self,
        action: &'static str,
        offset_bytes: u64,
        length_bytes: u64,
        source: io::Error,
    ) -> DeviceError {
        DeviceError::DiskAccess { path: self.configuration.path.clone(), action, offset_bytes, length_bytes, source }
    }
}

/// Cuts a buffer at cluster boundaries.
fn parts_mut(offset_bytes: u64, bytes: &mut [u8]) -> impl Iterator<Item = (u64, &mut [u8])> {
    let mut rest = bytes;
    let mut offset_bytes = offset_bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let room = (CLUSTER_BYTES - offset_bytes % CLUSTER_BYTES) as usize;
        let length = rest.len().min(room);
        let (part, after) = std::mem::take(&mut rest).split_at_mut(length);
        rest = after;
        let here = offset_bytes;
        offset_bytes += length as u64;
        Some((here, part))
    })
}
