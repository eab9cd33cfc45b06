//! Xmetatm in the machine: a directed guest for each sentence of docs/xmetatm.md that says "must", and more.
//!
//! Each test names the sentences it holds, as, in its doc comment; `coverage` checks that none is forgotten.

#[path = "support/assembler.rs"]
#[allow(dead_code, reason = "shared with the differential test, which needs more of it")]
mod assembler;
#[path = "transactions/atomics.rs"]
mod atomics;
#[path = "support/bare.rs"]
#[allow(dead_code, reason = "shared with the privileged tests, which need more of it")]
mod bare;
#[path = "transactions/capacity.rs"]
mod capacity;
#[path = "transactions/compare.rs"]
mod compare;
#[path = "transactions/conflicts.rs"]
mod conflicts;
#[path = "transactions/contexts.rs"]
mod contexts;
#[path = "transactions/coverage.rs"]
mod coverage;
#[path = "support/debugger_client.rs"]
mod debugger_client;
#[path = "transactions/devices.rs"]
mod devices;
#[path = "transactions/encodings.rs"]
mod encodings;
#[path = "transactions/guest.rs"]
mod guest;
#[path = "transactions/irrevocable.rs"]
mod irrevocable;
#[path = "transactions/lifecycle.rs"]
mod lifecycle;
#[path = "transactions/planted.rs"]
mod planted;
#[path = "transactions/programs.rs"]
mod programs;
#[path = "support/random.rs"]
#[allow(dead_code, reason = "shared with the differential test, which needs more of it")]
mod random;
#[path = "transactions/random.rs"]
mod random_guests;
#[path = "transactions/registers.rs"]
mod registers;
#[path = "transactions/repeat.rs"]
mod repeat;
#[path = "transactions/suspension.rs"]
mod suspension;
#[path = "transactions/translation.rs"]
mod translation;
#[path = "transactions/traps.rs"]
mod traps;
