use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::*;

const MIB: u64 = 1 << 20;
const MEMORY_BYTES: u64 = 16 * MIB;
const DEVICE_TREE: u64 = MEMORY_BASE + 14 * MIB;

fn memory() -> GuestMemoryMmap<()> {
    GuestMemoryMmap::from_ranges(&[(GuestAddress(MEMORY_BASE), MEMORY_BYTES as usize)]).expect("memory")
}

fn read(memory: &GuestMemoryMmap<()>, address: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    memory.read_slice(&mut bytes, GuestAddress(address)).expect("in memory");
    bytes
}

fn kernel(bytes: &[u8]) -> Result<Kernel, LoadError> {
    load_kernel(&memory(), Path::new("kernel"), bytes)
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// A Linux Image of `file_bytes` that asks for `image_size` from `text_offset` on.
fn image(file_bytes: usize, text_offset: u64, image_size: u64) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..file_bytes).map(|at| (at % 251) as u8).collect();
    put(&mut bytes, 0, &[0x13, 0, 0, 0, 0x13, 0, 0, 0]);
    put(&mut bytes, 8, &text_offset.to_le_bytes());
    put(&mut bytes, 16, &image_size.to_le_bytes());
    put(&mut bytes, 24, &[0; 32]);
    put(&mut bytes, 56, b"RSC\x05");
    put(&mut bytes, 60, &[0; 4]);
    bytes
}

/// An Image with an EFI stub whose one section ends at `section_end`.
fn stub_image(file_bytes: usize, section_end: u32) -> Vec<u8> {
    let mut bytes = image(file_bytes, 2 * MIB, 0x4000);
    put(&mut bytes, 0, b"MZ");
    put(&mut bytes, 60, &64u32.to_le_bytes());
    put(&mut bytes, 64, b"PE\0\0");
    put(&mut bytes, 68, &0x5064u16.to_le_bytes());
    put(&mut bytes, 70, &1u16.to_le_bytes());
    put(&mut bytes, 84, &0u16.to_le_bytes());
    put(&mut bytes, 88 + 16, &(section_end - 0x200).to_le_bytes());
    put(&mut bytes, 88 + 20, &0x200u32.to_le_bytes());
    bytes
}

/// A segment: virtual address, physical address, file offset, bytes in the file, bytes in memory.
type Program = [u64; 5];

const HEADERS_BYTES: usize = 0x200;

/// An ELF executable with these segments and `file_bytes` in all.
fn executable(entry: u64, programs: &[Program], file_bytes: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..file_bytes).map(|at| (at % 251) as u8).collect();
    put(&mut bytes, 0, &[0; HEADERS_BYTES]);
    put(&mut bytes, 0, b"\x7fELF\x02\x01\x01");
    put(&mut bytes, 16, &2u16.to_le_bytes());
    put(&mut bytes, 18, &243u16.to_le_bytes());
    put(&mut bytes, 20, &1u32.to_le_bytes());
    put(&mut bytes, 24, &entry.to_le_bytes());
    put(&mut bytes, 32, &64u64.to_le_bytes());
    put(&mut bytes, 52, &64u16.to_le_bytes());
    put(&mut bytes, 54, &56u16.to_le_bytes());
    put(&mut bytes, 56, &(programs.len() as u16).to_le_bytes());
    for (index, &[virtual_start, physical_start, offset, in_file, in_memory]) in programs.iter().enumerate() {
        let at = 64 + 56 * index;
        put(&mut bytes, at, &1u32.to_le_bytes());
        put(&mut bytes, at + 4, &7u32.to_le_bytes());
        for (field, value) in [offset, virtual_start, physical_start, in_file, in_memory, 4096].iter().enumerate() {
            put(&mut bytes, at + 8 + 8 * field, &value.to_le_bytes());
        }
    }
    bytes
}

fn small_executable() -> Vec<u8> {
    executable(
        0x8010_0010,
        &[[0x8010_0000, 0x8010_0000, 0x200, 0x100, 0x100], [0x8010_1000, 0x8010_1000, 0x300, 0x80, 0x4000]],
        0x400,
    )
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("packed");
    encoder.finish().expect("packed")
}

fn zboot(payload: &[u8]) -> Vec<u8> {
    let mut bytes = b"MZ\0\0zimg".to_vec();
    bytes.extend(64u32.to_le_bytes());
    bytes.extend((payload.len() as u32).to_le_bytes());
    bytes.resize(64, 0);
    bytes.extend(payload);
    bytes
}

