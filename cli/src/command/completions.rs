//! `concord completions`: what a shell needs to complete this command.

use clap::CommandFactory;
use clap_complete::Shell;
use concord_abi::exit::Exit;

/// Print the completion script of a shell
#[derive(clap::Args)]
pub struct Arguments {
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Runs the command.
///
/// # Errors
/// If the script cannot be printed.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::Arguments::command(), "concord", &mut script);
    super::answer(&script)?;
    Ok(Exit::PoweredOff)
}
