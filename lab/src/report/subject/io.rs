//! Critical sections that restart for I/O (figure 6 and table 7 of the TxLinux paper).

use super::Subject;
use crate::experiment::statistics::Estimate;
use crate::report::figure::Figure;
use crate::report::kernels::charts::{Axis, counts, legend};
use crate::report::kernels::{Data, GroupData, table_of_groups, table_of_rows};
use crate::report::table::{Cell, Column, Show, Table};
use concord_abi::htm::Cause;
use concord_machine::accounting::critical_sections::report::{SectionResult, SectionTotals};
use concord_machine::accounting::origins::Origin;
use concord_machine::result::ResultDocument;
use std::cmp::Reverse;
use std::collections::BTreeMap;

pub struct Io;

const TITLE: &str = "Sections that restarted for I/O, by nest depth";
const NOTE: &str = "A section that is about to do I/O restarts before it does, and then takes its lock. The depth is the number of sections \
                    that are open in the transaction; the origin is the trap that the thread is in. Call sites are counted over all seeds.";

/// Call sites of a group that the table has.
const SITES_MAX: usize = 10;
/// Bins of the shares of executions that restart for I/O.
const IO_BINS: usize = 10;
/// Nest depths with a column of their own; the last has every greater depth too.
const DEPTHS: [(&str, &str); 4] =
    [("depth_1", "at depth 1"), ("depth_2", "2"), ("depth_3", "3"), ("depth_4", "4 or more")];

/// Where the code that does I/O was entered from: a column's name, its heading, and the origins that it has.
type FromWhere = (&'static str, &'static str, &'static [Origin]);

const ORIGINS: [FromWhere; 3] = [
    ("system_call_share", "from system calls (%)", &[Origin::SystemCall]),
    ("interrupt_share", "from interrupts (%)", &[Origin::Interrupt]),
    ("other_share", "from page faults and kernel threads (%)", &[Origin::Exception, Origin::Kernel]),
];

/// A call site that restarted for I/O, over all seeds.
struct IoSite {
    site: String,
    executions: u64,
    io_restarts: u64,
    /// The function that forced most of them.
    forced_by: String,
}

impl IoSite {
    /// The share of the site's executions that restart for I/O.
    fn share(&self) -> f64 {
        // A restart inside another section's transaction counts at that section, so a site can restart more often than it comes to
        // an end.
        (self.io_restarts as f64 / self.executions.max(1) as f64).min(1.0)
    }
}

fn io_restarts(totals: &SectionTotals) -> u64 {
    totals.restarts_of(Cause::NeedExclusive)
}

/// The call sites of a group that ever restarted for I/O, most restarts first.
fn sites_of(group: &GroupData) -> Vec<IoSite> {
    let mut sites = Vec::new();
    for ((site, _), sections) in group.sections_by(|section| (section.site.clone(), section.kind.clone())) {
        let sum = |value: fn(&SectionTotals) -> u64| sections.iter().map(|(_, section)| value(&section.totals)).sum();
        sites.push(IoSite {
            site,
            executions: sum(SectionTotals::executions),
            io_restarts: sum(io_restarts),
            forced_by: forced_by(sections.iter().map(|(_, section)| *section)),
        });
    }
    sites.retain(|site| site.io_restarts > 0);
    sites.sort_by_key(|site| Reverse(site.io_restarts));
    sites
}

/// The function that forced most restarts; of equals the first name.
fn forced_by<'a>(sections: impl Iterator<Item = &'a SectionResult>) -> String {
    let mut forced = BTreeMap::<&str, u64>::new();
    for (function, count) in sections.flat_map(|section| &section.io_restarts_at) {
        *forced.entry(function).or_default() += count;
    }
    let most = forced.into_iter().max_by_key(|(function, count)| (*count, Reverse(*function)));
    most.map_or_else(String::new, |(function, _)| function.to_owned())
}

fn at_depth(run: &ResultDocument, is_wanted: impl Fn(usize) -> bool) -> u64 {
    run.sum_of_sections(|totals| {
        let depths = totals.io_restarts_by_depth.iter().enumerate();
        depths.filter(|(index, _)| is_wanted(index + 1)).map(|(_, count)| count).sum()
    })
}

/// The sum of the depths of all restarts for I/O.
fn depths_sum(run: &ResultDocument) -> u64 {
    run.sum_of_sections(|totals| (1..).zip(&totals.io_restarts_by_depth).map(|(depth, count)| depth * count).sum())
}

