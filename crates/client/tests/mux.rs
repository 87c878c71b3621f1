//! Channels over a shared connection, against a scripted peer: order, slices, closing, credit, trouble.

#![allow(clippy::unwrap_used)]

mod support;

use std::sync::mpsc;
use std::time::Duration;

use support::peer::{self, LONG, Peer, Sent, bulk, control, frame, ok, request, with};
use weft_client::{Channel, Connection, Error, Mux, Reply, Waiting};
use weft_protocol::outcome::Malformed;
use weft_protocol::respb::Control;

const CLOSE: Control<'static> = Control::Close { code: 0, reason: &[] };

fn with_mux(script: impl FnOnce(&mut Peer) + Send + 'static, client: impl FnOnce(&Mux)) {
    with(&[], script, |config| client(&Mux::connect(&config).unwrap()));
}

#[test]
fn garbage_ends_a_connection_and_every_channel() {
    for bytes in
        [&b"\x90\x00\x00\x00"[..], b"+OK\r\n+OK\r\n", b"\x00\x00\x00\x00", b"\x80\x04\x00\x01\0\0\0\x01\x20"]
    {
        let bytes = bytes.to_vec();
        let for_mux = bytes.clone();
        with(
            &[],
            move |peer| {
                peer.expect(request(0, "PING"));
                peer.send(&bytes);
                peer.expect(Sent::End);
            },
            |config| {
                let mut connection = Connection::connect(&config).unwrap();
                assert!(matches!(connection.command(&["PING"]), Err(Error::Wire(_))));
                assert!(matches!(connection.command(&["PING"]), Err(Error::Finished)));
            },
        );
        with_mux(
            move |peer| {
                peer.expect(request(1, "PING"));
                peer.send(&for_mux);
                peer.expect(Sent::End);
            },
            |mux| {
                let (mut one, mut two) = (mux.channel().unwrap(), mux.channel().unwrap());
                for error in [one.command(&["PING"]).unwrap_err(), two.command(&["PING"]).unwrap_err()] {
                    let Error::Lost(error) = error else { panic!("{error:?}") };
                    assert!(matches!(*error, Error::Wire(_)), "{error:?}");
                }
                assert!(matches!(mux.channel(), Err(Error::Lost(_))));
                assert!(mux.death().is_some());
            },
        );
    }
}

#[test]
fn slices_that_make_no_frame_are_a_wire_error() {
    with_mux(
        |peer| {
            peer.expect(request(1, "GET k"));
            let whole = frame(1, &bulk("v".repeat(300)));
            peer.send(&control(1, Control::Fragment { last: false, slice: &whole[..100] }));
            peer.send(&frame(1, &ok()));
            peer.expect(Sent::End);
        },
        |mux| {
            let Err(Error::Lost(error)) = mux.channel().unwrap().command(&["GET", "k"]) else { panic!() };
            assert!(matches!(&*error, Error::Wire(error) if error.kind == Malformed::BadControl));
        },
    );
}

#[test]
fn frames_that_nothing_asked_for_end_the_connection() {
    for (bytes, dismissed) in [
        (frame(9, &ok()), false),
        (frame(1, &ok()), false),
        (frame(0, &ok()), false),
        (frame(9, &Reply::Push(vec![bulk("message")])), false),
        (frame(1, &Reply::Error(b"ERR nobody asked".to_vec())), false),
        (control(0, Control::Goaway { code: 8, reason: b"ERR Protocol error: unknown opcode" }), true),
        // A frame that is not whole behind it: no clean end, and nobody knows what has run.
        ([control(0, Control::Goaway { code: 6, reason: b"" }), vec![0x82, 5, 0, 2]].concat(), false),
    ] {
        with_mux(
            move |peer| {
                peer.serve(1, "PING", &Reply::Simple(b"PONG".to_vec()));
                peer.expect(request(2, "PING"));
                peer.send(&bytes);
                if bytes[..2] == [0xFF, 4] {
                    peer.end();
                }
                peer.expect(Sent::End);
            },
            |mux| {
                let (mut one, mut two) = (mux.channel().unwrap(), mux.channel().unwrap());
                one.command(&["PING"]).unwrap();
                let Err(Error::Lost(error)) = two.command(&["PING"]) else { panic!() };
                assert_eq!(error.did_not_run(), dismissed);
                match *error {
                    Error::GoAway { code: 8, .. } => assert!(dismissed),
                    Error::Unexpected(_) | Error::Closed => assert!(!dismissed),
                    ref other => panic!("{other:?}"),
                }
                assert!(matches!(one.command(&["PING"]), Err(Error::Lost(_))));
            },
        );
    }
}

