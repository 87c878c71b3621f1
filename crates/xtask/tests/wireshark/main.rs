//! Tests of the Wireshark dissector with tshark, on captures that the tests make.
//!
//! Here are conversations made by hand; `vectors` runs the conformance vectors.

#![allow(clippy::unwrap_used)] // Clippy's exception for tests does not cover their helpers.

mod capture;
mod malformed;
mod start;
mod tshark;
mod vectors;

use capture::{Capture, From};

/// Bytes from hexadecimal digits; blanks are for the reader.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// `GET key` on a channel.
pub(crate) fn get(channel: u16, key: &str) -> Vec<u8> {
    [&[0, 0][..], &channel.to_be_bytes(), &(key.len() as u16).to_be_bytes(), key.as_bytes()].concat()
}

/// A bulk of at most 255 bytes as a reply.
pub(crate) fn bulk(channel: u16, value: &str) -> Vec<u8> {
    [&[0x82, value.len() as u8][..], &channel.to_be_bytes(), value.as_bytes()].concat()
}

/// A frame that carries its length.
pub(crate) fn long(opcode: u16, channel: u16, payload: &[u8]) -> Vec<u8> {
    let head = [opcode.to_be_bytes(), channel.to_be_bytes()].concat();
    [&head, &(payload.len() as u32).to_be_bytes()[..], payload].concat()
}

/// Ten frames on three channels: replies out of the channels' order, a push, several frames in a packet.
fn ten_frames() -> Capture {
    let mut capture = Capture::new();
    let set = hex("0001 0002 0007 73657373696f6e 00000005 616c696365 08 000000000000003c");
    capture.send(50_000, From::Client, &[get(0, "mykey"), hex("0300 0001"), set].concat());
    capture.send(50_000, From::Server, &hex("8000 0002"));
    capture.send(50_000, From::Client, &get(2, "missing"));
    capture.send(
        50_000,
        From::Server,
        &hex("800a 0001 00000003 87 6d657373616765 84 6e657773 85 68656c6c6f"),
    );
    capture.send(
        50_000,
        From::Server,
        &[hex("8005 0002"), bulk(0, "value"), hex("8304 0001 504f4e47")].concat(),
    );
    capture.send(50_000, From::Client, &long(0xFF01, 2, &[]));
    capture
}

#[test]
fn ten_frames_on_three_channels() {
    let infos = tshark::infos(&ten_frames(), &[]);
    let expected = [
        "[0] GET mykey | [1] PING | [2] SET session alice EX 60",
        "[2] = OK",
        "[2] GET missing",
        "[1] push \"message\" \"news\" \"hello\"",
        "[2] = null | [0] = \"value\" | [1] = PONG",
        "[2] CLOSE",
    ];
    assert_eq!(infos, expected);
    let guide = include_str!("../../../../docs/wireshark.md");
    assert!(guide.contains(&tshark::run(&ten_frames(), &[])), "docs/wireshark.md shows something else");
    let names = ["respb.channel", "respb.sequence", "respb.request_in", "respb.response_in", "respb.time"];
    let rows = tshark::fields(&ten_frames(), &names, &[]);
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(rows[0], [words("0 1 2"), words("0 0 0"), vec![], words("5 5 2"), vec![]]);
    assert_eq!(rows[1], [words("2"), words("0"), words("1"), vec![], words("0.001000000")]);
    assert_eq!(rows[2], [words("2"), words("1"), vec![], words("5"), vec![]]);
    assert_eq!(rows[3], [words("1"), vec![], vec![], vec![], vec![]], "a push answers nothing");
    let times = words("0.002000000 0.004000000 0.004000000");
    assert_eq!(rows[4], [words("2 0 1"), words("1 0 0"), words("3 1 1"), vec![], times]);
}

#[test]
fn one_pass_matches_replies_too() {
    let names = ["respb.request_in"];
    let twice = tshark::fields(&ten_frames(), &names, &[]);
    let filtered = tshark::fields(&ten_frames(), &names, &["-Y", "respb.request_in == 3"]);
    assert_eq!(filtered, [twice[4].clone()]);
}

