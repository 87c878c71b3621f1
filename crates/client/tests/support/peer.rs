//! Owns a server that does what a test's script says, in RESPB after the usual HELLO. Does not own any command.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::thread::JoinHandle;

use weft_client::{Config, Protocol, Reply, Timeouts};
use weft_protocol::request::{ArgList, Decoded};
use weft_protocol::respb::{Control, Frame, ReplyWriter, RequestDecoder};
use weft_protocol::table::{TABLE_HASH, TABLE_NAME, TABLE_VERSION};
use weft_protocol::{Limits, Outcome, resp};

pub use super::LONG;

/// One accepted connection.
pub struct Peer {
    pub socket: TcpStream,
    input: Vec<u8>,
}

/// What a client sent.
#[derive(Debug, PartialEq)]
pub enum Sent {
    Request(u16, String),
    Close(u16, u16),
    Cancel(u16, u32),
    Window(u16, u32),
    End,
}

pub fn request(channel: u16, text: &str) -> Sent {
    Sent::Request(channel, text.to_string())
}

/// What SET answers.
pub fn ok() -> Reply {
    Reply::Simple(b"OK".to_vec())
}

/// Runs the client's side, then looks at how the peer fared.
pub fn with(
    limits: &'static [(&'static str, i64)],
    script: impl FnOnce(&mut Peer) + Send + 'static,
    client: impl FnOnce(Config),
) {
    let (config, thread) = respb(limits, script);
    client(config);
    thread.join().unwrap();
}

/// Runs the script for the first connection, after HELLO with these limits.
pub fn respb(
    limits: &'static [(&'static str, i64)],
    script: impl FnOnce(&mut Peer) + Send + 'static,
) -> (Config, JoinHandle<()>) {
    raw(move |peer| {
        let hello = peer.resp_request();
        assert!(hello.starts_with("HELLO 3 PROTO respb"), "{hello}");
        peer.send_resp(&hello_reply(limits));
        script(peer);
    })
}

/// Runs the script for the first connection.
pub fn raw(script: impl FnOnce(&mut Peer) + Send + 'static) -> (Config, JoinHandle<()>) {
    several(vec![Box::new(script)])
}

/// What the peer does with one connection.
pub type Script = Box<dyn FnOnce(&mut Peer) + Send>;

/// Runs one script for each connection, one after the other.
pub fn several(scripts: Vec<Script>) -> (Config, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        for script in scripts {
            let (socket, _) = listener.accept().unwrap();
            socket.set_read_timeout(Some(LONG)).unwrap();
            socket.set_nodelay(true).unwrap();
            script(&mut Peer { socket, input: Vec::new() });
        }
    });
    let config = Config::new("127.0.0.1", port)
        .with_protocol(Protocol::Respb)
        .with_timeouts(Timeouts::all(Some(LONG)));
    (config, thread)
}

pub fn bulk(text: impl AsRef<[u8]>) -> Reply {
    Reply::Bulk(text.as_ref().to_vec())
}

pub fn hello_reply(limits: &[(&str, i64)]) -> Reply {
    let limits = limits.iter().map(|(name, value)| (bulk(name), Reply::Int(*value))).collect();
    let table = vec![
        (bulk("name"), bulk(TABLE_NAME)),
        (bulk("version"), Reply::Int(TABLE_VERSION.into())),
        (bulk("hash"), bulk(TABLE_HASH)),
    ];
    Reply::Map(vec![
        (bulk("server"), bulk("peer")),
        (bulk("version"), bulk("1.2.3")),
        (bulk("proto"), Reply::Int(3)),
        (bulk("id"), Reply::Int(42)),
        (bulk("mode"), bulk("standalone")),
        (bulk("role"), bulk("master")),
        (bulk("modules"), Reply::Array(Vec::new())),
        (
            bulk("respb"),
            Reply::Map(vec![
                (bulk("version"), Reply::Int(1)),
                (bulk("profiles"), Reply::Array(["channels", "typed", "flow", "cancel"].map(bulk).to_vec())),
                (bulk("table"), Reply::Map(table)),
                (bulk("capabilities"), Reply::Int(1)),
                (bulk("limits"), Reply::Map(limits)),
            ]),
        ),
    ])
}

