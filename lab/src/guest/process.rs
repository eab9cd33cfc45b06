//! Runs the host's programs: output into a log, the most telling line into the error, every line to the progress.

use super::error::Error;
use super::progress::Progress;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Starts programs on behalf of one guest's build.
pub struct Runner<'a> {
    log_path: PathBuf,
    progress: &'a dyn Progress,
}

impl<'a> Runner<'a> {
    /// A runner that writes everything its programs say to a fresh log at `log_path`.
    pub fn new(log_path: PathBuf, progress: &'a dyn Progress) -> Result<Runner<'a>, Error> {
        File::create(&log_path).map_err(Error::file("create", &log_path))?;
        Ok(Runner { log_path, progress })
    }

    /// The progress that the programs' lines go to.
    pub fn progress(&self) -> &'a dyn Progress {
        self.progress
    }

    /// Runs `command` to its end. Standard output and standard error go to the log, line by line in the order of arrival.
    pub fn run(&self, command: &mut Command, purpose: &str) -> Result<(), Error> {
        let program = name_of(command);
        let (reader, writer) = std::io::pipe().map_err(Error::file("open a pipe for", Path::new(&program)))?;
        let second = writer.try_clone().map_err(Error::file("open a pipe for", Path::new(&program)))?;
        let mut child = command
            .stdin(Stdio::null())
            .stdout(writer)
            .stderr(second)
            .spawn()
            .map_err(|source| Error::Start { program: program.clone(), source })?;
        // The command holds the pipe's writing ends; without this the reader below would never see the end.
        command.stdout(Stdio::null()).stderr(Stdio::null());

        let mut log = File::options().append(true).open(&self.log_path).map_err(Error::file("open", &self.log_path))?;
        let mut telling_line = String::from("it said nothing");
        let mut failed_write = writeln!(log, "$ {command:?}").err();
        for line in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
            failed_write = failed_write.or(log.write_all(&line).and_then(|()| log.write_all(b"\n")).err());
            let text = String::from_utf8_lossy(&line).trim().to_owned();
            if !text.is_empty() {
                self.progress.detail(&text);
                // The first error causes the others; without one, the last word is the best there is.
                if !is_error(&telling_line) {
                    telling_line = text;
                }
            }
        }
        let status = child.wait().map_err(|source| Error::Start { program: program.clone(), source })?;
        if !status.success() {
            let (purpose, log) = (purpose.to_owned(), self.log_path.clone());
            return Err(Error::Command { program, status, purpose, telling_line, log });
        }
        match failed_write {
            Some(source) => Err(Error::File { action: "write", path: self.log_path.clone(), source }),
            None => Ok(()),
        }
    }

    /// Runs `command` and returns its standard output; its standard error goes to the log.
    pub fn output(&self, command: &mut Command, purpose: &str) -> Result<String, Error> {
        let program = name_of(command);
        let output = command
            .stdin(Stdio::null())
            .output()
            .map_err(|source| Error::Start { program: program.clone(), source })?;
        let mut log = File::options().append(true).open(&self.log_path).map_err(Error::file("open", &self.log_path))?;
        writeln!(log, "$ {command:?}")
            .and_then(|()| log.write_all(&output.stderr))
            .map_err(Error::file("write", &self.log_path))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let is_word = |line: &&str| !line.trim().is_empty();
            let telling_line = said.lines().find(|line| is_error(line)).or_else(|| said.lines().rfind(is_word));
            let telling_line = telling_line.unwrap_or("it said nothing").to_owned();
            let (purpose, log) = (purpose.to_owned(), self.log_path.clone());
            return Err(Error::Command { program, status: output.status, purpose, telling_line, log });
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// A command with the parts of the environment fixed that change what tools do or say.
pub fn tool(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env("LC_ALL", "C").env("TZ", "UTC");
    // A make that runs this one must not hand its options down.
    for variable in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CFLAGS", "LDFLAGS"] {
        command.env_remove(variable);
    }
    command
}

/// The path with the folders of system programs behind it, which an ordinary user's often lacks (`mke2fs` lives there).
pub fn system_path() -> std::ffi::OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/local/sbin:/usr/sbin:/sbin");
    path
}

/// The first line of what a program says of its version on either of its standard streams.
pub fn version(runner: &Runner, program: &str, argument: &str) -> Result<String, Error> {
    let mut command = tool("sh");
    command.env("PATH", system_path()).args(["-c", &format!("{program} {argument} 2>&1")]);
    let text = runner.output(&mut command, "ask for a tool's version").map_err(|error| match error {
        Error::Command { .. } => {
            Error::Start { program: program.to_owned(), source: std::io::ErrorKind::NotFound.into() }
        }
        error => error,
    })?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// The program that does the work: of `nice` and `flock`, the one they start.
fn name_of(command: &Command) -> String {
    let before = match command.get_program().to_str() {
        Some("nice") => Some(0),
        Some("flock") => Some(1),
        _ => None,
    };
    let started = before.and_then(|index| command.get_args().nth(index));
    started.unwrap_or(command.get_program()).to_string_lossy().into_owned()
}

/// Whether a tool reports an error with this line: compilers, make and linkers write `error:`, apt begins with `E:`.
fn is_error(line: &str) -> bool {
    line.starts_with("E: ") || line.contains("error: ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::progress::Silent;

    fn runner(folder: &tempfile::TempDir) -> Runner<'static> {
        Runner::new(folder.path().join("log"), &Silent).unwrap()
    }

    #[test]
    fn a_failure_carries_the_last_line_and_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = tool("sh");
        command.args(["-c", "echo first; echo second >&2; exit 3"]);
        let error = runner(&folder).run(&mut command, "test failures").unwrap_err().to_string();
        assert!(error.starts_with("sh failed (exit status: 3) to test failures: second; "), "{error}");
        let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
        assert!(log.ends_with("first\nsecond\n"), "{log}");
    }

    #[test]
    fn the_first_error_is_what_a_failure_carries() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = tool("nice");
        command.args(["sh", "-c", "echo one; echo 'a.c:1: error: no b'; echo 'make: error: two'; exit 2"]);
        let error = runner(&folder).run(&mut command, "test").unwrap_err().to_string();
        assert!(error.starts_with("sh failed (exit status: 2) to test: a.c:1: error: no b; "), "{error}");
        let mut command = tool("sh");
        command.args(["-c", "echo 'E: no network' >&2; echo last >&2; exit 1"]);
        let error = runner(&folder).output(&mut command, "test").unwrap_err().to_string();
        assert!(error.starts_with("sh failed (exit status: 1) to test: E: no network; "), "{error}");
    }

    #[test]
    fn a_missing_program_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = runner(&folder).run(&mut tool("no-such-program"), "test").unwrap_err().to_string();
        assert!(error.starts_with("cannot start no-such-program: "), "{error}");
    }

    #[test]
    fn output_is_returned_apart_from_errors() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = tool("sh");
        command.args(["-c", "echo result; echo warning >&2"]);
        assert_eq!(runner(&folder).output(&mut command, "test").unwrap(), "result\n");
    }
}