#[test]
fn a_server_that_dies_is_noticed_by_all() {
    with(
        &[],
        |peer| {
            peer.expect(request(0, "GET k"));
            peer.send(&frame(0, &bulk("v".repeat(100)))[..50]);
        },
        |config| {
            let mut connection = Connection::connect(&config).unwrap();
            assert!(matches!(connection.command(&["GET", "k"]), Err(Error::Closed)));
        },
    );
    with_mux(
        |peer| {
            for id in 1..=3 {
                peer.expect(request(id, "BLPOP k 0"));
            }
        },
        |mux| {
            let mut channels: Vec<Channel> = (0..3).map(|_| mux.channel().unwrap()).collect();
            for channel in &mut channels {
                channel.send(&["BLPOP", "k", "0"]).unwrap();
                channel.flush().unwrap();
            }
            for channel in &mut channels {
                let Err(Error::Lost(error)) = channel.receive() else { panic!() };
                assert!(matches!(*error, Error::Closed));
                let Err(Error::Lost(_)) = channel.receive_push(None) else { panic!() };
            }
        },
    );
}

#[test]
fn a_server_that_stops_reading_is_given_up() {
    let (done, wait) = mpsc::channel::<()>();
    let (config, thread) = peer::respb(&[], move |_peer| {
        // Holds the socket and reads nothing until the client is done.
        let _ = wait.recv();
    });
    let mut config = config;
    config.timeouts.write = Some(Duration::from_millis(100));
    let mux = Mux::connect(&config).unwrap();
    let mut channel = mux.channel().unwrap();
    let value = "v".repeat(1 << 20);
    let error = loop {
        // Buffers of the system take some megabytes.
        match channel.send(&["SET", "k", &value]) {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Timeout(Waiting::Write, _)), "{error:?}");
    assert!(matches!(channel.command(&["PING"]), Err(Error::Lost(_))));
    drop(done);
    thread.join().unwrap();

    let (done, wait) = mpsc::channel::<()>();
    let (config, thread) = peer::respb(&[], move |_peer| {
        let _ = wait.recv();
    });
    let mut config = config;
    config.timeouts.write = Some(Duration::from_millis(100));
    let mut connection = Connection::connect(&config).unwrap();
    let error = loop {
        if let Err(error) = connection.send(&["SET", "k", &value]) {
            break error;
        }
    };
    assert!(matches!(error, Error::Timeout(Waiting::Write, _)), "{error:?}");
    drop(done);
    thread.join().unwrap();
}

#[test]
fn channels_do_not_wait_for_each_other() {
    with_mux(
        |peer| {
            for (id, text) in [(1, "GET a"), (2, "GET b"), (1, "GET c")] {
                peer.expect(request(id, text));
            }
            // The other way round, and one byte at a time.
            let replies = [frame(2, &bulk("2")), frame(1, &bulk("1")), frame(1, &bulk("3"))].concat();
            for byte in replies {
                peer.send(&[byte]);
            }
            peer.expect(Sent::Close(2, 0));
            peer.expect(Sent::Close(1, 0));
        },
        |mux| {
            let (mut one, mut two) = (mux.channel().unwrap(), mux.channel().unwrap());
            assert_eq!((one.id(), two.id(), mux.channels()), (1, 2, 2));
            one.send(&["GET", "a"]).unwrap();
            one.flush().unwrap();
            two.send(&["GET", "b"]).unwrap();
            two.flush().unwrap();
            one.send(&["GET", "c"]).unwrap();
            assert_eq!(one.receive().unwrap(), bulk("1"));
            assert_eq!(two.receive().unwrap(), bulk("2"));
            assert!(
                matches!(one.exchange(&["PING"]), Err(Error::Config(_))),
                "a reply is still to be received"
            );
            assert_eq!(one.receive().unwrap(), bulk("3"));
            assert!(matches!(one.receive(), Err(Error::Config(_))));
            drop(two);
            drop(one);
        },
    );
}