#[test]
fn every_field_has_its_bytes() {
    let output = tshark::run(&ten_frames(), &["-T", "pdml", "-Y", "respb.command == \"SET\""]);
    let expect = |name: &str, size: usize, position: usize, show: &str| {
        let line = output.lines().find(|line| {
            line.contains(&format!("name=\"{name}\""))
                && line.contains(&format!("show=\"{show}\""))
                && line.contains(&format!("size=\"{size}\""))
        });
        let line = line.unwrap_or_else(|| panic!("no {name} = {show} in {output}"));
        let place = format!("size=\"{size}\" pos=\"{position}\"");
        assert!(line.contains(&place), "{line}: not {place}");
    };
    // 54 bytes of headers, then GET (11 bytes) and PING (4).
    expect("respb.opcode", 2, 69, "0x0001");
    expect("respb.channel", 2, 71, "2");
    expect("respb.length", 2, 73, "7");
    expect("respb.key", 9, 73, "session");
    expect("respb.length", 4, 82, "5");
    expect("respb.arg.value", 9, 82, "alice");
    expect("respb.options", 1, 91, "0x08");
    expect("respb.option", 1, 91, "EX");
    expect("respb.arg.seconds", 8, 92, "60");
    assert!(output.contains(".... 1... = EX: set"));
    assert!(output.contains("...0 .... = PX: not set"));
}

#[test]
fn enumerations_and_keys_of_arguments_are_named() {
    let mut capture = Capture::new();
    // BLMOVE a b RIGHT LEFT 1.5, then `mset k1 v1 k2 v2` as ARGV, XGROUP CREATE as container, GET as passthrough.
    capture.send(50_000, From::Client, &hex("0054 0000 0001 61 0001 62 01 00 3ff8000000000000"));
    let argv: Vec<u8> = ["mset", "k1", "v1", "k2", "v2"]
        .iter()
        .flat_map(|word| [&(word.len() as u32).to_be_bytes()[..], word.as_bytes()].concat())
        .collect();
    capture.send(50_000, From::Client, &long(0xF001, 0, &argv));
    capture.send(50_000, From::Client, &long(0xFFFF, 3, b"*2\r\n$3\r\nGET\r\n$4\r\nkey!\r\n"));
    let names = ["respb.command", "respb.argv", "respb.key", "respb.arg.wherefrom", "respb.arg.timeout"];
    let rows = tshark::fields(&capture, &names, &[]);
    let flat: Vec<String> = rows.iter().map(|row| row.concat().join(" / ")).collect();
    let expected = [
        "BLMOVE / BLMOVE a b RIGHT LEFT 1.5 / a / b / RIGHT / 1.5",
        "MSET / mset k1 v1 k2 v2 / k1 / k2",
        "GET / GET key! / key!",
    ];
    assert_eq!(flat, expected);
}

#[test]
fn close_resets_the_sequence() {
    let mut capture = Capture::new();
    let port = 50_000;
    capture.send(port, From::Client, &[get(5, "a"), get(5, "b")].concat());
    capture.send(port, From::Server, &bulk(5, "x"));
    capture.send(port, From::Client, &long(0xFF01, 5, &hex("0100 62796521")));
    capture.send(port, From::Server, &bulk(5, "late"));
    capture.send(port, From::Server, &long(0xFF01, 5, &[]));
    capture.send(port, From::Client, &get(5, "c"));
    capture.send(port, From::Server, &bulk(5, "y"));
    let names =
        ["respb.sequence", "respb.response_in", "respb.request_in", "respb.void_in", "respb.close.code"];
    let rows = tshark::fields(&capture, &names, &[]);
    let row = |index: usize| rows[index].iter().map(|values| values.join(" ")).collect::<Vec<_>>();
    assert_eq!(row(0), ["0 1", "2", "", "3", ""], "the second request is void");
    assert_eq!(row(1), ["0", "", "1", "", ""]);
    assert_eq!(row(2), ["", "", "", "", "256"]);
    assert_eq!(row(3), ["", "", "", "", ""], "a reply on a closing channel answers nothing");
    assert_eq!(row(5), ["0", "7", "", "", ""], "the new channel counts from 0");
    assert_eq!(row(6), ["0", "", "6", "", ""]);
    let infos = tshark::infos(&capture, &[]);
    assert_eq!(infos[2], "[5] CLOSE 256 (application) bye!");
}

#[test]
fn cancel_names_the_request() {
    let mut capture = Capture::new();
    capture.send(50_000, From::Client, &[hex("0300 0001"), get(1, "a")].concat());
    capture.send(50_000, From::Client, &long(0xFF02, 1, &[0, 0, 0, 1]));
    capture.send(50_000, From::Client, &long(0xFF03, 1, &[0, 0, 4, 0]));
    let rows = tshark::fields(&capture, &["respb.cancel", "respb.cancel_of", "respb.window"], &[]);
    assert_eq!(rows[1][..2].concat(), ["1", "1"]);
    assert_eq!(rows[2].concat(), ["1024"]);
}

