//! What the tests of the command share: the command itself, and bare-metal guests for it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// The command, in a folder, with nothing on standard input and no colours asked for.
pub fn concord(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_concord"));
    command.current_dir(folder).stdin(Stdio::null()).env_remove("COLUMNS").env_remove("NO_COLOR");
    command
}

/// Both streams of a finished command as text.
#[allow(dead_code, reason = "not every test file needs it")]
pub fn streams(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// A program of `workloads/bare`, built for this test binary alone: several run at once.
#[allow(dead_code, reason = "not every test file needs it")]
pub fn guest(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let program = std::env::current_exe().expect("this program has a path");
        let program = program.file_stem().expect("and a name").to_owned();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bare").join(program);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workloads/bare");
        let build = Command::new("make")
            .arg("--silent")
            .arg("--directory")
            .arg(source)
            .arg(format!("BUILD={}", folder.display()))
            .output()
            .expect("make runs: `concord doctor` says what is missing");
        assert!(build.status.success(), "make -C workloads/bare: {}", String::from_utf8_lossy(&build.stderr));
        folder
    });
    folder.join(format!("{name}.elf"))
}
