//! Snapshots: if the first byte is odd, the rest is a whole state; if it is even, the rest changes a valid one.
#![no_main]

use concord_fuzz::properties::{snapshot, snapshot_changed, snapshot_state};
use std::sync::LazyLock;

static STATE: LazyLock<Vec<u8>> = LazyLock::new(snapshot_state);

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    match bytes.split_first() {
        Some((first, rest)) if first & 1 == 1 => {
            snapshot(rest);
        }
        Some((_, rest)) => snapshot_changed(&STATE, rest),
        None => {}
    }
});
