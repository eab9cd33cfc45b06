//! The activities of each hart over time, kept only if the run writes a timeline.

use crate::accounting::timeline::{Timeline, Track};
use crate::data::DataNamer;
use crate::events::Event;
use crate::hart::{Hart, Privilege};
use crate::output::OutputError;
use crate::result::{Winner, place, requester};
use crate::symbols::SymbolTable;
use concord_abi::htm::Cause;
use concord_htm::profile::Conflict;
use std::path::Path;

/// One interval of a hart's time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    hart: usize,
    what: Doing,
    begin_cycle: u64,
    end_cycle: u64,
}

/// The activity of a hart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    User,
    Supervisor,
    Idle,
    /// Waiting for a lock, which the section of this call site then held.
    Spinning {
        lock: u64,
        call_site: u64,
    },
    /// One execution of a transaction, from its begin or restart on. It committed if there is no cause, and was dropped
    /// if the cause is [`Cause::None`]. The call site is that of its outermost critical section, if the guest's hints
    /// name one.
    Attempt {
        cause: Option<Cause>,
        call_site: Option<u64>,
    },
}

/// The intervals since they were last written out.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    enabled: bool,
    slices: Vec<Slice>,
}

impl Trace {
    pub fn set_enabled(&mut self, enabled: bool) {
        self.enabled = enabled;
    }

    pub fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// A hart is about to account for the time since its last accounting.
    #[inline]
    pub fn account(&mut self, hart: usize, state: &Hart, now: u64) {
        if self.enabled && now > state.accounted_cycle {
            let what = match (state.is_busy(), state.privilege) {
                (true, Privilege::User) => Doing::User,
                (true, Privilege::Supervisor) => Doing::Supervisor,
                (false, _) => Doing::Idle,
            };
            self.push(hart, what, state.accounted_cycle, now);
        }
    }

    pub fn push(&mut self, hart: usize, what: Doing, begin_cycle: u64, end_cycle: u64) {
        if self.enabled {
            self.slices.push(Slice { hart, what, begin_cycle, end_cycle });
        }
    }
}

/// Writes the timeline.
pub(crate) struct Tracer {
    timeline: Timeline,
}

impl Tracer {
    pub fn create(path: &Path) -> Result<Tracer, OutputError> {
        Ok(Tracer { timeline: Timeline::create(path)? })
    }

    pub fn write(&mut self, trace: &mut Trace, symbols: Option<&SymbolTable>) -> Result<(), OutputError> {
        for slice in trace.slices.drain(..) {
            let text;
            let name = match slice.what {
                Doing::User => "user",
                Doing::Supervisor => "supervisor",
                Doing::Idle => "idle",
                Doing::Spinning { lock, .. } => {
                    text = format!("spin {lock:#x}");
                    &text
                }
                Doing::Attempt { cause: None, .. } => "transaction",
                Doing::Attempt { cause: Some(Cause::None), .. } => "dropped",
                Doing::Attempt { cause: Some(cause), .. } => {
                    text = format!("restart: {}", cause.name());
                    &text
                }
            };
            let track = match slice.what {
                Doing::Attempt { .. } => Track::Transactions(slice.hart),
                _ => Track::Hart(slice.hart),
            };
            let cycles = (slice.begin_cycle, slice.end_cycle);
            match slice.what {
                Doing::Spinning { call_site, .. } | Doing::Attempt { call_site: Some(call_site), .. } => {
                    self.timeline.slice(track, name, cycles, &[("call site", &place(symbols, call_site))])?;
                }
                _ => self.timeline.slice(track, name, cycles, &[])?,
            }
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
        self.timeline.instant(Track::Hart(hart), &name, cycle, &[])
    }

    /// A conflict, on the track of the requester's transactions, or of the holder's if a device was the requester.
    pub fn conflict(
        &mut self,
        conflict: &Conflict,
        symbols: Option<&SymbolTable>,
        namer: &DataNamer,
    ) -> Result<(), OutputError> {
        let key = &conflict.key;
        let arguments = [
            ("requester", &*requester(symbols, key)),
            ("holder", &place(symbols, key.holder_pc)),
            ("address", &namer.word(key.address)),
            ("winner", Winner::of(key).name()),
            ("rule", key.rule.name()),
        ];
        let track = Track::Transactions(conflict.requester_hart.unwrap_or(conflict.holder_hart));
        self.timeline.instant(track, "conflict", conflict.cycle, &arguments)
    }

    pub fn finish(self) -> Result<(), OutputError> {
        self.timeline.finish()
    }
}
