//! The `concord` command.
//!
//! Thin: it reads the command line, connects the machine to the terminal and to files, and says how things ended. Whatever
//! could be wanted without a terminal lives in the lab or in the machine.

mod command;
mod console;
mod keyboard;
mod output;
mod session;
mod signal;
mod summary;
mod terminal;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use concord_abi::exit::Exit;
use std::io::Write;
use std::process::ExitCode;

const EXIT_CODES: &str = "\
Exit codes:
  0  the guest powered off
  1  the guest reported failure
  2  bad input: one line on standard error says what and where
  3  the guest kernel panicked
  4  deadlock: nothing can wake a hart, or one can only trap for ever
  5  a limit was reached, or the run was stopped from the console
  6  the guest asked for a reset
  7  a transaction was not isolated (--check-isolation)";

/// A deterministic RISC-V multicore that boots real Linux.
#[derive(Parser)]
#[command(name = "concord", version, after_help = EXIT_CODES, max_term_width = 100)]
#[command(subcommand_required = true, arg_required_else_help = false)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Boot(command::boot::Arguments),
    Resume(command::resume::Arguments),
    Compare(command::compare::Arguments),
    Locks(command::locks::Arguments),
    Stm(command::stm::Arguments),
    Build(command::build::Arguments),
    Doctor(command::doctor::Arguments),
    Completions(command::completions::Arguments),
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    let result = match arguments.command {
        Command::Boot(arguments) => command::boot::run(arguments),
        Command::Resume(arguments) => command::resume::run(arguments),
        Command::Compare(arguments) => command::compare::run(&arguments),
        Command::Locks(arguments) => command::locks::run(&arguments),
        Command::Stm(arguments) => command::stm::run(&arguments),
        Command::Build(arguments) => command::build::run(&arguments),
        Command::Doctor(arguments) => command::doctor::run(&arguments),
        Command::Completions(arguments) => command::completions::run(&arguments),
    };
    match result {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(error) => refuse(&error.to_string()),
    }
}

/// Answers `--help` and `--version`, and reduces anything else that the parser says to its first paragraph on one line.
fn usage(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // Without standard output there is no place for the answer.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let text = error.render().to_string();
    let paragraph = text.split("\n\n").next().unwrap_or_default();
    let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    refuse(&format!("{}; see concord --help", line.strip_prefix("error: ").unwrap_or(&line)))
}

/// Ends the command with an error.
fn refuse(message: &str) -> ExitCode {
    complain(message);
    ExitCode::from(Exit::BadInput.code())
}

/// Prints the one line of an error. Control characters in a path or an argument must not break the line or reach the terminal
/// as anything but text.
fn complain(message: &str) {
    let mut line = String::from("concord: ");
    for character in message.chars() {
        if character.is_control() {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line.push('\n');
    // Without standard error, the exit code still tells the end.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Arguments::command().debug_assert();
    }
}
