//! Experiments: the product of some axes (system, variant, case, size, harts, board, parameters), each cell once for each seed.
//!
//! An [`Experiment`] says what is asked for. A [`Plan`](plan::Plan) lays it out as groups of cells; a cell is known by the digest of
//! everything that decides its run. A [`Store`](store::Store) keeps a file for each finished run, and [`schedule::run`] makes the
//! missing ones through an [`Executor`](executor::Executor), so that an experiment that was interrupted goes on where it was and ends
//! as if it had not been. A [`System`](crate::system::System) says what a cell runs and how its result is read.

pub mod cell;
pub mod coordinate;
pub mod declaration;
mod error;
mod estimate;
pub mod executor;
pub mod files;
pub mod local;
pub mod measurement;
pub mod plan;
mod progress;
pub mod request;
pub mod schedule;
mod seal;
pub mod statistics;
pub mod store;
pub mod variant;

pub use error::Error;
pub use request::Experiment;

/// Refuses a name that comes twice.
pub(crate) fn refuse_repeated<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Result<(), Error> {
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(Error::Request(format!("{what} {name:?} is named twice")));
        }
    }
    Ok(())
}