#[test]
fn slices_of_two_channels_come_between_each_other() {
    let (large, other) = ("x".repeat(200_000), "y".repeat(70_000));
    let (a, b) = (frame(1, &bulk(&large)), frame(2, &bulk(&other)));
    with_mux(
        move |peer| {
            peer.expect(request(1, "GET a"));
            peer.expect(request(2, "GET b"));
            peer.expect(request(3, "PING"));
            let mut slices: Vec<Vec<u8>> = Vec::new();
            let (mut a, mut b) = (a.chunks(65_536).peekable(), b.chunks(40_000).peekable());
            while a.peek().is_some() || b.peek().is_some() {
                for (id, chunks) in [(1, &mut a), (2, &mut b)] {
                    if let Some(slice) = chunks.next() {
                        let last = chunks.peek().is_none();
                        slices.push(control(id, Control::Fragment { last, slice }));
                    }
                }
            }
            slices.insert(2, frame(3, &Reply::Simple(b"PONG".to_vec())));
            slices.insert(1, control(1, Control::Unknown { opcode: 0xFF77 }));
            peer.send(&slices.concat());
            for id in [1, 2, 3] {
                assert!(matches!(peer.next(), Sent::Close(_, 0)), "{id}");
            }
        },
        |mux| {
            let mut channels: Vec<Channel> = (0..3).map(|_| mux.channel().unwrap()).collect();
            for (channel, args) in channels.iter_mut().zip([&["GET", "a"][..], &["GET", "b"], &["PING"]]) {
                channel.send(args).unwrap();
                channel.flush().unwrap();
            }
            assert_eq!(channels[2].receive().unwrap(), Reply::Simple(b"PONG".to_vec()));
            assert_eq!(channels[1].receive().unwrap(), bulk(&other));
            assert_eq!(channels[0].receive().unwrap(), bulk(&large));
        },
    );
}

#[test]
fn a_channel_that_the_server_closes_says_why_and_the_others_go_on() {
    with_mux(
        |peer| {
            peer.expect(request(1, "BLPOP k 0"));
            peer.expect(request(1, "SET k v"));
            peer.send(&control(1, Control::Close { code: 1, reason: b"the queue is full" }));
            peer.expect(Sent::Close(1, 0));
            peer.serve(2, "PING", &Reply::Simple(b"PONG".to_vec()));
            // The number is free again, and the new channel has nothing of the old one.
            peer.serve(1, "GET k", &Reply::Null);
            peer.expect(Sent::Close(1, 0));
            peer.expect(Sent::Close(2, 0));
        },
        |mux| {
            let (mut one, mut two) = (mux.channel().unwrap(), mux.channel().unwrap());
            one.send(&["BLPOP", "k", "0"]).unwrap();
            one.send(&["SET", "k", "v"]).unwrap();
            for _ in 0..2 {
                let error = one.receive().unwrap_err();
                assert!(error.did_not_run(), "they waited, and may be sent again");
                match error {
                    Error::ChannelClosed { channel: 1, code: 1, reason } => {
                        assert_eq!(reason, "the queue is full");
                    }
                    other => panic!("{other:?}"),
                }
            }
            assert!(matches!(one.send(&["PING"]), Err(Error::ChannelClosed { .. })));
            assert!(one.ended().is_some());
            two.command(&["PING"]).unwrap();
            let mut new = mux.channel().unwrap();
            assert_eq!(new.id(), 1);
            // The old handle does not close the new channel.
            drop(one);
            assert_eq!(new.query::<Option<String>>(&["GET", "k"]).unwrap(), None);
            drop(new);
            drop(two);
        },
    );
}

