//! A restored board goes on exactly as the one that was saved.

mod common;

use std::num::NonZeroU64;

use common::*;
use concord_dev::*;

fn through_bytes(state: &BusState) -> BusState {
    let bytes = postcard::to_allocvec(state).unwrap();
    postcard::from_bytes(&bytes).unwrap()
}

fn full(directory: &std::path::Path, mode: DiskMode) -> BusConfiguration {
    let mut configuration = configuration();
    configuration.disks = vec![disk(&image(directory, 64), mode, 1000)];
    configuration.disks[0].latency.bandwidth_bytes_per_second = NonZeroU64::new(CYCLES_PER_SECOND);
    configuration.net = Some(NetConfiguration {
        latency_cycles: 700,
        script: vec![ScriptedPacket {
            send_cycle: 1500,
            source_port: 1,
            destination_port: 2,
            payload: b"script".to_vec(),
        }],
    });
    configuration.entropy = true;
    configuration
}

struct Queues {
    disk: Queue,
    receive: Queue,
    transmit: Queue,
    entropy: Queue,
}

fn start(board: &mut Board) -> Queues {
    let features = VERSION_1 | EVENT_INDEX;
    let disk = board.start(0, features, 1, 64, RINGS).remove(0);
    let mut net = board.start(SLOT_NET, features, 2, 64, RINGS + 0x1_0000);
    let entropy = board.start(SLOT_ENTROPY, features, 1, 8, RINGS + 0x2_0000).remove(0);
    Queues { disk, transmit: net.remove(1), receive: net.remove(0), entropy }
}

/// Starts something on every device, at different cycles, and leaves it in flight.
fn load(board: &mut Board, queues: &mut Queues) {
    for lane in 0..4u64 {
        board.now = lane * 200;
        let kind = [BLK_WRITE, BLK_READ, BLK_WRITE, BLK_FLUSH][lane as usize];
        let (header, status) = (HEADER + 16 * lane, STATUS_BYTE + lane);
        block_header(board, header, kind, 2 * lane);
        let data = DATA + 4096 * lane;
        board.poke(data, &[0xc0 + lane as u8; 1024]);
        let parts = [(header, 16, false), (data, 1024, lane == 1), (status, 1, true)];
        queues.disk.submit(board, &parts);
        queues.receive.submit(board, &[(DATA + 0x2_0000 + 2048 * lane, 2048, true)]);
        queues.transmit.submit(board, &[(RAM_BASE + 0x5000, 54, false)]);
        queues.entropy.submit(board, &[(DATA + 0x4_0000, 33, true)]);
    }
    board.bus.console_input(b"typed before the snapshot");
    board.bus.console_write(b"not yet taken");
    let memory = &board.memory;
    board.bus.write(0x10_0000, 4, 0x2a_3333, board.now, memory).unwrap();
}

