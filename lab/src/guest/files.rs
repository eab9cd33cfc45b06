//! Folders that become a file system: what is in them, and what is put there.

use super::error::Error;
use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Everything below `root`, `root` itself first, sorted. Device nodes and sockets are an error: a build has no business with them.
pub fn tree(root: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut paths = vec![root.to_owned()];
    let mut next = 0;
    while let Some(path) = paths.get(next).cloned() {
        next += 1;
        let kind = fs::symlink_metadata(&path).map_err(Error::file("read", &path))?.file_type();
        if kind.is_dir() {
            for entry in fs::read_dir(&path).map_err(Error::file("read", &path))? {
                paths.push(entry.map_err(Error::file("read", &path))?.path());
            }
        } else if kind.is_block_device() || kind.is_char_device() || kind.is_fifo() || kind.is_socket() {
            let source = std::io::Error::other("it is neither file, folder nor symbolic link");
            return Err(Error::File { action: "take", path, source });
        }
    }
    paths.sort();
    Ok(paths)
}

/// Writes a file and the folders above it. A symbolic link in its place is replaced, not followed.
pub fn put(path: &Path, content: &str, is_program: bool) -> Result<(), Error> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(Error::file("create", parent))?;
    }
    if path.is_symlink() {
        fs::remove_file(path).map_err(Error::file("remove", path))?;
    }
    fs::write(path, content).map_err(Error::file("write", path))?;
    let mode = if is_program { 0o755 } else { 0o644 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(Error::file("set the permissions of", path))
}

/// Permissions that do not depend on the builder's umask or on set-user-ID bits, which only a privileged builder could keep.
pub fn set_permissions(root: &Path) -> Result<(), Error> {
    for path in tree(root)? {
        let metadata = fs::symlink_metadata(&path).map_err(Error::file("read", &path))?;
        let inside = path.strip_prefix(root).unwrap_or(&path);
        let mode = match inside.to_str() {
            _ if metadata.is_symlink() => continue,
            Some("tmp" | "var/tmp") => 0o1777,
            Some("root") => 0o700,
            _ if metadata.is_dir() || metadata.permissions().mode() & 0o111 != 0 => 0o755,
            _ => 0o644,
        };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))
            .map_err(Error::file("set the permissions of", &path))?;
    }
    Ok(())
}
