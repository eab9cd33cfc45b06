//! The guest and the peer at the other end of the link.

use crate::support::{Run, boot, ours, stock};
use concord_abi::exit::Exit;
use concord_machine::{Configuration, Gear, Net};

const ECHOES: usize = 4;

fn with_peer(mut configuration: Configuration, latency_cycles: u64) -> Run {
    configuration.net = Net::Peer;
    configuration.board.link.latency_cycles = latency_cycles;
    boot(configuration).healthy()
}

/// The round-trip times that ping reports, in cycles; 1 ms is 1,000,000.
fn round_trips_cycles(run: &Run) -> Vec<u64> {
    let time = |line: &str| Some(line.split_once(" time=")?.1.split_once(" ms")?.0.parse::<f64>().unwrap());
    run.console.lines().filter_map(time).map(|milliseconds| (milliseconds * 1e6).round() as u64).collect()
}

/// Checks that every echo came back after twice the link's latency and what the guest's kernel and ping need, which is less
/// than `guest_cycles_max`.
#[track_caller]
fn answers_arrive(run: &Run, latency_cycles: u64, guest_cycles_max: u64) {
    let times = round_trips_cycles(run);
    assert_eq!(times.len(), ECHOES, "{}", run.console);
    // The first request waits for the answer to an ARP request.
    for (index, time) in times.iter().enumerate() {
        let trips = if index == 0 { 4 } else { 2 };
        let guest_cycles = time.checked_sub(trips * latency_cycles);
        assert!(
            guest_cycles.is_some_and(|cycles| (1..guest_cycles_max).contains(&cycles)),
            "{times:?}\n{}",
            run.console
        );
    }
    run.says(&format!("{ECHOES} packets transmitted, {ECHOES} packets received, 0% packet loss"));
    run.says("network: the datagram came back");

    let net = run.document.devices.net.as_ref().unwrap();
    // An ARP exchange, the echoes, and the datagram.
    assert!(net.sent_frames >= ECHOES as u64 + 2, "{net:?}");
    assert!(net.received_frames >= ECHOES as u64 + 2, "{net:?}");
    assert_eq!((net.sent_dropped_frames, net.received_dropped_frames), (0, 0));
}

#[test]
fn the_peer_answers_after_two_link_latencies() {
    let words = format!("concord.run=network concord.size={ECHOES}");
    for latency_cycles in [100_000, 3_000_000] {
        for gear in [Gear::Functional, Gear::Timed] {
            let run = with_peer(ours(&words, 2, gear), latency_cycles);
            answers_arrive(&run, latency_cycles, 1_000_000);
        }
    }
}

#[test]
#[ignore = "long"]
fn the_peer_answers_the_stock_kernel() {
    let words = format!("concord.run=network concord.size={ECHOES}");
    answers_arrive(&with_peer(stock(&words, 2), 100_000), 100_000, 1_000_000);
}

#[test]
fn a_machine_without_a_network_says_so() {
    let run = boot(ours("concord.run=network", 1, Gear::Functional));
    run.says("network: this machine has no network device");
    assert_eq!((run.document.exit, run.document.guest_code), (Exit::Failed, 1));
}
