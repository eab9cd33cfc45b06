//! The tables: times, what was counted meanwhile, tests, and runs.

use super::data::{Data, Group, Tested, in_order, link};
use crate::experiment::measurement::{Measurement, unit_of};
use crate::experiment::statistics::{self, Estimate};
use crate::report::table::{Cell, Column, Show, Table};
use crate::system::check_lines::{LATENCY, LOOP_TIME, OPERATION_TIME, SECTION_TIME};
use concord_machine::result::ResultDocument;

/// Counters that a table shows together.
pub struct Counters {
    pub name: &'static str,
    title: &'static str,
    note: &'static str,
    /// Counters that the others are parts of.
    pub wholes: &'static [&'static str],
    /// The others: their names, or what their names begin with.
    parts: &'static [&'static str],
}

/// Steals by position in the queue.
pub const STEALS: Counters = Counters {
    name: "steals",
    title: "Steals by position in the queue",
    note: "Locks taken by who had just come (try steals), and by who waited so many places behind the head of the queue, whose turn it \
           was: 0 is the head, and 11 has those from further back too. Means over the runs.",
    wholes: &["acquisitions"],
    parts: &["try_steals", "steals_"],
};

/// Of the one whose turn it was.
pub const HEAD: &str = "steals_0";

/// Hardware transactions.
pub const ABORTS: Counters = Counters {
    name: "aborts",
    title: "Hardware transactions and their aborts, by cause",
    note: "Means over the runs.",
    wholes: &["htm_attempts", "htm_commits"],
    parts: &["aborts_"],
};

/// Software transactions.
pub const RESTARTS: Counters = Counters {
    name: "restarts",
    title: "Software transactions and their restarts, by cause",
    note: "Means over the runs.",
    wholes: &["commits", "cancels"],
    parts: &["restarts_"],
};

/// Waits.
const WAITS: Counters = Counters {
    name: "waits",
    title: "Waits",
    note: "Waits in a queue and without one, sleeps, and releases that woke somebody. Means over the runs.",
    wholes: &["acquisitions"],
    parts: &["queued", "unqueued", "halts", "kicks"],
};

pub const ALL_COUNTERS: [Counters; 4] = [STEALS, ABORTS, RESTARTS, WAITS];

impl Counters {
    /// Those of the parts that counted anything, positions in their order.
    pub fn counted(&self, groups: &[Group]) -> Vec<String> {
        let is_part =
            |name: &str| self.parts.iter().any(|part| name == *part || part.ends_with('_') && name.starts_with(part));
        let quantities =
            groups.iter().flat_map(|group| &group.samples).flat_map(|sample| &sample.measurement.quantities);
        let counted = quantities.filter(|(name, count)| is_part(name) && **count > 0.0).map(|(name, _)| name.clone());
        let mut names = in_order(counted);
        names.sort_by_key(|name| {
            let part = self.parts.iter().position(|part| name.starts_with(part));
            let position = name.rsplit_once('_').and_then(|(_, number)| number.parse::<u64>().ok());
            (part, position, name.clone())
        });
        names
    }

    /// Groups in which any of the parts counted something.
    pub fn groups<'a>(&self, data: &'a Data) -> Vec<Group<'a>> {
        let mut groups = data.groups(|_| true);
        groups.retain(|group| !self.counted(std::slice::from_ref(group)).is_empty());
        groups
    }

    /// The table; none where nothing was counted.
    pub fn table(&self, data: &Data) -> Option<Table> {
        let groups = self.groups(data);
        let counted = self.counted(&groups);
        if counted.is_empty() {
            return None;
        }
        let names: Vec<&str> = self.wholes.iter().copied().chain(counted.iter().map(String::as_str)).collect();
        let mut columns = group_columns(data);
        columns.extend(names.iter().map(|name| Column::new(name, &name.replace('_', " "), Show::Mean)));
        columns.push(runs_column(data));
        let row = |group: &Group| {
            let mut row = group_cells(group);
            row.extend(names.iter().map(|name| Cell::from(group.mean(name))));
            row.push(Cell::Runs(group.links(&counted[0])));
            row
        };
        Some(Table {
            name: self.name.to_owned(),
            title: self.title.to_owned(),
            note: self.note.to_owned(),
            columns,
            rows: groups.iter().map(row).collect(),
        })
    }
}

