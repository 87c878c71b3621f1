//! `weft inspect` from outside: what it prints, word for word, and how it ends. The expected texts are in
//! `tests/golden`; with WEFT_WRITE set (`make gen`) they are written instead of compared: what the program says of
//! itself, to be read before it is committed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;

use common::{good, read, resp, run, stderr};

/// Compares the output, and the status as its last line, with a file.
fn golden(name: &str, args: &[&str], input: &[u8]) {
    let output = run(&[&["inspect"], args].concat(), input);
    assert_eq!(stderr(&output), "", "{name}");
    let mut text = String::from_utf8(output.stdout).expect("text");
    text.push_str(&format!("(status {})\n", output.status.code().expect("it ends by itself")));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.txt"));
    if std::env::var_os("WEFT_WRITE").is_some() {
        std::fs::write(&path, &text).expect("the folder is there");
    }
    assert_eq!(text, String::from_utf8_lossy(&read(&path)), "{name}: {}", path.display());
}

/// Requests in RESP that take every kind of field.
fn requests() -> Vec<u8> {
    let lines = [
        "GET mykey",
        "SET k hello EX 10",
        "ZADD z 1.5 one 2 two",
        "XREAD COUNT 5 STREAMS a b 0 1",
        "LMOVE from to LEFT RIGHT",
        "CONFIG GET maxmemory",
        "BF.ADD filter item",
        "get lower-case",
        "PING",
    ];
    lines.iter().flat_map(|line| resp(&line.split(' ').collect::<Vec<_>>())).collect()
}

#[test]
fn the_example_of_the_specification() {
    golden("get", &["--hex", "0000000000056d796b6579"], b"");
    golden("get", &["--hex", "0x0000 00:00\n 00 05 6d796b 6579"], b"");
    golden("get_colors", &["--color", "always", "--hex", "0000000000056d796b6579"], b"");
    golden("get_json", &["--json", "--hex", "0000000000056d796b6579"], b"");
}

#[test]
fn requests_field_by_field() {
    let respb = good(&["convert", "--to", "respb", "--channel", "3"], &requests());
    golden("requests_respb", &[], &respb);
    golden("requests_resp", &[], &requests());
    golden("inline", &[], b"SET \"a b\" c\r\n");
    let frames = "f001 0003 00000008 00000004 50494e47  ffff 0001 0000000e 2a310d0a24340d0a50494e470d0a \
                  ff01 0002 00000008 0001 6e6f7420 6e6f  ff02 0000 00000004 00000007  ff03 0000 00000004 00010000 \
                  ff77 0000 00000001 aa  f005 0000 00000002 0102";
    golden("frames", &["--hex", frames], b"");
}

#[test]
fn replies_field_by_field() {
    let respb = "8004 0000 00000004 41 05 08 00000001 83666f6f 04 00000002 00 09 00000000 10 00010000 \
                 8002 0001 0000000000000005  8000 0000  8203 0007 616263  8106 0000  8005 0000  8006 0000 01 \
                 800e 0000 00000001 8161 8162 00  8001 0000 0005 4552522078 \
                 800a 0004 00000003 876d657373616765 8163 8168  800d 0000 747874 00000002 6869 \
                 8007 0000 3ff8000000000000 \
                 ff10 0000 00000003 01 aabb  f010 0000 00000001 00";
    golden("replies_respb", &["--replies", "--hex", respb], b"");
    let resp = b"*3\r\n$2\r\nhi\r\n%1\r\n+a\r\n,1.5\r\n$?\r\n;2\r\nab\r\n;0\r\n>1\r\n+x\r\n$-1\r\n*-1\r\n_\r\n#t\r\n(12345678901234567890\r\n\
                 =7\r\ntxt:abc\r\n|1\r\n+k\r\n:1\r\n*?\r\n:2\r\n.\r\n-ERR x\r\n";
    golden("replies_resp", &["--replies"], resp);
}

#[test]
fn after_a_bad_frame() {
    // ARGV and CONFIG carry their length and can be passed over; GET cannot.
    let skipped = "f001 0000 00000006 00000004 5049  0300 0000  03c9 0000 00000006 00000009 4747  0300 0001";
    golden("bad_and_on", &["--hex", skipped], b"");
    golden("bad_and_on_json", &["--json", "--hex", skipped], b"");
    golden("bad_and_over", &["--hex", "0300 0000 0001 0000 0001 6b 00000001 76 c0 0300 0000"], b"");
    golden("unknown_opcode", &["--hex", "0300 0000 07ff 0000"], b"");
    golden("cut", &["--hex", "0300 0000 0000 0000 0005 6d79"], b"");
    golden("cut_resp", &[], b"*2\r\n$3\r\nGET\r\n$5\r\nmy");
    golden("bad_resp", &[], b"*2\r\n$3\r\nGET\r\n!5\r\n");
    golden("bad_reply", &["--replies", "--hex", "8006 0000 02"], b"");
    golden("reply_as_request", &["--hex", "8000 0000"], b"");
}

#[test]
fn long_values_and_many_rows_are_cut_short() {
    let value = "v".repeat(3_000_000);
    let mut input = good(&["convert", "--to", "respb"], &resp(&["SET", "k", &value]));
    let keys: Vec<String> =
        std::iter::once("DEL".into()).chain((0..1000).map(|i| format!("key{i}"))).collect();
    input.extend(good(&["convert", "--to", "respb"], &resp(&keys)));
    let text = good(&["inspect"], &input);
    assert!(text.len() < 40_000, "{}", text.len());
    let text = String::from_utf8_lossy(&text);
    assert!(text.contains("00 2d c6 c0 76 76 76 76 76 76 76 .. 76 76 76 76"), "{text}");
    assert!(text.contains("… 803 more rows"), "{text}");
    assert!(text.contains("… (1,000 arguments)"), "{text}");
}

#[test]
fn every_cut_ends_in_an_error_and_never_in_a_panic() {
    let respb = good(&["convert", "--to", "respb"], &requests());
    for (bytes, step) in [(respb, 1), (requests(), 3)] {
        for cut in (1..bytes.len()).step_by(step) {
            let output = run(&["inspect", "--json"], &bytes[..cut]);
            let last = String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or_default().to_string();
            let whole = output.status.success();
            assert_eq!(last.contains("\"error\":\"incomplete\""), !whole, "cut at {cut}: {last}");
            assert!(last.contains(&format!("\"offset\":{cut},")) || whole, "cut at {cut}: {last}");
        }
    }
}

#[test]
fn what_is_neither_is_refused() {
    let output = run(&["inspect"], b"\x16\x03\x01");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("16 begins neither RESP nor RESPB requests"), "{}", stderr(&output));
    let output = run(&["inspect", "--hex", "0g"], b"");
    assert!(stderr(&output).contains("'g' at position 2"), "{}", stderr(&output));
    assert_eq!(run(&["inspect"], b"").status.code(), Some(0), "nothing is no error");
}