#[test]
fn a_number_is_used_again_only_after_the_answer_to_close() {
    let (closed, wait) = mpsc::channel::<()>();
    with_mux(
        move |peer| {
            peer.expect(request(1, "GET a"));
            peer.expect(Sent::Close(1, 300));
            closed.send(()).unwrap();
            peer.serve(2, "GET b", &bulk("b"));
            // What was under way is discarded by the client, up to the answer.
            peer.send(&[frame(1, &bulk("late")), frame(1, &Reply::Push(vec![bulk("x")]))].concat());
            peer.send(&control(1, CLOSE));
            peer.serve(2, "GET c", &bulk("c"));
            peer.serve(1, "GET d", &bulk("d"));
            peer.expect(Sent::Close(1, 0));
        },
        |mux| {
            let mut one = mux.channel().unwrap();
            one.send(&["GET", "a"]).unwrap();
            one.close(300, "seen enough").unwrap();
            wait.recv().unwrap();
            let mut two = mux.channel().unwrap();
            assert_eq!(two.id(), 2);
            assert!(matches!(mux.open(1), Err(Error::ChannelInUse(1))));
            assert_eq!(two.command(&["GET", "b"]).unwrap(), bulk("b"));
            assert_eq!(two.command(&["GET", "c"]).unwrap(), bulk("c"));
            // The answer came before the last reply.
            let mut again = mux.channel().unwrap();
            assert_eq!(again.id(), 1);
            assert_eq!(again.command(&["GET", "d"]).unwrap(), bulk("d"));
            drop(again);
            drop(two);
        },
    );
}

#[test]
fn both_sides_may_close_at_once() {
    with_mux(
        |peer| {
            peer.expect(request(1, "PING"));
            // Sent before the client's CLOSE has been read: each is the answer to the other.
            peer.send(&[frame(1, &ok()), control(1, Control::Close { code: 6, reason: b"bye" })].concat());
            peer.expect(Sent::Close(1, 0));
            peer.serve(1, "PING", &ok());
            peer.expect(Sent::Close(1, 0));
        },
        |mux| {
            let mut one = mux.channel().unwrap();
            one.command(&["PING"]).unwrap();
            drop(one);
            let mut again = loop {
                match mux.open(1) {
                    Ok(channel) => break channel,
                    Err(Error::ChannelInUse(1)) => std::thread::yield_now(),
                    Err(error) => panic!("{error:?}"),
                }
            };
            again.command(&["PING"]).unwrap();
        },
    );
}

#[test]
fn a_request_that_takes_too_long_is_cancelled_and_its_reply_dropped() {
    with_mux(
        |peer| {
            peer.serve(1, "PING", &ok());
            peer.expect(request(1, "GET slow"));
            peer.expect(Sent::Cancel(1, 1));
            peer.expect(request(1, "GET k"));
            peer.send(&[frame(1, &bulk("late")), frame(1, &bulk("v"))].concat());
            peer.expect(Sent::Close(1, 0));
        },
        |mux| {
            let mut channel = mux.channel().unwrap();
            channel.command(&["PING"]).unwrap();
            channel.set_reply_timeout(Some(Duration::from_millis(20)));
            let late = channel.command(&["GET", "slow"]);
            assert!(matches!(late, Err(Error::Timeout(Waiting::Reply, _))), "{late:?}");
            channel.set_reply_timeout(Some(LONG));
            assert_eq!(channel.query::<String>(&["GET", "k"]).unwrap(), "v");
        },
    );
}

#[test]
fn credit_is_given_back_as_replies_are_taken() {
    let push = Reply::Push(vec![bulk("message"), bulk("c"), bulk("x".repeat(70))]);
    let push_bytes = frame(1, &push).len() as u32;
    let reply = bulk("v".repeat(200_000));
    let whole = frame(1, &reply);
    with(
        &[],
        move |peer| {
            peer.expect(Sent::Window(1, 1000));
            peer.serve(1, "PING", &ok());
            for _ in 0..6 {
                peer.reply(1, &push);
            }
            // Half of the window: given back with the sixth, the 4 bytes of OK included.
            peer.expect(Sent::Window(1, 4 + 6 * push_bytes));
            peer.expect(request(1, "GET large"));
            // A reply larger than the credit goes on slice by slice.
            let mut slices = whole.chunks(65_536).peekable();
            while let Some(slice) = slices.next() {
                let last = slices.peek().is_none();
                peer.send(&control(1, Control::Fragment { last, slice }));
                peer.expect(Sent::Window(1, slice.len() as u32 + 9));
            }
            peer.expect(Sent::Close(1, 0));
        },
        |mut config| {
            config.window_bytes = Some(1000);
            assert!(5 * push_bytes < 500 && 6 * push_bytes > 500);
            let mux = Mux::connect(&config).unwrap();
            let mut channel = mux.channel().unwrap();
            channel.command(&["PING"]).unwrap();
            for _ in 0..6 {
                channel.receive_push(Some(LONG)).unwrap().unwrap();
            }
            assert_eq!(channel.command(&["GET", "large"]).unwrap(), reply);
        },
    );
}

