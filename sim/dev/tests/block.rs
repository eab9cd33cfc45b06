//! The block device, driven as a driver would.

mod common;

use std::num::NonZeroU64;

use common::*;
use concord_dev::*;

const OK: u8 = 0;
const IO_ERROR: u8 = 1;
const UNSUPPORTED: u8 = 2;
const UNTOUCHED: u8 = 0xee;

struct Rig {
    board: Board,
    queue: Queue,
    directory: tempfile::TempDir,
}

impl Rig {
    fn new(mode: DiskMode, fixed_cycles: u64, sectors: usize) -> Rig {
        Rig::with(mode, fixed_cycles, sectors, VERSION_1)
    }

    fn with(mode: DiskMode, fixed_cycles: u64, sectors: usize, features: u64) -> Rig {
        let directory = tempfile::tempdir().unwrap();
        let path = image(directory.path(), sectors);
        let mut configuration = configuration();
        configuration.disks.push(disk(&path, mode, fixed_cycles));
        let mut board = Board::new(configuration);
        let queue = board.start(0, features, 1, 64, RINGS).remove(0);
        Rig { board, queue, directory }
    }

    fn file(&self) -> Vec<u8> {
        std::fs::read(self.directory.path().join("disk.img")).unwrap()
    }

    /// Submits a request whose data is at `DATA`; its header and status byte are those of `lane`.
    fn submit(&mut self, lane: u64, kind: u32, sector: u64, length: u32) -> u16 {
        let (header, status) = (HEADER + 16 * lane, STATUS_BYTE + lane);
        block_header(&self.board, header, kind, sector);
        self.board.poke(status, &[UNTOUCHED]);
        let device_writes = matches!(kind, BLK_READ | BLK_GET_ID);
        let mut parts = vec![(header, 16, false)];
        if length > 0 {
            parts.push((DATA, length, device_writes));
        }
        parts.push((status, 1, true));
        self.queue.submit(&mut self.board, &parts)
    }

    fn status(&self, lane: u64) -> u8 {
        self.board.peek(STATUS_BYTE + lane, 1)[0]
    }

    /// Runs one request to its end and returns its status and the used length.
    fn run(&mut self, kind: u32, sector: u64, length: u32) -> (u8, u32) {
        let head = self.submit(0, kind, sector, length);
        self.board.step();
        self.board.check_log();
        let (used, written) = self.queue.take_used(&self.board).unwrap();
        assert_eq!(used, u32::from(head));
        (self.status(0), written)
    }
}

#[test]
fn identification_and_configuration() {
    let mut rig = Rig::new(DiskMode::Write, 0, 100);
    let board = &mut rig.board;
    assert_eq!(board.get(0, MAGIC), 0x7472_6976);
    assert_eq!(board.get(0, 4), 2);
    assert_eq!(board.get(0, DEVICE_ID), 2);
    assert_eq!(board.config(0, 0, 8), 100);
    assert_eq!(board.config(0, 12, 4), 254);
    assert_eq!(board.config(0, 20, 4), 512);
    assert_eq!(board.config(0, 0, 1), 100);
    assert_eq!(board.config(0, 200, 4), 0, "past the configuration");
    assert_eq!(board.get(0, 0x0b0), 0xffff_ffff, "no shared memory");
    let features = board.features(0);
    assert_ne!(features & VERSION_1, 0);
    assert_ne!(features & 1 << 9, 0, "flush");
    assert_eq!(features & 1 << 5, 0, "not read-only");
    assert!(!board.negotiate(0, VERSION_1 | 1), "not offered");
    assert!(board.negotiate(0, VERSION_1 | 1 << 9));
}

/// xv6 compares the vendor, negotiates only the lower half of the features, and leaves out event indices and
/// indirect descriptors.
#[test]
fn a_driver_without_version_1_reads_and_writes() {
    let mut rig = Rig::with(DiskMode::Write, 0, 100, 1 << 9);
    assert_eq!(rig.board.get(0, VENDOR), 0x554d_4551);
    assert_eq!(rig.run(BLK_READ, 3, 512), (OK, 513));
    assert_eq!(rig.board.peek(DATA, 512), [4; 512]);
    rig.board.poke(DATA, &[0x5a; 1024]);
    assert_eq!(rig.run(BLK_WRITE, 7, 1024), (OK, 1));
    assert_eq!(rig.file()[7 * 512..9 * 512], [0x5a; 1024]);
    assert_eq!(rig.board.interrupt(0), 1);
}

