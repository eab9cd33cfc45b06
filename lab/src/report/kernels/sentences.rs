//! The shapes of sentences above figures of comparisons of kernels.

use super::data::{Data, GroupData};
use crate::experiment::statistics::Estimate;
use crate::report::table::{Show, shown};
use concord_machine::result::ResultDocument;

/// The workload and the number of harts of a group.
pub fn place(group: &GroupData) -> String {
    format!("{}, {} harts", group.workload, group.harts)
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
    groups.iter().filter_map(|group| Some((of(group)?, place(group)))).collect()
}

/// How the other kernels change a quantity against the first; none of a kernel alone.
pub fn changes(data: &Data, what: &str, value: impl Fn(&ResultDocument) -> f64) -> Option<String> {
    let mut parts = Vec::new();
    for (name, groups) in data.by_kernel(1) {
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
    (!parts.is_empty()).then(|| format!("{what} changes against {} {}", data.first_kernel(), parts.join("; ")))
}

/// A share by kernel, with the verb that each kernel is the subject of.
pub fn shares(
    data: &Data,
    from: usize,
    (what, verb): (&str, &str),
    of: impl Fn(&GroupData) -> Option<Estimate>,
) -> Option<String> {
    let part = |(name, groups): (&str, Vec<&GroupData>)| {
        Some(format!("{name} {verb} {}", span(&values(&groups, &of), Show::Percent)?))
    };
    let parts: Vec<String> = data.by_kernel(from).into_iter().filter_map(part).collect();
    (!parts.is_empty()).then(|| format!("{what}: {}", parts.join("; ")))
}