/// An ARP request for the peer, where `load` sends from.
fn prepare_arp(board: &Board) {
    let mut frame = vec![0; 12];
    frame.extend_from_slice(&[0xff; 6]);
    frame.extend_from_slice(&GUEST_MAC);
    frame.extend_from_slice(&[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    frame.extend_from_slice(&GUEST_MAC);
    frame.extend_from_slice(&GUEST_IPV4);
    frame.extend_from_slice(&[0; 6]);
    frame.extend_from_slice(&PEER_IPV4);
    board.poke(RAM_BASE + 0x5000, &frame);
}

/// Runs to the end, with more work in between, and tells all that can be seen.
fn finish(board: &mut Board, queues: &mut Queues) -> Vec<String> {
    let mut seen = vec![format!("{:?}", board.bus.take_finish())];
    let mut rounds = 0;
    while board.bus.next_event_cycle() != u64::MAX {
        let cycle = board.step();
        rounds += 1;
        if rounds == 2 {
            queues.entropy.submit(board, &[(DATA + 0x5_0000, 100, true)]);
            let parts = [(HEADER, 16, false), (DATA, 512, false), (STATUS_BYTE, 1, true)];
            queues.disk.submit(board, &parts);
        }
        let writes: Vec<_> = board.bus.dma_writes().collect();
        let interrupts: Vec<u64> =
            [0, SLOT_NET, SLOT_ENTROPY].into_iter().map(|slot| board.get(slot, INTERRUPT_STATUS)).collect();
        seen.push(format!("{cycle} {writes:x?} {interrupts:?}"));
    }
    seen.push(format!("{:?}", board.bus.console_output().collect::<Vec<_>>()));
    while let Some(byte) = board.bus.console_read() {
        seen.push(format!("{byte}"));
    }
    seen.push(format!("{:?}", board.bus.statistics()));
    seen
}

/// Cut after each event: the rest is the same, down to every byte of memory.
#[test]
fn requests_in_flight_complete_the_same() {
    let mut uncut = None;
    for cut in 0..6 {
        let directory = tempfile::tempdir().unwrap();
        let configuration = full(directory.path(), DiskMode::Overlay);
        let mut board = Board::new(configuration.clone());
        prepare_arp(&board);
        let mut queues = start(&mut board);
        load(&mut board, &mut queues);
        let mut reference =
            board.continued(Bus::restore(configuration.clone(), &through_bytes(&board.bus.save())).unwrap());
        let uncut = uncut.get_or_insert_with(|| {
            let seen = finish(&mut board, &mut queues_clone(&queues));
            (seen, board.ram())
        });
        for _ in 0..cut {
            reference.step();
        }
        let state = through_bytes(&reference.bus.save());
        assert_eq!(state, reference.bus.save());
        let mut restored = reference.continued(Bus::restore(configuration, &state).unwrap());
        let mut queues_again = queues_clone(&queues);
        let expected = finish(&mut reference, &mut queues);
        assert_eq!(finish(&mut restored, &mut queues_again), expected, "cut {cut}");
        assert_eq!(restored.ram(), reference.ram());
        assert_eq!(restored.bus.save(), reference.bus.save());
        if cut == 0 {
            assert_eq!((expected, reference.ram()), *uncut);
        }
    }
}

fn queues_clone(queues: &Queues) -> Queues {
    Queues {
        disk: queues.disk.clone(),
        receive: queues.receive.clone(),
        transmit: queues.transmit.clone(),
        entropy: queues.entropy.clone(),
    }
}

#[test]
fn an_overlay_is_restored_over_its_image() {
    let directory = tempfile::tempdir().unwrap();
    let configuration = full(directory.path(), DiskMode::Overlay);
    let mut board = Board::new(configuration.clone());
    let mut queues = start(&mut board);
    load(&mut board, &mut queues);
    board.until(5000);
    let digests = board.bus.disk_digests().unwrap();
    assert_eq!(digests[0].size_bytes, 64 * 512);
    let file = std::fs::read(&digests[0].path).unwrap();
    assert_eq!(digests[0].image, blake3::hash(&file).to_hex().to_string());
    let state = through_bytes(&board.bus.save());
    let mut restored = board.continued(Bus::restore(configuration, &state).unwrap());
    block_header(&restored, HEADER, BLK_READ, 0);
    let parts = [(HEADER, 16, false), (DATA, 6 * 512, true), (STATUS_BYTE, 1, true)];
    queues.disk.submit(&mut restored, &parts);
    restored.until(20_000);
    let image = [[3; 512], [4; 512]].concat();
    let expected = [&[0xc0; 1024][..], &image, &[0xc2; 1024]].concat();
    assert!(restored.peek(DATA, 6 * 512) == expected);
}

fn error(configuration: BusConfiguration, state: &BusState) -> String {
    Bus::restore(configuration, state).err().unwrap().to_string()
}

#[test]
fn an_image_that_changed_is_refused() {
    for mode in [DiskMode::Overlay, DiskMode::ReadOnly, DiskMode::Write] {
        let directory = tempfile::tempdir().unwrap();
        let configuration = full(directory.path(), mode);
        let path = configuration.disks[0].path.clone();
        let mut bus = Bus::new(configuration.clone()).unwrap();
        let unchecked = bus.save();
        bus.disk_digests().unwrap();
        let state = bus.save();
        assert!(Bus::restore(configuration.clone(), &state).is_ok());
        let mut content = std::fs::read(&path).unwrap();
        content[20_000] ^= 1;
        std::fs::write(&path, &content).unwrap();
        let message = error(configuration.clone(), &state);
        assert!(message.contains("its content has changed"), "{message}");
        assert!(Bus::restore(configuration.clone(), &unchecked).is_ok());
        std::fs::write(&path, &content[..512]).unwrap();
        for state in [&state, &unchecked] {
            let message = error(configuration.clone(), state);
            let expected = "is 512 bytes, but was 32768 when the state was saved";
            assert!(message.contains(expected), "{message}");
        }
    }
}

/// The digest of a written image is dropped by the write: it would be that of another content.
#[test]
fn a_write_invalidates_the_digest() {
    let directory = tempfile::tempdir().unwrap();
    let configuration = full(directory.path(), DiskMode::Write);
    let mut board = Board::new(configuration.clone());
    let before = board.bus.disk_digests().unwrap();
    let mut queues = start(&mut board);
    load(&mut board, &mut queues);
    board.until(5000);
    let after = board.bus.disk_digests().unwrap();
    assert_ne!(before[0].image, after[0].image);
    assert!(Bus::restore(configuration, &board.bus.save()).is_ok());
}

#[test]
fn a_state_that_does_not_fit_the_board_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let configuration = full(directory.path(), DiskMode::Overlay);
    let mut board = Board::new(configuration.clone());
    let mut queues = start(&mut board);
    load(&mut board, &mut queues);
    board.until(5000);
    let state = board.bus.save();
    type Change = fn(&mut BusConfiguration);
    let changes: [(&str, Change); 7] = [
        ("harts", |board| board.harts = 3),
        ("no disk", |board| board.disks.clear()),
        ("no net", |board| board.net = None),
        ("no entropy", |board| board.entropy = false),
        ("another script", |board| board.net.as_mut().unwrap().script.clear()),
        ("read-only", |board| board.disks[0].mode = DiskMode::ReadOnly),
        ("no overlay", |board| board.disks[0].mode = DiskMode::Write),
    ];
    for (name, change) in changes {
        let mut changed = configuration.clone();
        change(&mut changed);
        let message = error(changed, &state);
        assert!(message.contains("does not fit the board"), "{name}: {message}");
    }
    let mut slower = configuration.clone();
    slower.disks[0].latency.fixed_cycles = 9;
    slower.net.as_mut().unwrap().latency_cycles = 9;
    assert!(Bus::restore(slower, &state).is_ok(), "latencies may differ");
    let mut other = configuration;
    other.harts = 65;
    assert!(error(other, &state).contains("65 harts"));
}
