//! User, system, I/O wait and idle time (figure 3 of the TxLinux paper).

use super::Subject;
use crate::report::chart::Segment;
use crate::report::figure::{Figure, key};
use crate::report::kernels::charts::{Axis, by_kernel, hover_of};
use crate::report::kernels::{Data, sentences, table_of_groups};
use crate::report::table::{Column, Show, Table, shown};
use concord_machine::result::ResultDocument;

pub struct Modes;

const TITLE: &str = "User, system, I/O wait and idle time";
const NOTE: &str =
    "Shares of the cycles of all harts. A hart waits for I/O when it is idle while a disk has a request under way.";

/// A mode: the class of its colour, its name, its column and its cycles.
type Mode = (&'static str, &'static str, &'static str, fn(&ResultDocument) -> u64);

const MODES: [Mode; 4] = [
    ("user", "user", "user_share", ResultDocument::user_cycles),
    ("system", "system", "system_share", ResultDocument::kernel_cycles),
    ("wait", "I/O wait", "io_wait_share", ResultDocument::io_wait_cycles),
    ("idle", "idle", "idle_share", ResultDocument::idle_cycles),
];

impl Subject<Data<'_>> for Modes {
    fn table(&self, data: &Data) -> Option<Table> {
        let columns = MODES.map(|(_, name, column, _)| Column::new(column, &format!("{name} (%)"), Show::Percent));
        Some(table_of_groups(data, ("modes", TITLE, NOTE), columns.into(), |group| {
            MODES.map(|(.., cycles)| group.share(cycles, ResultDocument::all_cycles).into()).into()
        }))
    }

    fn sentence(&self, data: &Data) -> Option<String> {
        sentences::shares(data, 0, ("The kernel's share of all cycles", "takes"), |group| {
            group.share(ResultDocument::kernel_cycles, ResultDocument::all_cycles)
        })
    }

    fn figure(&self, data: &Data) -> Figure {
        let charts = by_kernel(data, Axis::share("cycles of all harts (%)"), |group| {
            let segment = |(class, name, _, cycles): &Mode| {
                let estimate = group.share(cycles, ResultDocument::all_cycles)?;
                let hover = hover_of(group, name, &format!("{}%", shown(&estimate, Show::Percent)));
                Some(Segment { value: estimate.mean * 100.0, class: (*class).to_owned(), hover })
            };
            MODES.iter().filter_map(segment).collect()
        });
        Figure { legend: MODES.iter().map(|(class, name, ..)| key(class, name)).collect(), charts }
    }
}
