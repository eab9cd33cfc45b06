//! The lab: what is around the machine. It builds guests, compares kernels, and looks after the host's tools.

pub mod compare;
pub mod doctor;
pub mod experiment;
pub mod guest;
pub mod programs;
pub mod report;
