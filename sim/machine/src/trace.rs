//! What each hart was doing and when, kept only while somebody wants a timeline.

use crate::hart::{Hart, Privilege};
use crate::machine::Event;
use crate::output::OutputError;
use crate::timeline::Timeline;
use concord_abi::htm::Cause;
use std::path::Path;

/// One stretch of a hart's time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    hart: usize,
    what: Doing,
    begin_cycle: u64,
    end_cycle: u64,
}

/// What a hart was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    User,
    Supervisor,
    Idle,
    Spinning {
        lock: u64,
    },
    /// One execution of a transaction, from its begin or restart on: committed where there is no cause.
    Attempt {
        cause: Option<Cause>,
    },
}

/// The stretches since they were last written out.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    enabled: bool,
    slices: Vec<Slice>,
}

impl Trace {
    pub fn set_enabled(&mut self, enabled: bool) {
        self.enabled = enabled;
    }

    /// A hart is about to account for what it did since it last did.
    #[inline]
    pub fn account(&mut self, hart: usize, state: &Hart) {
        if self.enabled && state.cycle > state.accounted_cycle {
            let what = match (state.is_busy(), state.privilege) {
                (true, Privilege::User) => Doing::User,
                (true, Privilege::Supervisor) => Doing::Supervisor,
                (false, _) => Doing::Idle,
            };
            self.push(hart, what, state.accounted_cycle, state.cycle);
        }
    }

    pub fn push(&mut self, hart: usize, what: Doing, begin_cycle: u64, end_cycle: u64) {
        if self.enabled {
            self.slices.push(Slice { hart, what, begin_cycle, end_cycle });
        }
    }
}

/// A cause as results have it.
fn cause_name(cause: Cause) -> String {
    let named = Cause::RESTARTS.iter().find(|(known, _)| *known == cause);
    named.map_or_else(String::new, |(_, name)| name.to_lowercase().replace('_', "-"))
}

/// Writes the timeline.
pub(crate) struct Tracer {
    timeline: Timeline,
}

impl Tracer {
    pub fn create(path: &Path) -> Result<Tracer, OutputError> {
        Ok(Tracer { timeline: Timeline::create(path)? })
    }

    pub fn write(&mut self, trace: &mut Trace) -> Result<(), OutputError> {
        for slice in trace.slices.drain(..) {
            let text;
            let name = match slice.what {
                Doing::User => "user",
                Doing::Supervisor => "supervisor",
                Doing::Idle => "idle",
                Doing::Spinning { lock } => {
                    text = format!("spin {lock:#x}");
                    &text
                }
                Doing::Attempt { cause: None } => "transaction",
                Doing::Attempt { cause: Some(cause) } => {
                    text = format!("restart: {}", cause_name(cause));
                    &text
                }
            };
            self.timeline.hart_slice(slice.hart, name, slice.begin_cycle, slice.end_cycle)?;
        }
        Ok(())
    }

    pub fn event(&mut self, hart: usize, event: Event, cycle: u64) -> Result<(), OutputError> {
        let name = match event {
            Event::Marker(number) => format!("marker {number}"),
            Event::RegionBegin => "region begins".to_owned(),
            Event::RegionEnd => "region ends".to_owned(),
            Event::Gear(gear) => format!("{} gear", gear.name()),
        };
        self.timeline.instant(hart, &name, cycle)
    }

    pub fn finish(self) -> Result<(), OutputError> {
        self.timeline.finish()
    }
}
