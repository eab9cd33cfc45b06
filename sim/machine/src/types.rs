//! Types of a guest program's data: which member of a structure lies at an offset, so that data can be named by it.
//!
//! They come from the debugging information (DWARF) of the ELF file that the guest was built as. A guest whose file has none
//! has no types, and its data are named by their symbols alone.

mod dwarf;
mod file;
#[cfg(test)]
mod tests;

pub(crate) use dwarf::Wanted;
pub(crate) use file::TypeFile;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How many members one look-up may look at. A choice far above what any real structure takes; it bounds what a damaged
/// snapshot can ask for.
const STEPS_MAX: u32 = 100_000;

/// Types whose members say no more than the name of what has the type: locks, which the kernel wraps in several
/// structures and unions.
const OPAQUE: &[&str] = &["spinlock", "raw_spinlock", "qspinlock", "qrwlock"];

/// The types that names are made of, and where the variables are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Types {
    /// The types of members and elements stand before those that have them, so that no type contains itself.
    types: Vec<Type>,
    /// Structures by their names, without `struct`.
    structures: BTreeMap<String, u32>,
    /// The types of variables that are longer than a word, by their addresses.
    variables: BTreeMap<u64, u32>,
    /// The values of enumerators.
    constants: BTreeMap<String, u64>,
    /// The addresses of symbols that readers of the guest's memory begin at.
    roots: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Type {
    /// A number, a pointer, or anything else without members.
    Scalar { size_bytes: u64 },
    /// `size_bytes` is 0 where the length is not stated.
    Array { element: u32, size_bytes: u64 },
    /// A structure or a union.
    Record {
        /// Empty where it has none.
        name: Box<str>,
        size_bytes: u64,
        members: Vec<Member>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Member {
    /// Empty for a structure or union without a name, whose members count as those of the structure around it.
    name: Box<str>,
    offset_bytes: u64,
    kind: u32,
}

/// A member of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub offset_bytes: u64,
    pub size_bytes: u64,
}

/// The innermost member at an offset.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Innermost {
    /// Bytes from its begin to the offset.
    rest_bytes: u64,
    size_bytes: u64,
    path: String,
}

impl Types {
    /// The size of a structure in bytes.
    pub fn size_bytes(&self, structure: &str) -> Option<u64> {
        Some(self.size_of(*self.structures.get(structure)?))
    }

    /// Whether objects of a structure may be longer than it, because it ends in an array of no stated length.
    pub fn is_open_ended(&self, structure: &str) -> bool {
        let kind = self.structures.get(structure).and_then(|kind| self.types.get(*kind as usize));
        let Some(Type::Record { members, .. }) = kind else { return false };
        let last = members.last().and_then(|member| self.types.get(member.kind as usize));
        matches!(last, Some(Type::Array { size_bytes: 0, .. }))
    }

    /// A member of a structure by its name, also one of the unnamed structures and unions in it.
    pub fn field(&self, structure: &str, name: &str) -> Option<Field> {
        self.field_of(*self.structures.get(structure)?, name)
    }

    /// The value of an enumerator.
    pub fn constant(&self, name: &str) -> Option<u64> {
        self.constants.get(name).copied()
    }

    /// The address of a symbol that readers of the guest's memory begin at.
    pub fn root(&self, name: &str) -> Option<u64> {
        self.roots.get(name).copied()
    }

    /// What lies at an offset in a structure, in the form `.member.member[index]+offset`; empty at its begin if it has no member
    /// there. None if the offset lies outside it, or there is no such structure.
    pub fn member_of_structure(&self, structure: &str, offset_bytes: u64) -> Option<String> {
        self.member(*self.structures.get(structure)?, offset_bytes)
    }

    /// The same for the variable that begins at an address.
    pub fn member_of_variable(&self, address: u64, offset_bytes: u64) -> Option<String> {
        self.member(*self.variables.get(&address)?, offset_bytes)
    }

    fn member(&self, kind: u32, offset_bytes: u64) -> Option<String> {
        let open = matches!(self.types.get(kind as usize), Some(Type::Array { size_bytes: 0, .. }));
        if offset_bytes >= self.size_of(kind) && !open {
            return None;
        }
        let innermost = self.innermost(kind, offset_bytes, &mut { STEPS_MAX })?;
        Some(match innermost.rest_bytes {
            0 => innermost.path,
            rest => format!("{}+{rest:#x}", innermost.path),
        })
    }

    fn size_of(&self, kind: u32) -> u64 {
        match self.types.get(kind as usize) {
            Some(Type::Scalar { size_bytes } | Type::Array { size_bytes, .. } | Type::Record { size_bytes, .. }) => {
                *size_bytes
            }
            None => 0,
        }
    }

    fn field_of(&self, kind: u32, name: &str) -> Option<Field> {
        let Some(Type::Record { members, .. }) = self.types.get(kind as usize) else { return None };
        members.iter().find_map(|member| {
            if &*member.name == name {
                return Some(Field { offset_bytes: member.offset_bytes, size_bytes: self.size_of(member.kind) });
            }
            let inner = (member.name.is_empty() && member.kind < kind).then(|| self.field_of(member.kind, name))??;
            Some(Field { offset_bytes: member.offset_bytes.checked_add(inner.offset_bytes)?, ..inner })
        })
    }