fn group_columns(data: &Data) -> Vec<Column> {
    vec![
        Column::new(&data.nouns.case, &data.nouns.case, Show::Text),
        Column::new(data.threads_noun(), data.threads_noun(), Show::Count),
        Column::new(&data.nouns.variant, &data.nouns.variant, Show::Text),
    ]
}

fn group_cells(group: &Group) -> Vec<Cell> {
    vec![group.case.into(), group.threads.into(), group.subject.into()]
}

fn runs_column(data: &Data) -> Column {
    Column::new("runs", if data.machine.is_some() { "seeds" } else { "lines" }, Show::Runs)
}

/// Whether a quantity is a time, or a ratio of times.
fn is_time(name: &str) -> bool {
    name.starts_with("ratio") || unit_of(name).is_some()
}

/// A quantity's name for people, with its unit.
pub fn heading(name: &str) -> String {
    match unit_of(name) {
        Some(unit) => format!("{} ({unit})", name[..name.len() - unit.len() - 1].replace('_', " ")),
        None => name.replace('_', " "),
    }
}

/// The title and the note of the table of a main quantity.
fn words(main: &str) -> (&'static str, &'static str) {
    match main {
        LOOP_TIME => (
            "The loop of lock and unlock",
            "Thread: the time of a thread's loop of pairs of lock and unlock with nothing between, all threads at once, for one pair: a ns \
             here is a ms of a million pairs. Mean, deviation, least and most are over the threads of a run.",
        ),
        SECTION_TIME => (
            "Sections of all threads",
            "Section: the time from one critical section of any thread to the next of any thread, all threads at once.",
        ),
        LATENCY => {
            ("Uncontended pairs", "Latency: the time of a pair of lock and unlock on one thread, with nothing between.")
        }
        OPERATION_TIME => (
            "Operations",
            "Operation: the time from the end of an operation of any thread to the next of any thread, all threads at once.",
        ),
        _ => ("", ""),
    }
}

fn is_main(main: (&str, &str)) -> impl Fn(&Measurement) -> bool {
    move |measurement| (measurement.main, measurement.unit) == main
}

/// Groups of measurements with this main quantity.
pub fn groups_of<'a>(data: &'a Data, main: (&'static str, &'static str)) -> Vec<Group<'a>> {
    data.groups(is_main(main))
}

/// A main quantity of every group: its mean and standard deviation, its change against the first subject, and the times beside it.
pub fn times(data: &Data, main: (&'static str, &'static str)) -> Table {
    let groups = groups_of(data, main);
    let main_name = format!("{}_{}", main.0, main.1);
    let samples = groups.iter().flat_map(|group| &group.samples);
    let others: Vec<String> = in_order(samples.flat_map(|sample| sample.measurement.quantities.keys().cloned()))
        .into_iter()
        .filter(|name| *name != main_name && is_time(name))
        .collect();
    let subjects = data.subjects();
    let baseline = subjects.first().copied().unwrap_or_default();
    let mut columns = group_columns(data);
    columns.extend([
        Column::new(&main_name, &heading(&main_name), Show::Decimal),
        Column::new("deviation_of_runs", &format!("deviation of runs ({})", main.1), Show::Decimal),
        Column::new("change", &format!("against {baseline} (%)"), Show::Change),
    ]);
    columns.extend(others.iter().map(|name| Column::new(name, &heading(name), Show::Decimal)));
    columns.push(runs_column(data));
    let row = |group: &Group| {
        let values = group.values(&main_name);
        let base = groups
            .iter()
            .find(|other| (other.case, other.threads, other.subject) == (group.case, group.threads, baseline));
        let base = base.filter(|_| group.subject != baseline).map(|base| base.values(&main_name));
        let deviation =
            statistics::deviation(&values).map(|mean| Estimate { mean, half_width: None, runs: values.len() });
        let mut row = group_cells(group);
        row.push(statistics::mean(&values).into());
        row.push(deviation.into());
        row.push(base.and_then(|base| statistics::change(&base, &values)).into());
        row.extend(others.iter().map(|name| Cell::from(group.mean(name))));
        row.push(Cell::Runs(group.links(&main_name)));
        row
    };
    let (title, note) = words(main.0);
    Table {
        name: main.0.to_owned(),
        title: title.to_owned(),
        note: format!("{note} Means over the runs, ± half the 95% confidence interval."),
        columns,
        rows: groups.iter().map(row).collect(),
    }
}