/// A reply's frame.
pub fn frame(channel: u16, reply: &Reply) -> Vec<u8> {
    let mut out = Vec::new();
    reply.visit(&mut ReplyWriter::new(&mut out, channel));
    out
}

/// A control frame.
pub fn control(channel: u16, control: Control<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    control.encode(channel, &mut out);
    out
}

fn text(arguments: Decoded<'_>, name: Option<&str>) -> String {
    let mut words: Vec<String> = name.map(str::to_string).into_iter().collect();
    for arg in arguments.list.iter(arguments.frame) {
        let mut word = Vec::new();
        arg.push_text(&mut word);
        words.push(String::from_utf8_lossy(&word).into_owned());
    }
    words.join(" ")
}

impl Peer {
    fn more(&mut self) -> bool {
        let mut bytes = [0; 4096];
        let len = self.socket.read(&mut bytes).unwrap_or(0);
        self.input.extend_from_slice(&bytes[..len]);
        len > 0
    }

    /// The next RESP request, its words with blanks between them.
    pub fn resp_request(&mut self) -> String {
        let (mut decoder, mut args) = (resp::RequestDecoder::new(Limits::DEFAULT), ArgList::new());
        loop {
            match decoder.decode(&self.input, &mut args) {
                Outcome::Complete(frame) => {
                    let text = text(Decoded { list: &args, frame: &self.input }, None);
                    self.input.drain(..frame.len);
                    return text;
                }
                Outcome::Incomplete { .. } => assert!(self.more(), "the client ended the connection"),
                Outcome::Invalid(error) => panic!("{error}"),
            }
        }
    }

    pub fn send_resp(&mut self, reply: &Reply) {
        let mut out = Vec::new();
        reply.visit(&mut resp::ReplyWriter::new(&mut out, resp::Version::Resp3));
        self.send(&out);
    }

    /// The next frame of the client.
    pub fn next(&mut self) -> Sent {
        let (mut decoder, mut args) = (RequestDecoder::new(Limits::DEFAULT), ArgList::new());
        loop {
            if self.input.is_empty() && !self.more() {
                return Sent::End;
            }
            match decoder.decode(&self.input, &mut args) {
                Outcome::Complete(request) => {
                    let (channel, len) = (request.channel, request.len);
                    let sent = match request.frame {
                        Frame::Control(Control::Close { code, .. }) => Sent::Close(channel, code),
                        Frame::Control(Control::Cancel { sequence }) => Sent::Cancel(channel, sequence),
                        Frame::Control(Control::Window { more }) => Sent::Window(channel, more),
                        Frame::Control(other) => panic!("{other:?}"),
                        frame => {
                            let name = frame.command().map(|id| id.spec().name);
                            Sent::Request(channel, text(Decoded { list: &args, frame: &self.input }, name))
                        }
                    };
                    self.input.drain(..len);
                    return sent;
                }
                Outcome::Incomplete { .. } => {
                    if !self.more() {
                        return Sent::End;
                    }
                }
                Outcome::Invalid(error) => panic!("{error}"),
            }
        }
    }

    pub fn expect(&mut self, sent: Sent) {
        assert_eq!(self.next(), sent);
    }

    /// Sends bytes; a client that is gone does not mind.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.socket.write_all(bytes);
    }

    /// Ends this side's direction.
    pub fn end(&mut self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Write);
    }

    /// Waits for more from the client; false at its end.
    pub fn next_byte(&mut self) -> bool {
        self.more()
    }

    /// Ends the connection by a reset.
    pub fn reset(&mut self) {
        rustix::net::sockopt::set_socket_linger(&self.socket, Some(std::time::Duration::ZERO)).unwrap();
        let nothing = std::fs::File::open("/dev/null").unwrap();
        drop(std::mem::replace(&mut self.socket, TcpStream::from(OwnedFd::from(nothing))));
    }

    pub fn reply(&mut self, channel: u16, reply: &Reply) {
        self.send(&frame(channel, reply));
    }

    /// Answers one request.
    pub fn serve(&mut self, channel: u16, text: &str, reply: &Reply) {
        self.expect(request(channel, text));
        self.reply(channel, reply);
    }
}
