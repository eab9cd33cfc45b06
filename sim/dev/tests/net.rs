//! The network device, its link and its peer.

mod common;

use common::*;
use concord_dev::*;

const LATENCY: u64 = 1000;
const RECEIVE_BYTES: u32 = 1600;

struct Rig {
    board: Board,
    receive: Queue,
    transmit: Queue,
    buffers: u64,
    header_bytes: usize,
}

impl Rig {
    fn new(script: Vec<ScriptedPacket>, features: u64) -> Rig {
        let mut configuration = configuration();
        configuration.net = Some(NetConfiguration { latency_cycles: LATENCY, script });
        let mut board = Board::new(configuration);
        let mut queues = board.start(SLOT_NET, features, 2, 64, RINGS);
        let transmit = queues.remove(1);
        let receive = queues.remove(0);
        let header_bytes = if features & VERSION_1 == 0 { 10 } else { 12 };
        Rig { board, receive, transmit, buffers: 0, header_bytes }
    }

    /// Offers one more buffer to receive into; they follow each other from `DATA` on.
    fn offer(&mut self) {
        let at = DATA + u64::from(RECEIVE_BYTES) * self.buffers;
        self.buffers += 1;
        self.receive.submit(&mut self.board, &[(at, RECEIVE_BYTES, true)]);
    }

    fn send(&mut self, frame: &[u8]) {
        let at = RAM_BASE + 0x4000;
        let header_bytes = self.header_bytes as u32;
        let data = at + u64::from(header_bytes);
        self.board.poke(at, &[0; 12]);
        self.board.poke(data, frame);
        let parts = [(at, header_bytes, false), (data, frame.len() as u32, false)];
        self.transmit.submit(&mut self.board, &parts);
        self.board.check_log();
        assert_eq!(self.transmit.take_used(&self.board).unwrap().1, 0);
    }

    /// The next frame received, without its header.
    fn received(&mut self) -> Option<Vec<u8>> {
        let (head, length) = self.receive.take_used(&self.board)?;
        let at = DATA + u64::from(RECEIVE_BYTES) * u64::from(head);
        let packet = self.board.peek(at, length as usize);
        let (header, frame) = packet.split_at(self.header_bytes);
        assert_eq!(*header, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0][..self.header_bytes]);
        Some(frame.to_vec())
    }

    fn statistics(&self) -> NetStatistics {
        self.board.bus.statistics().net.unwrap()
    }
}

