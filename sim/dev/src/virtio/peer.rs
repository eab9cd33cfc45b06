//! The other end of the link: a host at a fixed address that answers ARP, ICMP echo, and UDP datagrams to
//! port 7 (echo, RFC 862). It takes no time; the link has the latency. Whatever else it gets, it ignores.

/// Ethernet address the network device gives the guest.
pub const GUEST_MAC: [u8; 6] = [0x52, 0x54, 0x00, 0x12, 0x34, 0x56];
/// Address scripted packets are sent to; the guest is to configure it.
pub const GUEST_IPV4: [u8; 4] = [10, 0, 2, 15];
pub const PEER_MAC: [u8; 6] = [0x52, 0x55, 0x0a, 0x00, 0x02, 0x02];
pub const PEER_IPV4: [u8; 4] = [10, 0, 2, 2];

const ETHERNET_HEADER_BYTES: usize = 14;
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_ARP: u16 = 0x0806;
const ARP_BYTES: usize = 28;
/// Ethernet, IPv4, address lengths 6 and 4, request (RFC 826).
const ARP_REQUEST: [u8; 8] = [0, 1, 8, 0, 6, 4, 0, 1];
const IPV4_HEADER_BYTES: usize = 20;
const PROTOCOL_ICMP: u8 = 1;
const PROTOCOL_UDP: u8 = 17;
const ICMP_ECHO_REPLY: u8 = 0;
const ICMP_ECHO_REQUEST: u8 = 8;
const UDP_HEADER_BYTES: usize = 8;
const UDP_PORT_ECHO: u16 = 7;

/// Most that a datagram carries in one Ethernet frame of 1500 bytes.
pub const DATAGRAM_PAYLOAD_BYTES_MAX: usize = 1500 - IPV4_HEADER_BYTES - UDP_HEADER_BYTES;

/// The peer's answer to a frame, if it has one.
pub fn answer(frame: &[u8]) -> Option<Vec<u8>> {
    let source: [u8; 6] = frame.get(6..12)?.try_into().ok()?;
    let payload = frame.get(ETHERNET_HEADER_BYTES..)?;
    let to_peer = frame[..6] == PEER_MAC;
    match be16(frame, 12)? {
        ETHERTYPE_ARP if to_peer || frame[..6] == [0xff; 6] => answer_arp(source, payload),
        ETHERTYPE_IPV4 if to_peer => answer_ipv4(source, payload),
        _ => None,
    }
}

/// A frame that carries a UDP datagram from the peer to the guest. `payload` is at most
/// `DATAGRAM_PAYLOAD_BYTES_MAX`.
pub fn datagram(source_port: u16, destination_port: u16, payload: &[u8]) -> Vec<u8> {
    let udp = udp(source_port, destination_port, payload, GUEST_IPV4);
    ethernet(GUEST_MAC, ETHERTYPE_IPV4, &ipv4(GUEST_IPV4, PROTOCOL_UDP, &udp))
}

fn answer_arp(source: [u8; 6], request: &[u8]) -> Option<Vec<u8>> {
    let request = request.get(..ARP_BYTES)?;
    if request[..8] != ARP_REQUEST || request[24..28] != PEER_IPV4 {
        return None;
    }
    let mut reply = Vec::with_capacity(ARP_BYTES);
    reply.extend_from_slice(&ARP_REQUEST[..7]);
    reply.push(2);
    reply.extend_from_slice(&PEER_MAC);
    reply.extend_from_slice(&PEER_IPV4);
    reply.extend_from_slice(&request[8..18]);
    Some(ethernet(source, ETHERTYPE_ARP, &reply))
}

fn answer_ipv4(source: [u8; 6], packet: &[u8]) -> Option<Vec<u8>> {
    let first = *packet.first()?;
    let header_bytes = usize::from(first & 0xf) * 4;
    let total_bytes = usize::from(be16(packet, 2)?);
    if first >> 4 != 4 || header_bytes < IPV4_HEADER_BYTES || total_bytes < header_bytes {
        return None;
    }
    let packet = packet.get(..total_bytes)?;
    let (header, payload) = packet.split_at(header_bytes);
    let fragment = be16(header, 6)? & 0x3fff != 0;
    if checksum(0, header) != 0 || fragment || header[16..20] != PEER_IPV4 {
        return None;
    }
    let guest: [u8; 4] = header[12..16].try_into().ok()?;
    let protocol = header[9];
    let reply = match protocol {
        PROTOCOL_ICMP => answer_icmp(payload)?,
        PROTOCOL_UDP => answer_udp(guest, payload)?,
        _ => return None,
    };
    Some(ethernet(source, ETHERTYPE_IPV4, &ipv4(guest, protocol, &reply)))
}

