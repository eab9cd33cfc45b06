//! One run, from the built machine to the last line of the summary: the part that `boot` and `resume` share.

use crate::command::answer_json;
use crate::complain;
use crate::console::Console;
use crate::output::{Inputs, probe};
use crate::signal::Stop;
use crate::summary;
use anyhow::anyhow;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use concord_abi::exit::Exit;
use concord_lab::guest;
use concord_machine::output::AtomicFile;
use concord_machine::result::{self, ResultDocument};
use concord_machine::run::{self, Host, Limits, Options, SnapshotEvent};
use concord_machine::symbols::SymbolTable;
use concord_machine::{Executor, Machine, debugger};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Options of every run.
#[derive(clap::Args)]
#[command(next_help_heading = "Run")]
pub struct SessionArguments {
    /// Connect the terminal, or piped input, to the guest's console; Ctrl-A x ends the run
    #[arg(long)]
    interactive: bool,
    /// Wait for gdb on this port of 127.0.0.1
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    gdb: Option<u16>,
    /// End the run after this many instructions of all harts together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_instructions: Option<u64>,
    /// End the run at this value of the machine's clock
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_cycles: Option<u64>,
    /// When to take a snapshot: cycle:N, instructions:N, marker:N, region (it begins) or timed (the gear)
    #[arg(long, value_name = "EVENT", requires = "snapshot")]
    snapshot_at: Option<SnapshotEvent>,
    /// The file of the snapshot; every disk must be in overlay or read-only mode
    #[arg(long, value_name = "FILE", requires = "snapshot_at")]
    snapshot: Option<PathBuf>,
    #[command(flatten)]
    executor: ExecutorArguments,
    /// Follow every access, and end the run where a transaction is not isolated
    #[arg(long)]
    check_isolation: bool,
    /// Write a timeline that Perfetto opens
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,
    /// Write the result document
    #[arg(long, value_name = "FILE.json")]
    result: Option<PathBuf>,
    /// Print the result document to standard output, and the guest's console to standard error
    #[arg(long)]
    json: bool,
    /// Name functions and data by this file, an ELF file such as vmlinux or a System.map, instead of by the symbols that the kernel
    /// carries or, for a kernel that `concord build` built, those of the vmlinux beside it
    #[arg(long, value_name = "FILE")]
    symbols: Option<PathBuf>,
    /// Print no summary
    #[arg(long, short)]
    quiet: bool,
}

/// The choice of what executes guests.
#[derive(clap::Args)]
pub struct ExecutorArguments {
    /// What executes the guest's instructions; the results are the same
    #[arg(long, value_name = "NAME", default_value = "translator", value_parser = by_name(Executor::ALL, Executor::name))]
    executor: Executor,
}

impl ExecutorArguments {
    /// The executor that was chosen and that this host can run. Where it cannot, a line on standard error says why.
    pub fn choose(&self) -> Executor {
        match self.executor.check_host() {
            Ok(()) => self.executor,
            Err(error) => {
                complain(&format!("{error}; the interpreter runs instead"));
                Executor::Interpreter
            }
        }
    }
}

/// One of a few values, by its name.
pub fn by_name<T: Copy + Send + Sync + 'static, const COUNT: usize>(
    values: [T; COUNT],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let named = move |wanted: String| values.into_iter().find(|value| name(*value) == wanted);
    PossibleValuesParser::new(values.map(name)).map(move |name| named(name).expect("only these names are let through"))
}

impl SessionArguments {
    /// Whether a snapshot is asked for.
    pub fn takes_snapshot(&self) -> bool {
        self.snapshot.is_some()
    }

    /// Whether transactions' isolation is to be checked.
    pub fn checks_isolation(&self) -> bool {
        self.check_isolation
    }

    fn options(&self) -> Options {
        Options {
            limits: Limits { instructions: self.max_instructions, cycles: self.max_cycles },
            snapshot: self.snapshot_at.zip(self.snapshot.clone()),
            timeline: self.timeline.clone(),
            // A run with a limit ends by itself, the sooner the better.
            paces_idle: self.max_instructions.is_none() && self.max_cycles.is_none(),
            ..Options::default()
        }
    }

