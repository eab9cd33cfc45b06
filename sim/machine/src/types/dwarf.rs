//! Reads types from the debugging information of an ELF file (DWARF 4 and 5).

use super::{Member, Type, Types};
use gimli::{
    AttributeValue, DebuggingInformationEntry, Dwarf, EndianSlice, LittleEndian, Operation, SectionId, Unit, UnitOffset,
};
use object::read::elf::ElfFile64;
use object::{CompressionFormat, Object, ObjectSection, ObjectSymbol, SectionKind};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Read;
use std::ops::Range;

/// The longest section after decompression. A choice: those of a kernel with everything in it stay below.
const SECTION_BYTES_MAX: u64 = 2 << 30;

/// Variables that are no longer than this have no members that their names do not say.
const WORD_BYTES: u64 = 8;

/// What of a file's debugging information is kept.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted<'a> {
    /// Names of structures.
    pub structures: &'a [&'a str],
    /// Names of enumerations whose enumerators are kept.
    pub enumerations: &'a [&'a str],
    /// Symbols whose addresses are kept.
    pub roots: &'a [&'a str],
}

/// Why a file has no types.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TypesError {
    #[error("cannot read the ELF file: {0}")]
    Elf(#[from] object::Error),
    #[error("cannot read the debugging information: {0}")]
    Dwarf(#[from] gimli::Error),
    #[error("cannot decompress a section: {0}")]
    Section(#[from] std::io::Error),
}

type Slice<'a> = EndianSlice<'a, LittleEndian>;

impl Types {
    /// From a 64-bit little-endian ELF file. None where it has no debugging information.
    ///
    /// # Errors
    /// [`TypesError`] where the file is damaged, or compressed in an unknown way.
    pub fn from_elf(bytes: &[u8], wanted: &Wanted) -> Result<Option<Types>, TypesError> {
        let file = ElfFile64::<object::LittleEndian, _>::parse(bytes)?;
        if file.section_by_name(SectionId::DebugInfo.name()).is_none() {
            return Ok(None);
        }
        let sections = gimli::DwarfSections::load(|id| section(&file, id))?;
        let dwarf = sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian));
        let mut reader = Reader {
            dwarf: &dwarf,
            structures: wanted.structures.iter().copied().collect(),
            enumerations: wanted.enumerations,
            written: written_addresses(&file),
            types: Types::default(),
            interned: HashMap::new(),
        };
        let mut headers = dwarf.units();
        while let Some(header) = headers.next()? {
            reader.read_unit(&dwarf.unit(header)?)?;
        }
        let mut types = reader.types;
        types.roots = roots(&file, wanted.roots);
        Ok(Some(types))
    }
}

/// The bytes of a section, decompressed; none of one that is not read here.
fn section(file: &ElfFile64<object::LittleEndian>, id: SectionId) -> Result<Vec<u8>, TypesError> {
    let is_read = matches!(
        id,
        SectionId::DebugInfo
            | SectionId::DebugAbbrev
            | SectionId::DebugStr
            | SectionId::DebugStrOffsets
            | SectionId::DebugLineStr
            | SectionId::DebugAddr
            // Nothing is read from it, but a unit that points into it is an error without it.
            | SectionId::DebugLine
    );
    let Some(section) = file.section_by_name(id.name()).filter(|_| is_read) else { return Ok(Vec::new()) };
    let compressed = section.compressed_data()?;
    if compressed.uncompressed_size > SECTION_BYTES_MAX {
        return Err(std::io::Error::from(std::io::ErrorKind::FileTooLarge).into());
    }
    let mut bytes = Vec::new();
    let take = compressed.uncompressed_size;
    match compressed.format {
        CompressionFormat::None => bytes.extend_from_slice(compressed.data),
        CompressionFormat::Zlib => {
            flate2::read::ZlibDecoder::new(compressed.data).take(take).read_to_end(&mut bytes)?;
        }
        CompressionFormat::Zstandard => {
            zstd::Decoder::new(compressed.data)?.take(take).read_to_end(&mut bytes)?;
        }
        _ => return Err(std::io::Error::from(std::io::ErrorKind::Unsupported).into()),
    }
    Ok(bytes)
}

/// Where data is that programs write to.
fn written_addresses(file: &ElfFile64<object::LittleEndian>) -> Vec<Range<u64>> {
    let is_written = |kind| matches!(kind, SectionKind::Data | SectionKind::UninitializedData);
    let sections = file.sections().filter(|section| is_written(section.kind()));
    sections.map(|section| section.address()..section.address().saturating_add(section.size())).collect()
}

