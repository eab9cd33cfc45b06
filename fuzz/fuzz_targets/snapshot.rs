//! Snapshots: as a whole where the first byte is odd, and as changes to a good one where it is even.
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
