//! Captures made by the tests: pcap files of TCP over IPv4 over Ethernet, with right sequence numbers and checksums.
//!
//! Owns the file format and the addresses. What the segments carry is the business of the tests.

use std::collections::HashMap;

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum From {
    Client,
    Server,
}

/// The port that the dissector takes for a server's unless told otherwise.
pub(crate) const SERVER_PORT: u16 = 6379;

/// More than one IPv4 packet holds is sent as several of at most this size.
const SEGMENT_BYTES_MAX: usize = 60_000;

/// Time between packets, microseconds.
const STEP_US: u32 = 1_000;

/// A capture that grows packet by packet. Packets are numbered from 1, as Wireshark numbers them.
pub(crate) struct Capture {
    bytes: Vec<u8>,
    packets: usize,
    sequences: HashMap<(u16, From), u32>,
    server_port: u16,
}

impl Capture {
    pub(crate) fn new() -> Capture {
        Capture::on_port(SERVER_PORT)
    }

    pub(crate) fn on_port(server_port: u16) -> Capture {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&0xA1B2_C3D4u32.to_le_bytes());
        bytes.extend_from_slice(&[2, 0, 4, 0]);
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(&0x40000u32.to_le_bytes());
        bytes.extend_from_slice(&1u32.to_le_bytes());
        Capture { bytes, packets: 0, sequences: HashMap::new(), server_port }
    }

    /// Sends `data` on the connection whose client has this port; returns the number of its last packet.
    pub(crate) fn send(&mut self, client_port: u16, from: From, data: &[u8]) -> usize {
        for piece in data.chunks(SEGMENT_BYTES_MAX) {
            self.packet(client_port, from, piece, piece.len());
        }
        self.packets
    }

    /// Sends `data` of which the capture has only the first `kept` bytes.
    pub(crate) fn send_cut(&mut self, client_port: u16, from: From, data: &[u8], kept: usize) -> usize {
        self.packet(client_port, from, data, kept);
        self.packets
    }

    /// The pcap file.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn packet(&mut self, client_port: u16, from: From, data: &[u8], kept: usize) {
        let other = if from == From::Client { From::Server } else { From::Client };
        let acknowledged = *self.sequences.entry((client_port, other)).or_insert(1_000);
        let sequence = self.sequences.entry((client_port, from)).or_insert(1_000);
        let (client, server) = (([10, 0, 0, 1], client_port), ([10, 0, 0, 2], self.server_port));
        let (source, target) = if from == From::Client { (client, server) } else { (server, client) };
        let tcp = tcp(source, target, *sequence, acknowledged, data);
        *sequence = sequence.wrapping_add(data.len() as u32);
        let mut frame = vec![0u8; 12];
        frame.extend_from_slice(&[0x08, 0x00]);
        frame.extend_from_slice(&ip(source.0, target.0, &tcp));
        let time = self.packets as u32 * STEP_US;
        let captured = frame.len() - data.len() + kept;
        for word in [1_700_000_000 + time / 1_000_000, time % 1_000_000, captured as u32, frame.len() as u32]
        {
            self.bytes.extend_from_slice(&word.to_le_bytes());
        }
        self.bytes.extend_from_slice(&frame[..captured]);
        self.packets += 1;
    }
}

type Address = ([u8; 4], u16);

fn tcp(source: Address, target: Address, sequence: u32, acknowledged: u32, data: &[u8]) -> Vec<u8> {
    let mut segment = Vec::with_capacity(20 + data.len());
    segment.extend_from_slice(&source.1.to_be_bytes());
    segment.extend_from_slice(&target.1.to_be_bytes());
    segment.extend_from_slice(&sequence.to_be_bytes());
    segment.extend_from_slice(&acknowledged.to_be_bytes());
    // Header of 20 bytes, PSH and ACK, the window, no checksum yet, no urgent data.
    segment.extend_from_slice(&[0x50, 0x18, 0xFF, 0xFF, 0, 0, 0, 0]);
    segment.extend_from_slice(data);
    let mut pseudo = [source.0, target.0].concat();
    pseudo.extend_from_slice(&[0, 6]);
    pseudo.extend_from_slice(&(segment.len() as u16).to_be_bytes());
    pseudo.extend_from_slice(&segment);
    segment[16..18].copy_from_slice(&checksum(&pseudo).to_be_bytes());
    segment
}

fn ip(source: [u8; 4], target: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len()) as u16;
    let [high, low] = length.to_be_bytes();
    let mut packet = vec![0x45, 0, high, low, 0, 0, 0, 0, 64, 6, 0, 0];
    packet.extend_from_slice(&source);
    packet.extend_from_slice(&target);
    let sum = checksum(&packet).to_be_bytes();
    packet[10..12].copy_from_slice(&sum);
    packet.extend_from_slice(payload);
    packet
}

/// The sum of the Internet protocols: ones' complement of the ones' complement sum of 16-bit words.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}