/// The interrupt controller gets one request for each used buffer, and no second one for a cause that the driver has not
/// acknowledged.
#[test]
fn a_used_buffer_interrupts_even_while_the_last_one_is_not_acknowledged() {
    let mut rig = Rig::new(DiskMode::ReadOnly, 10, 100);
    rig.board.enable_interrupt(1);
    assert_eq!(rig.run(BLK_READ, 1, 512), (OK, 513));
    assert_eq!(rig.board.claim(), 1);
    rig.board.complete(1);
    assert_eq!(rig.board.claim(), 0, "the line is high, but nothing new has happened");
    assert_eq!(rig.run(BLK_READ, 2, 512), (OK, 513));
    assert_eq!(rig.board.claim(), 1);
    assert_eq!(rig.run(BLK_READ, 3, 512), (OK, 513));
    rig.board.complete(1);
    assert_eq!(rig.board.claim(), 1, "a buffer was used during service");
    assert_eq!(rig.run(BLK_READ, 4, 512), (OK, 513));
    assert_eq!(rig.board.interrupt(0), 1);
    rig.board.complete(1);
    assert_eq!(rig.board.claim(), 0, "the driver has acknowledged it during service");
}

#[test]
fn a_cause_that_is_left_out_of_an_acknowledgement_interrupts_again() {
    let mut rig = Rig::new(DiskMode::ReadOnly, 10, 100);
    rig.board.enable_interrupt(1);
    assert_eq!(rig.run(BLK_READ, 1, 512), (OK, 513));
    rig.queue.offer(&rig.board, 64);
    rig.queue.notify(&mut rig.board);
    assert_eq!(rig.board.get(0, INTERRUPT_STATUS), 3, "a used buffer, and a device that needs a reset");
    assert_eq!(rig.board.claim(), 1);
    rig.board.set(0, INTERRUPT_ACK, 1);
    rig.board.complete(1);
    assert_eq!(rig.board.claim(), 1);
    rig.board.set(0, INTERRUPT_ACK, 2);
    rig.board.complete(1);
    assert_eq!(rig.board.claim(), 0);
}

#[test]
fn an_empty_slot_says_so() {
    let mut board = Board::new(configuration());
    for slot in 0..8 {
        assert_eq!(board.get(slot, MAGIC), 0x7472_6976);
        assert_eq!(board.get(slot, DEVICE_ID), 0);
        board.set(slot, STATUS, 1);
        assert_eq!(board.get(slot, STATUS), 0);
    }
}

#[test]
fn read_gives_the_images_sectors() {
    let mut rig = Rig::new(DiskMode::ReadOnly, 500, 64);
    rig.board.now = 1000;
    let head = rig.submit(0, BLK_READ, 3, 1024);
    assert_eq!(rig.board.bus.next_event_cycle(), 1500);
    rig.board.until(1499);
    assert_eq!(rig.queue.take_used(&rig.board), None);
    rig.board.until(1500);
    rig.board.check_log();
    assert_eq!(rig.queue.take_used(&rig.board), Some((u32::from(head), 1025)));
    assert_eq!(rig.status(0), OK);
    assert_eq!(rig.board.peek(DATA, 1024), [[4; 512], [5; 512]].concat().as_slice());
    assert_eq!(rig.board.interrupt(0), 1);
    let statistics = &rig.board.bus.statistics().disks[0];
    assert_eq!((statistics.reads, statistics.read_bytes), (1, 1024));
}

#[test]
fn the_interrupt_reaches_the_hart() {
    let mut rig = Rig::new(DiskMode::Write, 10, 8);
    let bus = &mut rig.board.bus;
    let memory = &rig.board.memory;
    bus.write(0x0c00_0004, 4, 1, 0, memory).unwrap();
    bus.write(0x0c00_2000 + 3 * 0x80, 4, 2, 0, memory).unwrap();
    rig.submit(0, BLK_READ, 0, 512);
    assert_eq!(rig.board.bus.external_interrupt_harts(), 0);
    rig.board.step();
    assert_eq!(rig.board.bus.external_interrupt_harts(), 0b10);
    let claim = 0x0c20_3004;
    assert_eq!(rig.board.bus.read(claim, 4, 10), Ok(1));
    assert_eq!(rig.board.interrupt(0), 1);
    let memory = &rig.board.memory;
    rig.board.bus.write(claim, 4, 1, 10, memory).unwrap();
    assert_eq!(rig.board.bus.external_interrupt_harts(), 0);
}

