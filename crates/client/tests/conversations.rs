//! How channels and connections end, as a client sees it: the conversations of `conformance/clients`, held by channels
//! of a shared connection, and those about channel 0 alone by one connection too. Its README says how they are held.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::HashMap;
use std::sync::mpsc;

use serde_json::Value;
use support::peer::{self, Peer, Sent, request};
use weft_client::{Channel, Config, Connection, Error, Mux, Reply};

/// Conversations there are.
const CONVERSATIONS: usize = 18;

struct Conversation {
    id: String,
    capabilities: u32,
    steps: Vec<Vec<String>>,
}

impl Conversation {
    fn is_about_channel_0_alone(&self) -> bool {
        let names =
            self.steps.iter().filter(|step| step[0].starts_with("asks") || step[0].starts_with("closes"));
        names.map(|step| &*step[1]).all(|name| name == "0")
    }
}

fn conversations() -> Vec<Conversation> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/clients/conversations.json");
    let file: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let step =
        |step: &Value| step.as_array().unwrap().iter().map(|word| word.as_str().unwrap().into()).collect();
    let all = file["conversations"].as_array().unwrap().iter().map(|conversation| Conversation {
        id: conversation["id"].as_str().unwrap().into(),
        capabilities: u32::try_from(conversation["capabilities"].as_u64().unwrap()).unwrap(),
        steps: conversation["steps"].as_array().unwrap().iter().map(step).collect(),
    });
    let all: Vec<Conversation> = all.collect();
    assert_eq!(all.len(), CONVERSATIONS);
    all
}

/// What the client's user can do.
trait Client {
    /// Asks without waiting.
    fn ask(&mut self, channel: &str) -> Result<(), Error>;
    /// The next answer on a channel.
    fn answer(&mut self, channel: &str) -> Result<Reply, Error>;
    /// Closes a channel. Nobody can wait for its answers any more.
    fn close(&mut self, channel: &str);
}

struct Shared {
    mux: Mux,
    channels: HashMap<String, Channel>,
}

impl Shared {
    fn channel(&mut self, name: &str) -> &mut Channel {
        let mux = &self.mux;
        let open = || if name == "0" { mux.open(0) } else { mux.channel() };
        self.channels.entry(name.into()).or_insert_with(|| open().unwrap())
    }
}

impl Client for Shared {
    fn ask(&mut self, channel: &str) -> Result<(), Error> {
        let channel = self.channel(channel);
        channel.send(&["PING"]).and_then(|_| channel.flush())
    }
    fn answer(&mut self, channel: &str) -> Result<Reply, Error> {
        self.channel(channel).receive()
    }
    fn close(&mut self, channel: &str) {
        self.channel(channel);
        self.channels.remove(channel);
    }
}

impl Client for Connection {
    fn ask(&mut self, _: &str) -> Result<(), Error> {
        self.send(&["PING"]).and_then(|_| self.flush())
    }
    fn answer(&mut self, _: &str) -> Result<Reply, Error> {
        self.receive()
    }
    fn close(&mut self, _: &str) {}
}

