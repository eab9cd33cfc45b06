//! Whatever a guest does to the devices, they neither panic nor differ from run to run, and every write they
//! make is logged.

mod common;

use common::*;
use concord_dev::*;
use proptest::prelude::*;

fn board(directory: &std::path::Path) -> (Board, BusConfiguration) {
    let mut configuration = configuration();
    configuration.disks = vec![disk(&image(directory, 64), DiskMode::Overlay, 300)];
    configuration.net = Some(NetConfiguration {
        latency_cycles: 100,
        script: (0..5)
            .map(|index| ScriptedPacket {
                send_cycle: 400 * index,
                source_port: 9,
                destination_port: 9,
                payload: vec![1; 20],
            })
            .collect(),
    });
    configuration.entropy = true;
    (Board::new(configuration.clone()), configuration)
}

/// With every device up, its rings among the memory that the steps write.
fn started(directory: &std::path::Path) -> (Board, BusConfiguration) {
    let (mut board, configuration) = board(directory);
    for (slot, queues) in [(0, 1), (SLOT_NET, 2), (SLOT_ENTROPY, 1)] {
        board.start(slot, VERSION_1 | INDIRECT, queues, 8, RAM_BASE + 0x8000 * (slot % 5));
    }
    (board, configuration)
}

#[derive(Clone, Debug)]
enum Step {
    Read(u64, u8),
    Write(u64, u8, u64),
    Poke(u64, u64),
    Input(Vec<u8>),
    Advance(u64),
}

/// Addresses of registers more often than not.
fn address() -> impl Strategy<Value = u64> {
    let virtio = (0..8u64, 0..0x140u64).prop_map(|(slot, at)| 0x1000_1000 + slot * 0x1000 + at);
    let used = prop::sample::select(vec![
        0x010u64, 0x014, 0x020, 0x024, 0x030, 0x038, 0x044, 0x050, 0x064, 0x070, 0x080, 0x084, 0x090, 0x094, 0x0a0,
        0x0a4,
    ]);
    let register =
        (prop::sample::select(vec![0u64, 6, 7]), used).prop_map(|(slot, at)| 0x1000_1000 + slot * 0x1000 + at);
    prop_oneof![
        virtio,
        register,
        (0..8u64).prop_map(|at| 0x1000_0000 + at),
        (0..0x20_4000u64).prop_map(|at| 0x0c00_0000 + at),
        (0..8u64).prop_map(|at| 0x10_0000 + at),
        any::<u64>(),
    ]
}

fn value() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..16u64,
        Just(VERSION_1 | EVENT_INDEX),
        (0..0x40u64).prop_map(|page| RAM_BASE + page * 0x1000),
        any::<u64>(),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let size = prop::sample::select(vec![1u8, 2, 4, 4, 4, 8, 3]);
    let aligned = |(address, size): (u64, u8)| (address & !(u64::from(size) - 1), size);
    prop_oneof![
        (address(), size.clone()).prop_map(move |pair| {
            let (address, size) = aligned(pair);
            Step::Read(address, size)
        }),
        (address(), size, value()).prop_map(move |(address, size, value)| {
            let (address, size) = aligned((address, size));
            Step::Write(address, size, value)
        }),
        (0..0x8000u64, value()).prop_map(|(at, value)| Step::Poke(RAM_BASE + at * 8, value)),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Step::Input),
        (0..1000u64).prop_map(Step::Advance),
    ]
}