#[test]
fn a_write_reaches_the_image_when_it_completes() {
    let mut rig = Rig::new(DiskMode::Write, 100, 8);
    rig.board.poke(DATA, &[0xaa; 512]);
    rig.submit(0, BLK_WRITE, 2, 512);
    assert_eq!(rig.file()[1024], 3, "not yet");
    rig.board.step();
    rig.board.check_log();
    assert_eq!(rig.file()[1024..1536], [0xaa; 512]);
    assert_eq!((rig.file()[1023], rig.file()[1536]), (2, 4));
    assert_eq!(rig.queue.take_used(&rig.board).unwrap().1, 1);
    rig.board.bus.finish_disks().unwrap();
}

#[test]
fn an_overlay_keeps_the_image() {
    let mut rig = Rig::new(DiskMode::Overlay, 0, 13);
    let before = rig.file();
    // Ends inside the image's last, partial cluster.
    rig.board.poke(DATA, &[0xbb; 1536]);
    assert_eq!(rig.run(BLK_WRITE, 7, 1536), (OK, 1));
    assert_eq!(rig.run(BLK_READ, 0, 13 * 512), (OK, 13 * 512 + 1));
    let mut expected = before.clone();
    expected[7 * 512..10 * 512].fill(0xbb);
    assert_eq!(rig.board.peek(DATA, 13 * 512), expected);
    assert_eq!(rig.file(), before);
}

#[test]
fn write_zeroes_flush_and_identification() {
    for mode in [DiskMode::Write, DiskMode::Overlay] {
        let mut rig = Rig::new(mode, 0, 32);
        let mut range = 5u64.to_le_bytes().to_vec();
        range.extend_from_slice(&3u32.to_le_bytes());
        range.extend_from_slice(&1u32.to_le_bytes());
        rig.board.poke(DATA, &range);
        assert_eq!(rig.run(BLK_WRITE_ZEROES, 0, 16), (OK, 1));
        assert_eq!(rig.run(BLK_WRITE_ZEROES, 0, 15), (IO_ERROR, 1));
        assert_eq!(rig.run(BLK_READ, 4, 5 * 512), (OK, 5 * 512 + 1));
        let data = rig.board.peek(DATA, 5 * 512);
        assert_eq!((data[511], data[512], data[4 * 512 - 1], data[4 * 512]), (5, 0, 0, 9));
        assert_eq!(rig.run(BLK_FLUSH, 0, 0), (OK, 1));
        assert_eq!(rig.run(BLK_GET_ID, 0, 20), (OK, 21));
        assert_eq!(rig.board.peek(DATA, 20), b"concord-disk-0\0\0\0\0\0\0");
        let statistics = &rig.board.bus.statistics().disks[0];
        assert_eq!((statistics.write_zeroes, statistics.flushes), (1, 1));
    }
}

#[test]
fn requests_the_disk_cannot_do_get_an_error() {
    let mut rig = Rig::new(DiskMode::ReadOnly, 0, 8);
    assert_ne!(rig.board.features(0) & 1 << 5, 0);
    for (kind, sector, length, status) in [
        (BLK_READ, 7, 1024, IO_ERROR),
        (BLK_READ, u64::MAX, 512, IO_ERROR),
        (BLK_READ, u64::MAX / 512, 512, IO_ERROR),
        (BLK_READ, 0, 100, IO_ERROR),
        (BLK_WRITE, 0, 512, IO_ERROR),
        (BLK_WRITE_ZEROES, 0, 16, IO_ERROR),
        (11, 0, 16, UNSUPPORTED),
        (99, 0, 0, UNSUPPORTED),
    ] {
        assert_eq!(rig.run(kind, sector, length), (status, 1), "{kind} {sector}");
    }
    assert_eq!(rig.board.bus.statistics().disks[0].errors, 8);
    assert!(rig.board.bus.take_host_error().is_none(), "the guest's fault");
    assert_eq!(rig.board.get(0, STATUS) & NEEDS_RESET, 0);
}

