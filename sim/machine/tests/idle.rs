//! A guest that only waits for its timer, with nobody at its console.

use crate::support::assembler::*;
use crate::support::bare::*;
use concord_abi::exit::Exit;
use concord_machine::run::{Host, Limits, Options, run};
use concord_machine::{Gear, Machine};

/// Stops the run when it is told something.
#[derive(Default)]
struct Listener {
    told: Vec<String>,
}

impl Host for Listener {
    fn print(&mut self, _: &[u8]) -> std::io::Result<()> {
        Ok(())
    }

    fn announce(&mut self, message: &str) {
        self.told.push(message.to_owned());
    }

    fn wants_to_stop(&self) -> bool {
        !self.told.is_empty()
    }
}

/// A machine whose guest sets its timer to a tenth of a second later and waits for it, again and again.
fn ticking(gear: Gear) -> Machine {
    let mut bare = Bare::new(1);
    bare.set_csr(CSR_SIE, TIMER);
    let again = bare.code.label();
    bare.code.bind(again);
    bare.push(csr(CSRRS, S0, CSR_TIME, 0));
    bare.load(T0, TICKS_PER_SECOND / 10);
    bare.push(add(S0, S0, T0));
    bare.csrw(CSR_STIMECMP, S0);
    bare.push(WFI);
    bare.code.jump(0, again);
    bare.machine(gear)
}

const TICKS_PER_SECOND: u64 = 10_000_000;
const MINUTE_CYCLES: u64 = 60_000_000_000;

#[test]
fn a_host_hears_of_a_guest_that_only_waits_where_it_asks_to() {
    for gear in [Gear::Functional, Gear::Timed] {
        let mut listener = Listener::default();
        let mut machine = ticking(gear);
        let limits = Limits { instructions: None, cycles: Some(60 * MINUTE_CYCLES) };
        let options = Options { limits, paces_idle: true, ..Options::default() };
        let outcome = run(&mut machine, &options, &mut listener).unwrap();
        assert_eq!(outcome.end.exit, Exit::Stopped);
        assert_eq!(listener.told.len(), 1);
        assert!(listener.told[0].contains("has only waited"), "{:?}", listener.told);
        assert!(machine.clock() >= 10 * MINUTE_CYCLES, "{}", machine.clock());

        let mut listener = Listener::default();
        let outcome = run(&mut ticking(gear), &Options { limits, ..Options::default() }, &mut listener).unwrap();
        assert_eq!((outcome.end.exit, listener.told.len()), (Exit::LimitReached, 0));
    }
}
