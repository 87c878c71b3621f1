//! `weft convert` from outside: streams, channels, statistics, damage.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::Read as _;
use std::process::Stdio;

use common::{Folder, Random, good, read, resp, run, stderr, weft};

/// Commands in typed, ARGV and module form, with the offsets at which they end.
fn sample() -> (Vec<u8>, Vec<usize>) {
    let commands: &[&[&[u8]]] = &[
        &[b"GET", b"mykey"],
        &[b"SET", b"k", b"a\r\nvalue\x00\xff"],
        &[b"SET", b"k", b"v", b"EX", b"10"],
        &[b"get", b"lower"],
        &[b"MSET", b"a", b"1", b"b", b"2"],
        &[b"ZADD", b"z", b"1.5", b"m"],
        &[b"XREAD", b"STREAMS", b"s", b"t", b"0", b"1"],
        &[b"CONFIG", b"GET", b"*"],
        &[b"BF.ADD", b"f", b"item"],
        &[b"NO.SUCH", b"x"],
        &[b"PING"],
        &[b"DEL", b"a", b"b", b"c"],
    ];
    let (mut stream, mut ends) = (Vec::new(), vec![0]);
    for command in commands {
        stream.extend(resp(command));
        ends.push(stream.len());
    }
    (stream, ends)
}

#[test]
fn known_bytes() {
    let get = good(&["convert", "--to", "respb"], &resp(&["GET", "mykey"]));
    assert_eq!(get, b"\x00\x00\x00\x00\x00\x05mykey");
    let get = good(&["convert", "--to", "respb", "--channel", "258"], &resp(&["GET", "mykey"]));
    assert_eq!(get, b"\x00\x00\x01\x02\x00\x05mykey");
    let argv = good(&["convert", "--to", "respb"], &resp(&["get", "k"]));
    assert_eq!(argv, b"\xf0\x01\x00\x00\x00\x00\x00\x0c\x00\x00\x00\x03get\x00\x00\x00\x01k");
}

#[test]
fn a_cut_gives_its_offset_and_keeps_what_was_before() {
    for to in ["respb", "resp"] {
        let (resp, _) = sample();
        let (stream, ends) = if to == "respb" { sample() } else { cut_points(&resp) };
        for cut in 0..=stream.len() {
            let output = run(&["convert", "--to", to], &stream[..cut]);
            let whole = *ends.iter().rfind(|end| **end <= cut).unwrap();
            assert_eq!(output.status.code(), Some(i32::from(whole != cut)), "{to} cut at {cut}");
            assert_eq!(output.stdout, good(&["convert", "--to", to], &stream[..whole]), "{to} cut at {cut}");
            let said = stderr(&output);
            if whole != cut {
                assert!(said.contains(&format!("byte {cut}: the input ends here: expected")), "{said}");
                assert!(said.contains(&format!("the command begins at byte {whole}")), "{said}");
            } else {
                assert_eq!(said, "");
            }
        }
    }
}

/// The sample as RESPB, with the offsets at which its frames end.
fn cut_points(resp: &[u8]) -> (Vec<u8>, Vec<usize>) {
    let (_, ends) = sample();
    let lens = ends.iter().map(|end| good(&["convert", "--to", "respb"], &resp[..*end]).len());
    (good(&["convert", "--to", "respb"], resp), lens.collect())
}

