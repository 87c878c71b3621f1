//! Servers behind that answer what no server should: who has asked is told, nobody gets what is another's, and the next
//! request is served.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use rustix::event::{PollFd, PollFlags, poll};
use weft_engine::forward::{BlockTime, Forward, Kind};

use crate::testing::{Bench, CLOSES, Peer, client};

/// Before a server that answers so to `GET odd`, over a time that is none.
fn before(odd: &str) -> (Bench, Peer) {
    let odd = odd.to_string();
    let peer = Peer::start(move |asked| {
        Some(match asked {
            "GET odd" => odd.clone(),
            _ if asked.starts_with("PING") => "+PONG\r\n".into(),
            _ => "+OK\r\n".into(),
        })
    });
    let bench = Bench::new(peer.options(&[("upstream-timeout", "3600000")]));
    (bench, peer)
}

/// What a client is told of each of three requests that come at once: a read, the one that is answered oddly, a write.
fn told(bench: &mut Bench) -> Vec<String> {
    for words in [&["GET", "a"][..], &["GET", "odd"], &["SET", "a", "1"]] {
        let whose = client(words[1].len() as u64);
        let reads = words[0] == "GET";
        bench.ask_so(Forward { reads, ..Forward::of(whose, Kind::Plain) }, words);
    }
    bench.until("three answers", |bench| bench.delivered.0.len() == 3);
    std::mem::take(&mut bench.delivered.0)
}

fn is_served(bench: &mut Bench) {
    bench.ask(9, Kind::Plain, 0, &["SET", "b", "2"]);
    bench.until("an answer", |bench| bench.delivered.0.len() == 1);
    assert_eq!(bench.delivered.0, ["+OK"]);
}

#[test]
fn what_is_no_reply_is_nobodys() {
    for odd in [
        "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
        "\0\0\0\0 what no protocol begins with, of more than thirty-two bytes",
        "$99999999999999999999\r\n",
        "*1\r\n?\r\n and so on, and so on, and so on\r\n",
        ">1\r\n?\r\n and so on, and so on, and so on\r\n",
    ] {
        let (mut bench, _peer) = before(odd);
        let told = told(&mut bench);
        assert_eq!(told[0], "+OK", "{odd:?}");
        assert!(told[1..].iter().all(|told| told.contains("its reply cannot be read")), "{odd:?}: {told:?}");
        is_served(&mut bench);
    }
}

#[test]
fn a_reply_that_ends_in_the_middle_is_nobodys() {
    for odd in ["", "$5\r\nab", "*2\r\n:1\r\n", "*", ">2\r\n$10\r\ninvalidate\r\n", "-ERR no"] {
        let (mut bench, peer) = before(&format!("{odd}{CLOSES}"));
        let told = told(&mut bench);
        assert_eq!(told[0], "+OK", "{odd:?}");
        assert!(told[1..].iter().all(|told| told.contains("the server closed it")), "{odd:?}: {told:?}");
        assert_eq!(
            peer.asked().iter().filter(|asked| *asked == "GET odd").count(),
            2,
            "a read goes again, once"
        );
        is_served(&mut bench);
    }
}

/// Of both is told once: the end stands behind the reply, and is not looked for by itself.
#[test]
fn a_server_that_closes_behind_its_reply_has_closed() {
    for (odd, told) in [("+odd\r\n", "+odd"), ("$5\r\nab", "the server closed it")] {
        let (mut bench, _peer) = before(&format!("{odd}{CLOSES}"));
        bench.ask(1, Kind::Plain, 0, &["SET", "a", "1"]);
        bench.until("an answer", |bench| bench.delivered.0.len() == 1);
        bench.ask(1, Kind::Plain, 0, &["GET", "odd"]);
        let places: Vec<u64> = bench
            .upstream
            .sockets()
            .map(|(socket, place)| {
                let mut fds = [PollFd::from_borrowed_fd(socket, PollFlags::RDHUP)];
                assert_eq!(poll(&mut fds, None), Ok(1));
                place
            })
            .collect();
        places.into_iter().for_each(|place| bench.upstream.event(place as u32, true, &mut bench.delivered));
        assert!(bench.delivered.0[1].contains(told), "{:?}", bench.delivered);
        assert_eq!(bench.upstream.figures.lost.load(SeqCst), 1, "{odd:?}");
    }
}

/// What stands behind a reply although nothing is due.
#[test]
fn a_reply_that_nobody_has_asked_for_ends_the_connection() {
    let (mut bench, _peer) = before("+OK\r\n+OK\r\n");
    bench.ask(1, Kind::Plain, 0, &["GET", "odd"]);
    let lost = |bench: &Bench| bench.upstream.figures.lost.load(SeqCst);
    bench.until("an end", |bench| lost(bench) == 1);
    assert_eq!(std::mem::take(&mut bench.delivered.0), ["+OK"]);
    is_served(&mut bench);
}

