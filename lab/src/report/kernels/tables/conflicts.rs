//! Conflicts of transactions, and those that the wrong one won (figure 7).

use super::{Data, by_group, by_group_columns};
use crate::report::table::{Column, Show, Table};
use concord_machine::result::ResultDocument;

/// Conflicts that inverted the kernel's priorities under the chosen policy.
pub fn conflicts(data: &Data) -> Table {
    let inversions = |run: &ResultDocument| run.conflict_totals.inversions;
    Table {
        name: "conflicts".to_owned(),
        title: format!("Conflicts and priority inversions under {}", data.plan.description.boards[0].transactions.manager.name()),
        note: "A conflict inverts priority when the side with the lower conflict priority, which the kernel sets at each switch, goes on."
            .to_owned(),
        columns: by_group_columns(vec![
            Column::new("conflicts", "conflicts", Show::Count),
            Column::new("lost_cycles", "lost (million cycles)", Show::Millions),
            Column::new("inversions", "inversions", Show::Count),
            Column::new("inversion_share", "inversions (% of conflicts)", Show::Percent),
        ]),
        rows: by_group(data, |group| {
            vec![
                group.mean(|run| run.conflict_totals.count as f64).into(),
                group.mean(|run| run.conflict_totals.lost_cycles as f64).into(),
                group.mean(|run| inversions(run) as f64).into(),
                group.share(inversions, |run| run.conflict_totals.count).into(),
            ]
        }),
    }
}