#[test]
fn access_times_overlap_and_transfers_queue() {
    let directory = tempfile::tempdir().unwrap();
    let mut configuration = configuration();
    let mut disk = disk(&image(directory.path(), 64), DiskMode::Overlay, 1000);
    disk.latency.bandwidth_bytes_per_second = NonZeroU64::new(CYCLES_PER_SECOND / 2);
    configuration.disks.push(disk);
    let mut board = Board::new(configuration);
    let queue = board.start(0, VERSION_1, 1, 64, RINGS).remove(0);
    let mut rig = Rig { board, queue, directory };
    rig.submit(0, BLK_READ, 0, 1024);
    rig.board.now = 100;
    rig.submit(1, BLK_READ, 8, 512);
    rig.submit(2, BLK_FLUSH, 0, 0);
    // The first transfer ends at 1000 + 2048. The second's access is over by then, so 1024 later. The flush
    // is done with it: behind both, though its own access time is long over.
    assert_eq!(rig.board.step(), 3048);
    assert!(rig.queue.take_used(&rig.board).is_some());
    assert!(rig.queue.take_used(&rig.board).is_none());
    assert_eq!(rig.board.step(), 4072);
    assert!(rig.queue.take_used(&rig.board).is_some());
    assert!(rig.queue.take_used(&rig.board).is_some());
    assert_eq!(rig.board.bus.next_event_cycle(), u64::MAX);
}

#[test]
fn advance_runs_everything_due_in_order() {
    let mut rig = Rig::new(DiskMode::Overlay, 50, 64);
    let mut heads = Vec::new();
    for lane in 0..5 {
        rig.board.now = lane * 10;
        heads.push(u32::from(rig.submit(lane, BLK_FLUSH, 0, 0)));
    }
    rig.board.until(70);
    let taken: Vec<u32> = std::iter::from_fn(|| rig.queue.take_used(&rig.board)).map(|used| used.0).collect();
    assert_eq!(taken, heads[..3]);
    assert_eq!(rig.board.bus.next_event_cycle(), 80);
    rig.board.until(u64::MAX);
    assert_eq!(rig.board.bus.next_event_cycle(), u64::MAX);
}

#[test]
fn indirect_descriptors_and_any_layout() {
    let mut rig = Rig::with(DiskMode::Overlay, 0, 64, VERSION_1 | INDIRECT);
    let table = RAM_BASE + 0x8000;
    // The header in two parts, the data in three, the status byte at the end of the last.
    block_header(&rig.board, HEADER, BLK_READ, 1);
    let parts = [
        (HEADER, 10, NEXT),
        (HEADER + 10, 6, NEXT),
        (DATA, 100, NEXT | WRITE),
        (DATA + 0x1000, 300, NEXT | WRITE),
        (DATA + 0x2000, 113, WRITE),
    ];
    for (index, &(address, length, flags)) in parts.iter().enumerate() {
        let at = table + 16 * index as u64;
        write_descriptor(&rig.board, at, address, length, flags, index as u16 + 1);
    }
    rig.queue.descriptor(&rig.board, 9, table, 80, TABLE, 0);
    rig.queue.offer(&rig.board, 9);
    rig.queue.notify(&mut rig.board);
    rig.board.step();
    rig.board.check_log();
    assert_eq!(rig.queue.take_used(&rig.board), Some((9, 513)));
    let data = [(DATA, 100), (DATA + 0x1000, 300), (DATA + 0x2000, 112)]
        .map(|(at, length)| rig.board.peek(at, length))
        .concat();
    assert_eq!(data, [2; 512]);
    assert_eq!(rig.board.peek(DATA + 0x2000 + 112, 1), [OK]);
}

#[test]
fn event_indices_spare_notifications_and_interrupts() {
    let mut rig = Rig::with(DiskMode::Overlay, 0, 64, VERSION_1 | EVENT_INDEX);
    let used_event = rig.queue.available + 4 + 2 * 64;
    let available_event = rig.queue.used + 4 + 8 * 64;
    rig.board.poke(used_event, &1u16.to_le_bytes());
    rig.submit(0, BLK_FLUSH, 0, 0);
    rig.board.check_log();
    assert_eq!(rig.board.peek16(available_event), 1);
    rig.board.step();
    assert_eq!(rig.board.interrupt(0), 0, "only the second was asked for");
    rig.submit(1, BLK_FLUSH, 0, 0);
    rig.board.step();
    assert_eq!(rig.board.interrupt(0), 1);
    assert_eq!(rig.board.peek16(available_event), 2);
}

