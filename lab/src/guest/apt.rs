//! Debian's archive through the machine's own apt, with a private configuration: another architecture and release, nothing
//! installed, and no effect on the machine. apt resolves dependencies and verifies signatures and hashes.

use super::Index;
use super::cache::Cache;
use super::error::Error;
use super::process::{Runner, tool};
use super::sources::{self, Source};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A release of Debian for one architecture, whatever the machine itself runs.
pub struct Release {
    architecture: &'static str,
    suite: &'static str,
    /// Present in the versions of debian-archive-keyring that know the suite's keys.
    key: &'static str,
    /// The cache's folder for its index and packages.
    folder: &'static str,
}

/// What the guests of the simulated machine are made of.
pub const RISCV64: Release = Release { architecture: "riscv64", suite: "trixie", key: SUITE_KEY, folder: "apt" };
/// What the guests of an ordinary virtual machine are made of.
pub const AMD64: Release = Release { architecture: "amd64", suite: "bookworm", key: AMD64_KEY, folder: "apt-amd64" };

/// The keys of Debian's archive, from the package debian-archive-keyring.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
pub(crate) const SUITE_KEY: &str = "/usr/share/keyrings/debian-archive-trixie-stable.gpg";
pub(crate) const AMD64_KEY: &str = "/usr/share/keyrings/debian-archive-bookworm-stable.gpg";

/// One package as the archive's index names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version, epoch included.
    pub version: String,
    /// The name apt gives to its file.
    pub file_name: String,
    /// The hash of its file, as apt prints it (algorithm, colon, digits).
    pub hash: String,
}

/// The archive as one guest's build sees it.
pub struct Archive<'a> {
    release: &'static Release,
    folder: PathBuf,
    runner: &'a Runner<'a>,
}

impl<'a> Archive<'a> {
    /// Prepares the private configuration. Fetches the package index as `index` says.
    pub fn open(
        release: &'static Release,
        cache: &Cache,
        runner: &'a Runner<'a>,
        index: Index,
    ) -> Result<Archive<'a>, Error> {
        let Release { architecture, suite, key, folder } = *release;
        if !Path::new(key).exists() {
            return Err(Error::NoKey { path: PathBuf::from(key), suite });
        }
        for name in ["state", "lists/partial", "cache/archives/partial", "packages"] {
            cache.folder(&format!("{folder}/{name}"))?;
        }
        let archive = Archive { release, folder: cache.folder(folder)?, runner };
        let mirror = machine_mirror()?;
        let line = format!("deb [arch={architecture} signed-by={KEYRING}] {mirror} {suite} main\n");
        let list = archive.folder.join("sources.list");
        let is_new_mirror = fs::read_to_string(&list).ok().as_deref() != Some(line.as_str());
        let configuration = archive.configuration()?;
        write_if_changed(&archive.folder.join("apt.conf"), &configuration)?;
        let is_missing = is_new_mirror || !archive.has_index()?;
        if is_missing && index == Index::Cached {
            return Err(Error::NoIndex);
        }
        write_if_changed(&list, &line)?;
        if is_missing || index == Index::Newest {
            let mut update = archive.command("apt-get");
            update.args(["--quiet", "--option", "APT::Update::Error-Mode=any", "update"]);
            let updated = runner.run(&mut update, "fetch the package index");
            if updated.is_err() && is_new_mirror {
                // The next attempt must not take another mirror's index for this one's.
                let _ = fs::remove_file(&list);
            }
            updated?;
        }
        Ok(archive)
    }

    /// The packages that installing `names` on an empty system takes, sorted by name: what the index says now.
    pub fn closure(&self, names: &[String]) -> Result<Vec<Package>, Error> {
        let mut command = self.command("apt-get");
        command.args(["--quiet=2", "--print-uris", "install"]).args(names);
        let output = self.runner.output(&mut command, "resolve the packages' dependencies")?;
        let mut packages: Vec<Package> = output.lines().filter_map(parse_uri_line).collect();
        packages.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(packages)
    }

    /// Downloads `packages` and returns their files, in the same order. What is there already is not fetched again.
    pub fn download(&self, packages: &[Package]) -> Result<Vec<PathBuf>, Error> {
        let folder = self.folder.join("packages");
        let mut command = self.command("apt-get");
        command.current_dir(&folder).args(["--quiet", "download"]);
        command.args(packages.iter().map(|package| format!("{}={}", package.name, package.version)));
        self.runner.run(&mut command, "download packages")?;
        Ok(packages.iter().map(|package| folder.join(&package.file_name)).collect())
    }

    fn has_index(&self) -> Result<bool, Error> {
        let lists = self.folder.join("lists");
        let mut entries = fs::read_dir(&lists).map_err(Error::file("read", &lists))?;
        Ok(entries.any(|entry| entry.is_ok_and(|entry| entry.file_name().to_string_lossy().contains("_Packages"))))
    }

    /// An apt command under this archive's lock: apt refuses to run twice on one state instead of waiting.
    fn command(&self, program: &str) -> Command {
        let mut command = tool("flock");
        command.arg(self.folder.join("lock")).arg(program).env("APT_CONFIG", self.folder.join("apt.conf"));
        command
    }

    /// The text of apt.conf(5): everything private, and of the machine's own configuration only how to reach the network.
    fn configuration(&self) -> Result<String, Error> {
        let own = self.runner.output(tool("apt-config").arg("dump"), "read apt's configuration")?;
        let network =
            own.lines().filter(|line| is_network_option(line)).fold(String::new(), |text, line| text + line + "\n");
        let folder = self.folder.display();
        let architecture = self.release.architecture;
        Ok(format!(
            "APT::Architecture \"{architecture}\";\n\
             APT::Architectures {{ \"{architecture}\"; }};\n\
             APT::Install-Recommends \"false\";\n\
             APT::Sandbox::User \"root\";\n\
             Dir::Etc::SourceList \"{folder}/sources.list\";\n\
             Dir::Etc::SourceParts \"/dev/null\";\n\
             Dir::Etc::Main \"/dev/null\";\n\
             Dir::Etc::Parts \"/dev/null\";\n\
             Dir::Etc::Preferences \"/dev/null\";\n\
             Dir::Etc::PreferencesParts \"/dev/null\";\n\
             Dir::State \"{folder}/state\";\n\
             Dir::State::Lists \"{folder}/lists\";\n\
             Dir::State::status \"/dev/null\";\n\
             Dir::Cache \"{folder}/cache\";\n\
             Acquire::ForceHash \"SHA256\";\n\
             Acquire::Languages \"none\";\n\
             Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled \"false\";\n\
             Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\n\
             {network}"
        ))
    }
}

