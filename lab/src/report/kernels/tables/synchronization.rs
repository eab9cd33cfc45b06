//! What synchronization cost, and how much of it transactions took over.

use super::{Data, GroupData, baseline, by_group, by_group_columns};
use crate::experiment::statistics::Estimate;
use crate::report::kernels::data::{KIND_RAW, KIND_SPIN};
use crate::report::table::{Cell, Column, Show, Table};
use concord_machine::accounting::critical_sections::report::SectionResult;
use concord_machine::result::ResultDocument;

/// The share of kernel time lost to synchronization (figure 4).
pub fn synchronization(data: &Data) -> Table {
    let lost = ResultDocument::lost_cycles;
    Table {
        name: "synchronization".to_owned(),
        title: "Kernel time lost to synchronization".to_owned(),
        note: "Spinning: waiting for a lock that another hart holds. Restarts: attempts of transactions that did not commit with their back-off, and transactions' waiting for each other. No cycle is in both; each is a share of the run's own kernel time."
            .to_owned(),
        columns: by_group_columns(vec![
            Column::new("lost_share", "lost (% of kernel time)", Show::Percent),
            Column::new("spin_share", "spinning (%)", Show::Percent),
            Column::new("restart_share", "restarts (%)", Show::Percent),
            Column::new("lost_cycles", "lost (million cycles)", Show::Millions),
            Column::new("lost_change", &format!("cycles against {} (%)", baseline(data)), Show::Change),
        ]),
        rows: by_group(data, |group| {
            vec![
                group.share(lost, ResultDocument::kernel_cycles).into(),
                group.share(ResultDocument::spin_cycles, ResultDocument::kernel_cycles).into(),
                group.share(ResultDocument::transaction_cycles, ResultDocument::kernel_cycles).into(),
                group.mean(|run| lost(run) as f64).into(),
                data.change(group, |run| lost(run) as f64).into(),
            ]
        }),
    }
}

fn of_spinlocks(run: &ResultDocument, value: impl Fn(&SectionResult) -> u64) -> f64 {
    run.sections_of(&[KIND_SPIN, KIND_RAW]).map(value).sum::<u64>() as f64
}

/// Acquisitions of spinlocks and the loops of waiting for them (table 6).
pub fn spinlocks(data: &Data) -> Table {
    let change = format!("against {} (%)", baseline(data));
    let values: [fn(&SectionResult) -> u64; 3] = [
        |section| section.totals.locked,
        |section| section.totals.test_loops,
        |section| section.totals.test_and_set_loops,
    ];
    let mut columns = Vec::new();
    for (name, change_name, heading) in [
        ("acquires", "acquires_change", "acquires"),
        ("test_loops", "test_loops_change", "test loops"),
        ("test_and_set_loops", "test_and_set_loops_change", "test&set loops"),
    ] {
        columns.push(Column::new(name, heading, Show::Count));
        columns.push(Column::new(change_name, &change, Show::Change));
    }
    Table {
        name: "spinlocks".to_owned(),
        title: "Spinlocks: acquisitions and loops".to_owned(),
        note: "Spinlocks taken as locks, spinlock_t and raw_spinlock_t. A test loop reads a lock that is held; a test&set loop is an \
               atomic attempt after the first."
            .to_owned(),
        columns: by_group_columns(columns),
        rows: by_group(data, |group| {
            let cells = |value: fn(&SectionResult) -> u64| -> [Cell; 2] {
                let of_run = |run: &ResultDocument| of_spinlocks(run, value);
                [group.mean(of_run).into(), data.change(group, of_run).into()]
            };
            values.into_iter().flat_map(cells).collect()
        }),
    }
}

/// The share of a part of `spinlock_t` sections in that part and the rest.
pub fn spin_share(
    group: &GroupData,
    part: fn(&SectionResult) -> u64,
    rest: fn(&SectionResult) -> u64,
) -> Option<Estimate> {
    let sum = |run: &ResultDocument, value: fn(&SectionResult) -> u64| -> u64 {
        run.sections_of(&[KIND_SPIN]).map(value).sum()
    };
    group.share(|run| sum(run, part), |run| sum(run, part) + sum(run, rest))
}

/// How many sections of `spinlock_t` commit as transactions.
pub fn conversion(data: &Data) -> Table {
    Table {
        name: "conversion".to_owned(),
        title: "Sections of spinlock_t that committed as transactions".to_owned(),
        note: "By count: committed sections among all. By cycles: cycles from the section's begin to its end, of committed sections among \
               all; a section inside another counts in both."
            .to_owned(),
        columns: by_group_columns(vec![
            Column::new("sections", "sections", Show::Count),
            Column::new("transactional_share", "by count (%)", Show::Percent),
            Column::new("transactional_cycles_share", "by cycles (%)", Show::Percent),
        ]),
        rows: by_group(data, |group| {
            vec![
                group.mean(|run| run.sections_of(&[KIND_SPIN]).map(|section| section.totals.executions()).sum::<u64>() as f64).into(),
                spin_share(group, |section| section.totals.transactional, |section| section.totals.locked).into(),
                spin_share(group, |section| section.totals.transactional_cycles, |section| section.totals.hold_cycles).into(),
            ]
        }),
    }
}
