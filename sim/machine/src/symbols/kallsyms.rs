//! The symbol table that a Linux kernel carries for itself (`CONFIG_KALLSYMS`), read from the
//! bytes of its Image.
//!
//! Linux 6.4 and later write these parts one after the other, each aligned to 8 bytes
//! (`scripts/kallsyms.c`): the number of symbols; the names, each a length and that many token
//! numbers; a marker for each 256 names; 256 tokens as text; the offset of each token; for each
//! symbol the distance from a base address; the base address. Nothing points to them, so they are
//! found by what they look like: the tokens for the digits are the digits, and the parts must agree
//! with each other to the byte. Older kernels order them otherwise and are not read.

use super::{LINUX_LINK_ADDRESS, Symbols, classify};

/// Tokens `0` to `9` as they stand in the token table.
const DIGITS: &[u8] = b"0\x001\x002\x003\x004\x005\x006\x007\x008\x009\0";

const TOKENS: usize = 256;
const ALIGN_BYTES: usize = 8;

/// The 48 tokens before `0` take no more than this.
const TOKENS_BEFORE_DIGITS_BYTES_MAX: usize = 48 * 64;

/// One marker stands for this many names.
const NAMES_A_MARKER: usize = 256;

/// A kernel has some hundred thousand symbols.
const SYMBOLS_MAX: usize = 4 << 20;

/// Relocation that adds the load address (RISC-V ELF psABI).
const R_RISCV_RELATIVE: u64 = 3;