/// Proxies, certificates and timeouts: lines of `apt-config dump` that say how this machine reaches an archive.
fn is_network_option(line: &str) -> bool {
    let is_transport =
        ["Acquire::http::", "Acquire::https::", "Acquire::Retries "].iter().any(|prefix| line.starts_with(prefix));
    is_transport && !line.ends_with("\"\";")
}

/// Reads a line of `apt-get --print-uris`: quoted address, file name, size in bytes, hash. Other lines give `None`.
fn parse_uri_line(line: &str) -> Option<Package> {
    let mut words = line.split_whitespace();
    words.next().filter(|uri| uri.starts_with('\''))?;
    let file_name = words.next()?;
    words.next()?.parse::<u64>().ok()?;
    let hash = words.next()?;
    let mut parts = file_name.strip_suffix(".deb")?.splitn(3, '_');
    let (name, version) = (parts.next()?, parts.next()?);
    parts.next()?;
    // apt writes the epoch's colon as %3a in file names.
    let version = version.replace("%3a", ":");
    Some(Package { name: name.to_owned(), version, file_name: file_name.to_owned(), hash: hash.to_owned() })
}

/// The mirror in this machine's apt sources.
fn machine_mirror() -> Result<String, Error> {
    let mut found: Vec<Source> = Vec::new();
    let mut looked_at = Vec::new();
    let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
    let parts = Path::new("/etc/apt/sources.list.d");
    if let Ok(entries) = fs::read_dir(parts) {
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
        paths.sort();
        files.extend(paths);
    }
    for path in files {
        let parse = match path.extension().and_then(|extension| extension.to_str()) {
            Some("list") => sources::parse_one_line_style,
            Some("sources") => sources::parse_deb822_style,
            _ => continue,
        };
        match fs::read_to_string(&path) {
            Ok(text) => found.extend(parse(&text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(Error::file("read", &path)(error)),
        }
        looked_at.push(path.display().to_string());
    }
    sources::debian_mirror(&found).ok_or_else(|| Error::NoMirror {
        looked_at: if looked_at.is_empty() {
            String::from("there are none under /etc/apt")
        } else {
            looked_at.join(", ")
        },
    })
}

fn write_if_changed(path: &Path, text: &str) -> Result<(), Error> {
    if fs::read_to_string(path).ok().as_deref() == Some(text) {
        return Ok(());
    }
    fs::write(path, text).map_err(Error::file("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_print_uris() {
        let line = "'http://m.example/pool/main/a/attr/libattr1_2.5.2-3_riscv64.deb' libattr1_1%3a2.5.2-3_riscv64.deb 22884 SHA256:5e1a";
        let expected = Package {
            name: "libattr1".into(),
            version: "1:2.5.2-3".into(),
            file_name: "libattr1_1%3a2.5.2-3_riscv64.deb".into(),
            hash: "SHA256:5e1a".into(),
        };
        assert_eq!(parse_uri_line(line), Some(expected));
        for other in [
            "",
            "Reading package lists...",
            "'http://m.example/x.deb' x.deb 1 SHA256:0",
            "'u' a_1_riscv64.deb many SHA256:0",
        ] {
            assert_eq!(parse_uri_line(other), None, "{other:?}");
        }
    }

    #[test]
    fn only_the_way_to_the_network_is_taken_from_the_machine() {
        assert!(is_network_option("Acquire::http::Proxy \"http://proxy.example:3128/\";"));
        assert!(is_network_option("Acquire::https::Verify-Peer \"false\";"));
        assert!(!is_network_option("Acquire::http \"\";"));
        assert!(!is_network_option("Acquire::http::Proxy \"\";"));
        assert!(!is_network_option("APT::Update::Post-Invoke:: \"rm -f /var/cache/apt/archives/*.deb\";"));
    }
}
