//! The two machines: QEMU's virt board as a process, Concord through its library. Both take an ELF file and give the
//! lines of the dump.

use concord_machine::run::{Limits, Options, Unattended, run};
use concord_machine::{Board, Configuration, Gear, Machine, Net};
use std::path::Path;
use std::process::{Command, Stdio};

/// The QEMU processor with the extensions that Concord has and no other that the programs could tell apart.
const QEMU_PROCESSOR: &str =
    "rv64,h=false,zbc=false,zba=true,zbb=true,zbs=true,sstc=true,svinval=false,svnapot=false,svpbmt=false";

/// Instructions a Concord run may take before it counts as lost, for each program: a program retires about ten thousand
/// with its copy and dump, and a thousand times more in the worst loop of traps.
const INSTRUCTIONS_MAX_PER_PROGRAM: u64 = 5_000_000;

/// The dump's lines out of everything on the console: those between the line `S` and the line `E`.
fn dump_lines(console: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(console)
        .lines()
        .map(|line| line.trim_end_matches('\r'))
        .skip_while(|line| *line != "S")
        .skip(1)
        .take_while(|line| *line != "E")
        .map(str::to_string)
        .collect()
}

/// Runs `elf` under QEMU. There are two harts, of which the second never starts: with one, QEMU 7.2 translates an AMO
/// to a load and a store, and a misaligned one then reports cause 4 instead of 6.
pub fn run_qemu(elf: &Path) -> Vec<String> {
    let output = Command::new("timeout")
        .args(["--kill-after=10", "300", "qemu-system-riscv64", "-M", "virt", "-cpu", QEMU_PROCESSOR])
        .args(["-smp", "2", "-m", "128M", "-display", "none", "-monitor", "none", "-serial", "stdio", "-no-reboot"])
        .arg("-kernel")
        .arg(elf)
        .stdin(Stdio::null())
        .output()
        .expect("`timeout` starts");
    assert!(
        output.status.code() != Some(127),
        "qemu-system-riscv64 is not installed: apt-get install qemu-system-misc opensbi"
    );
    dump_lines(&output.stdout)
}

/// Concord with `elf` in it, on one hart with 128 MB.
pub fn concord(elf: &Path, gear: Gear) -> Machine {
    let mut board = Board::preset("metatm-2007").expect("the preset exists");
    board.harts.count = 1;
    board.memory.size_bytes = 128 << 20;
    let configuration = Configuration {
        board,
        seed: 1,
        gear,
        kernel: elf.to_path_buf(),
        initrd: None,
        append: String::new(),
        disks: Vec::new(),
        net: Net::None,
        check_isolation: false,
    };
    Machine::new(configuration).expect("the machine starts")
}

/// Runs `elf` on Concord for at most what `programs` programs can need.
pub fn run_concord(elf: &Path, gear: Gear, programs: usize) -> Vec<String> {
    let mut machine = concord(elf, gear);
    let limits = Limits { instructions: Some(INSTRUCTIONS_MAX_PER_PROGRAM * programs as u64), cycles: None };
    let mut console = Unattended::default();
    let outcome = run(&mut machine, &Options { limits, ..Options::default() }, &mut console);
    outcome.expect("nothing on the host stops the run");
    dump_lines(&console.printed)
}