/// Carries out the steps and returns the answers.
fn run(board: &mut Board, steps: &[Step]) -> Vec<String> {
    let mut seen = Vec::new();
    board.mark();
    for step in steps {
        match step {
            Step::Read(address, size) => {
                seen.push(format!("{:?}", board.bus.read(*address, *size, board.now)));
            }
            Step::Write(address, size, value) => {
                let memory = &board.memory;
                let result = board.bus.write(*address, *size, *value, board.now, memory);
                seen.push(format!("{result:?}"));
            }
            Step::Poke(address, value) => {
                board.poke(*address, &value.to_le_bytes());
                board.mark();
            }
            Step::Input(bytes) => board.bus.console_input(bytes),
            Step::Advance(cycles) => {
                let now = board.now + cycles;
                board.until(now);
                assert!(board.bus.next_event_cycle() > now);
            }
        }
        board.check_log();
        seen.push(format!("{} {:x}", board.bus.next_event_cycle(), board.bus.external_interrupt_harts()));
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_accesses_are_harmless_and_repeatable(
        steps in prop::collection::vec(step(), 1..80),
        cut in 0..80usize,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let (mut first, configuration) = started(directory.path());
        let seen = run(&mut first, &steps);
        let (mut second, _) = started(directory.path());
        let (before, after) = steps.split_at(cut.min(steps.len()));
        let mut again = run(&mut second, before);
        // And through a snapshot anywhere.
        let state: BusState =
            postcard::from_bytes(&postcard::to_allocvec(&second.bus.save()).unwrap()).unwrap();
        let mut third = second.continued(Bus::restore(configuration, &state).unwrap());
        again.extend(run(&mut third, after));
        prop_assert_eq!(again, seen);
        prop_assert_eq!(third.bus.save(), first.bus.save());
        prop_assert!(third.ram() == first.ram());
    }
}

/// A descriptor, mostly of something plausible.
fn descriptor() -> impl Strategy<Value = (u64, u32, u16, u16)> {
    let address = prop_oneof![
        6 => (0..0x40u64).prop_map(|part| RAM_BASE + part * 0x100),
        1 => Just(RINGS),
        1 => Just(RAM_BASE + RAM_BYTES as u64 - 8),
        1 => any::<u64>(),
    ];
    let length = prop_oneof![
        4 => prop::sample::select(vec![0u32, 1, 12, 16, 32, 48, 64, 512, 513, 1024]),
        1 => any::<u32>(),
    ];
    let flags = prop::sample::select(vec![0u16, NEXT, NEXT, WRITE, NEXT | WRITE, TABLE, TABLE | NEXT]);
    (address, length, flags, 0..10u16)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn random_rings_are_harmless_and_repeatable(
        slot in prop::sample::select(vec![0u64, SLOT_NET, SLOT_ENTROPY]),
        features in prop::sample::select(vec![0, INDIRECT, EVENT_INDEX, INDIRECT | EVENT_INDEX]),
        table in prop::collection::vec(descriptor(), 8),
        indirect in prop::collection::vec(descriptor(), 64),
        headers in prop::collection::vec((0..15u32, 0..70u64), 64),
        heads in prop::collection::vec(0..10u16, 1..12),
        index in prop_oneof![8 => 0..12u16, 1 => any::<u16>()],
        queue in 0..3u64,
    ) {
        let run = || {
            let directory = tempfile::tempdir().unwrap();
            let (mut board, _) = board(directory.path());
            // Whatever a buffer or an indirect table may name holds headers and descriptors.
            for (at, &(kind, sector)) in headers.iter().enumerate() {
                block_header(&board, RAM_BASE + 0x100 * at as u64, kind, sector);
            }
            for (at, &(address, length, flags, next)) in indirect.iter().enumerate() {
                let at = RAM_BASE + 0x2000 + 16 * at as u64;
                write_descriptor(&board, at, address, length, flags, next);
            }
            let queues = if slot == SLOT_NET { 2 } else { 1 };
            let queues = board.start(slot, VERSION_1 | features, queues, 8, RINGS);
            for ring in &queues {
                for (at, &(address, length, flags, next)) in table.iter().enumerate() {
                    ring.descriptor(&board, at as u16, address, length, flags, next);
                }
                for (at, head) in heads.iter().take(8).enumerate() {
                    board.poke(ring.available + 4 + 2 * at as u64, &head.to_le_bytes());
                }
                let count = if index > 12 { index } else { index.min(heads.len() as u16) };
                board.poke(ring.available + 2, &count.to_le_bytes());
            }
            board.mark();
            board.set(slot, QUEUE_NOTIFY, queue);
            board.check_log();
            board.until(10_000);
            board.check_log();
            assert_eq!(board.bus.next_event_cycle(), u64::MAX);
            (board.ram(), board.bus.save())
        };
        let (first, second) = (run(), run());
        prop_assert!(first == second);
    }
}
