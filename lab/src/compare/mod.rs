//! Comparisons of kernels, by the names that their modules had before [`experiment`](crate::experiment).

pub mod record;

pub use crate::experiment::{Error, declaration, kernel, plan, progress, schedule, statistics, store, workload};
