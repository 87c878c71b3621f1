//! Reading RESP commands out of a capture file (classic pcap, as tcpdump -w writes it).
//!
//! Owns the file's records, the headers of Ethernet, Linux cooked, loopback and raw links, IPv4, IPv6 and TCP, and
//! putting the segments of each connection in order. Only what goes to the server's port counts. A gap, or a
//! connection whose beginning was not captured, ends what can be had of that connection; commands cut by it are left
//! out and the rest is kept.

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};

use super::trace::{Command, next_command};

const HEADER_LEN: usize = 24;
const RECORD_LEN: usize = 16;

/// One direction of a connection: the client's address and port.
type Flow = (Vec<u8>, u16);

/// Segments by their distance from the first sequence number seen.
#[derive(Debug, Default)]
struct Segments {
    first: u32,
    by_offset: BTreeMap<u32, Vec<u8>>,
}

/// The byte order of a capture, from its magic.
fn big_endian(bytes: &[u8]) -> Option<bool> {
    match bytes.first_chunk::<4>()? {
        [0xd4, 0xc3, 0xb2, 0xa1] | [0x4d, 0x3c, 0xb2, 0xa1] => Some(false),
        [0xa1, 0xb2, 0xc3, 0xd4] | [0xa1, 0xb2, 0x3c, 0x4d] => Some(true),
        _ => None,
    }
}

pub(super) fn is_pcap(bytes: &[u8]) -> bool {
    big_endian(bytes).is_some()
}

pub(super) fn commands(bytes: &[u8], port: u16) -> Result<Vec<Command>> {
    let Some(big) = big_endian(bytes) else {
        bail!("byte 0: not a classic pcap (a pcapng is turned into one by `tcpdump -r IN -w OUT`)");
    };
    ensure!(bytes.len() >= HEADER_LEN, "byte {}: the file ends inside its header", bytes.len());
    let word = |at: usize| {
        let word = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        if big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
    };
    let link = word(20) & 0xFFFF;
    let (mut at, mut flows, mut order) = (HEADER_LEN, BTreeMap::<Flow, Segments>::new(), Vec::new());
    while at < bytes.len() {
        ensure!(bytes.len() - at >= RECORD_LEN, "byte {at}: the record that begins here is cut off");
        let len = word(at + 8) as usize;
        let Some(packet) = bytes.get(at + RECORD_LEN..(at + RECORD_LEN).saturating_add(len)) else {
            bail!("byte {at}: the record that begins here is cut off");
        };
        at += RECORD_LEN + len;
        if let Some(segment) = segment(packet, link, port) {
            keep(segment, &mut flows, &mut order);
        }
    }
    let mut commands = Vec::new();
    for flow in order {
        if let Some(segments) = flows.get(&flow) {
            commands_of(&stream(segments), &mut commands);
        }
    }
    Ok(commands)
}

/// A TCP segment that goes to the port.
struct Segment<'a> {
    flow: Flow,
    sequence: u32,
    syn: bool,
    payload: &'a [u8],
}

fn keep(segment: Segment<'_>, flows: &mut BTreeMap<Flow, Segments>, order: &mut Vec<Flow>) {
    let start = segment.sequence.wrapping_add(u32::from(segment.syn));
    let segments = flows.entry(segment.flow.clone()).or_insert_with(|| {
        order.push(segment.flow.clone());
        Segments { first: start, by_offset: BTreeMap::new() }
    });
    let offset = start.wrapping_sub(segments.first);
    // What lies before the first segment seen is far above this as an unsigned distance.
    if segment.payload.is_empty() || offset > i32::MAX as u32 {
        return;
    }
    let known = segments.by_offset.get(&offset).map_or(0, Vec::len);
    if segment.payload.len() > known {
        segments.by_offset.insert(offset, segment.payload.to_vec());
    }
}

/// The bytes of a flow up to the first gap.
fn stream(segments: &Segments) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    for (&offset, payload) in &segments.by_offset {
        let offset = offset as usize;
        if offset > bytes.len() {
            break;
        }
        if let Some(new) = payload.get(bytes.len() - offset..) {
            bytes.extend_from_slice(new);
        }
    }
    bytes
}