/// Sum of the 16-bit words in ones' complement, as RFC 1071 has it.
fn ones_sum(bytes: &[u8]) -> u16 {
    let mut sum = 0u64;
    for word in bytes.chunks(2) {
        sum += u64::from(word[0]) << 8 | u64::from(*word.get(1).unwrap_or(&0));
    }
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn ethernet(destination: [u8; 6], ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let ethertype = ethertype.to_be_bytes();
    [&destination[..], &GUEST_MAC, &ethertype, payload].concat()
}

fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let total = (20 + payload.len() as u16).to_be_bytes();
    let mut header = vec![0x45, 0, total[0], total[1], 1, 2, 0, 0, 64, protocol, 0, 0];
    header.extend_from_slice(&GUEST_IPV4);
    header.extend_from_slice(&PEER_IPV4);
    let sum = !ones_sum(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    header.extend_from_slice(payload);
    ethernet(PEER_MAC, 0x0800, &header)
}

fn echo_request(payload: &[u8]) -> Vec<u8> {
    let mut message = [&[8, 0, 0, 0, 0x12, 0x34, 0, 7][..], payload].concat();
    let sum = !ones_sum(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    ipv4(1, &message)
}

fn udp_sum(addresses: [[u8; 4]; 2], message: &[u8]) -> u16 {
    let length = (message.len() as u16).to_be_bytes();
    ones_sum(&[&addresses.concat()[..], &[0, 17], &length, message].concat())
}

fn udp(port: u16, payload: &[u8], with_checksum: bool) -> Vec<u8> {
    let mut message = 5555u16.to_be_bytes().to_vec();
    message.extend_from_slice(&port.to_be_bytes());
    message.extend_from_slice(&(8 + payload.len() as u16).to_be_bytes());
    message.extend_from_slice(&[0, 0]);
    message.extend_from_slice(payload);
    if with_checksum {
        let sum = !udp_sum([GUEST_IPV4, PEER_IPV4], &message);
        message[6..8].copy_from_slice(&sum.to_be_bytes());
    }
    ipv4(17, &message)
}

fn arp_request(target: [u8; 4]) -> Vec<u8> {
    let mut arp = vec![0, 1, 8, 0, 6, 4, 0, 1];
    arp.extend_from_slice(&GUEST_MAC);
    arp.extend_from_slice(&GUEST_IPV4);
    arp.extend_from_slice(&[0; 6]);
    arp.extend_from_slice(&target);
    ethernet([0xff; 6], 0x0806, &arp)
}

/// Checks addresses and checksums of a packet from the peer, and returns what its IP header carries.
fn check_ipv4(frame: &[u8], protocol: u8) -> Vec<u8> {
    assert_eq!(frame[..6], GUEST_MAC);
    assert_eq!(frame[6..12], PEER_MAC);
    assert_eq!(frame[12..15], [8, 0, 0x45]);
    assert_eq!(frame[23], protocol);
    assert_eq!(ones_sum(&frame[14..34]), 0xffff);
    assert_eq!(usize::from(frame[16]) << 8 | usize::from(frame[17]), frame.len() - 14);
    assert_eq!(frame[26..30], PEER_IPV4);
    assert_eq!(frame[30..34], GUEST_IPV4);
    frame[34..].to_vec()
}

#[test]
fn configuration_space() {
    let mut rig = Rig::new(Vec::new(), VERSION_1);
    assert_eq!(rig.board.get(SLOT_NET, DEVICE_ID), 1);
    let mac: Vec<u8> = (0..6).map(|at| rig.board.config(SLOT_NET, at, 1) as u8).collect();
    assert_eq!(mac, GUEST_MAC);
    assert_eq!(rig.board.config(SLOT_NET, 6, 2), 1, "link up");
}

#[test]
fn arp_is_answered_after_two_latencies() {
    let mut rig = Rig::new(Vec::new(), VERSION_1);
    rig.board.now = 77;
    rig.offer();
    rig.send(&arp_request(PEER_IPV4));
    rig.send(&arp_request([10, 0, 2, 99]));
    assert_eq!(rig.board.step(), 77 + 2 * LATENCY);
    rig.board.check_log();
    let reply = rig.received().unwrap();
    let expected =
        [&GUEST_MAC[..], &PEER_MAC, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2], &PEER_MAC, &PEER_IPV4, &GUEST_MAC, &GUEST_IPV4];
    assert_eq!(reply, expected.concat());
    assert_eq!(rig.board.interrupt(SLOT_NET), 1);
    assert_eq!(rig.board.bus.next_event_cycle(), u64::MAX);
    assert_eq!((rig.statistics().sent_frames, rig.statistics().received_frames), (2, 1));
}

#[test]
fn ping_and_echo_come_back() {
    for features in [VERSION_1, VERSION_1 | EVENT_INDEX, 0] {
        let mut rig = Rig::new(Vec::new(), features);
        for _ in 0..3 {
            rig.offer();
        }
        rig.send(&echo_request(b"odd length"));
        rig.send(&udp(7, b"hello", true));
        rig.send(&udp(7, &[0x5a; 1472], false));
        rig.board.until(2 * LATENCY);
        rig.board.check_log();
        let ping = check_ipv4(&rig.received().unwrap(), 1);
        assert_eq!(ping[..2], [0, 0]);
        assert_eq!(ones_sum(&ping), 0xffff);
        assert_eq!(ping[4..], *b"\x12\x34\0\x07odd length");
        let mut payloads: [&[u8]; 2] = [b"hello", &[0x5a; 1472]];
        for payload in payloads.iter_mut() {
            let datagram = check_ipv4(&rig.received().unwrap(), 17);
            assert_eq!(datagram[..2], 7u16.to_be_bytes());
            assert_eq!(datagram[2..4], 5555u16.to_be_bytes());
            assert_eq!(udp_sum([PEER_IPV4, GUEST_IPV4], &datagram), 0xffff);
            assert_eq!(datagram[8..], **payload);
        }
    }
}

#[test]
fn the_peer_ignores_what_is_broken_or_not_for_it() {
    let mut rig = Rig::new(Vec::new(), VERSION_1);
    rig.offer();
    let good = echo_request(b"x");
    // Anything that is summed, any address, any length: each byte but the source's decides.
    for at in (0..6).chain(12..24).chain(30..good.len()) {
        let mut frame = good.clone();
        frame[at] ^= 0x40;
        rig.send(&frame);
    }
    rig.send(&udp(8, b"not echo", true));
    let mut fragment = good.clone();
    fragment[20] = 0x20;
    fragment[24..26].fill(0);
    let sum = !ones_sum(&fragment[14..34]);
    fragment[24..26].copy_from_slice(&sum.to_be_bytes());
    rig.send(&fragment);
    for length in 14..good.len() {
        rig.send(&good[..length]);
    }
    assert_eq!(rig.board.bus.next_event_cycle(), u64::MAX);
    rig.send(&good);
    assert_eq!(rig.board.bus.next_event_cycle(), 2 * LATENCY);
}

#[test]
fn scripted_packets_arrive_at_their_cycle() {
    let packet = |send_cycle, payload: &[u8]| ScriptedPacket {
        send_cycle,
        source_port: 1000,
        destination_port: 2000,
        payload: payload.to_vec(),
    };
    let script = vec![packet(500, b"first"), packet(500, b"second"), packet(9000, b"")];
    let mut rig = Rig::new(script, VERSION_1);
    for _ in 0..2 {
        rig.offer();
    }
    assert_eq!(rig.board.step(), 500 + LATENCY);
    rig.board.check_log();
    for payload in [&b"first"[..], b"second"] {
        let datagram = check_ipv4(&rig.received().unwrap(), 17);
        assert_eq!(datagram[..4], [3, 232, 7, 208]);
        assert_eq!(udp_sum([PEER_IPV4, GUEST_IPV4], &datagram), 0xffff);
        assert_eq!(&datagram[8..], payload);
    }
    assert_eq!(rig.board.step(), 9000 + LATENCY, "nowhere to put it");
    assert_eq!(rig.statistics().received_dropped_frames, 1);
    assert_eq!(rig.board.bus.next_event_cycle(), u64::MAX);
}

#[test]
fn of_two_arrivals_at_one_cycle_the_answer_is_first() {
    let script = vec![ScriptedPacket { send_cycle: LATENCY, source_port: 1, destination_port: 2, payload: Vec::new() }];
    let mut rig = Rig::new(script, VERSION_1);
    rig.offer();
    rig.offer();
    rig.send(&arp_request(PEER_IPV4));
    assert_eq!(rig.board.step(), 2 * LATENCY);
    assert_eq!(rig.received().unwrap()[12..14], [8, 6]);
    assert_eq!(rig.received().unwrap()[12..14], [8, 0]);
}

#[test]
fn a_script_that_cannot_be_is_refused() {
    let packet =
        |send_cycle, size| ScriptedPacket { send_cycle, source_port: 1, destination_port: 1, payload: vec![0; size] };
    for (script, message) in [
        (vec![packet(5, 0), packet(4, 0)], "network script: packet 1 is sent at cycle 4, before the one ahead of it"),
        (vec![packet(5, 1473)], "network script: packet 0 has 1473 bytes of payload, more than 1472"),
    ] {
        let mut configuration = configuration();
        configuration.net = Some(NetConfiguration { script, ..NetConfiguration::default() });
        assert_eq!(Bus::new(configuration).err().unwrap().to_string(), message);
    }
}

#[test]
fn frames_of_impossible_length_are_dropped() {
    let mut rig = Rig::new(Vec::new(), VERSION_1);
    rig.send(&[0; 13]);
    rig.send(&[0; 1519]);
    rig.send(&[0; 1518]);
    let statistics = rig.statistics();
    assert_eq!((statistics.sent_dropped_frames, statistics.sent_frames), (2, 1));
}

#[test]
fn the_link_holds_a_bounded_number_of_answers() {
    let mut rig = Rig::new(Vec::new(), VERSION_1);
    let ping = echo_request(b"flood");
    let at = RAM_BASE + 0x4000;
    rig.board.poke(at + 12, &ping);
    for _ in 0..100 {
        for _ in 0..50 {
            let length = 12 + ping.len() as u32;
            rig.transmit.add(&rig.board, &[(at, length, false)]);
        }
        rig.transmit.notify(&mut rig.board);
    }
    assert_eq!(rig.statistics().sent_dropped_frames, 5000 - 4096);
    rig.board.until(2 * LATENCY);
    assert_eq!(rig.statistics().received_dropped_frames, 4096);
}

#[test]
fn a_buffer_too_small_for_its_frame_needs_a_reset() {
    let mut rig = Rig::new(Vec::new(), VERSION_1);
    rig.receive.submit(&mut rig.board, &[(DATA, 40, true)]);
    rig.send(&echo_request(b"x"));
    rig.board.step();
    assert_ne!(rig.board.get(SLOT_NET, STATUS) & NEEDS_RESET, 0);
    rig.send_after_failure();
}

#[test]
fn a_frame_outside_memory_needs_a_reset() {
    let mut rig = Rig::new(Vec::new(), VERSION_1);
    let end = RAM_BASE + RAM_BYTES as u64;
    rig.transmit.submit(&mut rig.board, &[(end - 30, 72, false)]);
    assert_ne!(rig.board.get(SLOT_NET, STATUS) & NEEDS_RESET, 0);
    rig.send_after_failure();
}

impl Rig {
    /// A device that needs a reset takes nothing any more.
    fn send_after_failure(&mut self) {
        let at = RAM_BASE + 0x4000;
        self.transmit.submit(&mut self.board, &[(at, 60, false)]);
        assert_eq!(self.transmit.take_used(&self.board), None);
    }
}
