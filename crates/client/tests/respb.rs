//! RESPB against a scripted peer: the handshake, one connection, what may have run.

#![allow(clippy::unwrap_used)]

mod support;

use std::time::Duration;

use support::peer::{self, LONG, Peer, Sent, bulk, control, frame, ok, request, with};
use weft_client::{Connection, Error, Event, Mux, Protocol, Reconnecting, Reply};
use weft_protocol::respb::Control;

#[test]
fn the_handshake_says_everything_and_learns_everything() {
    let (config, thread) = peer::raw(|peer| {
        let hello = peer.resp_request();
        assert_eq!(hello, "HELLO 3 PROTO respb AUTH default secret SETNAME me CAPS 1");
        peer.send_resp(&peer::hello_reply(&[("channels", 100)]));
        peer.serve(0, "SELECT 3", &ok());
        peer.serve(0, "GET k", &bulk("v"));
    });
    let config = config.with_auth(None, "secret").with_name("me").with_db(3);
    let mut connection = Connection::connect(&config).unwrap();
    let server = connection.server();
    assert_eq!((server.server.as_str(), server.version.as_str(), server.id), ("peer", "1.2.3", 42));
    let respb = server.respb.as_ref().unwrap();
    assert_eq!((respb.version, respb.table.version, respb.capabilities), (1, 1, 1));
    assert!(respb.has("flow") && !respb.has("passthrough") && respb.table.name == "weft");
    assert_eq!(respb.limit("channels"), Some(100));
    assert_eq!(connection.query::<String>(&["get", "k"]).unwrap(), "v");
    thread.join().unwrap();
}

#[test]
fn the_first_frames_may_come_with_the_reply_to_hello() {
    let (config, thread) = peer::raw(|peer| {
        peer.resp_request();
        let mut bytes = Vec::new();
        let hello = peer::hello_reply(&[]);
        hello.visit(&mut weft_protocol::resp::ReplyWriter::new(
            &mut bytes,
            weft_protocol::resp::Version::Resp3,
        ));
        bytes.extend(frame(0, &Reply::Push(vec![bulk("message"), bulk("c"), bulk("m")])));
        peer.send(&bytes);
        peer.expect(Sent::End);
    });
    let mut connection = Connection::connect(&config).unwrap();
    let push = connection.receive_push(Some(LONG)).unwrap();
    assert_eq!(push, Some(Reply::Push(vec![bulk("message"), bulk("c"), bulk("m")])));
    drop(connection);
    thread.join().unwrap();
}

#[test]
fn servers_without_respb_are_named_as_such() {
    let old = b"ERR Syntax error in HELLO option 'PROTO'".to_vec();
    let answers = [
        Reply::Error(old),
        Reply::Error(b"ERR unknown command 'HELLO', with args beginning with: '3' 'PROTO' ".to_vec()),
        Reply::Error(b"NOPROTO unsupported protocol version".to_vec()),
        // One that passes over options that it does not know.
        Reply::Map(vec![(bulk("server"), bulk("old")), (bulk("proto"), Reply::Int(3))]),
    ];
    for answer in answers {
        let (config, thread) = peer::raw(move |peer| {
            peer.resp_request();
            peer.send_resp(&answer);
        });
        let error = Mux::connect(&config).unwrap_err();
        assert!(matches!(error, Error::NoProtocol { protocol: Protocol::Respb, .. }), "{error:?}");
        thread.join().unwrap();
    }
    let (config, thread) = peer::raw(|peer| {
        peer.resp_request();
        peer.send_resp(&Reply::Error(b"WRONGPASS invalid username-password pair".to_vec()));
    });
    let refused = Connection::connect(&config.with_auth(Some("alice"), "x"));
    assert!(matches!(&refused, Err(Error::Handshake { step, .. }) if step == "AUTH"), "{refused:?}");
    thread.join().unwrap();
}

#[test]
fn a_connection_may_use_any_channel() {
    with(
        &[],
        |peer| {
            peer.expect(request(7, "CLIENT SETNAME me"));
            peer.expect(request(7, "SELECT 2"));
            peer.send(&[frame(7, &ok()), frame(7, &ok())].concat());
            peer.serve(7, "GET k", &bulk("v"));
            peer.expect(request(7, "BLPOP k 0"));
            peer.expect(Sent::Cancel(7, 3));
            peer.reply(7, &Reply::Error(b"CANCELLED by the client".to_vec()));
            peer.expect(request(7, "PING"));
            peer.send(&control(7, Control::Close { code: 4, reason: b"killed by alice" }));
            peer.expect(Sent::End);
        },
        |mut config| {
            config.channel = 7;
            let mut connection = Connection::connect(&config.with_db(2).with_name("me")).unwrap();
            assert_eq!(connection.query::<String>(&["GET", "k"]).unwrap(), "v");
            let sequence = connection.send(&["BLPOP", "k", "0"]).unwrap();
            connection.cancel(sequence).unwrap();
            let cancelled = connection.receive().unwrap();
            assert_eq!(cancelled, Reply::Error(b"CANCELLED by the client".to_vec()));
            match connection.command(&["PING"]) {
                Err(Error::ChannelClosed { channel: 7, code: 4, reason }) => {
                    assert_eq!(reason, "killed by alice");
                }
                other => panic!("{other:?}"),
            }
            assert!(matches!(connection.command(&["PING"]), Err(Error::Finished)));
        },
    );
}

