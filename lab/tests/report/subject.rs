//! A subject that is not ours: all that `docs/how-to/report-subject.md` asks for is here.

use concord_lab::report::figure::Figure;
use concord_lab::report::kernels::charts::{Axis, by_workload, legend, plain};
use concord_lab::report::kernels::{Data, sentences, table_of_groups};
use concord_lab::report::subject::Subject;
use concord_lab::report::table::{Column, Show, Table};
use concord_machine::result::ResultDocument;

/// The share of all cycles in which harts had nothing to do.
pub struct Idleness;

fn idle_cycles(run: &ResultDocument) -> u64 {
    run.idle_cycles()
}

impl Subject<Data<'_>> for Idleness {
    fn table(&self, data: &Data) -> Option<Table> {
        let words = ("idleness", "Idle harts", "A share of the cycles of all harts.");
        let columns = vec![Column::new("idle_share", "idle (%)", Show::Percent)];
        Some(table_of_groups(data, words, columns, |group| {
            vec![group.share(idle_cycles, ResultDocument::all_cycles).into()]
        }))
    }

    fn sentence(&self, data: &Data) -> Option<String> {
        sentences::shares(data, 0, ("Cycles of idle harts", "idles"), |group| {
            group.share(idle_cycles, ResultDocument::all_cycles)
        })
    }

    fn figure(&self, data: &Data) -> Figure {
        let charts = by_workload(data, "Idle harts", Axis::share("cycles (%)"), 0, |group, kernel| {
            let estimate = group.share(idle_cycles, ResultDocument::all_cycles)?;
            Some(plain(group, "idle", estimate, Show::Percent, kernel))
        });
        Figure { legend: legend(data, 0), charts }
    }
}
