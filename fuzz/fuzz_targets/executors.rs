//! Programs on both executors.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| concord_fuzz::properties::executors(bytes));