fn roots(file: &ElfFile64<object::LittleEndian>, wanted: &[&str]) -> BTreeMap<String, u64> {
    let found = |symbol: object::read::elf::ElfSymbol64<'_, '_, object::LittleEndian>| {
        let name = symbol.name().ok().filter(|name| wanted.contains(name))?;
        (!symbol.is_undefined()).then(|| (name.to_owned(), symbol.address()))
    };
    file.symbols().filter_map(found).collect()
}

struct Reader<'a> {
    dwarf: &'a Dwarf<Slice<'a>>,
    /// Structures that have not been found.
    structures: HashSet<&'a str>,
    enumerations: &'a [&'a str],
    written: Vec<Range<u64>>,
    types: Types,
    /// Equal types of all units are one.
    interned: HashMap<Type, u32>,
}

type Entry<'a> = DebuggingInformationEntry<Slice<'a>>;
type AnyUnit<'a> = Unit<Slice<'a>>;

/// The types of a unit that have been read, by their offsets.
type Seen = HashMap<UnitOffset, u32>;

impl<'a> Reader<'a> {
    fn read_unit(&mut self, unit: &AnyUnit<'a>) -> Result<(), TypesError> {
        let mut seen = Seen::new();
        let mut entries = unit.entries();
        // Past the unit's own entry to its children.
        entries.next_entry()?;
        entries.next_entry()?;
        while let Some(entry) = entries.current() {
            match entry.tag() {
                gimli::DW_TAG_structure_type => self.read_structure(unit, entry, &mut seen)?,
                gimli::DW_TAG_variable => self.read_variable(unit, entry, &mut seen)?,
                gimli::DW_TAG_enumeration_type => self.read_enumeration(unit, entry)?,
                _ => {}
            }
            entries.next_sibling()?;
        }
        Ok(())
    }

