//! Owns: a worker without sockets for programs whose instructions are counted: its clients, decoding what they sent as
//! one batch, running it. Does not own: what they send.

use std::sync::Arc;

use weft_engine::mailbox::{Address, Message};
use weft_engine::reply::{Output, OutputPlace, Protocol, Wire};
use weft_engine::requests::Origin;
use weft_engine::session::{ConnectionInfo, Session};
use weft_engine::{Engine, Executor, Host, Lent, Postponed, Requests, Setup};
use weft_protocol::request::Texts;
use weft_protocol::{Limits, Outcome, resp, respb};
use weft_store::{Config, KeyHasher, Keyspace, SystemClock};

/// One client.
struct Client {
    session: Session,
    output: Output,
    bytes: Vec<u8>,
}

/// All clients; a connection's number is its place.
struct Clients(Vec<Client>);

impl Host for Clients {
    fn lend(&mut self, connection: u32, _: u16) -> Option<Lent<'_>> {
        let client = &mut self.0[connection as usize];
        Some(Lent {
            session: &mut client.session,
            output: &mut client.output,
            bytes: &client.bytes,
            buffer: None,
            shared_bytes: usize::MAX,
        })
    }
    fn outgrew(&mut self, _: u32, _: u16, _: OutputPlace) {}
    fn postpone(&mut self, _: u32, _: u16, request: Postponed) {
        panic!("nothing is to wait: {request:?}")
    }
    fn follow_up(&mut self, _: u32, _: u16) {}
}

/// A worker with its clients.
pub(crate) struct Worker {
    executor: Executor<'static>,
    clients: Clients,
    requests: Requests,
    mail: Vec<Message>,
    worker: u16,
    protocol: Protocol,
}

impl Worker {
    /// One of the workers of an engine, with so many clients.
    pub(crate) fn of(engine: &'static Engine, worker: u16, protocol: Protocol, clients: u32) -> Self {
        let client = |connection| {
            let address = Address { worker, channel: 0, connection };
            let info = Arc::new(ConnectionInfo::default());
            let session = engine.connect(address, Wire { protocol, channel: 0 }, info, None);
            Client { session, output: Output::default(), bytes: Vec::new() }
        };
        Self {
            executor: Executor::new(engine, worker, 7).expect("the keyspace has places"),
            clients: Clients((0..clients).map(client).collect()),
            requests: Requests::default(),
            mail: Vec::new(),
            worker,
            protocol,
        }
    }

    /// Decodes what clients have sent, the first client's first, and runs it as one batch; gives the length of the
    /// replies, which [`Worker::replies`] has until the next batch.
    pub(crate) fn run(&mut self, sent: &[Vec<u8>]) -> usize {
        for ((connection, client), sent) in (0..).zip(&mut self.clients.0).zip(sent) {
            client.output.clear();
            client.bytes.clear();
            client.bytes.extend_from_slice(sent);
            let origin = Origin { connection, channel: 0, db: 0 };
            decode(&mut self.requests, &self.executor.engine().keyspace, self.protocol, origin, sent);
        }
        self.executor.run(&self.requests, &mut self.clients);
        self.requests.clear();
        self.clients.0[..sent.len()].iter().map(|client| client.output.len()).sum()
    }

    /// Takes what clients are to be told, which nobody reads.
    #[allow(dead_code, reason = "only one of the programs has clients that listen")]
    pub(crate) fn take_mail(&mut self) {
        self.executor.engine().mailbox(self.worker).take_into(&mut self.mail);
        self.mail.clear();
    }

    /// What a client was answered.
    #[allow(dead_code, reason = "only one of the programs looks at it")]
    pub(crate) fn replies(&self, client: usize) -> Vec<u8> {
        self.clients.0[client].output.to_vec()
    }
}

/// An engine that is driven by as many threads as it has workers.
pub(crate) fn engine(workers: u16) -> &'static Engine {
    // The same key for every run, so that runs count the same.
    let hasher = KeyHasher::with_seed(7);
    let keyspace = Keyspace::new(Config { shards: 256, hasher, ..Config::default() });
    let setup = Setup { keyspace, clock: Box::new(SystemClock), workers };
    Box::leak(Box::new(Engine::new(setup)))
}

/// Decodes one client's requests.
fn decode(requests: &mut Requests, keyspace: &Keyspace, protocol: Protocol, origin: Origin, sent: &[u8]) {
    let mut at = 0;
    if protocol == Protocol::Respb {
        let mut decoder = respb::RequestDecoder::new(Limits::DEFAULT);
        loop {
            at = requests.repeat_respb(keyspace, origin, (sent, at), &decoder);
            let Outcome::Complete(frame) = decoder.decode(&sent[at..], requests.visitor()) else { break };
            requests.end_respb(keyspace, origin, frame.frame, (sent, at));
            at += frame.len;
        }
    } else {
        let mut decoder = resp::RequestDecoder::new(Limits::DEFAULT);
        loop {
            at = requests.repeat_resp(keyspace, origin, (sent, at));
            let Outcome::Complete(frame) = decoder.decode(&sent[at..], requests.visitor()) else { break };
            requests.end_resp(keyspace, origin, (sent, at));
            at += frame.len;
        }
    }
    assert_eq!(at, sent.len(), "every request is whole");
}

/// The bytes of a request.
pub(crate) fn encode(words: &[Vec<u8>], protocol: Protocol, bytes: &mut Vec<u8>) {
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    if protocol == Protocol::Respb {
        respb::encode::RequestWriter::new(bytes, 0).command(&words, respb::encode::Mode::Exact);
    } else {
        resp::encode::request(None, &Texts(&words), bytes);
    }
}
