//! Words and halves of instructions.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| concord_fuzz::properties::decoder(bytes));
