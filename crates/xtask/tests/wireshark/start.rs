//! How a connection comes to be dissected: ports, first bytes, the switch from RESP, `Decode As`.

use crate::capture::{Capture, From};
use crate::{bulk, get, hex, tshark};

const HELLO: &[u8] = b"*5\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$5\r\nproto\r\n$5\r\nRESPB\r\n$4\r\nAUTH\r\n";
const PLAIN_GET: &[u8] = b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n";

/// RESP, HELLO, the reply, RESPB, with a push in the packet of the reply; cut into packets of `size` bytes.
fn switching(port: u16, size: usize, answer: &[u8]) -> Capture {
    let mut capture = Capture::on_port(port);
    let push = hex("800a 0000 00000001 87 6d657373616765");
    let after = if answer[0] == b'-' { b"+PONG\r\n".to_vec() } else { push };
    let turns = [
        (From::Client, PLAIN_GET.to_vec()),
        (From::Server, b"$3\r\nabc\r\n".to_vec()),
        (From::Client, HELLO.to_vec()),
        (From::Server, [answer, &after].concat()),
    ];
    for (from, bytes) in turns {
        bytes.chunks(size).for_each(|piece| {
            capture.send(50_000, from, piece);
        });
    }
    capture
}

#[test]
fn a_resp_connection_switches() {
    let map = b"%2\r\n$6\r\nserver\r\n$4\r\nweft\r\n$5\r\nrespb\r\n%1\r\n$7\r\nversion\r\n:1\r\n";
    for size in [10_000, 1, 7] {
        let mut capture = switching(6379, size, map);
        capture.send(50_000, From::Client, &get(0, "mykey"));
        capture.send(50_000, From::Server, &bulk(0, "value"));
        let names = ["respb.switch", "respb.argv", "respb.reply", "respb.request_in", "respb.malformed"];
        let rows = tshark::fields(&capture, &names, &[]);
        let column = |index: usize| rows.iter().flat_map(|row| row[index].clone()).collect::<Vec<_>>();
        let switch = ["asked for, by HELLO with PROTO respb", "agreed to, from here on in both directions"];
        assert_eq!(column(0), switch, "packets of {size} bytes");
        assert_eq!(column(1), ["GET mykey"]);
        assert_eq!(column(2), ["\"message\"", "\"value\""]);
        assert_eq!(column(3).len(), 1);
        assert!(column(4).is_empty());
    }
    let infos = tshark::infos(&switching(6379, 10_000, map), &[]);
    assert_eq!(infos[0], "Request: HELLO 3 proto RESPB AUTH | RESPB asked for, by HELLO with PROTO respb");
    let agreed = "RESPB agreed to, from here on in both directions | [0] push \"message\"";
    assert!(infos[1].ends_with(agreed), "{}", infos[1]);
}

#[test]
fn a_refusal_leaves_the_connection_in_resp() {
    let mut capture = switching(6379, 10_000, b"-ERR syntax error\r\n");
    capture.send(50_000, From::Client, PLAIN_GET);
    capture.send(50_000, From::Server, b"$3\r\nabc\r\n");
    let rows = tshark::fields(&capture, &["respb.switch", "respb.frame", "_ws.col.Protocol"], &[]);
    assert_eq!(rows[3][0], ["refused"]);
    assert!(rows.iter().all(|row| row[1].is_empty()));
    assert_eq!(rows[4][2], ["RESP"]);
}

#[test]
fn plain_resp_looks_as_without_the_script() {
    let mut capture = Capture::new();
    let turns: [(From, &[u8]); 8] = [
        (From::Client, PLAIN_GET),
        (From::Server, b"$3\r\nabc\r\n"),
        (From::Client, b"PING\r\n"),
        (From::Server, b"+PONG\r\n"),
        (From::Client, &[PLAIN_GET, PLAIN_GET].concat()),
        (From::Server, b"$-1\r\n-ERR what\r\n"),
        (From::Client, b"*2\r\n$4\r\nLLEN\r\n$1\r\na\r\n"),
        (From::Server, b"*2\r\n:1\r\n$1\r\nx\r\n"),
    ];
    for (from, bytes) in turns {
        capture.send(50_000, from, bytes);
    }
    let arguments = ["-O", "resp"];
    assert_eq!(tshark::run(&capture, &arguments), tshark::run_plain(&capture, &arguments));
    assert_eq!(tshark::run(&capture, &[]), tshark::run_plain(&capture, &[]));
}

#[test]
fn other_ports_are_found_by_their_first_bytes() {
    let mut capture = Capture::on_port(17_001);
    capture.send(50_000, From::Client, &[get(0, "mykey"), hex("0300 0001")].concat());
    capture.send(50_000, From::Server, &[bulk(0, "value"), hex("8304 0001 504f4e47")].concat());
    let infos = tshark::infos(&capture, &[]);
    assert_eq!(infos, ["[0] GET mykey | [1] PING", "[0] = \"value\" | [1] = PONG"]);
}

#[test]
fn a_switch_is_found_on_other_ports() {
    let mut capture = Capture::on_port(17_001);
    capture.send(50_000, From::Client, HELLO);
    capture.send(50_000, From::Server, b"%1\r\n$6\r\nserver\r\n$4\r\nweft\r\n");
    capture.send(50_000, From::Client, &get(0, "mykey"));
    assert_eq!(tshark::infos(&capture, &[])[2], "[0] GET mykey");
}

#[test]
fn other_protocols_are_left_alone() {
    let mut capture = Capture::on_port(17_001);
    let streams: [&[u8]; 6] = [
        b"GET / HTTP/1.1\r\n\r\n",
        PLAIN_GET,
        &hex("160301 0005 0100000100"),
        &[0; 60],
        &hex("0000 0055 ff534d4272000000001843c80000000000000000000000000000"),
        &hex("0000 0000 0005 6d79"),
    ];
    for (port, bytes) in (50_000..).zip(streams) {
        capture.send(port, From::Client, bytes);
    }
    assert_eq!(tshark::infos(&capture, &[]), [""; 0]);
}

#[test]
fn decode_as_and_the_preference_take_any_port() {
    let mut capture = Capture::on_port(17_001);
    // A stream that begins in the middle: the replies alone prove nothing.
    capture.send(50_000, From::Server, &bulk(0, "value"));
    capture.send(50_000, From::Server, &hex("ff01 0003 00000000"));
    let expected = ["[0] = \"value\"", "[3] CLOSE"];
    assert_eq!(tshark::infos(&capture, &[]), [""; 0]);
    assert_eq!(tshark::infos(&capture, &["-d", "tcp.port==17001,respb"]), expected);
    assert_eq!(tshark::infos(&capture, &["-o", "respb.ports:17000-17005"]), expected);
}

#[test]
fn the_preference_gives_the_port_back() {
    let mut capture = Capture::new();
    capture.send(50_000, From::Client, PLAIN_GET);
    let arguments = ["-T", "fields", "-e", "_ws.col.Protocol", "-o", "respb.ports:7000"];
    assert_eq!(tshark::run(&capture, &arguments), "RESP\n");
}
