//! The address map, the finisher, the console and the entropy device.

mod common;

use common::*;
use concord_dev::*;

#[test]
fn accesses_nothing_takes_are_faults() {
    let mut board = Board::new(configuration());
    for (address, size) in [
        (0, 4),
        (0x0f_fffc, 4),
        (0x10_1000, 4),
        (0x0bff_fffc, 4),
        (0x0c60_0000, 4),
        (0x0fff_ffff, 1),
        (0x1000_0008, 1),
        (0x1000_0ffc, 4),
        (0x1000_9000, 4),
        (u64::MAX - 7, 8),
    ] {
        let fault = Err(BusFault::Unmapped { address });
        assert_eq!(board.bus.read(address, size, 0), fault, "{address:#x}");
        let wrote = board.bus.write(address, size, 0, 0, &board.memory);
        assert_eq!(wrote, fault.map(|_: u64| ()), "{address:#x}");
    }
    for (address, size_bytes) in
        [(0x1000_0001, 2), (0x1000_0000, 3), (0x1000_0000, 0), (0x0c00_0000, 8), (0x0c00_0000, 1)]
    {
        let fault = BusFault::Size { address, size_bytes };
        assert_eq!(board.bus.read(address, size_bytes, 0), Err(fault));
        let wrote = board.bus.write(address, size_bytes, 0, 0, &board.memory);
        assert_eq!(wrote, Err(fault));
    }
}

#[test]
fn the_finisher_ends_the_run() {
    for (size, value, finish) in [
        (4, 0x5555, Some(Finish::Pass)),
        (4, 0x0007_3333, Some(Finish::Fail(7))),
        (2, 0xffff_7777, Some(Finish::Reset)),
        (4, 0xffff_ffff_0003_3333, Some(Finish::Fail(3))),
        (4, 0x1234, None),
    ] {
        let mut board = Board::new(configuration());
        let memory = &board.memory;
        board.bus.write(0x10_0000, size, value, 0, memory).unwrap();
        assert_eq!(board.bus.take_finish(), finish);
        assert_eq!(board.bus.take_finish(), None);
    }
    let mut board = Board::new(configuration());
    assert!(board.bus.write(0x10_0000, 1, 0x55, 0, &board.memory).is_err());
    assert!(board.bus.write(0x10_0004, 4, 0x5555, 0, &board.memory).is_err());
}

#[test]
fn the_console_is_one_whoever_writes_it() {
    let mut board = Board::new(configuration());
    board.bus.console_write(b"firm");
    for &byte in b"ware" {
        let memory = &board.memory;
        board.bus.write(0x1000_0000, 1, u64::from(byte), 0, memory).unwrap();
    }
    assert_eq!(board.bus.console_output().collect::<Vec<_>>(), b"firmware");
    assert_eq!(board.bus.console_output().count(), 0);
    board.bus.console_input(b"ab");
    assert_eq!(board.bus.read(0x1000_0005, 1, 0), Ok(0x61));
    assert_eq!(board.bus.read(0x1000_0000, 1, 0), Ok(u64::from(b'a')));
    assert_eq!(board.bus.console_read(), Some(b'b'));
    assert_eq!(board.bus.console_read(), None);
    let statistics = board.bus.statistics().uart;
    assert_eq!((statistics.transmitted_bytes, statistics.received_bytes), (8, 2));
}

#[test]
fn typing_interrupts_the_hart() {
    let mut board = Board::new(configuration());
    board.enable_interrupt(UART_INTERRUPT);
    write_uart(&mut board, 1, 1);
    assert_eq!(board.bus.external_interrupt_harts(), 0);
    board.bus.console_input(b"x");
    assert_eq!(board.bus.external_interrupt_harts(), 1);
    assert_eq!(board.claim(), UART_INTERRUPT);
    assert_eq!(read_uart(&mut board, 0), b'x');
    board.complete(UART_INTERRUPT);
    assert_eq!(board.bus.external_interrupt_harts(), 0);
}

const UART_INTERRUPT: u64 = 10;

fn read_uart(board: &mut Board, register: u64) -> u8 {
    board.bus.read(0x1000_0000 + register, 1, 0).unwrap() as u8
}

fn write_uart(board: &mut Board, register: u64, value: u8) {
    board.bus.write(0x1000_0000 + register, 1, value.into(), 0, &board.memory).unwrap();
}

/// Drivers written on QEMU take an interrupt without reading the identification register, which would acknowledge an
/// empty transmitter: the line stays high, and must not interrupt for ever.
#[test]
fn an_unacknowledged_transmitter_interrupts_once_a_byte() {
    let mut board = Board::new(configuration());
    board.enable_interrupt(UART_INTERRUPT);
    write_uart(&mut board, 1, 3);
    for byte in b"xv6" {
        assert_eq!(board.claim(), UART_INTERRUPT);
        assert_eq!(read_uart(&mut board, 5), 0x60, "nothing received, ready to send");
        board.complete(UART_INTERRUPT);
        assert_eq!(board.claim(), 0);
        write_uart(&mut board, 0, *byte);
    }
    assert_eq!(board.claim(), UART_INTERRUPT);
    board.complete(UART_INTERRUPT);
}

