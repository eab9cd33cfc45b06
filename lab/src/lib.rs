//! The lab: what is around the machine. It builds guests and looks after the host's tools.

pub mod doctor;
pub mod guest;