#[test]
fn an_image_goes_where_its_header_says() {
    let bytes = image(0x3000, 2 * MIB, 0x5000);
    let memory = memory();
    let kernel = load_kernel(&memory, Path::new("Image"), &bytes).expect("loads");
    assert_eq!(kernel.entry, 0x8020_0000);
    assert_eq!(kernel.range, 0x8020_0000..0x8020_5000);
    assert_eq!(read(&memory, 0x8020_0000, bytes.len()), bytes);
    assert_eq!(read(&memory, 0x8020_3000, 16), [0; 16]);
    assert_eq!(kernel.symbols, None);
}

#[test]
fn an_image_without_a_size_is_as_long_as_its_file() {
    let loaded = kernel(&image(0x3000, 0, 0)).expect("loads");
    assert_eq!(loaded.range, 0x8000_0000..0x8000_3000);
}

#[test]
fn a_packed_kernel_is_the_kernel() {
    let plain = stub_image(0x3000, 0x3000);
    let expected = kernel(&plain).expect("loads");
    let mut with_length = gzip(&plain);
    with_length.extend(0x3000u32.to_le_bytes());
    let mut zstd_with_length = zstd::encode_all(plain.as_slice(), 1).expect("packed");
    zstd_with_length.extend(0x3000u32.to_le_bytes());
    for packed in [
        gzip(&plain),
        zstd::encode_all(plain.as_slice(), 1).expect("packed"),
        zboot(&with_length),
        zboot(&zstd_with_length),
    ] {
        let memory = memory();
        let loaded = load_kernel(&memory, Path::new("Image.gz"), &packed).expect("loads");
        assert_eq!(loaded, expected);
        assert_eq!(read(&memory, loaded.entry, plain.len()), plain);
    }
}

#[test]
fn an_elf_file_goes_to_its_physical_addresses() {
    let bytes = small_executable();
    let memory = memory();
    let kernel = load_kernel(&memory, Path::new("kernel.elf"), &bytes).expect("loads");
    assert_eq!(kernel.entry, 0x8010_0010);
    assert_eq!(kernel.range, 0x8010_0000..0x8010_5000);
    assert_eq!(read(&memory, 0x8010_0000, 0x100), &bytes[0x200..0x300]);
    assert_eq!(read(&memory, 0x8010_1000, 0x80), &bytes[0x300..0x380]);
    assert_eq!(read(&memory, 0x8010_1080, 0x80), [0; 0x80]);
}

#[test]
fn a_virtual_entry_point_is_translated() {
    let high = 0xffff_ffc0_0000_0000;
    let bytes = executable(high + 8, &[[high, 0x8040_0000, 0x200, 0x100, 0x100]], 0x400);
    assert_eq!(kernel(&bytes).expect("loads").entry, 0x8040_0008);
}

#[test]
fn a_linux_executable_goes_where_its_image_would() {
    let high = 0xffff_ffff_8000_0000;
    let programs = [[high, 0, 0x200, 0x100, 0x1000], [high + 0x1000, 0x1000, 0x300, 0x100, 0x1000]];
    let loaded = kernel(&executable(high, &programs, 0x400)).expect("loads");
    assert_eq!((loaded.entry, loaded.range), (0x8020_0000, 0x8020_0000..0x8020_2000));
    // A program that runs where it is linked is not moved.
    let low = kernel(&executable(0, &[[0, 0, 0x200, 0x100, 0x1000]], 0x400));
    assert!(matches!(low, Err(LoadError::File { what: FileError::Outside { .. }, .. })), "{low:?}");
}

