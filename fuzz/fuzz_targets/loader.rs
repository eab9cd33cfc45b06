//! The bytes of a kernel file.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| concord_fuzz::properties::kernel(bytes));