#[test]
fn the_driver_can_switch_interrupts_off() {
    let mut rig = Rig::new(DiskMode::Overlay, 0, 64);
    rig.board.poke(rig.queue.available, &1u16.to_le_bytes());
    rig.submit(0, BLK_FLUSH, 0, 0);
    rig.board.step();
    assert_eq!(rig.board.interrupt(0), 0);
    rig.board.poke(rig.queue.available, &0u16.to_le_bytes());
    rig.submit(0, BLK_FLUSH, 0, 0);
    rig.board.step();
    assert_eq!(rig.board.interrupt(0), 1);
}

#[test]
fn reset_forgets_requests_in_flight() {
    let mut rig = Rig::new(DiskMode::Write, 100, 8);
    rig.board.poke(DATA, &[0xaa; 512]);
    rig.submit(0, BLK_WRITE, 0, 512);
    rig.board.set(0, STATUS, 0);
    assert_eq!(rig.board.bus.next_event_cycle(), u64::MAX);
    rig.board.until(1000);
    assert_eq!((rig.file()[0], rig.status(0)), (1, UNTOUCHED));
    for register in [STATUS, INTERRUPT_STATUS, QUEUE_READY] {
        assert_eq!(rig.board.get(0, register), 0);
    }
    rig.queue = rig.board.start(0, VERSION_1, 1, 64, RINGS).remove(0);
    rig.board.poke(rig.queue.available, &[0; 4]);
    rig.board.poke(rig.queue.used, &[0; 4]);
    assert_eq!(rig.run(BLK_WRITE, 0, 512), (OK, 1));
    assert_eq!(rig.file()[0], 0xaa);
}

#[test]
fn broken_chains_need_a_reset() {
    let outside = 0x4000_0000;
    type Break = fn(&mut Rig, u64);
    let breaks: [(&str, Break); 9] = [
        // Both of these would be whole requests without the parts behind them.
        ("loop", |rig, _| {
            rig.queue.descriptor(&rig.board, 0, HEADER, 16, NEXT, 1);
            rig.queue.descriptor(&rig.board, 1, DATA, 512, NEXT | WRITE, 1);
            rig.queue.offer(&rig.board, 0);
        }),
        ("next outside the table", |rig, _| {
            rig.queue.descriptor(&rig.board, 0, HEADER, 16, NEXT, 1);
            rig.queue.descriptor(&rig.board, 1, STATUS_BYTE, 1, NEXT | WRITE, 64);
            rig.queue.offer(&rig.board, 0);
        }),
        ("head outside the table", |rig, _| rig.queue.offer(&rig.board, 64)),
        ("read after write", |rig, _| {
            rig.queue.descriptor(&rig.board, 0, DATA, 512, NEXT | WRITE, 1);
            rig.queue.descriptor(&rig.board, 1, HEADER, 16, 0, 0);
            rig.queue.offer(&rig.board, 0);
        }),
        ("no status", |rig, _| {
            rig.queue.descriptor(&rig.board, 0, HEADER, 16, 0, 0);
            rig.queue.offer(&rig.board, 0);
        }),
        ("status outside memory", |rig, outside| {
            rig.queue.descriptor(&rig.board, 0, outside, 1, WRITE, 0);
            rig.queue.offer(&rig.board, 0);
        }),
        ("table outside memory", |rig, outside| {
            rig.queue.descriptor(&rig.board, 0, outside, 64, TABLE, 0);
            rig.queue.offer(&rig.board, 0);
        }),
        ("table of half a descriptor", |rig, _| {
            rig.queue.descriptor(&rig.board, 0, DATA, 24, TABLE, 0);
            rig.queue.offer(&rig.board, 0);
        }),
        ("index too far ahead", |rig, _| {
            rig.board.poke(rig.queue.available + 2, &65u16.to_le_bytes());
        }),
    ];
    for (name, apply) in breaks {
        let mut rig = Rig::with(DiskMode::Overlay, 10, 8, VERSION_1 | INDIRECT);
        rig.submit(3, BLK_FLUSH, 0, 0);
        apply(&mut rig, outside);
        rig.queue.notify(&mut rig.board);
        assert_ne!(rig.board.get(0, STATUS) & NEEDS_RESET, 0, "{name}");
        assert_eq!(rig.board.interrupt(0), 2, "{name}: configuration change");
        assert_eq!(rig.board.bus.next_event_cycle(), u64::MAX, "{name}");
        rig.board.start(0, VERSION_1, 1, 64, RINGS);
        assert_eq!(rig.board.get(0, STATUS), 15, "{name}: usable again");
    }
}