/// A driver that takes one byte an interrupt gets an interrupt for each.
#[test]
fn every_byte_that_is_left_interrupts_again() {
    let mut board = Board::new(configuration());
    board.enable_interrupt(UART_INTERRUPT);
    write_uart(&mut board, 2, 1);
    write_uart(&mut board, 1, 1);
    board.bus.console_input(b"abc");
    for &byte in b"abc" {
        assert_eq!(board.claim(), UART_INTERRUPT);
        assert_eq!(read_uart(&mut board, 0), byte);
        board.complete(UART_INTERRUPT);
    }
    assert_eq!(board.claim(), 0);
}

#[test]
fn boards_that_cannot_be_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = image(directory.path(), 8);
    for (harts, disks, message) in [
        (0, 0, "0 harts: the interrupt controller takes 1 to 64"),
        (65, 0, "65 harts: the interrupt controller takes 1 to 64"),
        (1, 7, "7 disks: the board takes at most 6"),
    ] {
        let mut configuration = configuration();
        configuration.harts = harts;
        configuration.disks = vec![disk(&path, DiskMode::ReadOnly, 0); disks];
        assert_eq!(Bus::new(configuration).err().unwrap().to_string(), message);
    }
}

#[test]
fn images_that_cannot_be_used_are_refused() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let name = |name: &str| directory.path().join(name);
    std::fs::write(name("odd"), [0; 513]).unwrap();
    std::fs::write(name("empty"), []).unwrap();
    std::fs::write(name("locked"), [0; 512]).unwrap();
    std::fs::set_permissions(name("locked"), std::fs::Permissions::from_mode(0o444)).unwrap();
    for (file, mode, message) in [
        ("missing", DiskMode::Overlay, "missing: cannot open: No such file"),
        ("", DiskMode::Overlay, ": not a regular file"),
        ("odd", DiskMode::ReadOnly, "odd: size of 513 bytes is not a multiple of 512"),
        ("empty", DiskMode::Write, "empty: size of 0 bytes is not"),
        ("locked", DiskMode::Write, "locked: read-only on the host"),
    ] {
        let mut configuration = configuration();
        configuration.disks = vec![disk(&name(file), mode, 0)];
        let error = Bus::new(configuration).err().unwrap().to_string();
        assert!(error.starts_with("disk image /"), "{error}");
        assert!(error.contains(message), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
    let mut read_only = configuration();
    read_only.disks = vec![disk(&name("locked"), DiskMode::ReadOnly, 0)];
    assert!(Bus::new(read_only).is_ok());
}

#[test]
fn one_image_cannot_be_written_by_two_disks() {
    let directory = tempfile::tempdir().unwrap();
    let path = image(directory.path(), 8);
    let link = directory.path().join("link");
    std::fs::hard_link(&path, &link).unwrap();
    let two = |first, second| {
        let mut configuration = configuration();
        configuration.disks = vec![disk(&path, first, 0), disk(&link, second, 0)];
        Bus::new(configuration).map(|_| ())
    };
    assert!(two(DiskMode::Overlay, DiskMode::ReadOnly).is_ok());
    for (first, second) in [
        (DiskMode::Write, DiskMode::Write),
        (DiskMode::Overlay, DiskMode::Write),
        (DiskMode::Write, DiskMode::ReadOnly),
    ] {
        let error = two(first, second).err().unwrap().to_string();
        assert!(error.contains("link: used by two disks"), "{error}");
    }
}

fn entropy(seed: u64, lengths: &[u32]) -> Vec<u8> {
    let mut configuration = configuration();
    configuration.entropy = true;
    configuration.seed = seed;
    let mut board = Board::new(configuration);
    assert_eq!(board.get(SLOT_ENTROPY, DEVICE_ID), 4);
    let mut queue = board.start(SLOT_ENTROPY, VERSION_1, 1, 8, RINGS).remove(0);
    let mut stream = Vec::new();
    for &length in lengths {
        queue.submit(&mut board, &[(DATA, length, true)]);
        board.check_log();
        let (_, written) = queue.take_used(&board).unwrap();
        assert_eq!(written, length.min(65536));
        stream.extend(board.peek(DATA, written as usize));
        assert_eq!(board.interrupt(SLOT_ENTROPY), 1);
    }
    assert_eq!(board.bus.statistics().entropy_bytes, stream.len() as u64);
    stream
}

#[test]
fn entropy_is_one_stream_of_the_seed() {
    let whole = entropy(1, &[1000]);
    assert_eq!(entropy(1, &[1, 63, 64, 872]), whole);
    assert_ne!(entropy(2, &[1000]), whole);
    assert!(whole.iter().filter(|&&byte| byte == 0).count() < 30);
    assert_eq!(entropy(1, &[100_000]).len(), 65536, "bounded");
}
