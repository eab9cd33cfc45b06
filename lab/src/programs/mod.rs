//! Locks and software transactions, measured: the check programs of `tm/check`, run on the machine over hart counts and seeds, or what
//! the same programs printed natively.
//!
//! As in [`compare`](crate::compare), a [`Plan`](plan::Plan) lays out the runs, the store keeps those that are finished, and
//! [`schedule::run`] makes the others side by side; [`record`] reads the lines that programs print.

pub mod family;
pub mod native;
pub mod plan;
pub mod record;
pub mod schedule;
