//! What a client does with frames of a server: the cases of `conformance/clients`, by one connection and by a channel
//! of many. Its README says how a case is run.

#![allow(clippy::unwrap_used)]

mod support;

use std::time::Instant;

use serde_json::Value;
use support::peer::{self, Peer, Sent, request};
use weft_client::{Config, Connection, Error, Mux, Reply};

/// Cases there are.
const CASES: usize = 33;

struct Case {
    id: String,
    capabilities: u32,
    wire: Vec<u8>,
    ends: bool,
}

fn cases() -> Vec<Case> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/clients/rules.json");
    let file: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let text = |case: &Value, name: &str| case[name].as_str().unwrap().to_string();
    let cases = file["cases"].as_array().unwrap().iter().map(|case| Case {
        id: text(case, "id"),
        capabilities: u32::try_from(case["capabilities"].as_u64().unwrap()).unwrap(),
        wire: bytes(&text(case, "wire")),
        ends: match &*text(case, "then") {
            "ends" => true,
            "goes on" => false,
            other => panic!("{other}"),
        },
    });
    let cases: Vec<Case> = cases.collect();
    assert_eq!(cases.len(), CASES);
    cases
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// The server's side: the case's bytes for the first PING, and whether the client ended the connection.
fn serve(peer: &mut Peer, case: &Case) {
    peer.expect(request(0, "PING"));
    peer.send(&case.wire);
    // It may ask again before it has seen what is wrong, and close its channel.
    loop {
        match peer.next() {
            Sent::End => return,
            Sent::Request(0, text) if text == "PING" => peer.reply(0, &Reply::Simple(b"PONG".to_vec())),
            Sent::Close(0, _) => {}
            other => panic!("{}: {other:?}", case.id),
        }
    }
}

/// Runs a case with a client's way to ask and to go.
fn run<C>(
    case: Case,
    open: impl FnOnce(&Config) -> C,
    mut ask: impl FnMut(&mut C) -> Result<Reply, Error>,
    ended: impl FnOnce(&C),
    close: impl FnOnce(C),
) {
    let (id, ends, capabilities) = (case.id.clone(), case.ends, case.capabilities);
    let (mut config, thread) = peer::respb(&[], move |peer| serve(peer, &case));
    config.capabilities = capabilities;
    let mut client = open(&config);
    let first = ask(&mut client);
    if ends {
        ended(&client);
    }
    let replies = [first, ask(&mut client)];
    let good = replies.iter().all(|reply| matches!(reply, Ok(Reply::Simple(text)) if text == b"PONG"));
    assert_eq!(!good, ends, "{id}: {replies:?}");
    close(client);
    thread.join().unwrap_or_else(|_| panic!("{id}: the server's side failed"));
}

#[test]
fn one_connection_holds_to_the_rules_for_clients() {
    for case in cases() {
        run(
            case,
            |config| Connection::connect(config).unwrap(),
            |connection| connection.command(&["PING"]),
            |_| {},
            drop,
        );
    }
}

#[test]
fn a_connection_with_channels_holds_to_the_rules_for_clients() {
    for case in cases() {
        run(
            case,
            |config| {
                let mux = Mux::connect(config).unwrap();
                let channel = mux.open(0).unwrap();
                (mux, channel)
            },
            |(_, channel)| channel.command(&["PING"]),
            // It is read by a thread, which may not have come to it.
            |(mux, _)| {
                let began = Instant::now();
                while mux.death().is_none() {
                    assert!(began.elapsed() < peer::LONG, "the connection goes on");
                    std::thread::yield_now();
                }
            },
            drop,
        );
    }
}
