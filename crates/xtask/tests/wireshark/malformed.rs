//! Frames that are wrong, cut or hostile: marked, bounded, and never a Lua error (which every run of tshark checks).

use crate::capture::{Capture, From};
use crate::{bulk, get, hex, long, tshark};

const NAMES: [&str; 4] = ["respb.malformed", "respb.malformed.offset", "respb.lost_in", "respb.argv"];

#[test]
fn an_unknown_opcode_loses_the_stream() {
    let mut capture = Capture::new();
    capture.send(50_000, From::Client, &[get(0, "a"), hex("0018 0003 0000"), get(0, "b")].concat());
    capture.send(50_000, From::Client, &hex("0000 0000 0001"));
    capture.send(50_000, From::Server, &bulk(0, "still read"));
    let rows = tshark::fields(&capture, &NAMES, &[]);
    let flat: Vec<String> = rows.iter().map(|row| row.concat().join(" ")).collect();
    assert_eq!(flat, ["unknown-opcode 0 GET a", "1", ""]);
    let expert =
        tshark::run(&capture, &["-T", "fields", "-e", "respb.expert.malformed", "-e", "_ws.expert.message"]);
    assert!(expert.contains("where the frame ends cannot be known, the stream is lost"), "{expert}");
    assert_eq!(tshark::infos(&capture, &[])[2], "[0] = \"still read\"");
}

#[test]
fn a_lost_stream_is_found_again_at_whole_frames() {
    let mut capture = Capture::new();
    capture.send(50_000, From::Client, &hex("0018 0003 0000"));
    capture.send(50_000, From::Client, &get(0, "b"));
    let rows = tshark::fields(&capture, &NAMES, &[]);
    assert_eq!(rows[1].concat(), ["GET b"]);
}

#[test]
fn what_carries_its_length_is_passed_over() {
    let mut capture = Capture::new();
    let wrong = [long(0xFF02, 1, &[0; 3]), long(0xF001, 1, &[0, 0, 0, 9, 1]), long(0xFFFF, 1, b"PING\r\n")];
    capture.send(50_000, From::Client, &[wrong.concat(), get(0, "a")].concat());
    let rows = tshark::fields(&capture, &NAMES, &[]);
    assert_eq!(rows[0][0], ["bad-control", "length-mismatch", "not-one-command"]);
    assert_eq!(rows[0][1], ["8", "8", "8"]);
    assert_eq!(rows[0][3], ["GET a"]);
}

#[test]
fn zero_bytes_are_no_gets() {
    let mut capture = Capture::new();
    capture.send(50_000, From::Client, &[0; 60]);
    let rows = tshark::fields(&capture, &NAMES, &[]);
    assert_eq!(rows[0].concat(), ["zero-stream", "0"]);
}

#[test]
fn nesting_is_bounded_and_attributes_in_a_row_are_not_nested() {
    let mut capture = Capture::new();
    let nested =
        |depth: usize| [hex("8004 0000 00000001"), hex("04 00000001").repeat(depth - 1), hex("42")].concat();
    let attributes = [hex("800e 0000 00000000"), hex("0e 00000000").repeat(100_000), hex("42")].concat();
    let at = capture.send(50_000, From::Server, &nested(128));
    let past = capture.send(50_001, From::Server, &nested(129));
    let row = capture.send(50_002, From::Server, &attributes);
    let names = ["respb.malformed", "respb.malformed.offset", "respb.frame_length"];
    let rows = tshark::fields(&capture, &names, &[]);
    assert_eq!(rows[at - 1].concat(), ["644"]);
    assert_eq!(rows[past - 1].concat(), ["too-deep", "643"]);
    assert_eq!(rows[row - 1].concat(), ["500009"]);
}

#[test]
fn a_frame_cut_in_the_capture_is_said_to_be() {
    let mut capture = Capture::new();
    capture.send_cut(50_000, From::Client, &get(0, "a key that is long"), 12);
    capture.send_cut(50_001, From::Client, PING_AND_PART, 6);
    let rows = tshark::fields(&capture, &["respb.expert.lost", "respb.argv"], &[]);
    let infos = tshark::infos(&capture, &[]);
    assert_eq!(infos, ["cut frame", "[1] PING | cut frame"]);
    assert_eq!(rows[1][1], ["PING"]);
}

const PING_AND_PART: &[u8] = &[3, 0, 0, 1, 0, 0, 0, 0, 0, 9, b'a'];

#[test]
fn slices_that_are_no_reply_are_marked() {
    let mut capture = Capture::new();
    let request = long(0xFF10, 1, &[&[1][..], &get(1, "a")].concat());
    let other_channel = long(0xFF10, 1, &[&[1][..], &bulk(2, "a")].concat());
    capture.send(50_000, From::Server, &[request, other_channel, bulk(1, "next")].concat());
    let infos = tshark::infos(&capture, &[]);
    let expected = "[1] FRAGMENT of 7 bytes, the last: not one reply | \
        [1] FRAGMENT of 5 bytes, the last: not one reply | [1] = \"next\"";
    assert_eq!(infos, [expected]);
}

/// Numbers that look random and are the same in every run (xorshift).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % sides
    }
}

/// Random bytes, and good frames with bytes changed, in both directions and in pieces.
#[test]
fn noise_raises_no_error() {
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    let good = [
        get(0, "key"),
        hex("0001 0000 0001 61 00000003 666f6f 08 000000000000003c"),
        hex("01c4 0000 03 0000000000000001 0000000000000002 0001 0001 73 0001 30"),
        hex("00c0 0000 0001 6b 00 0002 3ff8000000000000 0001 61 4000000000000000 0001 62"),
        long(0xF001, 1, &hex("00000004 50494e47 00000000")),
        long(0xFFFF, 1, b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n"),
        long(0xFF01, 1, &hex("0001 6162")),
        hex("8008 0000 00000002 81 61 04 00000002 42 05 07 3ff8000000000000 0600"),
        hex("800a 0000 00000002 81 61 82 6869"),
        long(0xFF10, 1, &[&[1][..], &bulk(1, "abc")].concat()),
    ];
    let mut capture = Capture::new();
    for port in 20_000..21_500 {
        for _ in 0..1 + dice.roll(3) {
            let mut bytes: Vec<u8> =
                (0..1 + dice.roll(3)).flat_map(|_| good[dice.roll(good.len())].clone()).collect();
            for _ in 0..dice.roll(4) {
                let at = dice.roll(bytes.len());
                bytes[at] = dice.roll(256) as u8;
            }
            bytes.truncate(1 + dice.roll(bytes.len()));
            let from = if dice.roll(2) == 0 { From::Client } else { From::Server };
            capture.send(port, from, &bytes);
        }
    }
    for port in 30_000..30_500 {
        let first = [0u8, 1, 2, 3, 0x80, 0x81, 0xF0, 0xFF, b'*', b'$'][dice.roll(10)];
        let bytes: Vec<u8> =
            (0..4 + dice.roll(60)).map(|at| if at == 0 { first } else { dice.roll(256) as u8 }).collect();
        capture.send(port, From::Client, &bytes);
    }
    let output = tshark::run(&capture, &["-V"]);
    assert!(output.contains("Malformed: unknown-opcode") && output.contains("Malformed: unknown-tag"));
}
