//! Instruction words, 32-bit and compressed.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| concord_fuzz::properties::decoder(bytes));