    /// The innermost member at an offset. Of the members of a union it is the one that begins nearest before the offset, and of
    /// several such ones the shortest.
    fn innermost(&self, kind: u32, offset_bytes: u64, steps: &mut u32) -> Option<Innermost> {
        let size_bytes = self.size_of(kind);
        let itself = Innermost { rest_bytes: offset_bytes, size_bytes, path: String::new() };
        match self.types.get(kind as usize)? {
            Type::Scalar { .. } => Some(itself),
            Type::Array { element, .. } => {
                let length = self.size_of(*element);
                if length == 0 || *element >= kind {
                    return Some(itself);
                }
                let inner = self.innermost_unless_plain(*element, offset_bytes % length, steps)?;
                Some(Innermost { path: format!("[{}]{}", offset_bytes / length, inner.path), ..inner })
            }
            Type::Record { members, .. } => {
                let mut best: Option<Innermost> = None;
                for member in members {
                    *steps = steps.checked_sub(1)?;
                    let Some(inner) = self.innermost_of_member(kind, member, offset_bytes, steps) else { continue };
                    let order = |innermost: &Innermost| (innermost.rest_bytes, innermost.size_bytes);
                    if best.as_ref().is_none_or(|best| order(&inner) < order(best)) {
                        best = Some(inner);
                    }
                }
                Some(best.unwrap_or(itself))
            }
        }
    }

    fn innermost_of_member(&self, kind: u32, member: &Member, offset_bytes: u64, steps: &mut u32) -> Option<Innermost> {
        let inside_bytes = offset_bytes.checked_sub(member.offset_bytes)?;
        let size_bytes = self.size_of(member.kind);
        let open = matches!(self.types.get(member.kind as usize), Some(Type::Array { size_bytes: 0, .. }));
        if member.kind >= kind || inside_bytes >= size_bytes && !open {
            return None;
        }
        let inner = if member.name.is_empty() {
            self.innermost(member.kind, inside_bytes, steps)?
        } else {
            self.innermost_unless_plain(member.kind, inside_bytes, steps)?
        };
        let dot = if member.name.is_empty() { "" } else { "." };
        Some(Innermost { path: format!("{dot}{}{}", member.name, inner.path), ..inner })
    }

    /// [`Types::innermost`] of what has a name of its own, which may say enough.
    fn innermost_unless_plain(&self, kind: u32, offset_bytes: u64, steps: &mut u32) -> Option<Innermost> {
        if self.is_plain(kind) {
            let size_bytes = self.size_of(kind);
            return Some(Innermost { rest_bytes: offset_bytes, size_bytes, path: String::new() });
        }
        self.innermost(kind, offset_bytes, steps)
    }

    /// Whether the name of what has this type says enough: a scalar, a lock, or either with nothing beside it in a structure.
    fn is_plain(&self, kind: u32) -> bool {
        match self.types.get(kind as usize) {
            Some(Type::Record { name, .. }) if OPAQUE.contains(&&**name) => true,
            Some(Type::Record { members, .. }) => match members.as_slice() {
                [only] => only.kind < kind && self.is_plain(only.kind),
                _ => false,
            },
            Some(Type::Scalar { .. }) => true,
            Some(Type::Array { .. }) | None => false,
        }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::{Member, Type, Types};

    impl Types {
        /// Adds a structure of numbers, each with its offset and size in bytes.
        pub fn with_structure(mut self, name: &str, size_bytes: u64, members: &[(&str, u64, u64)]) -> Types {
            let member = |(name, offset_bytes, size_bytes): &(&str, u64, u64)| {
                self.types.push(Type::Scalar { size_bytes: *size_bytes });
                let kind = self.types.len() as u32 - 1;
                Member { name: (*name).into(), offset_bytes: *offset_bytes, kind }
            };
            let members = members.iter().map(member).collect();
            self.types.push(Type::Record { name: name.into(), size_bytes, members });
            self.structures.insert(name.to_owned(), self.types.len() as u32 - 1);
            self
        }

        /// Lets a structure end in an array of no stated length.
        pub fn with_open_end(mut self, structure: &str) -> Types {
            let kind = self.structures[structure];
            self.types.insert(0, Type::Array { element: u32::MAX, size_bytes: 0 });
            for kind in &mut self.types {
                if let Type::Record { members, .. } = kind {
                    members.iter_mut().for_each(|member| member.kind += 1);
                }
            }
            self.structures.values_mut().for_each(|kind| *kind += 1);
            let Type::Record { members, size_bytes, .. } = &mut self.types[kind as usize + 1] else { unreachable!() };
            members.push(Member { name: "tail".into(), offset_bytes: *size_bytes, kind: 0 });
            self
        }

        /// Adds a variable that is such a structure.
        pub fn with_variable(mut self, address: u64, structure: &str) -> Types {
            self.variables.insert(address, self.structures[structure]);
            self
        }

        pub fn with_constant(mut self, name: &str, value: u64) -> Types {
            self.constants.insert(name.to_owned(), value);
            self
        }

        pub fn with_root(mut self, name: &str, address: u64) -> Types {
            self.roots.insert(name.to_owned(), address);
            self
        }
    }
}