#[test]
fn a_subscription_is_one_reply_and_messages_are_pushes() {
    let one = |word: &str, name: &str, count| Reply::Array(vec![bulk(word), bulk(name), Reply::Int(count)]);
    let confirmations = Reply::Array(vec![one("subscribe", "a", 1), one("subscribe", "b", 2)]);
    let message = Reply::Push(vec![bulk("message"), bulk("a"), bulk("1")]);
    let (expected_reply, expected_push) = (confirmations.clone(), message.clone());
    with(
        &[],
        move |peer| {
            peer.expect(request(0, "SUBSCRIBE a b"));
            peer.send(&[frame(0, &message), frame(0, &confirmations), frame(0, &message)].concat());
            peer.expect(Sent::End);
        },
        |config| {
            let mut connection = Connection::connect(&config).unwrap();
            assert_eq!(connection.command(&["SUBSCRIBE", "a", "b"]).unwrap(), expected_reply);
            assert_eq!(connection.session().subscriptions(), 2);
            for _ in 0..2 {
                let event = connection.next_event(Some(LONG)).unwrap();
                assert_eq!(event, Some(Event::Push(expected_push.clone())));
            }
            assert_eq!(connection.next_event(Some(Duration::ZERO)).unwrap(), None);
        },
    );
}

#[test]
fn a_pipeline_reads_while_it_writes() {
    const REQUESTS: usize = 3000;
    with(
        &[],
        |peer| {
            // Answers each request before it reads the next, and waits until its answer is taken.
            for _ in 0..REQUESTS {
                let Sent::Request(0, text) = peer.next() else { panic!() };
                peer.reply(0, &bulk(&text[5..]));
            }
        },
        |config| {
            let mut connection = Connection::connect(&config).unwrap();
            let value = "v".repeat(10_000);
            let mut pipeline = connection.pipeline();
            for _ in 0..REQUESTS {
                pipeline.add(&["ECHO", &value]).unwrap();
            }
            let replies = pipeline.execute().unwrap();
            assert!(replies.iter().all(|reply| *reply == bulk(&value)));
        },
    );
}

#[test]
fn what_may_have_run_is_not_sent_again() {
    let hello = |peer: &mut Peer| {
        peer.resp_request();
        peer.send_resp(&peer::hello_reply(&[]));
    };
    let (config, thread) = peer::several(vec![
        Box::new(move |peer| {
            hello(peer);
            peer.expect(request(0, "INCR n"));
        }),
        Box::new(move |peer| {
            hello(peer);
            peer.expect(request(0, "GET n"));
        }),
        Box::new(move |peer| {
            hello(peer);
            peer.serve(0, "GET n", &bulk("1"));
            peer.expect(Sent::End);
        }),
    ]);
    let mut connection = Reconnecting::connect(&config).unwrap();
    let unknown = connection.command(&["INCR", "n"]);
    assert!(matches!(unknown, Err(Error::OutcomeUnknown(_))), "{unknown:?}");
    // What only reads is.
    assert_eq!(connection.query::<i64>(&["GET", "n"]).unwrap(), 1);
    assert_eq!(connection.losses(), 2);
    drop(connection);
    thread.join().unwrap();
}

#[test]
fn what_a_server_that_goes_away_has_not_run_is_sent_again() {
    let hello = |peer: &mut Peer| {
        peer.resp_request();
        peer.send_resp(&peer::hello_reply(&[]));
    };
    let going = Control::Goaway { code: 6, reason: b"the server shuts down" };
    let (config, thread) = peer::several(vec![
        Box::new(move |peer| {
            hello(peer);
            peer.expect(request(0, "INCR n"));
            peer.send(&control(0, going));
            // What it has run it answers behind GOAWAY.
            peer.reply(0, &Reply::Int(1));
            peer.end();
            peer.expect(Sent::End);
        }),
        Box::new(move |peer| {
            hello(peer);
            peer.expect(request(0, "INCR n"));
            peer.send(&control(7, going));
            peer.end();
            peer.expect(Sent::End);
        }),
        Box::new(move |peer| {
            hello(peer);
            peer.serve(0, "INCR n", &Reply::Int(2));
            peer.expect(request(0, "INCR n"));
            peer.send(&control(0, going));
            // Not a clean end: in the midst of a reply.
            peer.send(&[0x82, 5, 0]);
        }),
    ]);
    let mut connection = Reconnecting::connect(&config).unwrap();
    assert_eq!(connection.query::<i64>(&["INCR", "n"]).unwrap(), 1);
    assert_eq!(connection.query::<i64>(&["INCR", "n"]).unwrap(), 2);
    let unknown = connection.command(&["INCR", "n"]);
    assert!(matches!(unknown, Err(Error::OutcomeUnknown(_))), "{unknown:?}");
    drop(connection);
    thread.join().unwrap();
}

#[test]
fn a_connection_that_is_not_wanted_is_told_why() {
    let (config, thread) = peer::raw(|peer| {
        peer.send(b"-ERR max number of clients reached\r\n");
        while peer.next_byte() {}
    });
    let error = Connection::connect(&config).unwrap_err();
    let said = error.server_error().map(ToString::to_string);
    assert_eq!(said.as_deref(), Some("ERR max number of clients reached"), "{error:?}");
    thread.join().unwrap();
}