fn cells(group: &GroupData) -> Vec<Cell> {
    let restarts = |run: &ResultDocument| run.sum_of_sections(io_restarts);
    let cycles = |run: &ResultDocument| run.sum_of_sections(|totals| totals.restart_cycles_of(Cause::NeedExclusive));
    let mut cells: Vec<Cell> = vec![
        (sites_of(group).len() as u64).into(),
        group.mean(|run| restarts(run) as f64).into(),
        group.share(restarts, |run| run.sum_of_sections(SectionTotals::executions)).into(),
    ];
    for index in 1..=DEPTHS.len() {
        let is_wanted = |depth: usize| depth == index || index == DEPTHS.len() && depth > index;
        cells.push(group.mean(|run| at_depth(run, is_wanted) as f64).into());
    }
    for (.., origins) in ORIGINS {
        let of = |run: &ResultDocument| {
            run.sum_of_sections(|totals| origins.iter().map(|origin| totals.io_restarts_of(*origin)).sum())
        };
        cells.push(group.share(of, |run| at_depth(run, |_| true)).into());
    }
    cells.push(group.share(depths_sum, |run| at_depth(run, |_| true)).into());
    cells.push(group.share(cycles, ResultDocument::kernel_cycles).into());
    cells
}

impl Subject<Data<'_>> for Io {
    fn table(&self, data: &Data) -> Option<Table> {
        if !data.has_sections() {
            return None;
        }
        let mut columns = vec![
            Column::new("sites", "call sites", Show::Count),
            Column::new("io_restarts", "restarts for I/O", Show::Count),
            Column::new("executions_share", "of executions (%)", Show::Percent),
        ];
        columns.extend(DEPTHS.map(|(name, heading)| Column::new(name, heading, Show::Mean).on_page()));
        columns.extend(ORIGINS.map(|(name, heading, _)| Column::new(name, heading, Show::Percent).on_page()));
        columns.push(Column::new("depth_mean", "mean depth", Show::Decimal).on_page());
        columns.push(Column::new("io_restart_share", "lost (% of kernel time)", Show::Percent));
        Some(table_of_groups(data, ("io", TITLE, NOTE), columns, cells))
    }

    fn sentence(&self, data: &Data) -> Option<String> {
        let mut parts = Vec::new();
        for (name, groups) in data.by_kernel(0) {
            let sites: Vec<IoSite> = groups.iter().flat_map(|group| sites_of(group)).collect();
            let nearly_always = sites.iter().filter(|site| site.share() >= 0.9).count();
            if !sites.is_empty() {
                parts.push(format!("on {name} {}, {nearly_always} of them nearly always", sites.len()));
            }
        }
        Some(match parts.as_slice() {
            [] => "No section restarted for I/O".to_owned(),
            parts => format!("Call sites that restart for I/O: {}", parts.join("; ")),
        })
    }

    fn figure(&self, data: &Data) -> Figure {
        let charts = counts(
            data,
            "executions that restart for I/O (%)",
            Axis::new("call sites"),
            |_| (0..IO_BINS).map(|bin| format!("{}-{}", bin * 10, bin * 10 + 10)).collect(),
            |groups, _| {
                let mut bins = vec![0; IO_BINS];
                for site in groups.iter().flat_map(|group| sites_of(group)) {
                    bins[((site.share() * IO_BINS as f64) as usize).min(IO_BINS - 1)] += 1;
                }
                bins
            },
        );
        Figure { legend: legend(data, 0), charts }
    }

    fn details(&self, data: &Data) -> Vec<Table> {
        vec![sites(data)]
    }
}

/// How often each call site that does I/O restarts for it.
fn sites(data: &Data) -> Table {
    let title = format!("The {SITES_MAX} call sites with most restarts for I/O");
    let note = "Sums over all seeds. A site that nearly always restarts is better off with cx_exclusive.";
    let columns = vec![
        Column::new("site", "call site", Show::Text),
        Column::new("executions", "executions", Show::Count),
        Column::new("io_restarts", "restarts for I/O", Show::Count),
        Column::new("io_share", "of executions (%)", Show::Percent),
        Column::new("forced_by", "forced by", Show::Text),
    ];
    table_of_rows(data, ("io_sites", &title, note), columns, |group| {
        let row = |site: IoSite| {
            let share = Estimate { mean: site.share(), half_width: None, runs: group.runs.len() };
            vec![
                site.site.as_str().into(),
                site.executions.into(),
                site.io_restarts.into(),
                Cell::Estimate(share),
                site.forced_by.as_str().into(),
            ]
        };
        sites_of(group).into_iter().take(SITES_MAX).map(row).collect()
    })
}