    fn outputs(&self) -> Vec<(&'static str, &Path)> {
        let outputs = [("--result", &self.result), ("--timeline", &self.timeline), ("--snapshot", &self.snapshot)];
        outputs.into_iter().filter_map(|(option, path)| Some((option, path.as_deref()?))).collect()
    }
}

/// Runs the machine that `make` makes, after everything that could be wrong with the other files has been looked for.
///
/// # Errors
/// If an input cannot be used or the host fails; result files are then as they were.
pub fn run(
    arguments: &SessionArguments,
    inputs: &Inputs,
    make: impl FnOnce() -> anyhow::Result<Machine>,
) -> anyhow::Result<Exit> {
    check_outputs(arguments, inputs)?;
    let mut result_file = arguments.result.as_deref().map(AtomicFile::create).transpose()?;
    let symbols = arguments.symbols.as_deref().map(SymbolTable::from_file).transpose()?;
    let mut machine = make()?;
    machine.set_executor(arguments.executor.choose())?;
    name_by(&mut machine, symbols, arguments.symbols.as_deref());

    let options = arguments.options();
    let stop = Stop::on_signals().map_err(|error| anyhow!("cannot watch for signals: {error}"))?;
    let mut console = Console::open(arguments.interactive, arguments.json, stop)?;
    let begin = Instant::now();
    let outcome = match arguments.gdb {
        None => run::run(&mut machine, &options, &mut console),
        Some(number) => {
            let port = debugger::Port::open(number)?;
            console.announce(&format!("waiting for gdb: target remote localhost:{number}"));
            debugger::serve(&mut machine, &port, &options, &mut console)
        }
    }?;
    let host_seconds = begin.elapsed().as_secs_f64();
    // The terminal is the user's again before anything more is said.
    drop(console);

    let document = result::document(&mut machine, &outcome, host_seconds)?;
    if let Some(mut file) = result_file.take() {
        let text = json(&document)?;
        file.write_all(&text).map_err(|error| file.error(error))?;
        file.commit()?;
    }
    if arguments.json {
        answer_json(&document)?;
    }
    if !arguments.quiet {
        summary::print(&document, &arguments.outputs());
    }
    match outcome.missed_snapshot {
        Some(path) => missed_snapshot(&path, outcome.end.exit),
        None => Ok(outcome.end.exit),
    }
}

/// Says that the run ended before the event of its snapshot. The guest's own failure decides the exit code.
///
/// # Errors
/// If the guest itself did not fail.
fn missed_snapshot(path: &Path, exit: Exit) -> anyhow::Result<Exit> {
    let error = anyhow!("{}: no snapshot was taken: the run ended before its event", path.display());
    if exit.code() == 0 {
        return Err(error);
    }
    complain(&error.to_string());
    Ok(exit)
}

/// Gives a machine the symbols of a file that the user named, and otherwise, of a kernel that `concord build` built, those of the
/// file beside it. They say how long objects of data are, which the kernel's own do not, and of which types.
fn name_by(machine: &mut Machine, symbols: Option<SymbolTable>, path: Option<&Path>) {
    if let Some((symbols, path)) = symbols.zip(path) {
        machine.set_symbols(symbols);
        machine.set_types_file(path, false);
    } else if let Some(path) = guest::symbols_of(&machine.configuration().kernel)
        // Without them functions still have the names that the kernel carries.
        && let Ok(symbols) = SymbolTable::from_file(&path)
    {
        machine.set_symbols(symbols);
        if !machine.has_types() {
            machine.set_types_file(&path, true);
        }
    }
}

fn check_outputs(arguments: &SessionArguments, inputs: &Inputs) -> anyhow::Result<()> {
    let mut inputs = inputs.clone();
    if let Some(symbols) = &arguments.symbols {
        inputs.add("symbol file", symbols);
    }
    inputs.check_outputs(&arguments.outputs())?;
    for path in [&arguments.timeline, &arguments.snapshot].into_iter().flatten() {
        probe(path)?;
    }
    Ok(())
}

fn json(document: &ResultDocument) -> anyhow::Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(document)?;
    text.push(b'\n');
    Ok(text)
}
