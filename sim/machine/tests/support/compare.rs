//! Runs programs on two machines, compares their dumps, and traces a difference to the first item that shows it.

use super::generator::{Program, Variant};
use super::harness::{self, CODE_SLOT, DUMP_LINES};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A machine: from an ELF file and the number of programs in it to the lines of the dump.
pub type Run<'a> = &'a dyn Fn(&Path, usize) -> Vec<String>;

/// What names a program.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    pub seed: u64,
    pub variant: Variant,
    pub items: usize,
}

/// An ELF file with programs, and the temporary directory that it is in.
pub fn write_image(programs: &[Program]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("programs.elf");
    std::fs::write(&path, harness::image(programs)).expect("the image is written");
    (directory, path)
}

fn run(machine: Run<'_>, programs: &[Program]) -> Vec<String> {
    let (_directory, path) = write_image(programs);
    machine(&path, programs.len())
}

fn generate(name: Name) -> Program {
    Program::generate(name.seed, name.variant, name.items)
}

/// The dumps of all programs from one machine.
pub fn dump(names: &[Name], machine: Run<'_>) -> Vec<String> {
    let programs: Vec<Program> = names.iter().copied().map(generate).collect();
    run(machine, &programs)
}

/// The first line where two dumps differ; one that ends early differs at its end.
fn first_difference(expected: &[String], actual: &[String]) -> Option<usize> {
    let common = expected.iter().zip(actual).take_while(|(left, right)| left == right).count();
    (common < expected.len().max(actual.len())).then_some(common)
}

/// Runs all programs in one image on both machines and panics with a report on the first difference.
pub fn assert_equal(names: &[Name], reference: Run<'_>, subject: Run<'_>) {
    let programs: Vec<Program> = names.iter().copied().map(generate).collect();
    let expected = run(reference, &programs);
    assert_eq!(
        expected.len(),
        DUMP_LINES * programs.len(),
        "the reference machine finished every program (it stopped in {:?})",
        names.get(expected.len() / DUMP_LINES)
    );
    let actual = run(subject, &programs);
    if let Some(line) = first_difference(&expected, &actual) {
        panic!("{}", report(names[line / DUMP_LINES], reference, subject));
    }
}

fn differs(name: Name, reference: Run<'_>, subject: Run<'_>) -> bool {
    let programs = [generate(name)];
    let expected = run(reference, &programs);
    first_difference(&expected, &run(subject, &programs)).is_some()
}

/// Finds the shortest prefix of the program that differs and describes it.
fn report(name: Name, reference: Run<'_>, subject: Run<'_>) -> String {
    let mut text = format!("the machines differ on {name:?}\n");
    if !differs(name, reference, subject) {
        text.push_str("but not when the program runs alone: what ran before it matters\n");
        return text;
    }
    // The first `equal` items agree, the first `different` do not.
    let (mut equal, mut different) = (0, name.items);
    while different - equal > 1 {
        let middle = equal + (different - equal) / 2;
        if differs(Name { items: middle, ..name }, reference, subject) {
            different = middle;
        } else {
            equal = middle;
        }
    }
    let shortest = Name { items: different, ..name };
    let program = generate(shortest);
    let before = run(reference, &[generate(Name { items: different - 1, ..name })]);
    let expected = run(reference, std::slice::from_ref(&program));
    let actual = run(subject, std::slice::from_ref(&program));
    let item = &program.items[different - 1];
    let _ = writeln!(text, "first after item {}, {}:", different - 1, item.name);
    text.push_str(&disassemble(&program.code[item.start..item.end], CODE_SLOT + item.start as u64));
    let missing = String::from("nothing");
    let mut shown = 0;
    for index in 0..expected.len().max(actual.len()) {
        let (left, right) = (expected.get(index).unwrap_or(&missing), actual.get(index).unwrap_or(&missing));
        if left != right && shown < 12 {
            shown += 1;
            let was = before.get(index).unwrap_or(&missing);
            let line = harness::line_name(index);
            let _ = writeln!(text, "{line}: reference {left}, subject {right}, before the item {was}");
        }
    }
    text.push_str("state before the item on the reference machine:");
    for (index, value) in before.iter().enumerate().take(harness::STATE_LINES) {
        let name = harness::line_name(index);
        let separator = if name.len() > 4 || index % 4 == 0 { "\n" } else { "  " };
        let _ = write!(text, "{separator}{name:>4} {value}");
    }
    text.push('\n');
    text
}

/// The instructions by `objdump`, or their bytes where it is not installed.
fn disassemble(code: &[u8], address: u64) -> String {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), code).expect("the code is written");
    let output = Command::new("riscv64-linux-gnu-objdump")
        .args(["-D", "-b", "binary", "-m", "riscv:rv64", "-M", "no-aliases", "--adjust-vma"])
        .arg(format!("{address:#x}"))
        .arg(file.path())
        .output();
    match output {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter(|line| line.contains(":\t"))
            .map(|line| format!("  {line}\n"))
            .collect(),
        _ => format!("  at {address:#x}, bytes {code:02x?}\n"),
    }
}
