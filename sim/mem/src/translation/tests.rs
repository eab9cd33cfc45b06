//! Every kind of page-table entry against the privileged specification's own table.

use super::{Context, Leaf, walk};
use crate::fault::{Access, FaultKind};
use crate::ram::{RAM_BASE, Ram};

const ACCESSES: [Access; 3] = [Access::Fetch, Access::Load, Access::Store];
const TABLE: u64 = RAM_BASE;

/// The accesses that an X, W and R field permits ("Encoding of PTE R/W/X fields"); `None` if it is reserved.
fn permissions(field: u64) -> Option<&'static [Access]> {
    use Access::{Fetch, Load, Store};
    match field {
        0b000 => Some(&[]),
        0b001 => Some(&[Load]),
        0b010 => None,
        0b011 => Some(&[Load, Store]),
        0b100 => Some(&[Fetch]),
        0b101 => Some(&[Fetch, Load]),
        0b110 => None,
        _ => Some(&[Fetch, Load, Store]),
    }
}

/// Whether a mode may use a page at all, by the page's U bit.
fn privilege(context: &Context, is_user_page: bool, access: Access) -> bool {
    match (context.user, is_user_page, access) {
        (true, is_user_page, _) => is_user_page,
        (false, false, _) => true,
        (false, true, Access::Fetch) => false,
        (false, true, _) => context.supervisor_user_memory,
    }
}

struct Walked {
    found: Result<Leaf, FaultKind>,
    loads: u64,
    stores: u64,
}

fn walk_counted(ram: &Ram, context: &Context, address: u64, access: Access) -> Walked {
    let (mut loads, mut stores) = (0, 0);
    let found = walk(ram, context, address, access, |step| *if step.store { &mut stores } else { &mut loads } += 1);
    Walked { found, loads, stores }
}

/// Links tables from the root down to `level`, and returns the address of the entry that `address` uses there.
fn tables(ram: &Ram, levels: u64, level: u64, address: u64) -> u64 {
    let place = |depth: u64| TABLE + depth * 0x1000 + (address >> (12 + 9 * (levels - 1 - depth)) & 511) * 8;
    for depth in 0..levels - 1 - level {
        ram.write(place(depth), 8, (TABLE + (depth + 1) * 0x1000) >> 12 << 10 | 1);
    }
    place(levels - 1 - level)
}

#[test]
fn leaves_permit_what_the_specification_says() {
    let ram = Ram::new(1 << 20).expect("1 MiB");
    let address = 0x12_3456_7123 & 0x3f_ffff_ffff;
    for (mode, levels) in [(8_u64, 3_u64), (9, 4)] {
        for level in 0..levels {
            let place = tables(&ram, levels, level, address);
            let offset_mask = (1_u64 << (12 + 9 * level)) - 1;
            for misaligned in [false, true] {
                let page = if misaligned { 0x1000 } else { 0x40_0000_0000_0000 };
                for reserved in [0, 1 << 54, 1 << 59, 1 << 61, 1 << 62, 1 << 63] {
                    // The RSW field, bits 8 and 9, belongs to software.
                    for flags in 0..0x400_u64 {
                        let entry = page >> 12 << 10 | reserved | flags;
                        check_leaf(&ram, mode, place, entry, level, address, page | address & offset_mask & !0xfff);
                    }
                }
            }
            ram.write(place, 8, 0);
        }
    }
}

