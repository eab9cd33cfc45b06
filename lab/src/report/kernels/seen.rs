//! What is seen in a figure, in a sentence: the heading above it.

use super::data::{Data, GroupData};
use super::tables::{concurrency_of, io_sites_of, ranked_locks, spin_share};
use crate::experiment::statistics::Estimate;
use crate::report::kernels::data::{KIND_RAW, KIND_SPIN};
use crate::report::table::{Show, grouped, shown};
use concord_machine::result::ResultDocument;

/// The groups of each kernel from one on, with the kernel's name.
fn by_kernel<'a, 'b>(data: &'b Data<'a>, from: usize) -> Vec<(&'b str, Vec<&'b GroupData<'a>>)> {
    let kernels = data.plan.description.variants.iter().enumerate().skip(from);
    kernels.map(|(index, kernel)| (kernel.name.as_str(), data.sets().map(|set| &set[index]).collect())).collect()
}

fn where_(group: &GroupData) -> String {
    format!("{}, {} harts", group.group.case_title(), group.group.harts)
}

/// From the least to the greatest of some values with their places, or the one.
fn span(values: &[(Estimate, String)], show: Show) -> Option<String> {
    let least = values.iter().min_by(|a, b| a.0.mean.total_cmp(&b.0.mean))?;
    let most = values.iter().max_by(|a, b| a.0.mean.total_cmp(&b.0.mean))?;
    let bare = |estimate: &Estimate| format!("{}%", shown(&Estimate { half_width: None, ..*estimate }, show));
    Some(if values.len() == 1 {
        format!("{}% ({})", shown(&least.0, show), least.1)
    } else {
        format!("{} ({}) to {} ({})", bare(&least.0), least.1, bare(&most.0), most.1)
    })
}

fn values(groups: &[&GroupData], of: impl Fn(&GroupData) -> Option<Estimate>) -> Vec<(Estimate, String)> {
    groups.iter().filter_map(|group| Some((of(group)?, where_(group)))).collect()
}

/// How kernels changed something against the first.
fn changes(data: &Data, what: &str, value: impl Fn(&ResultDocument) -> f64) -> Option<String> {
    let mut parts = Vec::new();
    for (name, groups) in by_kernel(data, 1) {
        let changes = values(&groups, |group| data.change(group, &value));
        let Some(span) = span(&changes, Show::Change) else { continue };
        let distinct = changes.iter().filter(|(change, _)| change.is_distinct_from_zero()).count();
        let weight = match (changes.len(), distinct) {
            (1, 0) => ", within the spread of the seeds".to_owned(),
            (1, _) => String::new(),
            (all, 0) => format!(", none of {all} beyond the spread of the seeds"),
            (all, some) => format!(", {some} of {all} beyond the spread of the seeds"),
        };
        parts.push(format!("on {name} by {span}{weight}"));
    }
    let first = &data.plan.description.variants[0].name;
    (!parts.is_empty()).then(|| format!("{what} changes against {first} {}", parts.join("; ")))
}

pub fn time(data: &Data) -> String {
    changes(data, "Kernel time", |run| run.kernel_cycles() as f64)
        .unwrap_or_else(|| "Kernel time and elapsed time".to_owned())
}

pub fn spinlocks(data: &Data) -> String {
    let acquires = |run: &ResultDocument| {
        run.sections_of(&[KIND_SPIN, KIND_RAW]).map(|section| section.totals.locked).sum::<u64>() as f64
    };
    changes(data, "The number of spinlocks taken as locks", acquires)
        .unwrap_or_else(|| "Spinlocks: acquisitions and loops".to_owned())
}

/// A share by kernel.
fn shares(
    data: &Data,
    from: usize,
    verb: &str,
    of_what: &str,
    of: impl Fn(&GroupData) -> Option<Estimate>,
) -> Option<String> {
    let part = |(name, groups): (&str, Vec<&GroupData>)| {
        Some(format!("{name} {verb} {}", span(&values(&groups, &of), Show::Percent)?))
    };
    let parts: Vec<String> = by_kernel(data, from).into_iter().filter_map(part).collect();
    (!parts.is_empty()).then(|| format!("{of_what}: {}", parts.join("; ")))
}