#[test]
fn the_disk_is_high_and_the_tree_above_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let (image_path, disk_path) = (directory.path().join("Image"), directory.path().join("initrd"));
    std::fs::write(&image_path, image(2 * MIB as usize, 2 * MIB, 4 * MIB)).expect("written");
    let memory = memory();
    let alone = load(&memory, &image_path, None).expect("loads");
    assert_eq!(alone.kernel, 0x8020_0000..0x8060_0000);
    assert_eq!((alone.initrd, alone.device_tree_address), (None, DEVICE_TREE));
    for (length, start) in [
        (1, DEVICE_TREE - 2 * MIB),
        (2 * MIB, DEVICE_TREE - 2 * MIB),
        (2 * MIB + 1, DEVICE_TREE - 4 * MIB),
        (8 * MIB, MEMORY_BASE + 6 * MIB),
    ] {
        let disk: Vec<u8> = (0..length).map(|at| (at % 241) as u8 + 1).collect();
        std::fs::write(&disk_path, &disk).expect("written");
        let loaded = load(&memory, &image_path, Some(&disk_path)).expect("loads");
        assert_eq!(loaded.initrd, Some(start..start + length));
        assert_eq!(loaded.device_tree_address, DEVICE_TREE);
        assert!(read(&memory, start, disk.len()) == disk, "{length} bytes");
    }
    std::fs::write(&disk_path, vec![0; 8 * MIB as usize + 1]).expect("written");
    let error = load(&memory, &image_path, Some(&disk_path)).expect_err("does not fit");
    let line = error.to_string().replace(&directory.path().display().to_string(), "DIR");
    insta::assert_snapshot!(line, @"DIR/initrd: initial RAM disk of 8388609 bytes does not fit between the kernel's end at 0x80600000 and the device tree at 0x80e00000: give the guest more memory");
}

#[test]
fn the_tree_goes_to_its_place() {
    let memory = memory();
    let loaded = Loaded { entry: 0, kernel: 0..0, initrd: None, device_tree_address: DEVICE_TREE, symbols: None };
    write_device_tree(&memory, &loaded, b"tree").expect("fits");
    assert_eq!(read(&memory, DEVICE_TREE, 4), b"tree");
    let long = vec![0; DEVICE_TREE_BYTES_MAX as usize + 1];
    write_device_tree(&memory, &loaded, &long[1..]).expect("fits");
    let error = write_device_tree(&memory, &loaded, &long).expect_err("too long");
    insta::assert_snapshot!(error, @"device tree of 2097153 bytes is too long: at most 2097152");
}

#[test]
fn other_memory_is_refused() {
    let bytes = small_executable();
    for ranges in [
        vec![(GuestAddress(0), 8 << 20)],
        vec![(GuestAddress(MEMORY_BASE), 1 << 20)],
        vec![(GuestAddress(MEMORY_BASE), 8 << 20), (GuestAddress(1 << 32), 1 << 20)],
    ] {
        let memory = GuestMemoryMmap::<()>::from_ranges(&ranges).expect("memory");
        let error = load_kernel(&memory, Path::new("kernel"), &bytes).expect_err("other memory");
        assert!(matches!(error, LoadError::Memory { .. }), "{error}");
    }
}

/// A good file with one field changed.
fn changed(good: &[u8], at: usize, value: &[u8]) -> Vec<u8> {
    let mut bytes = good.to_vec();
    put(&mut bytes, at, value);
    bytes
}