#[test]
fn pushes_that_nobody_takes_close_their_channel_alone() {
    with(
        &[],
        |peer| {
            peer.serve(1, "PING", &ok());
            let push = frame(1, &Reply::Push(vec![bulk("message"), bulk("c"), bulk("m")]));
            // At once, so that all have come before one is taken.
            peer.send(&push.repeat(4));
            peer.expect(Sent::Close(1, 0));
            peer.serve(2, "PING", &ok());
        },
        |mut config| {
            config.pushes_max = 3;
            let mux = Mux::connect(&config).unwrap();
            let mut one = mux.channel().unwrap();
            one.command(&["PING"]).unwrap();
            // The channel has ended once a fourth came; those that came before are there.
            while one.ended().is_none() {
                std::thread::yield_now();
            }
            for _ in 0..3 {
                one.receive_push(Some(LONG)).unwrap().unwrap();
            }
            assert!(matches!(one.receive_push(Some(LONG)), Err(Error::TooManyPushes(3))));
            mux.open(2).unwrap().command(&["PING"]).unwrap();
        },
    );
}

#[test]
fn the_limit_on_channels_is_the_servers() {
    with(
        &[("channels", 3)],
        |peer| {
            peer.serve(2, "PING", &Reply::Simple(b"PONG".to_vec()));
            peer.expect(Sent::Close(2, 0));
        },
        |config| {
            let mux = Mux::connect(&config).unwrap();
            let _one = mux.channel().unwrap();
            let mut two = mux.channel().unwrap();
            assert!(matches!(mux.channel(), Err(Error::TooManyChannels(3))));
            two.command(&["PING"]).unwrap();
            drop(two);
        },
    );
}

#[test]
fn channel_0_is_lent_and_not_closed() {
    with_mux(
        |peer| {
            peer.expect(request(0, "AUTH alice x"));
            peer.reply(0, &ok());
            peer.expect(request(0, "GET a"));
            peer.expect(request(0, "GET b"));
            peer.send(&[frame(0, &bulk("a")), frame(0, &bulk("b"))].concat());
            peer.expect(Sent::End);
        },
        |mux| {
            let mut zero = mux.open(0).unwrap();
            assert!(matches!(mux.open(0), Err(Error::ChannelInUse(0))));
            zero.command(&["AUTH", "alice", "x"]).unwrap();
            zero.send(&["GET", "a"]).unwrap();
            zero.flush().unwrap();
            drop(zero);
            // The reply that the first user did not wait for is not the second's.
            let mut zero = mux.open(0).unwrap();
            assert_eq!(zero.query::<String>(&["GET", "b"]).unwrap(), "b");
        },
    );
}

#[test]
fn many_threads_share_a_connection() {
    const THREADS: usize = 32;
    const REQUESTS: usize = 200;
    with_mux(
        |peer| {
            let mut left = THREADS * REQUESTS + THREADS;
            while left > 0 {
                match peer.next() {
                    Sent::Request(channel, text) => {
                        let word = text.split(' ').nth(1).unwrap_or_default();
                        peer.reply(channel, &bulk(word));
                    }
                    Sent::Close(channel, 0) => peer.send(&control(channel, CLOSE)),
                    other => panic!("{other:?}"),
                }
                left -= 1;
            }
        },
        |mux| {
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    scope.spawn(move || {
                        let mut channel = mux.channel().unwrap();
                        for request in 0..REQUESTS {
                            let word = format!("{thread}-{request}");
                            assert_eq!(channel.query::<String>(&["ECHO", &word]).unwrap(), word);
                        }
                    });
                }
            });
        },
    );
}
