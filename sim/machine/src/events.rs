//! Events that somebody outside may wait for, and the end of the run.

use crate::configuration::Gear;
use crate::hart::Activity;
use crate::machine::Machine;
use concord_abi::exit::Exit;
use concord_abi::hint::Hint;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub exit: Exit,
    /// What the guest reported with it; 0 unless it failed.
    pub code: u64,
    /// Who ended it, where a hart did.
    pub hart: Option<usize>,
}

/// Something that happened in a turn and that somebody outside may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Marker(u64),
    RegionBegin,
    RegionEnd,
    Gear(Gear),
}

impl Machine {
    /// Ends the run. The first end counts.
    pub(crate) fn end(&mut self, end: End) {
        if self.end.is_none() {
            self.end = Some(end);
        }
        for hot in &mut self.memory.hot {
            hot.limit = 0;
        }
    }

    /// A hint instruction.
    pub(crate) fn hint(&mut self, hart: usize, code: u16, argument: u64) {
        let Some(hint) = Hint::from_code(code) else { return };
        let event = match hint {
            Hint::GearFunctional => Event::Gear(Gear::Functional),
            Hint::GearTimed => Event::Gear(Gear::Timed),
            Hint::Marker => Event::Marker(argument),
            Hint::RegionBegin => Event::RegionBegin,
            Hint::RegionEnd => Event::RegionEnd,
            Hint::Fail => {
                return self.end(End { exit: Exit::Failed, code: argument, hart: Some(hart) });
            }
            // These are not carried out between runs.
            _ => return,
        };
        // Whoever waits for the event sees the machine right after it; a gear is changed between turns.
        self.events.push((hart, event));
        self.memory.hot[hart].limit = 0;
    }

    /// What happened since the last call, with the hart it happened on. Applies what the machine itself must do about it.
    pub(crate) fn take_events(&mut self) -> Vec<(usize, Event)> {
        let events = std::mem::take(&mut self.events);
        for (_, event) in &events {
            match event {
                Event::Gear(gear) => {
                    self.memory.set_timed(*gear == Gear::Timed);
                    for hart in 0..self.harts.len() {
                        self.update_context(hart);
                        if self.harts[hart].activity == Activity::Running {
                            // Nobody waits for a line in the other gear.
                            self.update_next_turn(hart, self.memory.hot[hart].cycle);
                        }
                    }
                }
                Event::RegionBegin => self.begin_region(),
                Event::RegionEnd => self.end_region(),
                Event::Marker(_) => {}
            }
        }
        events
    }
}