fn bad_images() -> Vec<(&'static str, Vec<u8>)> {
    let good = image(0x3000, 2 * MIB, 0x5000);
    let stub = stub_image(0x3000, 0x3000);
    let mut pipe_organ = gzip(&vec![0; MEMORY_BYTES as usize + 1]);
    let bomb = pipe_organ.clone();
    pipe_organ.truncate(100);
    let mut flipped = gzip(&good);
    let last = flipped.len() - 6;
    flipped[last] ^= 1;
    vec![
        ("empty", Vec::new()),
        ("text", b"hello, world\n".repeat(20)),
        ("short text", b"hello".to_vec()),
        ("60 bytes of an Image", good[..60].to_vec()),
        ("a third of an Image", good[..0x1800].to_vec()),
        ("arm64 Image", changed(&good, 56, b"ARM\x64")),
        ("x86 bzImage", changed(&changed(&good, 56, &[0; 4]), 0x202, b"HdrS")),
        ("Arm zImage", changed(&changed(&good, 56, &[0; 4]), 0x24, &0x016f_2818u32.to_le_bytes())),
        ("big-endian Image", changed(&good, 24, &[1])),
        ("text offset of one page", changed(&good, 8, &0x1000u64.to_le_bytes())),
        ("text offset beyond 64 bits", changed(&good, 8, &(u64::MAX << 21).to_le_bytes())),
        ("text offset beyond memory", changed(&good, 8, &(1u64 << 40).to_le_bytes())),
        ("Image larger than memory", image(0x3000, 2 * MIB, 0x5000).repeat(1200)),
        ("Image that reaches the tree", image(7 * MIB as usize, 2 * MIB, 12 * MIB + 1)),
        ("stub without PE", changed(&stub, 64, b"XX")),
        ("stub with a far PE header", changed(&stub, 60, &u32::MAX.to_le_bytes())),
        ("stub for x86", changed(&stub, 68, &0x8664u16.to_le_bytes())),
        ("stub with a long section", stub_image(0x3000, 0x3001)),
        ("stub with many sections", changed(&stub, 70, &u16::MAX.to_le_bytes())),
        ("EFI application", changed(&stub, 56, &[0; 4])),
        ("U-Boot image", changed(&good, 56, &[0; 4]).into_iter().skip(64).collect::<Vec<_>>()),
        ("uImage", [&[0x27, 5, 0x19, 0x56], &good[100..400]].concat()),
        ("initial RAM disk", [b"070701".as_slice(), &good[100..400]].concat()),
        ("xz", [b"\xfd7zXZ\0".as_slice(), &good].concat()),
        ("bzip2", [b"BZh9".as_slice(), &good].concat()),
        ("half a gzip file", gzip(&good)[..60].to_vec()),
        ("gzip with a flipped bit", flipped),
        ("gzip of zeros, cut", pipe_organ),
        ("gzip of more than memory", bomb),
        ("gzip of nothing", gzip(b"")),
        ("gzip of text", gzip(b"hello, world\n".repeat(20).as_slice())),
        ("zstd magic alone", vec![0x28, 0xb5, 0x2f, 0xfd]),
        ("zboot header alone", zboot(b"")[..12].to_vec()),
        ("zboot, cut", zboot(&gzip(&good))[..100].to_vec()),
        ("zboot with a plain payload", zboot(b"plain")),
    ]
}

fn bad_executables() -> Vec<(&'static str, Vec<u8>)> {
    let good = small_executable();
    let one = |program: Program| executable(program[0], &[program], 0x400);
    vec![
        ("ELF magic alone", good[..4].to_vec()),
        ("63 bytes of an ELF file", good[..63].to_vec()),
        ("ELF without its program headers", good[..100].to_vec()),
        ("ELF without its last segment", good[..0x300].to_vec()),
        ("x86-64 ELF", changed(&good, 18, &62u16.to_le_bytes())),
        ("arm64 ELF", changed(&good, 18, &183u16.to_le_bytes())),
        ("unknown ELF", changed(&good, 18, &9999u16.to_le_bytes())),
        ("ELF32", changed(&good, 4, &[1])),
        ("big-endian ELF", changed(&changed(&good, 5, &[2]), 18, &243u16.to_be_bytes())),
        ("ELF of class 7", changed(&good, 4, &[7])),
        ("ELF of byte order 7", changed(&good, 5, &[7])),
        ("object file", changed(&good, 16, &1u16.to_le_bytes())),
        ("shared object", changed(&good, 16, &3u16.to_le_bytes())),
        ("core dump", changed(&good, 16, &4u16.to_le_bytes())),
        ("strange type", changed(&good, 16, &9u16.to_le_bytes())),
        ("program headers of 8 bytes", changed(&good, 54, &8u16.to_le_bytes())),
        ("many program headers", changed(&good, 56, &u16::MAX.to_le_bytes())),
        ("no segment", executable(0x8000_0000, &[], 0x400)),
        ("empty segment", one([0x8000_0000, 0x8000_0000, 0x200, 0, 0])),
        ("segment below memory", one([0x1000, 0x1000, 0x200, 0x100, 0x100])),
        ("segment across memory's start", one([0x7fff_ff80, 0x7fff_ff80, 0x200, 0x100, 0x100])),
        ("segment beyond memory", one([0x9000_0000, 0x9000_0000, 0x200, 0x100, 0x100])),
        ("segment that wraps", one([!0xff, !0xff, 0x200, 0x100, u64::MAX])),
        ("segment over the tree", one([0x8000_0000, 0x8000_0000, 0x200, 0x100, 14 * MIB + 1])),
        ("more in the file than in memory", one([0x8000_0000, 0x8000_0000, 0x200, 0x100, 0xff])),
        ("segment beyond the file", one([0x8000_0000, 0x8000_0000, 0x400, 1, 1])),
        ("segment offset that wraps", one([0x8000_0000, 0x8000_0000, u64::MAX, 2, 2])),
        (
            "overlapping segments",
            executable(
                0x8000_0000,
                &[[0x8000_1000, 0x8000_1000, 0x200, 0x100, 0x100], [0x8000_0000, 0x8000_0000, 0x200, 0x100, 0x1001]],
                0x400,
            ),
        ),
        ("entry outside", changed(&good, 24, &0x8010_0100u64.to_le_bytes())),
        ("odd entry", changed(&good, 24, &0x8010_0001u64.to_le_bytes())),
        ("segment at an odd address", executable(0, &[[0, 0x8000_0001, 0x200, 0x100, 0x100]], 0x400)),
    ]
}

