//! `concord build`: guests, built once and kept.

use super::answer;
use anyhow::anyhow;
use concord_abi::exit::Exit;
use concord_lab::guest;
use concord_lab::guest::progress::Console;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

/// Build guests: kernels, initial RAM disks, root file systems
///
/// A guest is built once, into a cache named after everything it was made of.
#[derive(clap::Args)]
pub struct Arguments {
    /// The guests to build; all of them when none is named
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// List the guests and where they are, and build nothing
    #[arg(long, conflicts_with_all = ["names", "path"])]
    list: bool,
    /// Print the path of a file of a guest that is built: `--path kernel Image`
    #[arg(long, num_args = 2, value_names = ["NAME", "FILE"], conflicts_with = "names")]
    path: Option<Vec<String>>,
    /// Fetch the package index again: newer packages make new guests
    #[arg(long, conflicts_with_all = ["list", "path"])]
    refresh: bool,
    /// Compilers to run at once; as many as there are processors by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Answer with a JSON document
    #[arg(long, conflicts_with = "path")]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// If a guest is unknown, not built where it must be, or cannot be built.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    if let Some([name, file]) = arguments.path.as_deref() {
        print_path(name, file)?;
    } else if arguments.list {
        print_list(arguments.json)?;
    } else {
        build(arguments)?;
    }
    Ok(Exit::PoweredOff)
}

fn build(arguments: &Arguments) -> anyhow::Result<()> {
    let mut options = guest::Options { refresh: arguments.refresh, ..guest::Options::default() };
    if let Some(jobs) = arguments.jobs {
        options.jobs = usize::from(jobs);
    }
    let guests = guest::build(&arguments.names, &options, &Console::new())?;
    if arguments.json {
        let entry = |guest: &guest::Guest| serde_json::json!({ "directory": guest.directory, "guest": guest.manifest });
        super::answer_json(&guests.iter().map(entry).collect::<Vec<_>>())?;
    }
    Ok(())
}

fn print_list(json: bool) -> anyhow::Result<()> {
    let guests = guest::list()?;
    if json {
        let entry = |listed: &guest::Listed| {
            serde_json::json!({
                "name": listed.name,
                "description": listed.description,
                "damage": listed.damage,
                "directory": listed.built.as_ref().map(|guest| &guest.directory),
                "guest": listed.built.as_ref().map(|guest| &guest.manifest),
            })
        };
        return super::answer_json(&guests.iter().map(entry).collect::<Vec<_>>());
    }
    let mut text = String::new();
    for listed in guests {
        writeln!(text, "{}: {}", listed.name, listed.description)?;
        match listed.built {
            None => writeln!(text, "    {}", listed.damage.as_deref().unwrap_or("not built"))?,
            Some(built) => {
                let files: Vec<&str> = built.manifest.artifacts.keys().map(String::as_str).collect();
                writeln!(text, "    {}: {}", built.directory.display(), files.join(", "))?;
            }
        }
    }
    answer(text.as_bytes())
}

fn print_path(name: &str, file: &str) -> anyhow::Result<()> {
    let guest = guest::open(name)?;
    let path = guest.artifact(file).ok_or_else(|| {
        let known: Vec<&str> = guest.manifest.artifacts.keys().map(String::as_str).collect();
        anyhow!("guest {name} has no file {file:?}; there are {}", known.join(", "))
    })?;
    let mut line = path.as_os_str().as_bytes().to_vec();
    line.push(b'\n');
    answer(&line)
}