fn u32_at(image: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(image.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn u64_at(image: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(image.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

fn align(at: usize) -> usize {
    at.next_multiple_of(ALIGN_BYTES)
}

/// All symbols, if the image has a table and it is whole.
pub(super) fn read(image: &[u8]) -> Option<Symbols> {
    let mut from = 0;
    while let Some(found) = find(&image[from..], DIGITS) {
        let digits = from + found;
        if let Some(symbols) = read_around(image, digits) {
            return Some(symbols);
        }
        from = digits + 1;
    }
    None
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}

/// The table whose tokens for the digits are at `digits`.
fn read_around(image: &[u8], digits: usize) -> Option<Symbols> {
    let earliest = digits.saturating_sub(TOKENS_BEFORE_DIGITS_BYTES_MAX).next_multiple_of(ALIGN_BYTES);
    let (table, tokens, index_end) = (earliest..=digits)
        .step_by(ALIGN_BYTES)
        .find_map(|table| tokens_at(image, table, digits).map(|(tokens, end)| (table, tokens, end)))?;
    let (names, count) = find_names(image, table)?;
    let offsets = align(index_end);
    let base_at = align(offsets.checked_add(count.checked_mul(4)?)?);
    let base = base_address(image, base_at)?;

    let mut symbols = Symbols::default();
    let mut at = names;
    for index in 0..count {
        let (start, end) = name_at(image, at)?;
        let mut text = Vec::new();
        for &token in image.get(start..end)? {
            text.extend_from_slice(tokens[usize::from(token)]);
        }
        let address = base.checked_add(u64::from(u32_at(image, offsets + 4 * index)?))?;
        // The type comes first, as one character.
        let text = String::from_utf8_lossy(&text);
        let mut characters = text.chars();
        classify(&mut symbols, address, characters.next()?, characters.as_str());
        at = end;
    }
    Some(symbols)
}

/// The 256 tokens from `table` on and the end of their index, if the index is right and token `0`
/// is at `digits`.
fn tokens_at(image: &[u8], table: usize, digits: usize) -> Option<(Vec<&[u8]>, usize)> {
    let mut tokens = Vec::with_capacity(TOKENS);
    let mut starts = Vec::with_capacity(TOKENS);
    let mut at = table;
    for number in 0..TOKENS {
        if (number == usize::from(b'0')) != (at == digits) {
            return None;
        }
        let rest = image.get(at..)?;
        let length = rest.iter().take(table + usize::from(u16::MAX) - at).position(|&byte| byte == 0)?;
        tokens.push(&rest[..length]);
        starts.push(at - table);
        at += length + 1;
    }
    let index = align(at);
    let index_end = index + 2 * TOKENS;
    let entries = image.get(index..index_end)?.chunks_exact(2);
    let agrees =
        entries.zip(&starts).all(|(entry, &start)| usize::from(u16::from_le_bytes([entry[0], entry[1]])) == start);
    agrees.then_some((tokens, index_end))
}

/// Where the names start that end, with their markers, at the token table; and how many they are.
fn find_names(image: &[u8], table: usize) -> Option<(usize, usize)> {
    (0..table).rev().filter(|at| at.is_multiple_of(ALIGN_BYTES)).find_map(|at| {
        let count = usize::try_from(u32_at(image, at)?).ok()?;
        if count == 0 || count > SYMBOLS_MAX {
            return None;
        }
        // The markers' end is known, so their start is too: filters nearly everything out.
        let markers = table.checked_sub(align(4 * count.div_ceil(NAMES_A_MARKER)))?;
        let names = at + ALIGN_BYTES;
        if u32_at(image, markers)? != 0 || markers < names + 2 * count {
            return None;
        }
        let mut end = names;
        for index in 0..count {
            let marker = markers + 4 * (index / NAMES_A_MARKER);
            if index.is_multiple_of(NAMES_A_MARKER) && u32_at(image, marker)? as usize != end - names {
                return None;
            }
            end = name_at(image, end)?.1;
            if end > markers {
                return None;
            }
        }
        (align(end) == markers).then_some((names, count))
    })
}

/// Start and end of the tokens of the name at `at`. A length of 128 or more takes two bytes.
fn name_at(image: &[u8], at: usize) -> Option<(usize, usize)> {
    let low = *image.get(at)?;
    let (start, length) = if low & 0x80 == 0 {
        (at + 1, usize::from(low))
    } else {
        (at + 2, usize::from(low & 0x7f) | usize::from(*image.get(at + 1)?) << 7)
    };
    // Every name has at least a type.
    (length > 0).then_some((start, start + length))
}

/// The address that all others count from. In a relocatable kernel that has not run yet the place
/// is zero and a relocation says what goes there.
fn base_address(image: &[u8], at: usize) -> Option<u64> {
    match u64_at(image, at)? {
        0 => {
            let place = LINUX_LINK_ADDRESS.checked_add(at as u64)?;
            let relocation = [place.to_le_bytes(), R_RISCV_RELATIVE.to_le_bytes()].concat();
            u64_at(image, find(image, &relocation)? + relocation.len())
        }
        base => Some(base),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::SymbolTable;
    use super::*;

    /// Writes the table as the kernel's build does, with tokens for "sys_" and "tfunc" as well.
    fn table(symbols: &[(u64, String)], base: u64, relocated: bool) -> Vec<u8> {
        let pad = |bytes: &mut Vec<u8>| bytes.resize(bytes.len().next_multiple_of(8), 0);
        let tokens: Vec<Vec<u8>> = (0..=255u8)
            .map(|number| match number {
                1 => b"sys_".to_vec(),
                2 => b"tfunc".to_vec(),
                b'!'..=b'~' => vec![number],
                _ => Vec::new(),
            })
            .collect();
        let mut image = b"something else entirely: 0\x001\x002\x003\x004\x005\x006\x007\x008\x009\0 ".to_vec();
        pad(&mut image);
        image.extend((symbols.len() as u32).to_le_bytes());
        pad(&mut image);
        let names = image.len();
        let mut markers = Vec::new();
        for (index, (_, name)) in symbols.iter().enumerate() {
            if index % 256 == 0 {
                markers.extend(((image.len() - names) as u32).to_le_bytes());
            }
            let name = name.replace("sys_", "\x01").replace("tfunc", "\x02");
            if name.len() < 128 {
                image.push(name.len() as u8);
            } else {
                image.extend([name.len() as u8 & 0x7f | 0x80, (name.len() >> 7) as u8]);
            }
            image.extend(name.as_bytes());
        }
        pad(&mut image);
        image.extend(markers);
        pad(&mut image);
        let mut index = Vec::new();
        let start = image.len();
        for token in tokens {
            index.extend(((image.len() - start) as u16).to_le_bytes());
            image.extend(token);
            image.push(0);
        }
        pad(&mut image);
        image.extend(index);
        pad(&mut image);
        for (address, _) in symbols {
            image.extend(((address - base) as u32).to_le_bytes());
        }
        pad(&mut image);
        if relocated {
            let place = LINUX_LINK_ADDRESS + image.len() as u64;
            image.extend([0; 8]);
            image.extend([place, R_RISCV_RELATIVE, base].map(u64::to_le_bytes).concat());
        } else {
            image.extend(base.to_le_bytes());
        }
        image
    }

    const BASE: u64 = LINUX_LINK_ADDRESS + 0x1000;

    fn sample(count: u64) -> Vec<(u64, String)> {
        let mut symbols: Vec<(u64, String)> =
            (0..count).map(|index| (BASE + 16 * index, format!("tfunction_{index}"))).collect();
        symbols.push((BASE + 16 * count, "Tsys_".to_owned() + &"x".repeat(200)));
        symbols.push((BASE + 16 * count + 8, "T_etext".to_owned()));
        symbols.push((BASE + 16 * count + 64, "Ddata".to_owned()));
        symbols
    }

    #[test]
    fn the_kernels_own_table_is_read() {
        // Below, at and above one marker's worth, and with odd numbers of markers.
        for count in [1, 254, 253, 255, 600] {
            for relocated in [false, true] {
                let symbols = SymbolTable::from_kallsyms(&table(&sample(count), BASE, relocated)).expect("a table");
                assert_eq!(symbols.len() as u64, count + 1);
                assert_eq!(symbols.lookup(BASE), Some(("function_0", 0)));
                let last = BASE + 16 * count;
                let name = "sys_".to_owned() + &"x".repeat(200);
                assert_eq!(symbols.lookup(last + 7), Some((name.as_str(), 7)));
                assert_eq!(symbols.lookup(last + 8), None, "_etext is the end of the text");
            }
        }
    }

    #[test]
    fn a_table_that_does_not_agree_with_itself_is_none() {
        let good = table(&sample(3), BASE, false);
        assert!(SymbolTable::from_kallsyms(&good[..good.len() - 1]).is_none());
        assert!(SymbolTable::from_kallsyms(&good[64..]).is_none());
        assert!(SymbolTable::from_kallsyms(b"").is_none());
        assert!(SymbolTable::from_kallsyms(&DIGITS.repeat(100)).is_none());
    }

    proptest! {
        #[test]
        fn a_mutated_table_never_panics(
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut image = table(&sample(20), BASE, true);
            for (at, value) in changes {
                let at = at.index(image.len());
                image[at] = value;
            }
            let _ = SymbolTable::from_kallsyms(&image);
            image.truncate(cut.index(image.len()));
            let _ = SymbolTable::from_kallsyms(&image);
        }
    }
}