#[test]
fn what_is_no_kernel_gets_one_line() {
    let mut lines = String::new();
    for (name, bytes) in bad_images().into_iter().chain(bad_executables()) {
        match kernel(&bytes) {
            Ok(kernel) => panic!("{name} was loaded: {kernel:?}"),
            Err(error) => {
                let line = error.to_string();
                assert_eq!(line.lines().count(), 1, "{name}: {line}");
                lines.push_str(&format!("{name:32} {line}\n"));
            }
        }
    }
    insta::assert_snapshot!(lines);
}

#[test]
fn what_is_no_file_gets_one_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("Image"), image(0x3000, 0, 0)).expect("written");
    std::fs::write(path("empty"), b"").expect("written");
    let huge = File::create(path("huge")).expect("created");
    huge.set_len(KERNEL_FILE_BYTES_MAX + 1).expect("sparse");
    let memory = memory();
    let mut lines = String::new();
    let image = path("Image");
    for (kernel, initrd) in [
        (path("missing"), None),
        (path("empty"), None),
        (path("huge"), None),
        (directory.path().to_owned(), None),
        (PathBuf::from("/dev/zero"), None),
        (image.clone(), Some(path("missing"))),
        (image.clone(), Some(path("empty"))),
        (image.clone(), Some(path("huge"))),
        (image, Some(PathBuf::from("/dev/zero"))),
    ] {
        let error = load(&memory, &kernel, initrd.as_deref()).expect_err("no file");
        lines.push_str(&format!("{error}\n"));
    }
    let lines = lines.replace(&directory.path().display().to_string(), "DIR");
    insta::assert_snapshot!(lines);
}

/// Where a file's headers are, so that mutations reach every check.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let good = prop_oneof![
        Just(image(0x1000, 2 * MIB, 0x2000)),
        Just(stub_image(0x1000, 0x1000)),
        Just(small_executable()),
        Just(gzip(&small_executable())),
        Just(zstd::encode_all(small_executable().as_slice(), 1).expect("packed")),
        Just(zboot(&gzip(&image(0x1000, 0, 0x2000)))),
    ];
    let value = prop_oneof![
        any::<u64>(),
        0u64..256,
        (0u32..64).prop_map(|shift| 1 << shift),
        (0u64..256).prop_map(|below| u64::MAX - below),
        0x8000_0000u64..0x8100_0000,
    ];
    let field = (0usize..0x100, 1usize..=8, value);
    (good, proptest::collection::vec(field, 0..4), any::<Option<prop::sample::Index>>()).prop_map(
        |(mut bytes, fields, cut)| {
            for (at, width, value) in fields {
                for (byte, new) in bytes.iter_mut().skip(at).zip(&value.to_le_bytes()[..width]) {
                    *byte = *new;
                }
            }
            if let Some(cut) = cut {
                let length = cut.index(bytes.len() + 1);
                bytes.truncate(length);
            }
            bytes
        },
    )
}

fn check_answer(bytes: &[u8]) -> Result<(), TestCaseError> {
    match kernel(bytes) {
        Ok(kernel) => {
            prop_assert!(kernel.range.contains(&kernel.entry), "{kernel:?}");
            prop_assert!(kernel.range.start >= MEMORY_BASE && kernel.range.end <= DEVICE_TREE, "{kernel:?}");
            prop_assert!(kernel.entry.is_multiple_of(2), "{kernel:?}");
        }
        Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1),
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_mutated_file_is_loaded_whole_or_refused(bytes in mutated()) {
        check_answer(&bytes)?;
    }

    #[test]
    fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        check_answer(&bytes)?;
    }
}
