//! What a person reads at the end of a run.

use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, Table, presets};
use concord_abi::htm::Cause;
use concord_machine::accounting::critical_sections::report::{SectionResult, SectionTotals};
use concord_machine::result::{ConflictResult, FunctionResult, HartResult, ResultDocument, TransactionCounters};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::path::Path;

const FUNCTIONS_MAX: usize = 15;
const CONFLICTS_MAX: usize = 10;
const SECTIONS_MAX: usize = 10;

/// Prints the summary to standard error; `files` are what the run wrote, by option.
pub fn print(document: &ResultDocument, files: &[(&str, &Path)]) {
    let bold = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    // Nobody is left to tell when standard error is gone.
    let _ = std::io::stderr().write_all(text(document, files, bold).as_bytes());
}

/// The summary as text; `bold` marks headings for a terminal.
fn text(document: &ResultDocument, files: &[(&str, &Path)], bold: bool) -> String {
    let mut tables = vec![cycles(document, bold)];
    tables.extend(caches(document, bold));
    tables.extend(functions(&document.functions, bold));
    tables.extend(sections(&document.sections, bold));
    tables.extend(transactions(&document.harts, bold));
    tables.extend(conflicts(&document.conflicts, bold));
    let mut text = String::from("\n");
    for table in tables {
        let _ = writeln!(text, "{table}\n");
    }
    for line in committed_sections(&document.section_totals).into_iter().chain(devices(document)) {
        let _ = writeln!(text, "{line}");
    }
    let _ = writeln!(text, "{}", overall(document));
    for (option, path) in files {
        let _ = writeln!(text, "{}: {}", option.trim_start_matches('-'), path.display());
    }
    let _ = writeln!(text, "concord: {} (exit code {})", document.ending(), document.exit_code);
    text
}

fn overall(document: &ResultDocument) -> String {
    let mega = document.instructions as f64 / 1e6;
    let host_seconds = document.host_seconds.unwrap_or(0.0);
    format!(
        "{} instructions in {} cycles ({:.3} s of guest time), {:.2} s on the host, {:.1} million instructions a second\n\
         final state {}",
        grouped(document.instructions),
        grouped(document.clock_cycles),
        document.clock_cycles as f64 / 1e9,
        host_seconds,
        mega / host_seconds.max(1e-9),
        document.digest,
    )
}