    fn name(&self, unit: &AnyUnit<'a>, entry: &Entry<'a>) -> Option<&'a str> {
        let name = self.dwarf.attr_string(unit, entry.attr_value(gimli::DW_AT_name)?).ok()?;
        std::str::from_utf8(name.slice()).ok()
    }

    /// Keeps a structure of a wanted name.
    fn read_structure(&mut self, unit: &AnyUnit<'a>, entry: &Entry<'a>, seen: &mut Seen) -> Result<(), TypesError> {
        let wanted = self.name(unit, entry).filter(|name| self.structures.contains(name));
        let Some(name) = wanted.filter(|_| !entry.has_attr(gimli::DW_AT_declaration)) else { return Ok(()) };
        let kind = self.convert(unit, entry.offset(), seen)?;
        self.structures.remove(name);
        self.types.structures.insert(name.to_owned(), kind);
        Ok(())
    }

    /// Keeps the type of a variable that has members and is written to.
    fn read_variable(&mut self, unit: &AnyUnit<'a>, entry: &Entry<'a>, seen: &mut Seen) -> Result<(), TypesError> {
        let Some(AttributeValue::Exprloc(expression)) = entry.attr_value(gimli::DW_AT_location) else { return Ok(()) };
        let address = match expression.operations(unit.encoding()).next()? {
            Some(Operation::Address { address }) => address,
            Some(Operation::AddressIndex { index }) => self.dwarf.address(unit, index)?,
            _ => return Ok(()),
        };
        if !self.written.iter().any(|range| range.contains(&address)) {
            return Ok(());
        }
        let Some(offset) = type_of_variable(unit, entry)? else { return Ok(()) };
        let kind = self.convert(unit, offset, seen)?;
        if self.types.size_of(kind) > WORD_BYTES && self.has_members(kind) {
            self.types.variables.insert(address, kind);
        }
        Ok(())
    }

    fn has_members(&self, mut kind: u32) -> bool {
        while let Some(Type::Array { element, .. }) = self.types.types.get(kind as usize) {
            kind = *element;
        }
        !self.types.is_plain(kind)
    }

    /// Keeps the enumerators of a wanted enumeration.
    fn read_enumeration(&mut self, unit: &AnyUnit<'a>, entry: &Entry<'a>) -> Result<(), TypesError> {
        if !self.name(unit, entry).is_some_and(|name| self.enumerations.contains(&name)) {
            return Ok(());
        }
        let mut tree = unit.entries_tree(Some(entry.offset()))?;
        let mut children = tree.root()?.children();
        while let Some(child) = children.next()? {
            let child = child.entry();
            let value = child.attr_value(gimli::DW_AT_const_value).and_then(|value| value.udata_value());
            if let (Some(name), Some(value)) = (self.name(unit, child), value) {
                self.types.constants.insert(name.to_owned(), value);
            }
        }
        Ok(())
    }

    /// The type at an offset. One that contains itself, which no compiler writes, is a scalar where it does.
    fn convert(&mut self, unit: &AnyUnit<'a>, offset: UnitOffset, seen: &mut Seen) -> Result<u32, TypesError> {
        if let Some(kind) = seen.get(&offset) {
            return Ok(*kind);
        }
        let unknown = self.intern(Type::Scalar { size_bytes: 0 });
        seen.insert(offset, unknown);
        let mut tree = unit.entries_tree(Some(offset))?;
        let root = tree.root()?;
        let entry = root.entry();
        let kind = match entry.tag() {
            gimli::DW_TAG_typedef
            | gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_restrict_type
            | gimli::DW_TAG_atomic_type => match reference(entry, gimli::DW_AT_type) {
                Some(inner) => self.convert(unit, inner, seen)?,
                None => unknown,
            },
            gimli::DW_TAG_structure_type | gimli::DW_TAG_union_type | gimli::DW_TAG_class_type => {
                let name = self.name(unit, entry).unwrap_or_default().into();
                let size_bytes = number(entry, gimli::DW_AT_byte_size).unwrap_or(0);
                let members = self.members(unit, root, seen)?;
                self.intern(Type::Record { name, size_bytes, members })
            }
            gimli::DW_TAG_array_type => self.array(unit, root, seen)?,
            gimli::DW_TAG_pointer_type => self.intern(Type::Scalar { size_bytes: WORD_BYTES }),
            _ => {
                let size_bytes = number(entry, gimli::DW_AT_byte_size).unwrap_or(0);
                self.intern(Type::Scalar { size_bytes })
            }
        };
        seen.insert(offset, kind);
        Ok(kind)
    }

    fn members(
        &mut self,
        unit: &AnyUnit<'a>,
        root: gimli::EntriesTreeNode<'_, '_, Slice<'a>>,
        seen: &mut Seen,
    ) -> Result<Vec<Member>, TypesError> {
        let mut members = Vec::new();
        let mut children = root.children();
        while let Some(child) = children.next()? {
            let entry = child.entry();
            let Some(offset) = reference(entry, gimli::DW_AT_type).filter(|_| entry.tag() == gimli::DW_TAG_member)
            else {
                continue;
            };
            let name = self.name(unit, entry).unwrap_or_default().into();
            let bits = number(entry, gimli::DW_AT_data_bit_offset).map(|bits| bits / 8);
            let offset_bytes = number(entry, gimli::DW_AT_data_member_location).or(bits).unwrap_or(0);
            members.push(Member { name, offset_bytes, kind: self.convert(unit, offset, seen)? });
        }
        Ok(members)
    }

    /// An array, of arrays where it has several dimensions.
    fn array(
        &mut self,
        unit: &AnyUnit<'a>,
        root: gimli::EntriesTreeNode<'_, '_, Slice<'a>>,
        seen: &mut Seen,
    ) -> Result<u32, TypesError> {
        let Some(element) = reference(root.entry(), gimli::DW_AT_type) else {
            return Ok(self.intern(Type::Scalar { size_bytes: 0 }));
        };
        let mut kind = self.convert(unit, element, seen)?;
        let mut counts = Vec::new();
        let mut children = root.children();
        while let Some(child) = children.next()? {
            let entry = child.entry();
            if entry.tag() == gimli::DW_TAG_subrange_type {
                let last = number(entry, gimli::DW_AT_upper_bound).and_then(|last| last.checked_add(1));
                counts.push(number(entry, gimli::DW_AT_count).or(last).unwrap_or(0));
            }
        }
        for count in counts.into_iter().rev() {
            let size_bytes = self.types.size_of(kind).saturating_mul(count);
            kind = self.intern(Type::Array { element: kind, size_bytes });
        }
        Ok(kind)
    }

    fn intern(&mut self, kind: Type) -> u32 {
        if let Some(known) = self.interned.get(&kind) {
            return *known;
        }
        let index = self.types.types.len() as u32;
        self.types.types.push(kind.clone());
        self.interned.insert(kind, index);
        index
    }
}

/// The type of a variable, which its declaration may have.
fn type_of_variable(unit: &AnyUnit, entry: &Entry) -> Result<Option<UnitOffset>, TypesError> {
    if let Some(offset) = reference(entry, gimli::DW_AT_type) {
        return Ok(Some(offset));
    }
    let Some(declaration) = reference(entry, gimli::DW_AT_specification) else { return Ok(None) };
    Ok(reference(&unit.entry(declaration)?, gimli::DW_AT_type))
}

fn reference(entry: &Entry, name: gimli::DwAt) -> Option<UnitOffset> {
    match entry.attr_value(name)? {
        AttributeValue::UnitRef(offset) => Some(offset),
        _ => None,
    }
}

fn number(entry: &Entry, name: gimli::DwAt) -> Option<u64> {
    entry.attr_value(name)?.udata_value()
}
