//! Unpacks a compressed kernel: gzip or zstd, bare or in an EFI zboot wrapper.

use std::io::Read;

use super::FileError;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Other formats that kernels are compressed with: first bytes, name, and the command that unpacks it.
const REFUSED: &[(&[u8], &str, &str)] = &[
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz", "unxz"),
    (b"BZh", "bzip2", "bunzip2"),
    (&[0x5d, 0, 0], "lzma", "unlzma"),
    (&[0x89, b'L', b'Z', b'O'], "lzo", "lzop -d"),
    (&[0x02, 0x21, 0x4c, 0x18], "lz4", "unlz4"),
    (&[0x04, 0x22, 0x4d, 0x18], "lz4", "unlz4"),
];

/// The unpacked kernel, or nothing if the file is not packed. At most `limit_bytes` are unpacked,
/// whatever the file promises.
pub(super) fn unpack(bytes: &[u8], limit_bytes: u64) -> Result<Option<Vec<u8>>, FileError> {
    let packed = zboot_payload(bytes)?.unwrap_or(bytes);
    if packed.starts_with(GZIP) {
        // Bytes behind the first member, such as the length that zboot appends, are not the kernel.
        read("gzip", flate2::read::GzDecoder::new(packed), limit_bytes).map(Some)
    } else if packed.starts_with(ZSTD) {
        let decoder = zstd::stream::read::Decoder::with_buffer(packed)
            .map_err(|error| FileError::Unpack { method: "zstd", reason: error.to_string() })?;
        read("zstd", decoder.single_frame(), limit_bytes).map(Some)
    } else if let Some(&(_, method, command)) = REFUSED.iter().find(|(magic, ..)| packed.starts_with(magic)) {
        Err(FileError::Compression { method, command })
    } else {
        Ok(None)
    }
}

fn read(method: &'static str, decoder: impl Read, limit_bytes: u64) -> Result<Vec<u8>, FileError> {
    let mut unpacked = Vec::new();
    decoder
        .take(limit_bytes.saturating_add(1))
        .read_to_end(&mut unpacked)
        .map_err(|error| FileError::Unpack { method, reason: error.to_string() })?;
    if unpacked.len() as u64 > limit_bytes {
        return Err(FileError::UnpackedHuge { limit_bytes });
    }
    Ok(unpacked)
}

/// The packed kernel in an EFI application that unpacks itself (Linux,
/// `drivers/firmware/efi/libstub/zboot-header.S`): "MZ", two zero bytes, "zimg", then offset and
/// size of the payload in 32 bits each.
fn zboot_payload(bytes: &[u8]) -> Result<Option<&[u8]>, FileError> {
    let header = "EFI zboot header";
    if !bytes.starts_with(b"MZ\0\0zimg") {
        return Ok(None);
    }
    let field = |at: usize| {
        let field = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(u64::from(u32::from_le_bytes(field)))
    };
    let (Some(offset), Some(size)) = (field(8), field(12)) else {
        let actual_bytes = bytes.len() as u64;
        return Err(FileError::Truncated { header, expected_bytes: 16, actual_bytes });
    };
    let payload = usize::try_from(offset)
        .ok()
        .zip(usize::try_from(offset + size).ok())
        .and_then(|(start, end)| bytes.get(start..end));
    match payload {
        Some(payload) => Ok(Some(payload)),
        None => Err(FileError::Truncated { header, expected_bytes: offset + size, actual_bytes: bytes.len() as u64 }),
    }
}
