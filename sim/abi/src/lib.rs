//! Every name that the guest and the machine share. Nothing else in the tree defines one of these numbers; the C header
//! `concord.h` is generated from this crate (see [`header`]) and a test holds the two equal.

pub mod exit;
pub mod header;
pub mod hint;
pub mod htm;