#[test]
fn messages_name_what_was_expected() {
    let cases: &[(&str, &[u8], &str)] = &[
        (
            "respb",
            b"*2\r\n$3\r\nGET\r\n$5\r\nmy",
            "byte 19: the input ends here: expected 5 more bytes, the rest of the bytes and CR LF for argument 2 of 2 of GET",
        ),
        (
            "respb",
            b"*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGET\r\n!",
            "byte 27: expected '$' and the length for argument 2 of 2 of GET, found \"!\" (expected-bulk); the command begins at byte 14",
        ),
        (
            "respb",
            b"*1\r\n$4\r\nPINGxx",
            "byte 12: expected CR LF behind the bytes for argument 1 of 1, found \"xx\" (bulk-end)",
        ),
        (
            "respb",
            b"\x00\x00\x00\x00\x00\x01k",
            "byte 0: expected '*' and a number of arguments, found \"\\x00\\x00\\x00\\x00\\x00\\x01k\": RESPB begins so (--to resp)",
        ),
        ("respb", b"PING\r\n", "inline commands are read with --inline"),
        (
            "resp",
            b"*1\r\n$4\r\nPING\r\n",
            "byte 0: expected an opcode of the table, found 2a 31 0d 0a 24 34 0d 0a (unknown-opcode): RESP begins so (--to respb)",
        ),
        (
            "resp",
            b"\x00\x00\x00\x00\x00\x05my",
            "byte 8: the input ends here: expected at least 3 more bytes, for `key` (str16) of GET",
        ),
        ("resp", b"\x80\x00\x00\x00", "(wrong-direction)"),
        ("resp", b"\x03\x00\x00\x00\x07\xff\x00\x00", "byte 4: expected an opcode of the table"),
    ];
    for (to, input, expected) in cases {
        let output = run(&["convert", "--to", to], input);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(expected), "{}\n{expected}", stderr(&output));
    }
}

#[test]
fn a_flipped_byte_never_spoils_what_is_before_it() {
    let (stream, ends) = sample();
    let mut random = Random::new("a_flipped_byte_never_spoils_what_is_before_it");
    for at in 0..stream.len() {
        let mut damaged = stream.clone();
        damaged[at] ^= 1 << random.below(8);
        let output = run(&["convert", "--to", "respb"], &damaged);
        let before = *ends.iter().rfind(|end| **end <= at).unwrap();
        let kept = good(&["convert", "--to", "respb"], &stream[..before]);
        assert!(output.stdout.starts_with(&kept), "flipped at {at}");
        match output.status.code() {
            Some(0) => {
                assert_eq!(good(&["convert", "--to", "resp"], &output.stdout), damaged, "flipped at {at}")
            }
            code => {
                assert_eq!((code, stderr(&output).contains(": byte ")), (Some(1), true), "flipped at {at}")
            }
        }
    }
}

#[test]
fn a_stream_of_several_channels_asks_which() {
    let mut stream = good(&["convert", "--to", "respb", "--channel", "1"], &resp(&["SET", "a", "1"]));
    stream.extend(good(&["convert", "--to", "respb", "--channel", "7"], &resp(&["SET", "b", "2"])));
    stream.extend(b"\xff\x01\x00\x07\x00\x00\x00\x00"); // CLOSE
    stream.extend(b"\xff\xff\x00\x01\x00\x00\x00\x0e*1\r\n$4\r\nPING\r\n");
    stream.extend(b"\xf0\x05\x00\x01\x00\x00\x00\x01x"); // unknown
    let output = run(&["convert", "--to", "resp"], &stream);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, resp(&["SET", "a", "1"]));
    assert!(stderr(&output).contains("2 channels: 1 (2 commands), 7 (1 commands)"), "{}", stderr(&output));

    let seven = good(&["convert", "--to", "resp", "--channel", "7"], &stream);
    assert_eq!(seven, resp(&["SET", "b", "2"]));
    let one = run(&["convert", "--to", "resp", "--channel", "1", "--json"], &stream);
    assert_eq!(one.stdout, [resp(&["SET", "a", "1"]), resp(&["PING"])].concat());
    let stats: serde_json::Value = serde_json::from_slice(&one.stderr).unwrap();
    assert_eq!(stats["passed_over"]["control_frames"], 1);
    assert_eq!(stats["passed_over"]["unknown_frames"], 1);
    assert_eq!(stats["passed_over"]["commands_of_other_channels"], 1);
    assert_eq!(stats["total"]["passthrough"], 1);

    let folder = Folder::new();
    let directory = folder.path("split");
    good(&["convert", "--to", "resp", "--split", &directory], &stream);
    assert_eq!(read(folder.0.join("split/channel-00001.resp")), one.stdout);
    assert_eq!(read(folder.0.join("split/channel-00007.resp")), seven);
    let again = run(&["convert", "--to", "resp", "--split", &directory], &stream);
    assert!(stderr(&again).contains("there is a channel-0000"), "{}", stderr(&again));
}

