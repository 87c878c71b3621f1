//! Sockets from outside: half-closed sockets, slow readers, clients that are not read from,
//! places that are used again, much input at once, the end.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

mod common;

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use common::client::{expect, rest};
use common::resp;
use common::servers::Server;
use weft_protocol::respb::{Mode, RequestWriter};

/// A server with one worker.
fn server() -> Server {
    Server::weft(&["--threads", "1"])
}

#[test]
fn who_has_not_authenticated_cannot_pile_up_replies() {
    let server = Server::weft(&["--threads", "1", "--requirepass", "secret"]);
    let mut stream = server.stream();
    let part = resp(&["PING"]).repeat(4096);
    // Four times what sockets hold: without a limit the server would take it all.
    let refused = (0..1024).any(|_| stream.write_all(&part).is_err());
    assert!(refused, "the server has taken {} bytes of a client that reads nothing", 1024 * part.len());

    let mut friend = server.stream();
    friend
        .write_all(&[resp(&["GET", "k"]), resp(&["AUTH", "secret"]), resp(&["PING"]).repeat(50_000)].concat())
        .unwrap();
    friend.shutdown(Shutdown::Write).unwrap();
    let text = rest(friend);
    assert!(text.starts_with("-NOAUTH Authentication required.\r\n+OK\r\n+PONG"), "{}", &text[..80]);
    assert_eq!(text.matches("+PONG").count(), 50_000);
}

