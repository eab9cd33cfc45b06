//! Critical sections that restarted for I/O (figure 6 and table 7).

use super::{Data, GroupData, by_group, by_group_columns, group_cells, group_columns, runs_cell, runs_column};
use crate::report::table::{Cell, Column, Show, Table};
use concord_abi::htm::Cause;
use concord_machine::accounting::critical_sections::report::SectionResult;
use concord_machine::result::ResultDocument;
use std::collections::BTreeMap;

/// Call sites of a group that the table has.
const SITES_MAX: usize = 10;
/// Nest depths with a column of their own; the last has what is deeper too.
const DEPTHS: [(&str, &str); 4] =
    [("depth_1", "at depth 1"), ("depth_2", "2"), ("depth_3", "3"), ("depth_4", "4 or more")];

/// A call site that restarted for I/O, over all seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct IoSite {
    pub site: String,
    pub executions: u64,
    pub io_restarts: u64,
    /// The function that forced most of them.
    pub forced_by: String,
}

impl IoSite {
    /// The share of the site's executions that restart for I/O.
    pub fn share(&self) -> f64 {
        // What restarts inside another section's transaction is counted at that section, so a site can restart more often than it
        // comes to an end.
        (self.io_restarts as f64 / self.executions.max(1) as f64).min(1.0)
    }
}

/// The call sites of a group that ever restarted for I/O, most restarts first.
pub fn io_sites_of(group: &GroupData) -> Vec<IoSite> {
    let mut sites = Vec::new();
    for ((site, _), sections) in group.sections_by(|section| (section.site.clone(), section.kind.clone())) {
        let sum = |value: fn(&SectionResult) -> u64| sections.iter().map(|(_, section)| value(section)).sum::<u64>();
        let mut forced = BTreeMap::<&str, u64>::new();
        for (function, count) in sections.iter().flat_map(|(_, section)| &section.io_restarts_at) {
            *forced.entry(function).or_default() += count;
        }
        // Of equals the first name.
        let forced_by = forced.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(a.0)));
        sites.push(IoSite {
            site,
            executions: sum(|section| section.totals.executions()),
            io_restarts: sum(|section| section.totals.restarts_of(Cause::NeedExclusive)),
            forced_by: forced_by.map_or_else(String::new, |(function, _)| function.to_owned()),
        });
    }
    sites.retain(|site| site.io_restarts > 0);
    sites.sort_by_key(|site| std::cmp::Reverse(site.io_restarts));
    sites
}

fn at_depth(run: &ResultDocument, is_wanted: impl Fn(usize) -> bool) -> u64 {
    let of_section = |section: &SectionResult| -> u64 {
        let depths = section.totals.io_restarts_by_depth.iter().enumerate();
        depths.filter(|(index, _)| is_wanted(index + 1)).map(|(_, count)| count).sum()
    };
    run.sections.iter().map(of_section).sum()
}

/// How deep sections were nested when they restarted for I/O, and what that cost.
pub fn io(data: &Data) -> Table {
    let mut columns = vec![
        Column::new("sites", "call sites", Show::Count),
        Column::new("io_restarts", "restarts for I/O", Show::Count),
        Column::new("executions_share", "of executions (%)", Show::Percent),
    ];
    columns.extend(DEPTHS.map(|(name, heading)| Column::new(name, heading, Show::Mean)));
    columns.push(Column::new("depth_mean", "mean depth", Show::Decimal));
    columns.push(Column::new("io_restart_share", "lost (% of kernel time)", Show::Percent));
    let cells = |group: &GroupData| {
        let restarts = |run: &ResultDocument| {
            run.sections.iter().map(|section| section.totals.restarts_of(Cause::NeedExclusive)).sum::<u64>()
        };
        let executions =
            |run: &ResultDocument| run.sections.iter().map(|section| section.totals.executions()).sum::<u64>();
        let cycles = |run: &ResultDocument| -> u64 {
            run.sections.iter().map(|section| section.totals.restart_cycles_of(Cause::NeedExclusive)).sum()
        };
        let weighted = |run: &ResultDocument| -> u64 {
            (1..=64).map(|depth| depth as u64 * at_depth(run, |found| found == depth)).sum()
        };
        let mut cells: Vec<Cell> = vec![
            (io_sites_of(group).len() as u64).into(),
            group.mean(|run| restarts(run) as f64).into(),
            group.share(restarts, executions).into(),
        ];
        for index in 1..=DEPTHS.len() {
            let is_wanted = |depth: usize| depth == index || index == DEPTHS.len() && depth > index;
            cells.push(group.mean(|run| at_depth(run, is_wanted) as f64).into());
        }
        cells.push(group.share(weighted, |run| at_depth(run, |_| true)).into());
        cells.push(group.share(cycles, ResultDocument::kernel_cycles).into());
        cells
    };
    Table {
        name: "io".to_owned(),
        title: "Sections that restarted for I/O, by nest depth".to_owned(),
        note: "A section that is about to do I/O is restarted before it does, and then runs as a lock. Depth: sections open in the \
               transaction. Call sites are counted over all seeds."
            .to_owned(),
        columns: by_group_columns(columns),
        rows: by_group(data, cells),
    }
}

/// How often each call site that does I/O does it.
pub fn io_sites(data: &Data) -> Table {
    let mut columns = group_columns();
    columns.extend([
        Column::new("site", "call site", Show::Text),
        Column::new("executions", "executions", Show::Count),
        Column::new("io_restarts", "restarts for I/O", Show::Count),
        Column::new("io_share", "of executions (%)", Show::Percent),
        Column::new("forced_by", "forced by", Show::Text),
        runs_column(),
    ]);
    let rows = |group: &GroupData| -> Vec<Vec<Cell>> {
        let row = |site: IoSite| {
            let share = crate::experiment::statistics::Estimate {
                mean: site.share(),
                half_width: None,
                runs: group.runs.len(),
            };
            let mut row = group_cells(group);
            row.extend([
                site.site.as_str().into(),
                site.executions.into(),
                site.io_restarts.into(),
                Cell::Estimate(share),
                site.forced_by.as_str().into(),
                runs_cell(group),
            ]);
            row
        };
        io_sites_of(group).into_iter().take(SITES_MAX).map(row).collect()
    };
    Table {
        name: "io_sites".to_owned(),
        title: format!("The {SITES_MAX} call sites with most restarts for I/O"),
        note: "Sums over all seeds. A site that nearly always restarts is better off with cx_exclusive.".to_owned(),
        columns,
        rows: data.groups.iter().flat_map(rows).collect(),
    }
}
