//! `monitor` commands: what gdb has no notion of. They only look, so that the run stays what it was.

use super::target::{activity_name, privilege_name};
use crate::data::DataNamer;
use crate::error::MachineError;
use crate::machine::Machine;
use crate::result::{conflicts, name, place};
use std::fmt::Write;

const HELP: &str = "\
clock         the machine's clock, instructions and gear
harts         each hart: clock, mode, activity and program counter
transactions  each hart's transaction, and what its transactions did
conflicts     the conflicts that cost most, with both places and the address
region        whether the region of interest has begun, and what was counted in it
digest        the digest of the machine's present state
symbol ADDR   the symbol at a hexadecimal address
help          these lines";

/// Conflicts that `monitor conflicts` shows.
const CONFLICTS_SHOWN: usize = 10;

/// The answer to a command, in lines.
pub(super) fn answer(machine: &mut Machine, command: &str) -> Result<String, MachineError> {
    let mut words = command.split_whitespace();
    Ok(match (words.next(), words.next(), words.next()) {
        (None | Some("help"), None, None) => HELP.to_owned(),
        (Some("clock"), None, None) => clock(machine),
        (Some("harts"), None, None) => harts(machine),
        (Some("transactions"), None, None) => transactions(machine),
        (Some("conflicts"), None, None) => worst_conflicts(machine),
        (Some("region"), None, None) => region(machine),
        (Some("digest"), None, None) => machine.digest()?,
        (Some("symbol"), Some(address), None) => symbol(machine, address),
        _ => format!("{:?} is no monitor command; these are:\n{HELP}", command.trim()),
    })
}

fn clock(machine: &Machine) -> String {
    let (clock, instructions, gear) = (machine.clock(), machine.instructions(), machine.gear().name());
    format!("clock {clock} cycles, {instructions} instructions of all harts, {gear} gear")
}

fn harts(machine: &Machine) -> String {
    let mut text = String::new();
    for (index, hart) in machine.harts.iter().enumerate() {
        let (mode, activity) = (privilege_name(hart.privilege), activity_name(hart.activity));
        let hot = &machine.memory.hot[index];
        let pc = place(machine.symbols.as_ref(), hot.pc);
        let _ = writeln!(
            text,
            "hart {index}: clock {} cycles, {} instructions, {mode}, {activity}, pc {pc}",
            hot.cycle, hot.instructions
        );
    }
    text
}

fn transactions(machine: &Machine) -> String {
    let mut text = String::new();
    for (hart, counters) in machine.transactions.counters().iter().enumerate() {
        let _ = match machine.transactions.subject(hart) {
            None => write!(text, "hart {hart}: no transaction"),
            Some(subject) => {
                let state = if subject.suspended { "suspended" } else { "active" };
                let doomed = if subject.doomed { ", has lost" } else { "" };
                let id = subject.id;
                let (depth, words, begin) = (subject.depth, subject.size_words, subject.begin_cycle);
                write!(
                    text,
                    "hart {hart}: transaction {id:#x} {state}{doomed}, depth {depth}, {words} words, began at {begin}"
                )
            }
        };
        let _ = writeln!(
            text,
            "; {} begun, {} committed, {} restarts",
            counters.begun,
            counters.committed,
            counters.restarts.total()
        );
    }
    text
}

fn worst_conflicts(machine: &Machine) -> String {
    let mut text = String::new();
    let (profile, kinds) = (machine.transactions.profile(), machine.transactions.kinds());
    let names = DataNamer::new(machine).names(profile.iter().map(|(key, _)| key.address), []);
    for conflict in conflicts(machine.symbols.as_ref(), &names, profile, kinds).iter().take(CONFLICTS_SHOWN) {
        let _ = writeln!(
            text,
            "{} cycles lost in {} conflicts: requester {}, holder {}, address {}; the {} wins",
            conflict.totals.lost_cycles,
            conflict.totals.count,
            conflict.requester,
            conflict.holder,
            conflict.address,
            conflict.winner.name()
        );
    }
    if text.is_empty() { "no conflict yet".to_owned() } else { text }
}

fn region(machine: &Machine) -> String {
    let state = match (&machine.accounting.statistics.baseline, &machine.accounting.statistics.region) {
        (_, Some(_)) => "the region of interest has ended",
        (Some(_), None) => "in the region of interest",
        (None, None) => "no region of interest has begun; counts are of the whole run",
    };
    let region = machine.region();
    let instructions: u64 = region.instructions.iter().sum();
    let (mut user, mut supervisor, mut idle) = (0, 0, 0);
    for modes in &region.modes {
        user += modes.user_cycles;
        supervisor += modes.supervisor_cycles;
        idle += modes.idle_cycles;
    }
    format!(
        "{state}: {} cycles, {instructions} instructions; harts' cycles: {user} user, {supervisor} supervisor, {idle} idle",
        region.cycles
    )
}

fn symbol(machine: &Machine, address: &str) -> String {
    let digits = address.strip_prefix("0x").unwrap_or(address);
    let Ok(number) = u64::from_str_radix(digits, 16) else {
        return format!("{address:?} is no hexadecimal address");
    };
    let Some(symbols) = &machine.symbols else { return "the machine has no symbols".to_owned() };
    let found = symbols.lookup(number).or_else(|| symbols.lookup_physical_data(number));
    match found {
        Some(_) => name(found, number),
        None => format!("no symbol at {number:#x}"),
    }
}