/// What the tests say of each subject.
pub fn validation(data: &Data) -> Table {
    let subject = data.nouns.variant.as_str();
    let mut rows = Vec::new();
    let key = |tested: &Tested| (format!("{}{}", tested.group.variant, tested.group.case_suffix()), tested.group.harts);
    for (subject, harts) in in_order(data.tests.iter().map(key)) {
        let of: Vec<_> = data.tests.iter().filter(|tested| key(tested) == (subject.clone(), harts)).collect();
        let tests = in_order(of.iter().flat_map(|tested| &tested.verdicts).map(|verdict| verdict.test.as_str()));
        let failed = of.iter().filter(|tested| tested.has_failed).count();
        rows.push(vec![
            subject.into(),
            (harts as u64).into(),
            (of.len() as u64).into(),
            (failed as u64).into(),
            tests.join(" ").into(),
            Cell::Runs(of.iter().map(|tested| link(tested.run)).collect()),
        ]);
    }
    Table {
        name: "validation".to_owned(),
        title: "Validation".to_owned(),
        note: "Every run makes all tests of a program, with another seed.".to_owned(),
        columns: vec![
            Column::new(subject, subject, Show::Text),
            Column::new("harts", "harts", Show::Count),
            Column::new("runs_count", "runs", Show::Count),
            Column::new("failed_count", "failed", Show::Count),
            Column::new("tests", "tests", Show::Text),
            runs_column(data),
        ],
        rows,
    }
}

/// Runs that nothing may be concluded from.
pub fn failures(data: &Data) -> Table {
    let row = |failure: &crate::report::Failure| {
        let last = failure.console.iter().rev().find(|line| !line.trim().is_empty());
        vec![
            failure.title.as_str().into(),
            failure.why.as_str().into(),
            last.map_or(Cell::None, |line| Cell::from(line.as_str())),
        ]
    };
    Table {
        name: "failures".to_owned(),
        title: "Failed runs".to_owned(),
        note: "They are in no other table but those of validation and of the runs.".to_owned(),
        columns: vec![
            Column::new("run", "run", Show::Text),
            Column::new("why", "why", Show::Text),
            Column::new("console", "last line of the console", Show::Text),
        ],
        rows: data.failures.iter().map(row).collect(),
    }
}

/// Every run of the machine.
pub fn runs(data: &Data) -> Table {
    let mut rows = Vec::new();
    for (group, run, file) in &data.runs {
        let ResultDocument { exit, instructions, clock_cycles, digest, .. } = &file.result;
        rows.push(vec![
            group.case_title().into(),
            (group.harts as u64).into(),
            group.variant.as_str().into(),
            run.seed.into(),
            run.id.as_str().into(),
            exit.name().into(),
            (*instructions).into(),
            (*clock_cycles).into(),
            digest.as_str().into(),
            Cell::Runs(vec![link(run)]),
        ]);
    }
    let mut columns = group_columns(data);
    columns.extend([
        Column::new("seed", "seed", Show::Count),
        Column::new("run", "run", Show::Text),
        Column::new("exit", "end", Show::Text),
        Column::new("instructions", "instructions", Show::Count),
        Column::new("elapsed_cycles", "elapsed (cycles)", Show::Count),
        Column::new("state", "final state (BLAKE3)", Show::Text),
        runs_column(data),
    ]);
    Table {
        name: "runs".to_owned(),
        title: "Runs".to_owned(),
        note: "A run's name is the digest of everything that decides it: program, command line, board, gear, seed and machine. The same \
               command gives the same runs, down to the final state."
            .to_owned(),
        columns,
        rows,
    }
}
