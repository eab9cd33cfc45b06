//! Locks that are taken out of turn, by position in the queue.

use super::Subject;
use crate::report::chart::{Bar, Category, Chart, Segment};
use crate::report::figure::{Figure, class, drawable};
use crate::report::group::Compared;
use crate::report::programs::counters::{Counters, percent, sum};
use crate::report::programs::{Data, Group, hover_of, legend};
use crate::report::table::{Table, grouped};

pub struct Steals;

const COUNTERS: Counters = Counters {
    name: "steals",
    title: "Steals by position in the queue",
    note: "A try steal is a lock that a thread took on its arrival. The other counters are locks by the number of threads that stood \
           before the taker: 0 is the head of the queue, whose turn it was, and 11 has all positions from 11 on. Means over the runs.",
    wholes: &[ACQUISITIONS],
    parts: &["try_steals", "steals_"],
};

const ACQUISITIONS: &str = "acquisitions";
/// Locks taken by the thread whose turn it was.
const HEAD: &str = "steals_0";

impl Subject<Data<'_>> for Steals {
    fn table(&self, data: &Data) -> Option<Table> {
        COUNTERS.table(data)
    }

    fn sentence(&self, data: &Data) -> Option<String> {
        let groups = COUNTERS.groups(data);
        let mut out_of_turn = COUNTERS.counted(&groups);
        out_of_turn.retain(|counter| counter != HEAD);
        let share =
            |group: &Group| out_of_turn.iter().map(|counter| percent(group, counter, ACQUISITIONS)).sum::<f64>();
        let most = groups.iter().max_by(|a, b| share(a).total_cmp(&share(b)))?;
        let (share, title) = (grouped(share(most), 1), most.title(&data.headings()));
        Some(format!("Up to {share}% of locks are taken out of turn ({title})"))
    }

    /// A chart for each case and number of threads.
    fn figure(&self, data: &Data) -> Figure {
        let groups = COUNTERS.groups(data);
        let positions = COUNTERS.counted(&groups);
        let bar = |counter: &str, group: &Group| {
            let (part, whole) = (grouped(sum(group, counter), 0), grouped(sum(group, ACQUISITIONS), 0));
            let value = format!("{part} of {whole} locks taken");
            let hover = hover_of(data, group, counter, &counter.replace('_', " "), &value);
            let value = percent(group, counter, ACQUISITIONS);
            Bar { segments: vec![Segment { value, class: class(group.subject_index), hover }], interval: None }
        };
        let chart = |(case, threads): (&str, u64)| {
            let inside: Vec<&Group> =
                groups.iter().filter(|group| (group.case, group.threads) == (case, threads)).collect();
            let category = |counter: &String| Category {
                label: counter.strip_prefix("steals_").unwrap_or("new").to_owned(),
                bars: inside.iter().map(|group| bar(counter, group)).collect(),
            };
            Chart {
                title: format!("{case}, {threads} {}", data.headings().harts),
                x_label: "position in the queue",
                y_label: "of locks taken (%)".to_owned(),
                categories: positions.iter().map(category).collect(),
                range: (0.0, 0.0),
                is_share: true,
            }
        };
        let charts = drawable(Counters::places(&groups).into_iter().map(chart).collect());
        Figure { legend: legend(data, &groups), charts }
    }
}
