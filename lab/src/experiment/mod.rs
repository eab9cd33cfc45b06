//! Comparisons: the same workloads on several kernels, several hart counts and several seeds.
//!
//! A [`Plan`](plan::Plan) lays out the runs, a [`Store`](store::Store) keeps those that are finished, [`schedule::run`] makes the
//! others side by side. A run is known by the digest of everything that decides it, so that a comparison that was interrupted goes on where it was and ends as if it had not been.

pub mod declaration;
mod error;
pub mod kernel;
mod local;
pub mod plan;
pub mod progress;
pub mod schedule;
pub mod statistics;
pub mod store;
pub mod workload;

pub use error::Error;

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
