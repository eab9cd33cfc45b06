//! The text of a board file.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| concord_fuzz::properties::board(bytes));