fn answer_icmp(message: &[u8]) -> Option<Vec<u8>> {
    if message.len() < 8 || message[..2] != [ICMP_ECHO_REQUEST, 0] || checksum(0, message) != 0 {
        return None;
    }
    let mut reply = message.to_vec();
    reply[0] = ICMP_ECHO_REPLY;
    reply[2..4].fill(0);
    let sum = checksum(0, &reply);
    reply[2..4].copy_from_slice(&sum.to_be_bytes());
    Some(reply)
}

fn answer_udp(guest: [u8; 4], message: &[u8]) -> Option<Vec<u8>> {
    let length_bytes = usize::from(be16(message, 4)?);
    let message = message.get(..length_bytes)?;
    let payload = message.get(UDP_HEADER_BYTES..)?;
    // A checksum of 0 means that the sender made none (RFC 768).
    let checked = be16(message, 6)? == 0 || checksum(pseudo_header(guest, message.len()), message) == 0;
    if be16(message, 2)? != UDP_PORT_ECHO || !checked {
        return None;
    }
    Some(udp(UDP_PORT_ECHO, be16(message, 0)?, payload, guest))
}

fn ethernet(destination: [u8; 6], ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(ETHERNET_HEADER_BYTES + payload.len());
    frame.extend_from_slice(&destination);
    frame.extend_from_slice(&PEER_MAC);
    frame.extend_from_slice(&ethertype.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// A packet of at most 65535 bytes from the peer, never fragmented, with a time to live of 64.
fn ipv4(destination: [u8; 4], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let total_bytes = (IPV4_HEADER_BYTES + payload.len()) as u16;
    let mut packet = Vec::with_capacity(usize::from(total_bytes));
    packet.extend_from_slice(&[0x45, 0]);
    packet.extend_from_slice(&total_bytes.to_be_bytes());
    packet.extend_from_slice(&[0, 0, 0x40, 0, 64, protocol, 0, 0]);
    packet.extend_from_slice(&PEER_IPV4);
    packet.extend_from_slice(&destination);
    let sum = checksum(0, &packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend_from_slice(payload);
    packet
}

fn udp(source_port: u16, destination_port: u16, payload: &[u8], guest: [u8; 4]) -> Vec<u8> {
    let length_bytes = UDP_HEADER_BYTES + payload.len();
    let mut message = Vec::with_capacity(length_bytes);
    message.extend_from_slice(&source_port.to_be_bytes());
    message.extend_from_slice(&destination_port.to_be_bytes());
    message.extend_from_slice(&(length_bytes as u16).to_be_bytes());
    message.extend_from_slice(&[0, 0]);
    message.extend_from_slice(payload);
    let sum = match checksum(pseudo_header(guest, length_bytes), &message) {
        0 => 0xffff,
        sum => sum,
    };
    message[6..8].copy_from_slice(&sum.to_be_bytes());
    message
}

/// Sum of the UDP pseudo-header's words; it is the same in both directions.
fn pseudo_header(guest: [u8; 4], length_bytes: usize) -> u32 {
    let addresses = [guest, PEER_IPV4];
    let words = addresses.as_flattened().chunks_exact(2);
    let sum: u32 = words.map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    sum + u32::from(PROTOCOL_UDP) + length_bytes as u32
}

/// The internet checksum (RFC 1071) of `bytes`, begun with `sum`; 0 over a message that holds its own
/// checksum.
fn checksum(sum: u32, bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|word| match word {
        [high, low] => u32::from(u16::from_be_bytes([*high, *low])),
        [high] => u32::from(*high) << 8,
        _ => 0,
    });
    let mut sum = sum + words.sum::<u32>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}
