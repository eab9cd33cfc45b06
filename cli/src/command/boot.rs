//! `concord boot`: starts a kernel on a board.

use crate::output::Inputs;
use crate::session::{self, SessionArguments, by_name};
use anyhow::anyhow;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use concord_abi::exit::Exit;
use concord_dev::DiskMode;
use concord_machine::board::{Board, BoardError, Granularity, Manager, Mode, parse_size};
use concord_machine::{Configuration, DiskImage, Gear, Machine, Net};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Boot a kernel
///
/// The guest's console goes to standard output, the simulator's own words to standard error.
#[derive(clap::Args)]
pub struct Arguments {
    /// RISC-V Image, compressed or not, or an ELF file that starts in S-mode with hart and device tree in a0 and a1
    #[arg(long, value_name = "FILE")]
    kernel: PathBuf,
    /// Initial RAM disk
    #[arg(long, value_name = "FILE")]
    initrd: Option<PathBuf>,
    /// The kernel's command line
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, allow_hyphen_values = true)]
    append: String,
    /// A built-in board or a TOML file
    #[arg(long, value_name = "PRESET|FILE", default_value = "metatm-2007")]
    board: PathBuf,
    /// Number of harts, 1 to 64, instead of the board's
    #[arg(long, value_name = "N")]
    harts: Option<usize>,
    /// Size of RAM, such as 512MiB, instead of the board's
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// Disk image; the guest's writes go to the image (`,write`, the default), to memory (`,overlay`) or nowhere
    /// (`,read-only`)
    #[arg(long = "disk", value_name = "FILE[,MODE]")]
    disks: Vec<PathBuf>,
    /// The other end of the network link
    #[arg(long, default_value = "none", value_parser = net_parser())]
    net: Net,
    /// The gear that the run starts in; the guest may switch it
    #[arg(long, default_value = "functional", value_parser = gear_parser())]
    gear: Gear,
    /// Seed of the run: it perturbs miss latencies and feeds the entropy device
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The contention manager, which decides which party of a conflict goes on, instead of the board's
    #[arg(long, value_name = "NAME", value_parser = manager_parser(), help_heading = "Transactions")]
    contention_manager: Option<Manager>,
    /// The unit in which transactions conflict, instead of the board's
    #[arg(long, value_name = "UNIT", value_parser = granularity_parser(), help_heading = "Transactions")]
    granularity: Option<Granularity>,
    /// Whether transactions outlive traps and the L1 or are restarted by them, instead of the board's choice
    #[arg(long, value_name = "MODE", value_parser = mode_parser(), help_heading = "Transactions")]
    transactions: Option<Mode>,
    #[command(flatten)]
    session: SessionArguments,
}

fn net_parser() -> impl TypedValueParser<Value = Net> {
    PossibleValuesParser::new(["none", "peer"]).map(|name| if name == "peer" { Net::Peer } else { Net::None })
}

/// A gear, by its name.
pub(super) fn gear_parser() -> impl TypedValueParser<Value = Gear> {
    PossibleValuesParser::new([Gear::Functional.name(), Gear::Timed.name()])
        .map(|name| if name == Gear::Timed.name() { Gear::Timed } else { Gear::Functional })
}

/// A contention manager, by its name.
pub(super) fn manager_parser() -> impl TypedValueParser<Value = Manager> {
    by_name(Manager::ALL, Manager::name)
}

fn granularity_parser() -> impl TypedValueParser<Value = Granularity> {
    by_name(Granularity::ALL, Granularity::name)
}

fn mode_parser() -> impl TypedValueParser<Value = Mode> {
    PossibleValuesParser::new(["virtualized", "best-effort", "none"]).map(|name| match name.as_str() {
        "best-effort" => Mode::BestEffort,
        "none" => Mode::None,
        _ => Mode::Virtualized,
    })
}

/// Runs the command.
///
/// # Errors
/// If an input cannot be used or the host fails.
pub fn run(arguments: Arguments) -> anyhow::Result<Exit> {
    let configuration = configuration(&arguments)?;
    let mut inputs = Inputs::default();
    inputs.add_configuration(&configuration);
    if !is_preset(&arguments.board) {
        inputs.add("board", &arguments.board);
    }
    session::run(&arguments.session, &inputs, || Ok(Machine::new(configuration)?))
}