pub fn modes(data: &Data) -> String {
    let whole = ResultDocument::all_cycles;
    shares(data, 0, "takes", "The kernel's share of all cycles", |group| {
        group.share(ResultDocument::kernel_cycles, whole)
    })
    .unwrap_or_else(|| "User, system, I/O wait and idle time".to_owned())
}

pub fn synchronization(data: &Data) -> String {
    let lost = ResultDocument::lost_cycles;
    shares(data, 0, "loses", "Kernel time lost to synchronization", |group| {
        group.share(lost, ResultDocument::kernel_cycles)
    })
    .unwrap_or_else(|| "Kernel time lost to synchronization".to_owned())
}

pub fn conversion(data: &Data) -> String {
    let from = usize::from(data.plan.description.variants.len() > 1);
    let of =
        |group: &GroupData| spin_share(group, |section| section.totals.transactional, |section| section.totals.locked);
    shares(data, from, "commits", "Sections of spinlock_t that commit as transactions, by count", of)
        .unwrap_or_else(|| "No sections of spinlock_t were seen".to_owned())
}

pub fn conflicts(data: &Data) -> String {
    let policy = data.plan.description.boards[0].transactions.manager.name();
    let of = |group: &GroupData| group.share(|run| run.conflict_totals.inversions, |run| run.conflict_totals.count);
    shares(data, 0, "inverts", &format!("Conflicts that {policy} decided against the kernel's priorities"), of)
        .unwrap_or_else(|| "No transactions met".to_owned())
}

pub fn concurrency(data: &Data) -> String {
    let mut parts = Vec::new();
    for (name, groups) in by_kernel(data, 0) {
        let histogram = concurrency_of(&groups);
        let all: u64 = histogram.values().sum();
        let concurrent: u64 = histogram.range(2..).map(|(_, count)| count).sum();
        if let Some((most, _)) = histogram.last_key_value() {
            let share = concurrent as f64 / all as f64 * 100.0;
            parts.push(format!("on {name} in {share:.0}% of {}, and up to {most}", grouped(all as f64, 0)));
        }
    }
    if parts.is_empty() {
        return "No critical sections were seen".to_owned();
    }
    format!("Critical sections with more than one hart in them at once: {}", parts.join("; "))
}

pub fn restarts(data: &Data) -> String {
    let mut parts = Vec::new();
    for (name, groups) in by_kernel(data, 0) {
        let mut cycles = std::collections::BTreeMap::<&str, u64>::new();
        let sections = groups.iter().flat_map(|group| &group.runs).flat_map(|(_, run)| &run.sections);
        for (cause, count) in sections.flat_map(|section| &section.totals.restart_cycles) {
            *cycles.entry(cause).or_default() += count;
        }
        let all: u64 = cycles.values().sum();
        if let Some((cause, most)) = cycles.into_iter().max_by_key(|(_, cycles)| *cycles).filter(|(_, most)| *most > 0)
        {
            parts.push(format!("on {name} {cause}, {:.0}% of their cycles", most as f64 / all as f64 * 100.0));
        }
    }
    if parts.is_empty() {
        "No critical section restarted".to_owned()
    } else {
        format!("What restarts cost most for: {}", parts.join("; "))
    }
}

pub fn io(data: &Data) -> String {
    let mut parts = Vec::new();
    for (name, groups) in by_kernel(data, 0) {
        let sites: Vec<_> = groups.iter().flat_map(|group| io_sites_of(group)).collect();
        let nearly_always = sites.iter().filter(|site| site.share() >= 0.9).count();
        if !sites.is_empty() {
            parts.push(format!("on {name} {}, of which {nearly_always} nearly always do", sites.len()));
        }
    }
    if parts.is_empty() {
        "No section restarted for I/O".to_owned()
    } else {
        format!("Call sites that restart for I/O: {}", parts.join("; "))
    }
}

pub fn locks(data: &Data) -> String {
    let table = locks_by_set(data);
    let parts: Vec<String> = table.into_iter().map(|(place, lock)| format!("{lock} ({place})")).collect();
    if parts.is_empty() { "No lock cost anything".to_owned() } else { format!("What costs most: {}", parts.join(", ")) }
}

/// The costliest lock of each workload and hart count.
fn locks_by_set(data: &Data) -> Vec<(String, String)> {
    let costliest = |set: &[GroupData]| Some((where_(&set[0]), ranked_locks(set).into_iter().next()?));
    data.sets().filter_map(costliest).collect()
}
