//! Types of a file with debugging information that is written here.

use super::dwarf::{TypesError, Wanted};
use super::*;
use gimli::write::{Address, AttributeValue, DwarfUnit, EndianVec, Expression, Sections, UnitEntryId};
use proptest::prelude::*;
use std::io::Read;

/// Where the file's data is.
const DATA: u64 = 0x8000_0000;

struct File {
    dwarf: DwarfUnit,
}

impl File {
    fn new() -> File {
        let encoding = gimli::Encoding { format: gimli::Format::Dwarf32, version: 5, address_size: 8 };
        File { dwarf: DwarfUnit::new(encoding) }
    }

    fn entry(&mut self, parent: UnitEntryId, tag: gimli::DwTag, name: &str, size_bytes: Option<u64>) -> UnitEntryId {
        let id = self.dwarf.unit.add(parent, tag);
        let entry = self.dwarf.unit.get_mut(id);
        entry.set_sibling(true);
        if !name.is_empty() {
            entry.set(gimli::DW_AT_name, AttributeValue::String(name.into()));
        }
        if let Some(size_bytes) = size_bytes {
            entry.set(gimli::DW_AT_byte_size, AttributeValue::Udata(size_bytes));
        }
        id
    }

    fn top(&mut self, tag: gimli::DwTag, name: &str, size_bytes: Option<u64>) -> UnitEntryId {
        self.entry(self.dwarf.unit.root(), tag, name, size_bytes)
    }

    fn with_type(&mut self, entry: UnitEntryId, kind: UnitEntryId) -> UnitEntryId {
        self.dwarf.unit.get_mut(entry).set(gimli::DW_AT_type, AttributeValue::UnitRef(kind));
        entry
    }

    fn record(
        &mut self,
        is_union: bool,
        name: &str,
        size_bytes: u64,
        members: &[(&str, u64, UnitEntryId)],
    ) -> UnitEntryId {
        let tag = if is_union { gimli::DW_TAG_union_type } else { gimli::DW_TAG_structure_type };
        let record = self.top(tag, name, Some(size_bytes));
        for (name, offset_bytes, kind) in members {
            let member = self.entry(record, gimli::DW_TAG_member, name, None);
            self.with_type(member, *kind);
            let offset = AttributeValue::Udata(*offset_bytes);
            self.dwarf.unit.get_mut(member).set(gimli::DW_AT_data_member_location, offset);
        }
        record
    }

    fn array(&mut self, element: UnitEntryId, counts: &[Option<u64>]) -> UnitEntryId {
        let array = self.top(gimli::DW_TAG_array_type, "", None);
        for count in counts {
            let range = self.entry(array, gimli::DW_TAG_subrange_type, "", None);
            if let Some(count) = count {
                self.dwarf.unit.get_mut(range).set(gimli::DW_AT_upper_bound, AttributeValue::Udata(count - 1));
            }
        }
        self.with_type(array, element)
    }

    fn variable(&mut self, name: &str, address: u64, kind: UnitEntryId) {
        let variable = self.top(gimli::DW_TAG_variable, name, None);
        let mut location = Expression::new();
        location.op_addr(Address::Constant(address));
        self.dwarf.unit.get_mut(variable).set(gimli::DW_AT_location, AttributeValue::Exprloc(location));
        self.with_type(variable, kind);
    }

    /// The ELF file, whose sections of debugging information are compressed if it is wanted.
    fn finish(mut self, compressed: bool) -> Vec<u8> {
        let mut sections = Sections::new(EndianVec::new(gimli::LittleEndian));
        self.dwarf.write(&mut sections).expect("written");
        let mut contents = Vec::new();
        let each = sections.for_each(|id, bytes| {
            contents.push((id.name(), bytes.slice().to_vec()));
            Ok::<(), ()>(())
        });
        each.expect("no section fails");
        elf(&contents, compressed)
    }
}