#[test]
fn statistics_add_up() {
    let input = [resp(&["GET", "a"]), resp(&["GET", "b"]), resp(&["get", "c"]), resp(&["X", "y"])].concat();
    let folder = Folder::new();
    let output = run(&["convert", "--to", "respb", "--stats", "-o", &folder.path("out")], &input);
    assert!(output.status.success());
    let expected = "\
command  count  typed  argv  passthrough  bytes before  bytes after  saved
GET          3      2     1            0            60           34  43.3%
X            1      0     1            0            18           18   0.0%
total        4      2     2            0            78           52  33.3%
";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    assert_eq!(read(folder.path("out")).len(), 52);
    let to_stdout = run(&["convert", "--to", "respb", "--stats"], &input);
    assert_eq!((to_stdout.stdout.len(), stderr(&to_stdout)), (52, expected.to_string()));
    let dry = run(&["convert", "--to", "respb", "--json", "--dry-run"], &input);
    let json: serde_json::Value = serde_json::from_slice(&dry.stdout).unwrap();
    assert_eq!(json["commands"][0]["command"], "GET");
    assert_eq!(json["commands"][0]["argv"], 1);
    assert_eq!(json["total"]["bytes_after"], 52);
}

#[test]
fn what_stands_between_commands_is_passed_over() {
    let input = [
        b"#TS:1700000000\r\n".to_vec(),
        resp(&["PING"]),
        b"*0\r\n*-1\r\n#TS:1\r\n".to_vec(),
        resp(&["PING"]),
    ];
    let output = run(&["convert", "--to", "respb", "--json"], &input.concat());
    assert_eq!(output.stdout, b"\x03\x00\x00\x00\x03\x00\x00\x00");
    let stats: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(stats["passed_over"]["annotations"], 2);
    assert_eq!(stats["passed_over"]["empty_requests"], 2);
    let endless = [b"#".to_vec(), vec![b'x'; 2000]].concat();
    assert_eq!(run(&["convert", "--to", "respb"], &endless).status.code(), Some(1));
    let inline = good(&["convert", "--to", "respb", "--inline"], b"SET \"a b\" 'c'\r\n\r\nPING\n");
    assert_eq!(
        good(&["convert", "--to", "resp"], &inline),
        [resp(&["SET", "a b", "c"]), resp(&["PING"])].concat()
    );
}

#[test]
fn large_arguments_and_the_bound_on_them() {
    let value = vec![b'v'; 20 << 20];
    let input = [resp(&[b"SET".as_slice(), b"k", &value]), resp(&["GET", "k"])].concat();
    let respb = good(&["convert", "--to", "respb"], &input);
    assert_eq!(respb.len(), 4 + 2 + 1 + 4 + value.len() + 1 + 7);
    assert!(good(&["convert", "--to", "resp"], &respb) == input);
    let bounded = run(&["convert", "--to", "respb", "--frame-bytes-max", "1000000"], &input);
    assert_eq!(bounded.status.code(), Some(1));
    assert!(
        stderr(&bounded).contains("byte 20: expected a request within the limit on its size"),
        "{}",
        stderr(&bounded)
    );
}

#[test]
fn the_output_is_never_the_input() {
    let folder = Folder::new();
    let file = folder.file("a.resp", &resp(&["PING"]));
    let output = run(&["convert", "--to", "respb", "-o", &file, &file], b"");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(read(&file), resp(&["PING"]));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let folder = Folder::new();
    let file = folder.file("a.resp", &resp(&["SET", "key", "value"]).repeat(200_000));
    let mut child = weft()
        .args(["convert", "--to", "respb", &file])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 10];
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut first).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
}

#[test]
fn the_command_line_explains_itself() {
    let unknown = run(&["frobnicate"], b"");
    assert_eq!(unknown.status.code(), Some(2));
    let version = good(&["--version"], b"");
    assert_eq!(String::from_utf8_lossy(&version), concat!("weft ", env!("CARGO_PKG_VERSION"), "\n"));
    let help = good(&["--help"], b"");
    for command in ["convert", "inspect"] {
        assert!(String::from_utf8_lossy(&help).contains(command));
        assert!(
            stderr(&unknown).contains(command),
            "an unknown command lists those there are: {}",
            stderr(&unknown)
        );
        assert!(String::from_utf8_lossy(&good(&[command, "--help"], b"")).contains("Examples:"));
    }
    assert_eq!(run(&["convert"], b"").status.code(), Some(2), "--to is needed");
}
