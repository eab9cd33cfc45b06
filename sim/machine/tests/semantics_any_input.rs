//! What must hold for any input: the properties of the fuzz targets (`fuzz/`), on inputs that proptest draws.

#[path = "../../../fuzz/src/properties.rs"]
#[allow(dead_code, reason = "the fuzz targets use all of it")]
mod properties;

use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::LazyLock;

static STATE: LazyLock<Vec<u8>> = LazyLock::new(properties::snapshot_state);

/// Every compressed instruction, and every word of 32 bits with one of these patterns in its upper half.
#[test]
fn the_decoder_holds_for_every_half() {
    for half in 0..=u16::MAX {
        for other in [0_u16, 0xffff, 0x5a5a, half] {
            properties::decoder(&(u32::from(other) << 16 | u32::from(half)).to_le_bytes());
        }
    }
}

#[test]
fn the_state_that_the_snapshot_property_starts_from_is_read() {
    assert!(properties::snapshot(&STATE));
}

proptest! {
    #[test]
    fn the_decoder_holds(bytes in vec(any::<u8>(), 256)) {
        properties::decoder(&bytes);
    }

    #[test]
    fn kernels_are_loaded_or_refused(bytes in vec(any::<u8>(), 0..512), changes in vec((0..0x200_usize, any::<u8>()), 0..4)) {
        properties::kernel(&bytes);
        let mut kernel = properties::small_kernel();
        for (place, value) in changes {
            kernel[place] = value;
        }
        properties::kernel(&kernel);
    }

    #[test]
    fn boards_are_read_or_refused(cut in any::<usize>(), insert in "[a-z_0-9=\\.\"\\[\\] \n-]{0,12}") {
        let board = include_str!("../boards/metatm-2007.toml");
        let cut = cut % (board.len() + 1);
        if board.is_char_boundary(cut) {
            let (before, after) = board.split_at(cut);
            properties::board(format!("{before}{insert}{after}").as_bytes());
        }
        properties::board(insert.as_bytes());
    }

    #[test]
    fn damaged_snapshots_are_refused_or_read(changes in vec(any::<u8>(), 4..24), cut in any::<usize>()) {
        properties::snapshot_changed(&STATE, &changes);
        properties::snapshot(&STATE[..cut % STATE.len()]);
    }

    #[test]
    fn no_instruction_stops_the_machine(bytes in vec(any::<u8>(), 129..200)) {
        properties::instruction(&bytes);
    }

    #[test]
    fn both_executors_end_in_one_state(bytes in vec(any::<u8>(), 160..400)) {
        properties::executors(&bytes);
    }
}