/// The bytes of a step, with the numbers that channels have.
fn bytes(hex: &str, numbers: &HashMap<String, u16>) -> Vec<u8> {
    let mut hex = hex.replace(' ', "");
    for (name, number) in numbers {
        hex = hex.replace(&format!("{{{name}}}"), &format!("{number:04x}"));
    }
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// Holds a conversation: the server's side and the client's user in turns.
fn hold(conversation: &Conversation, peer: &mut Peer, client: &mut impl Client) {
    let id = &conversation.id;
    let mut numbers = HashMap::from([("0".to_string(), 0)]);
    // Requests: their channel, and what sending them came to where it failed at once. Channels that were closed here.
    let (mut asked, mut closed) = (HashMap::new(), Vec::new());
    let mut ends = false;
    for step in &conversation.steps {
        match &step.iter().map(|word| &**word).collect::<Vec<_>>()[..] {
            ["asks", channel, name] => {
                client.ask(channel).unwrap();
                asked.insert(*name, (*channel, None));
                let Sent::Request(number, text) = peer.next() else { panic!("{id}: {step:?}") };
                assert_eq!(text, "PING", "{id}: {step:?}");
                assert_eq!(*numbers.entry(channel.to_string()).or_insert(number), number, "{id}: {step:?}");
            }
            ["asks in vain", channel, name] => {
                let failed = client.ask(channel).err();
                asked.insert(*name, (*channel, failed));
            }
            ["closes", channel] => {
                client.close(channel);
                closed.push(*channel);
                assert_eq!(peer.next(), Sent::Close(numbers[*channel], 0), "{id}: {step:?}");
            }
            ["closes unused", channel] => client.close(channel),
            ["gets close", channel] => {
                let sent = peer.next();
                assert!(
                    matches!(sent, Sent::Close(number, _) if number == numbers[*channel]),
                    "{id}: {sent:?}"
                );
            }
            ["server", hex] => peer.send(&bytes(hex, &numbers)),
            ["answered", name] => {
                let reply = client.answer(asked[name].0);
                assert!(
                    matches!(&reply, Ok(Reply::Simple(text)) if text == b"PONG"),
                    "{id}: {step:?}: {reply:?}"
                );
            }
            [what @ ("did not run" | "may have run"), name] => {
                let (channel, failed) = asked.remove(name).unwrap();
                if closed.contains(&channel) {
                    continue;
                }
                let error = failed.unwrap_or_else(|| client.answer(channel).expect_err(id));
                assert_eq!(error.did_not_run(), *what == "did not run", "{id}: {step:?}: {error:?}");
            }
            ["ends"] => {
                peer.end();
                ends = true;
            }
            ["resets"] => peer.reset(),
            _ => panic!("{id}: {step:?}"),
        }
    }
    if ends {
        assert_eq!(peer.next(), Sent::End, "{id}: it sends nothing more, and ends its direction");
    }
}

/// Connects a client to a peer and holds the conversation.
fn with<C: Client + Send + 'static>(conversation: Conversation, connect: impl FnOnce(&Config) -> C) {
    let (sender, receiver) = mpsc::channel::<C>();
    let capabilities = conversation.capabilities;
    let (mut config, thread) = peer::respb(&[], move |peer| {
        hold(&conversation, peer, &mut receiver.recv().unwrap());
    });
    config.capabilities = capabilities;
    sender.send(connect(&config)).unwrap();
    thread.join().unwrap();
}

#[test]
fn channels_hold_the_conversations() {
    for conversation in conversations() {
        with(conversation, |config| Shared { mux: Mux::connect(config).unwrap(), channels: HashMap::new() });
    }
}

#[test]
fn one_connection_holds_those_about_channel_0() {
    let mut held = 0;
    for conversation in conversations().into_iter().filter(Conversation::is_about_channel_0_alone) {
        with(conversation, |config| Connection::connect(config).unwrap());
        held += 1;
    }
    assert_eq!(held, 7);
}

#[test]
fn a_connection_that_goes_away_is_sent_nothing_more() {
    let (config, thread) = peer::respb(&[], |peer| {
        peer.serve(0, "PING", &Reply::Simple(b"PONG".to_vec()));
        peer.send(&bytes("ff040000000000020006", &HashMap::new()));
        peer.end();
        assert_eq!(peer.next(), Sent::End);
    });
    let mut connection = Connection::connect(&config).unwrap();
    connection.command(&["PING"]).unwrap();
    // Until it has seen GOAWAY.
    while connection.is_open() {
        std::thread::yield_now();
    }
    let error = connection.command(&["PING"]).unwrap_err();
    assert!(error.did_not_run() || matches!(error, Error::Finished), "{error:?}");
    drop(connection);
    thread.join().unwrap();
}

#[test]
fn numbers_of_channels_that_were_never_used_are_free_again() {
    let (sender, receiver) = mpsc::channel();
    let (config, thread) = peer::respb(&[("channels", 3)], move |peer| {
        let mux: Mux = receiver.recv().unwrap();
        for _ in 0..5 {
            let (one, two) = (mux.channel().unwrap(), mux.channel().unwrap());
            assert_eq!((one.id(), two.id()), (1, 2));
        }
        let mut channel = mux.channel().unwrap();
        channel.send(&["PING"]).unwrap();
        channel.flush().unwrap();
        peer.expect(request(1, "PING"));
    });
    sender.send(Mux::connect(&config).unwrap()).unwrap();
    thread.join().unwrap();
}