#[test]
fn a_half_closed_socket_gets_all_its_answers() {
    let server = server();
    let mut stream = server.stream();
    stream.write_all(&[resp(&["SET", "k", "v"]), resp(&["GET", "k"]).repeat(5000)].concat()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(rest(stream), format!("+OK\r\n{}", "$1\r\nv\r\n".repeat(5000)));
}

#[test]
fn a_slow_reader_gets_everything_and_holds_up_nobody() {
    const VALUE_BYTES: usize = 300_000;
    const TIMES: usize = 100;
    let server = server();
    let value = "x".repeat(VALUE_BYTES);
    let mut slow = server.stream();
    slow.write_all(&resp(&["SET", "k", &value])).unwrap();
    expect(&mut slow, b"+OK\r\n");
    // Thirty megabytes, of which a socket holds a fraction: the rest waits for room, time and again.
    slow.write_all(&resp(&["GET", "k"]).repeat(TIMES)).unwrap();
    let mut other = server.stream();
    for _ in 0..100 {
        other.write_all(&resp(&["PING"])).unwrap();
        expect(&mut other, b"+PONG\r\n");
    }
    let reply = format!("${VALUE_BYTES}\r\n{value}\r\n").into_bytes();
    for _ in 0..TIMES {
        expect(&mut slow, &reply);
    }
    slow.write_all(&resp(&["PING"])).unwrap();
    expect(&mut slow, b"+PONG\r\n");
}

/// What stands behind a command that waits came in the same piece, and runs in its order when the wait is over.
#[test]
fn requests_behind_a_wait_run_when_it_is_over() {
    let server = server();
    let (mut waiting, mut other) = (server.stream(), server.stream());
    let large = "x".repeat(100_000);
    let requests = [
        &["BLPOP", "q", "0"][..],
        &["SET", "a", "1"],
        &["INCR", "a"],
        &["MULTI"],
        &["SELECT", "1"],
        &["INCR", "a"],
        &["EXEC"],
        &["BRPOP", "q", "r", "0"],
        &["AUTH", "default", "x"],
        &["SET", "large", &large],
        &["STRLEN", "large"],
        &["QUIT"],
        &["SET", "a", "never"],
    ];
    waiting.write_all(&requests.map(resp).concat()).unwrap();
    for number in ["1", "2"] {
        // By then it waits: nothing of what is behind has run.
        other.write_all(&[resp(&["EXISTS", "large"]), resp(&["RPUSH", "q", number])].concat()).unwrap();
        expect(&mut other, b":0\r\n:1\r\n");
        let popped = format!("*2\r\n$1\r\nq\r\n$1\r\n{number}\r\n");
        expect(&mut waiting, popped.as_bytes());
        if number == "1" {
            expect(&mut waiting, b"+OK\r\n:2\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n:1\r\n");
        }
        // The second waits in the other database.
        other.write_all(&resp(&["SELECT", "1"])).unwrap();
        expect(&mut other, b"+OK\r\n");
    }
    assert_eq!(rest(waiting), "+OK\r\n+OK\r\n:100000\r\n+OK\r\n");
    other.write_all(&resp(&["GET", "a"])).unwrap();
    expect(&mut other, b"$1\r\n1\r\n");
}

/// Behind a wait, as behind a pause, a client becomes what its requests make it: bytes that came behind them are read
/// as those of that client.
#[test]
fn what_was_held_changes_how_the_rest_is_read() {
    let server = Server::weft(&["--threads", "1", "--requirepass", "secret"]);
    let log_in = resp(&["AUTH", "secret"]);
    let waits = [&[][..], &["BLPOP", "none", "0.05"], &["XREAD", "BLOCK", "50", "STREAMS", "none", "$"]];
    let mut other = server.stream();
    other.write_all(&log_in).unwrap();
    expect(&mut other, b"+OK\r\n");
    for wait in waits {
        let first = if wait.is_empty() { vec![resp(&["PING"])] } else { vec![resp(wait)] }.concat();
        let pause = || {
            let mut admin = server.stream();
            admin.write_all(&[log_in.clone(), resp(&["CLIENT", "PAUSE", "50", "ALL"])].concat()).unwrap();
            expect(&mut admin, b"+OK\r\n+OK\r\n");
        };
        // A RESPB frame behind the request that switches to it.
        let mut stream = server.stream();
        stream.write_all(&log_in).unwrap();
        expect(&mut stream, b"+OK\r\n");
        if wait.is_empty() {
            pause();
        }
        let mut frame = Vec::new();
        assert!(RequestWriter::new(&mut frame, 0).command(&["ECHO", "the end"], Mode::Fold));
        let hello = resp(&["HELLO", "3", "PROTO", "respb"]);
        stream.write_all(&[first.clone(), hello, frame].concat()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut read = Vec::new();
        while !read.ends_with(b"the end") {
            let mut piece = [0; 4096];
            let len = stream.read(&mut piece).unwrap();
            assert!(len > 0, "{}", String::from_utf8_lossy(&read));
            read.extend_from_slice(&piece[..len]);
        }
        // Who is nobody any more cannot send as much as before.
        let mut stream = server.stream();
        stream.write_all(&log_in).unwrap();
        expect(&mut stream, b"+OK\r\n");
        if wait.is_empty() {
            pause();
        }
        stream.write_all(&[first, resp(&["RESET"])].concat()).unwrap();
        let answer = if wait.is_empty() { "+PONG" } else { "*-1" };
        expect(&mut stream, format!("{answer}\r\n+RESET\r\n").as_bytes());
        // Its limit is far below this.
        stream.write_all(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\n").unwrap();
        let text = rest(stream);
        assert!(text.starts_with("-ERR Protocol error: unauthenticated bulk length"), "{text}");
    }
}

/// A transaction that was held ends while a part of the request behind it has been decoded.
#[test]
fn what_is_half_read_behind_a_held_transaction_is_read_once() {
    let server = Server::weft(&["--threads", "1"]);
    let value = "v".repeat(70_000);
    let begin =
        [resp(&["BLPOP", "none", "0.05"]), resp(&["MULTI"]), resp(&["GET", "k"]), resp(&["EXEC"])].concat();
    for (words, answer) in [
        (&["ECHO", &value][..], format!("${}\r\n{value}\r\n", value.len())),
        (&["RPUSH", "list", "one", &value], ":2\r\n".into()),
        (&["SET", "k", &value], "+OK\r\n".into()),
    ] {
        let mut stream = server.stream();
        let all = resp(words);
        // Its last argument is not whole when what is before it is held.
        stream.write_all(&[&begin[..], &all[..all.len() / 2]].concat()).unwrap();
        expect(&mut stream, b"*-1\r\n+OK\r\n+QUEUED\r\n*1\r\n$-1\r\n");
        stream.write_all(&all[all.len() / 2..]).unwrap();
        expect(&mut stream, answer.as_bytes());
    }
}

#[test]
fn a_client_that_waits_is_read_from_again() {
    // More than is kept for a client that waits, so that it is not read from meanwhile.
    const BEHIND: usize = 6;
    let server = server();
    let value = "y".repeat(1 << 20);
    let mut waiting = server.stream();
    let mut writer = waiting.try_clone().unwrap();
    let requests = [
        resp(&["CLIENT", "ID"]),
        resp(&["BLPOP", "list", "0"]),
        resp(&["SET", "k", &value]).repeat(BEHIND),
        resp(&["STRLEN", "k"]),
    ];
    let sending = std::thread::spawn(move || writer.write_all(&requests.concat()).unwrap());
    let mut first = [0; 1];
    waiting.read_exact(&mut first).unwrap();
    let mut other = server.stream();
    // The place in the list is there once BLPOP has run.
    loop {
        other.write_all(&resp(&["CLIENT", "LIST", "TYPE", "normal"])).unwrap();
        let mut bytes = vec![0; 64 << 10];
        let len = other.read(&mut bytes).unwrap();
        if String::from_utf8_lossy(&bytes[..len]).contains("cmd=blpop") {
            break;
        }
    }
    other.write_all(&resp(&["RPUSH", "list", "a"])).unwrap();
    expect(&mut other, b":1\r\n");
    let mut id = Vec::new();
    while !id.ends_with(b"\r\n") {
        waiting.read_exact(&mut first).unwrap();
        id.push(first[0]);
    }
    expect(&mut waiting, b"*2\r\n$4\r\nlist\r\n$1\r\na\r\n");
    expect(&mut waiting, &b"+OK\r\n".repeat(BEHIND));
    expect(&mut waiting, b":1048576\r\n");
    sending.join().unwrap();
}

#[test]
fn places_of_connections_are_used_again() {
    let server = server();
    let mut stays = server.stream();
    for round in 0..200 {
        // Ended in the middle of a request, by the client, with an answer that nobody reads, and by the server.
        let mut streams: Vec<UnixStream> = (0..4).map(|_| server.stream()).collect();
        streams[0].write_all(b"*2\r\n$3\r\nGET\r\n$5\r\nab").unwrap();
        streams[1].write_all(&resp(&["SET", "n", &round.to_string()]).repeat(50)).unwrap();
        streams[2].write_all(&resp(&["QUIT"])).unwrap();
        streams[3].write_all(b"*1\r\n:\r\n").unwrap();
        assert_eq!(rest(streams.remove(2)), "+OK\r\n");
        assert!(rest(streams.remove(2)).starts_with("-ERR Protocol error"));
        drop(streams);
        let number = round.to_string();
        stays.write_all(&resp(&["ECHO", &number])).unwrap();
        expect(&mut stays, format!("${}\r\n{number}\r\n", number.len()).as_bytes());
    }
}

#[test]
fn much_input_on_many_sockets_at_once() {
    // Each connection brings more at once than a receive takes, and all together more than a tick has room for.
    const CONNECTIONS: usize = 60;
    let server = server();
    let requests: Vec<Vec<u8>> = (0..CONNECTIONS)
        .map(|number| {
            let (key, value) = (format!("k{number}"), number.to_string().repeat(20_000));
            [resp(&["SET", &key, &value]).repeat(4), resp(&["STRLEN", &key])].concat()
        })
        .collect();
    let mut streams: Vec<UnixStream> = (0..CONNECTIONS).map(|_| server.stream()).collect();
    std::thread::scope(|scope| {
        for (number, (stream, bytes)) in streams.iter_mut().zip(&requests).enumerate() {
            scope.spawn(move || {
                for _ in 0..5 {
                    stream.write_all(bytes).unwrap();
                    let len = number.to_string().len() * 20_000;
                    expect(stream, format!("{}:{len}\r\n", "+OK\r\n".repeat(4)).as_bytes());
                }
            });
        }
    });
}

#[test]
fn a_client_that_goes_in_the_middle_of_a_program_leaves_all_of_it_or_nothing() {
    const KEYS: u32 = 100;
    let server = server();
    let mut other = server.stream();
    let program = format!(
        r#"{{"limits":{{"time-ms":100}},"params":[{{"name":"run"}}],"steps":[
            {{"let":{{"big":{{"pad":["",100000,"x"]}}}}}},
            {{"for":"i","range":[0,{KEYS}],"do":[["SET","${{run}}:${{i}}","v"]]}},
            {{"return":["${{big}}","${{big}}","${{big}}"]}}]}}"#
    );
    for round in 0..20 {
        let request = resp(&["PROGRAM", "EVAL", &program, &format!("r{round}")]);
        let mut gone = server.stream();
        // In every other round the request is cut off, in the others most of its reply is not read.
        let is_cut = round % 2 == 0;
        gone.write_all(&request[..request.len() - usize::from(is_cut)]).unwrap();
        if !is_cut {
            gone.read_exact(&mut [0]).unwrap();
        }
        drop(gone);
        let count = format!(
            r#"{{"limits":{{"time-ms":100}},"steps":[{{"let":{{"n":0}}}},
                {{"for":"k","keys":"r{round}:*","limit":1000,"do":[{{"let":{{"n":{{"+":["${{n}}",1]}}}}}}]}},
                {{"return":"${{n}}"}}]}}"#
        );
        other.write_all(&resp(&["PROGRAM", "EVAL", &count])).unwrap();
        expect(&mut other, format!(":{}\r\n", if is_cut { 0 } else { KEYS }).as_bytes());
    }
}