#[test]
fn a_head_offered_for_ever_needs_a_reset() {
    let mut rig = Rig::new(DiskMode::Overlay, 1_000_000, 8);
    block_header(&rig.board, HEADER, BLK_FLUSH, 0);
    rig.queue.descriptor(&rig.board, 0, HEADER, 16, NEXT, 1);
    rig.queue.descriptor(&rig.board, 1, STATUS_BYTE, 1, WRITE, 0);
    for _ in 0..64 {
        rig.queue.offer(&rig.board, 0);
    }
    rig.queue.notify(&mut rig.board);
    assert_eq!(rig.board.get(0, STATUS) & NEEDS_RESET, 0);
    rig.queue.offer(&rig.board, 0);
    rig.queue.notify(&mut rig.board);
    assert_ne!(rig.board.get(0, STATUS) & NEEDS_RESET, 0);
}

#[test]
fn bad_buffers_get_an_io_error() {
    let outside = RAM_BASE + RAM_BYTES as u64 - 256;
    for parts in [
        vec![(HEADER, 16, false), (outside, 512, true), (STATUS_BYTE, 1, true)],
        vec![(0, 16, false), (STATUS_BYTE, 1, true)],
        vec![(HEADER, 15, false), (STATUS_BYTE, 1, true)],
        vec![(HEADER, 16, false), (u64::MAX - 100, 512, true), (STATUS_BYTE, 1, true)],
        vec![(STATUS_BYTE, 1, true)],
    ] {
        let mut rig = Rig::new(DiskMode::Overlay, 0, 8);
        block_header(&rig.board, HEADER, BLK_READ, 0);
        rig.board.poke(STATUS_BYTE, &[UNTOUCHED]);
        rig.queue.submit(&mut rig.board, &parts);
        rig.board.step();
        rig.board.check_log();
        assert_eq!(rig.status(0), IO_ERROR, "{parts:x?}");
        assert_eq!(rig.board.get(0, STATUS) & NEEDS_RESET, 0);
    }
}

#[test]
fn queues_that_cannot_be_are_refused() {
    for (register, value) in [
        (QUEUE_SIZE, 0),
        (QUEUE_SIZE, 3),
        (QUEUE_SIZE, 512),
        (QUEUE_SIZE, 0x1_0040),
        (QUEUE_DESCRIPTORS, RINGS + 8),
        (QUEUE_AVAILABLE, RINGS + 1),
        (QUEUE_USED, RINGS + 2),
        (QUEUE_USED, RAM_BASE + RAM_BYTES as u64 - 16),
        (QUEUE_DESCRIPTORS + 4, 0xffff_ffff),
    ] {
        let mut rig = Rig::new(DiskMode::Overlay, 0, 8);
        rig.board.set(0, QUEUE_READY, 0);
        rig.board.set(0, register, value);
        rig.board.set(0, QUEUE_READY, 1);
        assert_eq!(rig.board.get(0, QUEUE_READY), 0, "{register:#x}={value:#x}");
        assert_ne!(rig.board.get(0, STATUS) & NEEDS_RESET, 0);
    }
}

#[test]
fn an_image_that_shrinks_is_an_error_of_the_host() {
    for (mode, kind) in [(DiskMode::Overlay, BLK_READ), (DiskMode::Write, BLK_WRITE), (DiskMode::Write, BLK_FLUSH)] {
        let mut rig = Rig::new(mode, 0, 64);
        let path = rig.directory.path().join("disk.img");
        let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        file.set_len(32 * 512).unwrap();
        let length = if kind == BLK_FLUSH { 0 } else { 512 };
        assert_eq!(rig.run(kind, 60, length), (IO_ERROR, 1));
        assert_eq!(rig.file().len(), 32 * 512, "a write must not grow it again");
        let error = rig.board.bus.take_host_error().unwrap().to_string();
        assert!(error.contains("disk.img: changed from 32768 to 16384 bytes while in use"), "{error}");
        assert!(rig.board.bus.take_host_error().is_none());
    }
}
