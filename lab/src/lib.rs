//! The lab: it builds guests, makes experiments with them, renders reports, and looks after the host's tools.

pub mod doctor;
pub mod experiment;
pub mod guest;
pub mod report;
pub mod system;