fn table(title: &str, headings: &[&str], bold: bool) -> Table {
    let mut table = Table::new();
    // A table keeps its width: what is piped into a file must not depend on a terminal.
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let heading = |(index, text): (usize, &str)| {
        let cell = Cell::new(text).set_alignment(if index == 0 { CellAlignment::Left } else { CellAlignment::Right });
        if bold { cell.add_attribute(Attribute::Bold) } else { cell }
    };
    if bold {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    table.set_header([title].into_iter().chain(headings.iter().copied()).enumerate().map(heading));
    table
}

fn add(table: &mut Table, name: &str, values: impl IntoIterator<Item = String>) {
    let values = values.into_iter().map(|value| Cell::new(value).set_alignment(CellAlignment::Right));
    table.add_row([Cell::new(name)].into_iter().chain(values));
}

fn ratio(part: u64, whole: u64) -> String {
    if whole == 0 { String::from("-") } else { format!("{:.3}", part as f64 / whole as f64) }
}

fn cycles(document: &ResultDocument, bold: bool) -> Table {
    let headings = ["instructions", "user cycles", "supervisor cycles", "idle cycles", "instructions/cycle"];
    let title = if document.region { "region of interest" } else { "whole run" };
    let mut table = table(title, &headings, bold);
    let mut total = [0; 4];
    for (index, hart) in document.harts.iter().enumerate() {
        let values = [hart.instructions, hart.user_cycles, hart.supervisor_cycles, hart.idle_cycles];
        for (sum, value) in total.iter_mut().zip(values) {
            *sum += value;
        }
        let ratio = ratio(hart.instructions, hart.busy_cycles());
        add(&mut table, &format!("hart {index}"), values.map(grouped).into_iter().chain([ratio]));
    }
    let ratio = ratio(total[0], total[1] + total[2]);
    add(&mut table, "all harts", total.map(grouped).into_iter().chain([ratio]));
    table
}

/// The counters of the cache model; none when no hart ever ran in the timed gear.
fn caches(document: &ResultDocument, bold: bool) -> Option<Table> {
    let headings = [
        "L1I misses",
        "L1D misses",
        "L2 misses",
        "transfers",
        "upgrades",
        "invalidations",
        "downgrades",
        "writebacks",
        "stall cycles",
    ];
    let values = |hart: &HartResult| {
        let counters = &hart.counters;
        [
            counters.fetch_misses,
            counters.data_misses,
            counters.second_misses,
            counters.transfers,
            counters.upgrades,
            counters.invalidations,
            counters.downgrades,
            counters.writebacks,
            counters.stall_cycles,
        ]
    };
    let mut table = table("caches", &headings, bold);
    let mut total = [0; 9];
    for (index, hart) in document.harts.iter().enumerate() {
        let values = values(hart);
        for (sum, value) in total.iter_mut().zip(values) {
            *sum += value;
        }
        add(&mut table, &format!("hart {index}"), values.map(grouped));
    }
    add(&mut table, "all harts", total.map(grouped));
    total.iter().any(|sum| *sum != 0).then_some(table)
}

fn functions(functions: &[FunctionResult], bold: bool) -> Option<Table> {
    let mut table = table("where the time went", &["cycles (sampled)", "share"], bold);
    for function in functions.iter().take(FUNCTIONS_MAX) {
        let share = format!("{:.1} %", function.share * 100.0);
        add(&mut table, &function.name, [grouped(function.cycles), share]);
    }
    (!functions.is_empty()).then_some(table)
}

/// The call sites of critical sections that cost most; none where no hint spoke of sections.
fn sections(sections: &[SectionResult], bold: bool) -> Option<Table> {
    let headings = ["kind", "locked", "transactional", "spin cycles", "restart cycles", "concurrency"];
    let mut table = table("sections by call site", &headings, bold);
    for section in sections.iter().take(SECTIONS_MAX) {
        let totals = &section.totals;
        let values = [
            totals.locked,
            totals.transactional,
            totals.spin_cycles,
            totals.restart_cycles.values().sum(),
            totals.concurrency_max as u64,
        ];
        add(&mut table, &section.site, [section.kind.clone()].into_iter().chain(values.map(grouped)));
    }
    (!sections.is_empty()).then_some(table)
}

/// How many of the critical sections committed as transactions, of all and of each kind of lock.
fn committed_sections(totals: &BTreeMap<String, SectionTotals>) -> Option<String> {
    let share = |transactional: u64, all: u64| format!("{:.2} %", transactional as f64 / all as f64 * 100.0);
    let all = |totals: &SectionTotals| totals.locked + totals.transactional;
    let transactional = totals.values().map(|totals| totals.transactional).sum();
    let sections = totals.values().map(all).sum();
    let kinds = totals.iter().filter(|(_, totals)| all(totals) > 0);
    let kinds: Vec<String> =
        kinds.map(|(kind, totals)| format!("{kind} {}", share(totals.transactional, all(totals)))).collect();
    (sections > 0).then(|| {
        let whole = share(transactional, sections);
        format!("sections: {whole} of {} committed as transactions ({})", grouped(sections), kinds.join(", "))
    })
}

/// What transactions did; none when none ran.
fn transactions(harts: &[HartResult], bold: bool) -> Option<Table> {
    let of_harts = |value: &dyn Fn(&TransactionCounters) -> u64| -> Vec<u64> {
        harts.iter().map(|hart| value(&hart.transactions)).collect()
    };
    let mut columns = vec![("begun", of_harts(&|hart| hart.begun)), ("committed", of_harts(&|hart| hart.committed))];
    let mut causes = Cause::RESTARTS.map(|(cause, _)| cause);
    causes.sort_by_key(|cause| cause.name());
    let mut others: Vec<(&str, Vec<u64>)> =
        causes.into_iter().map(|cause| (cause.name(), of_harts(&|hart| hart.restarts.of(cause)))).collect();
    others.push(("suspended", of_harts(&|hart| hart.suspended)));
    others.push(("overflowed lines", of_harts(&|hart| hart.overflowed_lines)));
    others.push(("wait cycles", of_harts(&|hart| hart.wait_cycles)));
    columns.extend(others.into_iter().filter(|(_, values)| values.iter().any(|value| *value != 0)));
    columns.push(("lost cycles", of_harts(&|hart| hart.wasted_cycles)));
    columns.push(("back-off cycles", of_harts(&|hart| hart.backoff_cycles)));

    let headings: Vec<&str> = columns.iter().map(|(heading, _)| *heading).collect();
    let mut table = table("transactions", &headings, bold);
    for index in 0..harts.len() {
        add(&mut table, &format!("hart {index}"), columns.iter().map(|(_, values)| grouped(values[index])));
    }
    let total = |values: &[u64]| values.iter().sum::<u64>();
    add(&mut table, "all harts", columns.iter().map(|(_, values)| grouped(total(values))));
    columns.iter().any(|(_, values)| total(values) != 0).then_some(table)
}

fn conflicts(conflicts: &[ConflictResult], bold: bool) -> Option<Table> {
    let headings = ["holder", "address", "winner", "rule", "conflicts", "lost cycles", "lost words"];
    let mut table = table("conflicts by requester", &headings, bold);
    for conflict in conflicts.iter().take(CONFLICTS_MAX) {
        let texts =
            [&conflict.holder, &conflict.address, conflict.winner.name(), conflict.rule.name()].map(str::to_owned);
        let totals = &conflict.totals;
        let values = [totals.count, totals.lost_cycles, totals.lost_words].map(grouped);
        add(&mut table, &conflict.requester, texts.into_iter().chain(values));
    }
    (!conflicts.is_empty()).then_some(table)
}

fn devices(document: &ResultDocument) -> Vec<String> {
    let mut lines = Vec::new();
    for (index, disk) in document.devices.disks.iter().enumerate() {
        lines.push(format!(
            "disk {index}: {} reads of {} bytes, {} writes of {} bytes, {} flushes, {} errors",
            grouped(disk.reads),
            grouped(disk.read_bytes),
            grouped(disk.writes),
            grouped(disk.written_bytes),
            grouped(disk.flushes),
            grouped(disk.errors),
        ));
    }
    if let Some(net) = &document.devices.net {
        lines.push(format!(
            "network: {} frames sent, {} received, {} dropped",
            grouped(net.sent_frames),
            grouped(net.received_frames),
            grouped(net.sent_dropped_frames + net.received_dropped_frames),
        ));
    }
    lines
}

/// A number in groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use concord_abi::htm::Cause;
    use concord_machine::result::{ConflictTotals, RestartCounts, Rule, Winner};

    #[test]
    fn numbers_are_grouped_by_thousands() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn a_ratio_of_nothing_is_none() {
        assert_eq!(ratio(5, 0), "-");
        assert_eq!(ratio(1, 4), "0.250");
    }

    fn hart(transactions: TransactionCounters) -> HartResult {
        HartResult { transactions, ..HartResult::default() }
    }

    #[test]
    fn columns_of_transactions_are_those_that_have_something_to_say() {
        assert!(transactions(&[hart(TransactionCounters::default())], false).is_none());
        let restarts = |cause: Cause, count: u64| {
            let mut restarts = RestartCounts::default();
            *restarts.of_mut(cause) = count;
            restarts
        };
        let first = TransactionCounters {
            begun: 1200,
            committed: 1199,
            restarts: restarts(Cause::NeedExclusive, 3),
            wasted_cycles: 17,
            ..TransactionCounters::default()
        };
        let second = TransactionCounters {
            begun: 1,
            committed: 1,
            restarts: restarts(Cause::Conflict, 1_000_000),
            suspended: 2,
            wait_cycles: 5,
            wasted_cycles: 4,
            backoff_cycles: 9,
            ..TransactionCounters::default()
        };
        insta::assert_snapshot!(transactions(&[hart(first), hart(second)], false).expect("a table"));
    }

    fn totals(locked: u64, transactional: u64) -> SectionTotals {
        SectionTotals { locked, transactional, ..SectionTotals::default() }
    }

    #[test]
    fn only_the_costliest_sections_are_shown() {
        let section = |index: u64| SectionResult {
            site: format!("dput+{index:#x}"),
            kind: "spin".to_owned(),
            locks: 3,
            lock: None,
            totals: SectionTotals {
                spin_cycles: 1000 * index,
                restart_cycles: [("conflict".to_owned(), index), ("explicit".to_owned(), 100_000)].into(),
                concurrency_max: 4,
                ..totals(index, 2000 * index)
            },
            io_restarts_at: BTreeMap::new(),
        };
        let all: Vec<SectionResult> = (1..=12).rev().map(section).collect();
        assert!(sections(&[], false).is_none());
        insta::assert_snapshot!(sections(&all, false).expect("a table"));
    }

    #[test]
    fn the_share_of_committed_sections_is_said_for_each_kind_that_there_is() {
        let kinds = [("raw", totals(500, 0)), ("spin", totals(1, 1499)), ("write", totals(0, 0))];
        let kinds = kinds.map(|(kind, totals)| (kind.to_owned(), totals)).into();
        insta::assert_snapshot!(
            committed_sections(&kinds).expect("a line"),
            @"sections: 74.95 % of 2,000 committed as transactions (raw 0.00 %, spin 99.93 %)"
        );
        assert_eq!(committed_sections(&BTreeMap::new()), None);
        assert_eq!(committed_sections(&[("spin".to_owned(), totals(0, 0))].into()), None);
    }

    #[test]
    fn only_the_costliest_conflicts_are_shown() {
        let conflict = |index: u64| ConflictResult {
            physical_address: 0x8000_0000 + index * 8,
            requester: "spin_lock+0x10".to_owned(),
            holder: "kfree".to_owned(),
            address: format!("{index:#x}"),
            requester_is_transactional: index.is_multiple_of(2),
            requester_writes: true,
            winner: Winner::Holder,
            rule: Rule::Priority,
            totals: ConflictTotals { count: index, lost_cycles: 1000 * index, lost_words: 2 * index, inversions: 0 },
            details: concord_machine::result::PairDetails::default(),
        };
        let all: Vec<ConflictResult> = (1..=12).rev().map(conflict).collect();
        assert!(conflicts(&[], false).is_none());
        insta::assert_snapshot!(conflicts(&all, false).expect("a table"));
    }
}
