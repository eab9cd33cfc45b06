//! Xmetatm in the machine: a directed guest for each sentence of docs/xmetatm.md that says "must", and more.
//!
//! Each test names the sentences it holds, as, in its doc comment; `coverage` checks that none is forgotten.

mod atomics;
mod capacity;
mod compare;
mod conflicts;
mod contexts;
mod coverage;
mod deferred;
mod devices;
mod encodings;
mod granules;
pub mod guest;
mod irrevocable;
mod lifecycle;
mod outside;
mod planted;
mod programs;
mod random;
mod registers;
mod repeat;
mod suspension;
mod translation;
mod traps;