/// Two replies in slices on two channels, the slices between each other, cut into packets of `size` bytes.
fn fragments(size: usize) -> Capture {
    let big = |channel: u16, value: u8| {
        let head = [hex("8003"), channel.to_be_bytes().to_vec(), 300u32.to_be_bytes().to_vec()].concat();
        [head, vec![value; 300]].concat()
    };
    let (one, two) = (big(1, b'a'), big(2, b'b'));
    let slice = |channel, last: u8, bytes: &[u8]| long(0xFF10, channel, &[&[last], bytes].concat());
    let server = [
        slice(1, 0, &one[..3]),
        slice(2, 0, &two[..200]),
        slice(1, 0, &one[3..250]),
        bulk(3, "between"),
        slice(1, 1, &one[250..]),
        slice(2, 1, &two[200..]),
    ];
    let mut capture = Capture::new();
    capture.send(50_000, From::Client, &[get(1, "a"), get(2, "b"), get(3, "c")].concat());
    for piece in server.concat().chunks(size) {
        capture.send(50_000, From::Server, piece);
    }
    capture
}

#[test]
fn fragments_are_put_together() {
    for size in [10_000, 100, 7] {
        let names = ["respb.type", "respb.bulk", "respb.request_in", "respb.fragment.slice_in"];
        let rows = tshark::fields(&fragments(size), &names, &[]);
        let column = |index: usize| rows.iter().flat_map(|row| row[index].clone()).collect::<Vec<_>>();
        assert_eq!(column(0), ["bulk", "bulk", "bulk"], "pieces of {size}");
        assert_eq!(column(1), ["between".to_owned(), "a".repeat(300), "b".repeat(300)]);
        assert_eq!(column(2), ["1", "1", "1"]);
        assert_eq!(column(3).len(), 5);
    }
    let infos = tshark::infos(&fragments(10_000), &[]);
    assert!(infos[1].contains("[1] FRAGMENT of 58 bytes, the last: [1] = \"aaaa"), "{}", infos[1]);
}

#[test]
fn segments_may_be_cut_anywhere() {
    let requests = [
        get(0, "mykey"),
        hex("0300 0001"),
        hex("0001 0002 0001 61 00000003 666f6f 08 000000000000003c"),
        hex("000d 0000 0002 0001 61 00000001 78 0001 62 00000000"),
        long(0xF001, 7, &hex("00000004 50494e47 00000000")),
        hex("f000 0000 0000 0000 0001 6b 0001 24 00000001 31 00"),
        get(9, ""),
    ];
    let replies = [
        bulk(0, "value"),
        hex("8304 0001 504f4e47"),
        hex("8004 0002 00000003 81 61 0800000001 41 05 04 00000000"),
        hex("8001 0000 0003 455252"),
        hex("800e 0007 00000001 81 61 42 06 01"),
        hex("8007 0000 3ff8000000000000"),
        hex("8000 0009"),
    ];
    let lines = |size: usize| {
        let mut capture = Capture::new();
        for (from, frames) in [(From::Client, &requests[..]), (From::Server, &replies[..])] {
            frames.concat().chunks(size).for_each(|piece| {
                capture.send(50_000, from, piece);
            });
        }
        let names =
            ["respb.frame", "respb.argv", "respb.reply", "respb.type", "respb.malformed", "respb.sequence"];
        let rows = tshark::fields(&capture, &names, &[]);
        (0..names.len())
            .map(|column| rows.iter().flat_map(|row| row[column].clone()).collect::<Vec<_>>())
            .collect::<Vec<_>>()
    };
    let whole = lines(100_000);
    assert_eq!(whole[0].len(), requests.len() + replies.len());
    assert!(whole[4].is_empty(), "{:?}", whole[4]);
    for size in [1, 2, 3, 5, 8, 13, 21] {
        assert_eq!(lines(size), whole, "packets of {size} bytes");
    }
}

#[test]
fn long_lists_and_values_are_elided() {
    let mut capture = Capture::new();
    let keys: Vec<u8> = (0..65_535u32).flat_map(|_| hex("0001 6b")).collect();
    let last = capture.send(50_000, From::Client, &[hex("000c 0000 ffff"), keys].concat());
    let value = capture.send(
        50_000,
        From::Client,
        &[hex("0001 0000 0001 61 000f4240"), vec![b'v'; 1_000_000], vec![0]].concat(),
    );
    let rows = tshark::fields(&capture, &["respb.argv", "respb.argc", "respb.frame_length"], &[]);
    let short = "MGET".to_owned() + &" k".repeat(15) + " …(65520 more)";
    assert_eq!(rows[last - 1].concat(), [short, "65536".to_owned(), (6 + 3 * 65_535).to_string()]);
    let elided = format!("SET a {}…(1000000 bytes)", "v".repeat(40));
    assert_eq!(rows[value - 1].concat(), [elided, "3".to_owned(), "1000012".to_owned()]);
}