/// Takes commands as long as there are whole ones.
fn commands_of(bytes: &[u8], commands: &mut Vec<Command>) {
    let mut at = 0;
    while at < bytes.len() {
        let Ok(len) = next_command(&bytes[at..], at as u64, commands) else { return };
        at += len;
    }
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Where the IP packet of a frame begins, by the link's type.
fn ip_packet(packet: &[u8], link: u32) -> Option<&[u8]> {
    match link {
        // BSD loopback
        0 | 108 => packet.get(4..),
        // Ethernet, with or without a VLAN tag
        1 => packet.get(if be16(packet, 12)? == 0x8100 { 18 } else { 14 }..),
        // raw IP
        12 | 101 | 228 | 229 => Some(packet),
        // Linux cooked, versions 1 and 2
        113 => packet.get(16..),
        276 => packet.get(20..),
        _ => None,
    }
}

fn segment(packet: &[u8], link: u32, port: u16) -> Option<Segment<'_>> {
    const TCP: u8 = 6;
    let ip = ip_packet(packet, link)?;
    let (source, tcp) = match ip.first()? >> 4 {
        4 => {
            let header = usize::from(ip[0] & 15) * 4;
            let total = usize::from(be16(ip, 2)?);
            // A total of 0: the network card splits the packet only later.
            let end = if total == 0 { ip.len() } else { total };
            (*ip.get(9)? == TCP).then_some((ip.get(12..16)?, ip.get(header..end.min(ip.len()))?))?
        }
        6 => {
            let end = 40 + usize::from(be16(ip, 4)?);
            (*ip.get(6)? == TCP).then_some((ip.get(8..24)?, ip.get(40..end.min(ip.len()))?))?
        }
        _ => return None,
    };
    if be16(tcp, 2)? != port {
        return None;
    }
    let sequence = u32::from_be_bytes(*tcp.get(4..)?.first_chunk()?);
    let payload = tcp.get(usize::from(tcp.get(12)? >> 4) * 4..)?;
    let syn = tcp.get(13)? & 2 != 0;
    Some(Segment { flow: (source.to_vec(), be16(tcp, 0)?), sequence, syn, payload })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(sequence: u32, syn: bool, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend_from_slice(&[0x9c, 0x40, 0x18, 0xeb]);
        packet.extend_from_slice(&sequence.to_be_bytes());
        packet.extend_from_slice(&[0, 0, 0, 0, 0x50, if syn { 2 } else { 0x18 }, 0, 0, 0, 0, 0, 0]);
        packet.extend_from_slice(payload);
        let total = (packet.len() as u16).to_be_bytes();
        packet[2..4].copy_from_slice(&total);
        packet
    }

    fn capture(packets: &[Vec<u8>]) -> Vec<u8> {
        let mut file =
            vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];
        for packet in packets {
            let len = (packet.len() as u32 + 14).to_le_bytes();
            file.extend_from_slice(&[0; 8]);
            file.extend_from_slice(&len);
            file.extend_from_slice(&len);
            file.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0]);
            file.extend_from_slice(packet);
        }
        file
    }

    #[test]
    fn segments_out_of_order_and_twice_are_put_together() {
        let file = capture(&[
            tcp(u32::MAX, true, b""),
            tcp(14, false, b"*2\r\n$3\r\nGET\r\n"),
            tcp(0, false, b"*1\r\n$4\r\nPING\r\n"),
            tcp(14, false, b"*2\r\n$3\r\nGET\r\n"),
            tcp(27, false, b"$1\r\nk\r\n*1\r\n"),
        ]);
        let commands = commands(&file, 6379).unwrap();
        assert_eq!(commands, [vec![b"PING".to_vec()], vec![b"GET".to_vec(), b"k".to_vec()]]);
    }

    #[test]
    fn a_cut_file_is_refused_with_its_offset() {
        let mut file = capture(&[tcp(0, false, b"*1\r\n$4\r\nPING\r\n")]);
        file.pop();
        let error = commands(&file, 6379).unwrap_err().to_string();
        assert!(error.contains("byte 24"), "{error}");
    }
}