fn configuration(arguments: &Arguments) -> anyhow::Result<Configuration> {
    let disks: Vec<DiskImage> = arguments.disks.iter().map(|text| disk(text)).collect();
    if arguments.session.takes_snapshot()
        && let Some(written) = disks.iter().find(|disk| disk.mode == DiskMode::Write)
    {
        return Err(anyhow!(
            "--snapshot: disk image {} is written by the guest, and a snapshot refers to images as they were; \
             use --disk FILE,overlay or FILE,read-only",
            written.path.display()
        ));
    }
    let mut configuration = Configuration {
        board: board(arguments)?,
        seed: arguments.seed,
        gear: arguments.gear,
        kernel: arguments.kernel.clone(),
        initrd: arguments.initrd.clone(),
        append: arguments.append.clone(),
        disks,
        net: arguments.net,
        check_isolation: arguments.session.checks_isolation(),
    };
    configuration.take_board_words()?;
    Ok(configuration)
}

fn is_preset(board: &Path) -> bool {
    Board::preset_names().any(|name| board == Path::new(name))
}

/// The board with the changes of the command line, checked one by one so that the error names the option.
fn board(arguments: &Arguments) -> anyhow::Result<Board> {
    let mut board = named_board(&arguments.board)?;
    if let Some(harts) = arguments.harts {
        board.harts.count = harts;
        board.validate().map_err(|error| option_error("--harts", &harts.to_string(), &error))?;
    }
    if let Some(text) = &arguments.memory {
        board.memory.size_bytes = parse_size(text).map_err(|error| anyhow!("--memory: {error}"))?;
        board.validate().map_err(|error| option_error("--memory", text, &error))?;
    }
    let transactions = &mut board.transactions;
    transactions.manager = arguments.contention_manager.unwrap_or(transactions.manager);
    transactions.granularity = arguments.granularity.unwrap_or(transactions.granularity);
    transactions.mode = arguments.transactions.unwrap_or(transactions.mode);
    Ok(board)
}

/// A built-in board, or one in a file.
pub(super) fn named_board(name: &Path) -> anyhow::Result<Board> {
    // A name that is no preset and does not look like a file is a misspelt preset.
    let is_file = name.exists() || name.extension().is_some() || name.as_os_str().as_bytes().contains(&b'/');
    Ok(match name.to_str() {
        Some(preset) if is_preset(name) || !is_file => Board::preset(preset)?,
        _ => Board::from_file(name)?,
    })
}

fn option_error(option: &str, value: &str, error: &BoardError) -> anyhow::Error {
    match error {
        BoardError::Value { allowed, .. } => anyhow!("{option} {value}: allowed is {allowed}"),
        error => anyhow!("{option} {value}: {error}"),
    }
}

/// `FILE` or `FILE,MODE`. A comma before anything but a mode belongs to the file's name.
fn disk(text: &Path) -> DiskImage {
    let modes = [("write", DiskMode::Write), ("overlay", DiskMode::Overlay), ("read-only", DiskMode::ReadOnly)];
    let bytes = text.as_os_str().as_bytes();
    for (name, mode) in modes {
        let path = bytes.strip_suffix(name.as_bytes()).and_then(|rest| rest.strip_suffix(b","));
        if let Some(path) = path {
            return DiskImage { path: PathBuf::from(OsStr::from_bytes(path)), mode };
        }
    }
    DiskImage { path: text.to_owned(), mode: DiskMode::Write }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_a_file_and_a_mode() {
        for (text, path, mode) in [
            ("a.ext4", "a.ext4", DiskMode::Write),
            ("a.ext4,write", "a.ext4", DiskMode::Write),
            ("a.ext4,overlay", "a.ext4", DiskMode::Overlay),
            ("a,b,read-only", "a,b", DiskMode::ReadOnly),
            ("a,b", "a,b", DiskMode::Write),
            ("overlay", "overlay", DiskMode::Write),
        ] {
            assert_eq!(disk(Path::new(text)), DiskImage { path: path.into(), mode }, "{text}");
        }
    }
}