fn check_leaf(ram: &Ram, mode: u64, place: u64, entry: u64, level: u64, address: u64, page: u64) {
    let permitted = permissions(entry >> 1 & 7);
    let is_leaf = permitted.is_some_and(|permitted| !permitted.is_empty());
    let is_misaligned = level > 0 && entry >> 10 & ((1 << (9 * level)) - 1) != 0;
    let is_sound = entry & 1 == 1 && entry >> 54 == 0 && is_leaf && !is_misaligned;
    if !is_leaf && permitted.is_some() && entry & 1 == 1 && level > 0 {
        // The entry is a pointer; another test checks where it leads.
        return;
    }
    for case in 0..24_u64 {
        let access = ACCESSES[case as usize % 3];
        let context = Context {
            satp: mode << 60 | TABLE >> 12,
            user: (case / 3) & 1 == 1,
            supervisor_user_memory: (case / 6) & 1 == 1,
            make_executable_readable: case / 12 == 1,
        };
        let has_right = permitted.is_some_and(|permitted| {
            let by_execution = access == Access::Load && context.make_executable_readable;
            permitted.contains(&access) || by_execution && permitted.contains(&Access::Fetch)
        });
        let goes = is_sound && has_right && privilege(&context, entry >> 4 & 1 == 1, access);
        let used = entry | 1 << 6 | u64::from(access == Access::Store) << 7;
        ram.write(place, 8, entry);
        let walked = walk_counted(ram, &context, address, access);
        let expected =
            if goes { Ok(Leaf { page, flags: used & 0xff, level: level as u8 }) } else { Err(FaultKind::Page) };
        assert_eq!(walked.found, expected, "entry {entry:#x} at level {level}: {access:?} in {context:?}");
        assert_eq!(ram.read(place, 8), if goes { used } else { entry }, "entry {entry:#x}: {access:?} in {context:?}");
        assert_eq!(walked.stores, u64::from(goes && used != entry));
        let levels = if mode == 9 { 4 } else { 3 };
        assert_eq!(walked.loads, levels - level);
    }
}

/// A pointer at the last level, one with bits that only leaves may have, and one that leads outside RAM.
#[test]
fn pointers_are_checked() {
    let ram = Ram::new(1 << 20).expect("1 MiB");
    // A table of valid leaves, for the pointers that the walker must not follow.
    for index in 0..512 {
        ram.write(RAM_BASE + 0x8000 + 8 * index, 8, 0xcf);
    }
    for (mode, levels) in [(8_u64, 3_u64), (9, 4)] {
        let context = Context { satp: mode << 60 | TABLE >> 12, ..Context::default() };
        for level in 0..levels {
            let place = tables(&ram, levels, level, 0);
            for (entry, expected) in [
                ((RAM_BASE + 0x8000) >> 2 | 0x11, FaultKind::Page),
                ((RAM_BASE + 0x8000) >> 2 | 0x41, FaultKind::Page),
                ((RAM_BASE + 0x8000) >> 2 | 0x81, FaultKind::Page),
                // An empty table, or nothing behind the last level.
                ((RAM_BASE + 0x9000) >> 2 | 0x301, FaultKind::Page),
                // The table would be outside RAM.
                (0x1000_0000 >> 2 | 1, if level == 0 { FaultKind::Page } else { FaultKind::Access }),
                ((RAM_BASE + (1 << 20)) >> 2 | 1, if level == 0 { FaultKind::Page } else { FaultKind::Access }),
                (((1 << 44) - 1) << 10 | 1, if level == 0 { FaultKind::Page } else { FaultKind::Access }),
            ] {
                ram.write(place, 8, entry);
                for access in ACCESSES {
                    let found = walk_counted(&ram, &context, 0, access).found;
                    assert_eq!(found, Err(expected), "{entry:#x} at level {level} of {levels}, {access:?}");
                }
            }
            ram.write(place, 8, 0);
        }
    }
    let context = Context { satp: 8 << 60 | 0x1000, ..Context::default() };
    assert_eq!(walk_counted(&ram, &context, 0, Access::Load).found, Err(FaultKind::Access), "the root is outside RAM");
}

/// Addresses whose upper bits are not all equal to the highest translated bit fault without a walk.
#[test]
fn addresses_must_be_canonical() {
    let ram = Ram::new(1 << 20).expect("1 MiB");
    for (mode, width) in [(8_u64, 39), (9, 48)] {
        let context = Context { satp: mode << 60 | TABLE >> 12, ..Context::default() };
        // Gigapages everywhere under Sv39; under Sv48 leaves of 512 GiB.
        for index in 0..512 {
            ram.write(TABLE + 8 * index, 8, 0xcf);
        }
        for base in [0, 1 << (width - 1), 1 << width, 1 << 63, u64::MAX << width, u64::MAX << (width - 1)] {
            for address in [base, base | 0xfff, base | ((1 << (width - 1)) - 1)] {
                let sign = address >> (width - 1);
                let is_canonical = sign == 0 || sign == u64::MAX >> (width - 1);
                let walked = walk_counted(&ram, &context, address, Access::Load);
                assert_eq!(walked.found.is_ok(), is_canonical, "{address:#x} under mode {mode}");
                assert_eq!(walked.loads, u64::from(is_canonical));
                if !is_canonical {
                    assert_eq!(walked.found, Err(FaultKind::Page));
                }
            }
        }
    }
}