/// An ELF file with 4 KiB of data at [`DATA`] and these sections.
fn elf(contents: &[(&'static str, Vec<u8>)], compressed: bool) -> Vec<u8> {
    const COMPRESSED: u64 = 0x800;
    let mut file = vec![0; 64];
    file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    file[16..24].copy_from_slice(&[2, 0, 243, 0, 1, 0, 0, 0]);
    let mut names = b"\0.data\0.names\0".to_vec();
    // Name, type, flags, address, offset, size.
    let mut headers: Vec<[u64; 6]> = vec![[0; 6], [1, 8, 3, DATA, 0, 0x1000]];
    for (name, bytes) in contents {
        let mut bytes = bytes.clone();
        if compressed {
            // Elf64_Chdr: the type (zlib) and 4 bytes of padding, the size, the alignment.
            let mut stream = [1, bytes.len() as u64, 1].map(u64::to_le_bytes).concat();
            let mut encoder = flate2::read::ZlibEncoder::new(&*bytes, flate2::Compression::fast());
            encoder.read_to_end(&mut stream).expect("compressed");
            bytes = stream;
        }
        headers.push([
            names.len() as u64,
            1,
            if compressed { COMPRESSED } else { 0 },
            0,
            file.len() as u64,
            bytes.len() as u64,
        ]);
        file.extend(&bytes);
        names.extend(name.bytes().chain([0]));
    }
    headers.push([7, 3, 0, 0, file.len() as u64, names.len() as u64]);
    file.extend(&names);
    file.resize(file.len().next_multiple_of(8), 0);
    let table = file.len() as u64;
    file[40..48].copy_from_slice(&table.to_le_bytes());
    let count = headers.len() as u16;
    file[52..64].copy_from_slice(&[64, 0, 56, 0, 0, 0, 64, 0, count as u8, 0, count as u8 - 1, 0]);
    for [name, kind, flags, address, offset, size] in headers {
        file.extend([name as u32, kind as u32].map(u32::to_le_bytes).concat());
        file.extend([flags, address, offset, size, 0, 1, 0].map(u64::to_le_bytes).concat());
    }
    file
}

const WANTED: Wanted = Wanted { structures: &["dentry", "mm_struct"], enumerations: &["pagetype"], roots: &[] };

/// A file of a few types as the kernel has them.
fn file() -> File {
    let mut file = File::new();
    let word = file.top(gimli::DW_TAG_base_type, "unsigned int", Some(4));
    let long = file.top(gimli::DW_TAG_base_type, "unsigned long", Some(8));
    let pointer = file.top(gimli::DW_TAG_pointer_type, "", None);
    let atomic = file.record(false, "", 4, &[("counter", 0, word)]);
    let halves = file.record(false, "", 4, &[("locked", 0, word)]);
    let queued = file.record(true, "qspinlock", 4, &[("val", 0, atomic), ("", 0, halves)]);
    let raw = file.record(false, "raw_spinlock", 4, &[("raw_lock", 0, queued)]);
    let lock = file.record(false, "spinlock", 4, &[("rlock", 0, raw)]);
    let lock_type = file.top(gimli::DW_TAG_typedef, "spinlock_t", None);
    file.with_type(lock_type, lock);
    let parts = file.record(false, "", 8, &[("lock", 0, lock_type), ("count", 4, word)]);
    let both = file.record(true, "", 8, &[("lock_count", 0, long), ("", 0, parts)]);
    let lockref = file.record(false, "lockref", 8, &[("", 0, both)]);
    let list = file.record(false, "list_head", 16, &[("next", 0, pointer), ("prev", 8, pointer)]);
    let name = file.array(word, &[Some(4)]);
    let lists = file.array(list, &[Some(2), Some(3)]);
    let counters = file.array(atomic, &[Some(2)]);
    let members = [
        ("d_flags", 0, atomic),
        ("d_lockref", 8, lockref),
        ("d_lru", 16, list),
        ("d_iname", 32, name),
        ("d_lists", 48, lists),
        ("d_counters", 144, counters),
    ];
    // A declaration of the structure stands before it.
    let declaration = file.top(gimli::DW_TAG_structure_type, "dentry", None);
    file.dwarf.unit.get_mut(declaration).set(gimli::DW_AT_declaration, AttributeValue::Flag(true));
    let dentry = file.record(false, "dentry", 152, &members);
    let tail = file.array(long, &[None]);
    file.record(false, "mm_struct", 16, &[("mmap_lock", 0, lock_type), ("cpu_bitmap", 16, tail)]);
    let kinds = file.top(gimli::DW_TAG_enumeration_type, "pagetype", Some(4));
    let slab = file.entry(kinds, gimli::DW_TAG_enumerator, "PGTY_slab", None);
    file.dwarf.unit.get_mut(slab).set(gimli::DW_AT_const_value, AttributeValue::Udata(0xf5));
    let table = file.array(dentry, &[Some(2)]);
    file.variable("table", DATA + 0x100, table);
    file.variable("text", DATA + 0x80, name);
    file.variable("constant", DATA + 0x1000, dentry);
    file
}

fn types(compressed: bool) -> Types {
    Types::from_elf(&file().finish(compressed), &WANTED).expect("a file").expect("types")
}

#[test]
fn the_innermost_member_names_an_offset() {
    let types = types(false);
    let named = |offset| types.member_of_structure("dentry", offset).expect("inside");
    // A lock and a counter end the path, and of a union the member that begins there and is shortest.
    let expected = [
        (0, ".d_flags"),
        (4, "+0x4"),
        (8, ".d_lockref.lock"),
        (10, ".d_lockref.lock+0x2"),
        (12, ".d_lockref.count"),
        (24, ".d_lru.prev"),
        (36, ".d_iname[1]"),
        (48 + 16 * 3 + 8, ".d_lists[1][0].prev"),
        (48 + 16 * 5 + 9, ".d_lists[1][2].prev+0x1"),
        (148, ".d_counters[1]"),
    ];
    for (offset, name) in expected {
        assert_eq!(named(offset), name, "{offset}");
    }
    assert_eq!(types.member_of_structure("dentry", 152), None);
    assert_eq!(types.member_of_structure("inode", 0), None);
    assert_eq!(types.member_of_structure("mm_struct", 0).as_deref(), Some(".mmap_lock"));
}

#[test]
fn compressed_information_is_the_same() {
    assert_eq!(types(true), types(false));
}

#[test]
fn fields_have_their_places_also_in_unnamed_unions() {
    let types = types(false);
    let place = |structure, name| types.field(structure, name).map(|field| (field.offset_bytes, field.size_bytes));
    assert_eq!(place("dentry", "d_lru"), Some((16, 16)));
    assert_eq!(place("dentry", "count"), None, "it is a member of another structure");
    assert_eq!(types.size_bytes("dentry"), Some(152));
    assert_eq!(types.constant("PGTY_slab"), Some(0xf5));
    assert!(types.is_open_ended("mm_struct") && !types.is_open_ended("dentry"));
}

#[test]
fn variables_that_are_written_have_their_members() {
    let types = types(false);
    assert_eq!(types.member_of_variable(DATA + 0x100, 152 + 12).as_deref(), Some("[1].d_lockref.count"));
    assert_eq!(types.member_of_variable(DATA + 0x100, 304), None);
    assert_eq!(types.member_of_variable(DATA + 0x80, 4), None, "an offset says as much");
    assert_eq!(types.member_of_variable(DATA + 0x1000, 0), None, "constant data");
}

#[test]
fn a_file_without_debugging_information_has_no_types() {
    assert_eq!(Types::from_elf(&elf(&[], false), &WANTED).expect("a file"), None);
    assert!(matches!(Types::from_elf(b"\x7fELF", &WANTED), Err(TypesError::Elf(_))));
    let mut missing = TypeFile::Unread { path: "no/such/vmlinux".into(), is_kept: false };
    missing.read();
    assert!(missing.types().is_none());
}

proptest! {
    #[test]
    fn no_damage_makes_reading_fail_otherwise(compressed: bool, damages in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12)) {
        let mut bytes = file().finish(compressed);
        for (at, byte) in damages {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(Some(types)) = Types::from_elf(&bytes, &WANTED) {
            for offset in 0..160 {
                let _ = types.member_of_structure("dentry", offset);
            }
        }
    }

    /// As a damaged snapshot could have them: of any indices.
    #[test]
    fn no_types_make_a_look_up_fail(
        records in prop::collection::vec((0..64u64, prop::collection::vec((0..40u64, 0..12u32, any::<bool>()), 0..6)), 1..10),
        offset in 0..80u64,
    ) {
        let mut types = Types::default();
        for (size_bytes, members) in records {
            let member = |(offset_bytes, kind, named): (u64, u32, bool)| Member {
                name: if named { "m" } else { "" }.into(),
                offset_bytes,
                kind,
            };
            types.types.push(match members.first() {
                Some((0, element, false)) => Type::Array { element: *element, size_bytes },
                _ => Type::Record { name: "".into(), size_bytes, members: members.into_iter().map(member).collect() },
            });
        }
        for kind in 0..12 {
            types.structures.insert("s".to_owned(), kind);
            let _ = (types.member_of_structure("s", offset), types.field("s", "m"), types.is_open_ended("s"));
        }
    }
}