#[test]
fn pushes_of_whatever_kind_are_no_replies() {
    for odd in [
        ">1\r\n+news\r\n",
        ">0\r\n",
        ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n",
        ">2\r\n$10\r\ninvalidate\r\n%1\r\n+a\r\n~1\r\n,1.5\r\n",
        ">2\r\n$10\r\ninvalidate\r\n*2\r\n:1\r\n_\r\n",
        "|1\r\n+ttl\r\n:1\r\n>1\r\n+news\r\n",
    ] {
        let (mut bench, _peer) = before(&format!("{odd}+OK\r\n"));
        assert_eq!(told(&mut bench), ["+OK"; 3], "{odd:?}");
        assert_eq!(bench.upstream.figures.lost.load(SeqCst), 0);
    }
}

/// A server that loads, or has no primary, runs nothing: in front of one that is its client's to know.
#[test]
fn a_server_that_serves_nobody_now_says_so_itself() {
    for odd in ["-LOADING no", "-MASTERDOWN no", "-CLUSTERDOWN no", "-NOAUTH no", "-BUSY no"] {
        let (mut bench, _peer) = before(&format!("{odd}\r\n"));
        assert_eq!(told(&mut bench), ["+OK", odd, "+OK"]);
    }
}

/// A server that becomes a copy says so to whoever blocks, and closes the connection behind that.
#[test]
fn nobody_is_lent_what_is_about_to_be_closed() {
    let copy =
        "-UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)";
    let peer = Peer::start(move |asked| {
        Some(match asked {
            "BLPOP l 5" | "BLPOP m 5" => "+QUEUED\r\n".into(),
            "EXEC" => "*1\r\n*-1\r\n".into(),
            "BLPOP l 3.000" => format!("{copy}\r\n"),
            "BLPOP m 3.000" => "*2\r\n$1\r\nm\r\n$1\r\nv\r\n".into(),
            _ => "+OK\r\n".into(),
        })
    });
    let mut bench = Bench::new(peer.options(&[("upstream-timeout", "3600000"), ("leases", "1")]));
    for (number, key) in [(1, "l"), (2, "m")] {
        let time = BlockTime { argument: 2, ms: 5_000, in_seconds: true };
        bench.ask(number, Kind::Blocks(time), 0, &["BLPOP", key, "5"]);
    }
    bench.now_ms += 2_000;
    bench.until("two answers", |bench| bench.delivered.0.len() == 2);
    assert_eq!(bench.delivered.0, [copy, "*2\r\n$1\r\nm\r\n$1\r\nv"]);
    assert_eq!(bench.upstream.figures.lost.load(SeqCst), 1, "the second has a connection of its own");
}

/// A script that takes long has that refused, too: what is read meanwhile is not noted, and others hear nothing of it.
#[test]
fn a_connection_stays_whose_server_does_not_tell_of_changes_now() {
    let (was_busy, tracks) = (AtomicBool::new(false), AtomicBool::new(false));
    let peer = Peer::start(move |asked| {
        Some(match asked {
            _ if asked.starts_with("CLIENT TRACKING") && !was_busy.swap(true, SeqCst) => {
                "-BUSY no\r\n".into()
            }
            "CLIENT CACHING YES" if !tracks.load(SeqCst) => "-ERR it does not track\r\n".into(),
            _ => {
                tracks.fetch_or(asked.starts_with("CLIENT TRACKING"), SeqCst);
                "+OK\r\n".into()
            }
        })
    });
    let mut bench = Bench::new(peer.options(&[("upstream-timeout", "3600000")]));
    // Who reads what is not noted is told at once not to keep it.
    for answers in [&["+OK", "+OK", "held 1", "+OK"][..], &["+OK"; 3]] {
        bench.ask(1, Kind::Plain, 0, &["SET", "a", "1"]);
        let tracks = Some([Box::from(&b"k"[..])].into());
        bench.ask_so(Forward { tracks, ..Forward::of(client(2), Kind::Plain) }, &["GET", "k"]);
        bench.ask(3, Kind::Plain, 0, &["SET", "b", "2"]);
        bench.until("all answers", |bench| bench.delivered.0.len() == answers.len());
        assert_eq!(std::mem::take(&mut bench.delivered.0), answers);
    }
    assert_eq!(bench.upstream.figures.lost.load(SeqCst), 0);
    assert_eq!(peer.asked().iter().filter(|asked| asked.starts_with("CLIENT TRACKING")).count(), 2);
}
