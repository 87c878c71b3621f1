//! What goes by on one connection, a line for each frame, requests matched with their replies.
//!
//! Owns the state of the view: the protocol, the bytes of frames that are not whole, the unanswered requests of each
//! channel. Every buffer and queue has a bound; beyond it the view says that it lost the stream, and the bytes go on
//! without it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;
use weft_protocol::Limits;
use weft_protocol::respb::frame::{CLOSE, FRAGMENT, LONG_HEADER_LEN};

use super::super::picture::{Datum, Picture};
use super::super::request::bytes_text;
use super::super::{Seen, Way, is_respb, wrong_text};
use super::Shared;
use super::skim::Skim;
use super::tally::latency_text;

/// Bytes of a frame that the view holds, in each direction and for each channel's fragments.
const FRAME_BYTES_MAX: usize = 16 << 20;

/// Unanswered requests that the view remembers on a connection.
const PENDING_MAX: usize = 1 << 20;

/// Where bytes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    FromClient,
    FromServer,
}

/// The bytes of one direction that are not shown yet.
struct Stream {
    bytes: Vec<u8>,
    skim: Skim,
    lost: bool,
}

impl Stream {
    fn new() -> Stream {
        Stream { bytes: Vec::new(), skim: Skim::new(), lost: false }
    }
}

/// A request without its reply.
struct Pending {
    sequence: u32,
    since: Instant,
    name: String,
    /// Replies that it still gets: RESP's SUBSCRIBE has one for each name.
    replies: usize,
    /// Its success changes the protocol to RESPB.
    switches: bool,
}

/// One channel's requests.
#[derive(Default)]
struct Channel {
    next: u32,
    pending: VecDeque<Pending>,
    /// CLOSE went by from the client, from the server.
    closed: [bool; 2],
    fragments: Vec<u8>,
}

pub(super) struct View {
    shared: Arc<Shared>,
    id: u64,
    /// None until the client's first byte.
    binary: Option<bool>,
    streams: [Stream; 2],
    channels: HashMap<u16, Channel>,
    pending: usize,
}

impl View {
    pub(super) fn new(shared: Arc<Shared>, id: u64) -> View {
        View {
            shared,
            id,
            binary: None,
            streams: [Stream::new(), Stream::new()],
            channels: HashMap::new(),
            pending: 0,
        }
    }

    /// Shows the frames that these bytes complete.
    pub(super) fn bytes(&mut self, direction: Direction, bytes: &[u8]) {
        let index = direction as usize;
        self.shared.tally().bytes[index] += bytes.len() as u64;
        if self.streams[index].lost {
            return;
        }
        if self.binary.is_none() && direction == Direction::FromClient {
            match is_respb(bytes[0], false) {
                Some(binary) => self.binary = Some(binary),
                None => {
                    return self.lose(direction, &format!("{:02x} begins neither RESP nor RESPB", bytes[0]));
                }
            }
        }
        let mut held = std::mem::take(&mut self.streams[index].bytes);
        held.extend_from_slice(bytes);
        let used = self.frames(direction, &held);
        held.drain(..used);
        if held.len() > FRAME_BYTES_MAX {
            return self.lose(direction, &format!("a frame of more than {}", bytes_text(FRAME_BYTES_MAX)));
        }
        if !self.streams[index].lost {
            held.shrink_to(FRAME_BYTES_MAX / 16);
            self.streams[index].bytes = held;
        }
    }

    /// Shows whole frames; returns their bytes.
    fn frames(&mut self, direction: Direction, bytes: &[u8]) -> usize {
        let index = direction as usize;
        let mut used = 0;
        while used < bytes.len() {
            let rest = &bytes[used..];
            // Asked for each frame: the reply to HELLO changes it.
            let way = Way { binary: self.binary == Some(true), replies: direction == Direction::FromServer };
            if !self.streams[index].skim.is_ready(way, rest) {
                break;
            }
            let (picture, seen) = way.draw(rest, Limits::DEFAULT);
            match seen {
                Seen::Whole(len) => {
                    self.frame(direction, &picture, &rest[..len]);
                    used += len;
                }
                Seen::Cut { .. } => break,
                Seen::Wrong(error) => {
                    let text = format!(
                        "{} at byte {} of a frame: {}",
                        error.kind.name(),
                        error.offset,
                        wrong_text(rest, error, way)
                    );
                    self.lose(direction, &text);
                    return bytes.len();
                }
            }
        }
        used
    }

    fn lose(&mut self, direction: Direction, why: &str) {
        self.streams[direction as usize] = Stream { lost: true, ..Stream::new() };
        self.shared.tally().lost += 1;
        let from = if direction == Direction::FromClient { "the client" } else { "the server" };
        self.shared.note(
            self.id,
            "lost",
            &format!("the view lost what comes from {from}: {why}; the bytes go on"),
        );
    }

    fn frame(&mut self, direction: Direction, picture: &Picture, bytes: &[u8]) {
        let channel = picture.channel.unwrap_or(0);
        match (picture.role, direction) {
            ("control", _) => self.control(direction, picture, bytes),
            (_, Direction::FromClient) => self.request(channel, picture, bytes),
            (_, Direction::FromServer) => self.reply(channel, picture, bytes),
        }
    }

    fn request(&mut self, channel: u16, picture: &Picture, bytes: &[u8]) {
        let Some(command) =
            picture.command_line.as_ref().or(Some(&picture.name)).filter(|text| !text.is_empty())
        else {
            return;
        };
        let words: Vec<&str> = command.split(' ').collect();
        let upper = picture.name.to_ascii_uppercase();
        let binary = self.binary == Some(true);
        let subscribes = matches!(
            upper.as_str(),
            "SUBSCRIBE" | "PSUBSCRIBE" | "SSUBSCRIBE" | "UNSUBSCRIBE" | "PUNSUBSCRIBE" | "SUNSUBSCRIBE"
        );
        let names = picture.rows.iter().filter(|row| row.name.starts_with("argument")).count();
        let replies = if subscribes && !binary { names.max(1) } else { 1 };
        let pair =
            |pair: &[&str]| pair[0].eq_ignore_ascii_case("PROTO") && pair[1].eq_ignore_ascii_case("respb");
        let switches = !binary && upper == "HELLO" && words.windows(2).any(pair);
        let state = self.channels.entry(channel).or_default();
        let sequence = state.next;
        state.next = state.next.wrapping_add(1);
        let (since, name) = (Instant::now(), picture.name.clone());
        state.pending.push_back(Pending { sequence, since, name, replies, switches });
        self.pending += 1;
        self.shared.tally().requests += 1;
        self.line(Direction::FromClient, picture, Some(sequence), command, bytes.len(), None);
        if self.pending > PENDING_MAX {
            self.lose(Direction::FromServer, "too many requests without a reply");
            self.channels.clear();
            self.pending = 0;
        }
    }

    fn reply(&mut self, channel: u16, picture: &Picture, bytes: &[u8]) {
        if is_push(picture, bytes) && !confirms(picture, bytes) {
            self.shared.tally().pushes += 1;
            return self.line(
                Direction::FromServer,
                picture,
                None,
                &value_text(picture, bytes),
                bytes.len(),
                None,
            );
        }
        let text = value_text(picture, bytes);
        let error = picture.rows.iter().any(|row| row.depth == 0 && row.kind == "error");
        {
            let mut tally = self.shared.tally();
            tally.replies += 1;
            tally.errors += u64::from(error);
        }
        let state = self.channels.entry(channel).or_default();
        let Some(front) = state.pending.front_mut() else {
            return self.line(Direction::FromServer, picture, None, &text, bytes.len(), None);
        };
        front.replies -= 1;
        let (sequence, latency, switches) = (front.sequence, front.since.elapsed(), front.switches && !error);
        if front.replies == 0 {
            self.shared.tally().answered(&front.name, latency);
            state.pending.pop_front();
            self.pending -= 1;
        }
        self.line(Direction::FromServer, picture, Some(sequence), &text, bytes.len(), Some(latency));
        if switches {
            self.binary = Some(true);
            self.shared.note(self.id, "switch", "both sides speak RESPB from here on");
        }
    }

    fn control(&mut self, direction: Direction, picture: &Picture, bytes: &[u8]) {
        self.shared.tally().control_frames += 1;
        let channel = picture.channel.unwrap_or(0);
        let values =
            picture.rows.iter().skip(3).map(|row| format!("{} {}", row.name, row.value.text(bytes, 40)));
        let text = std::iter::once(picture.name.clone()).chain(values).collect::<Vec<_>>().join(" ");
        self.line(direction, picture, None, &text, bytes.len(), None);
        let opcode = bytes.first_chunk().map_or(0, |b| u16::from_be_bytes(*b));
        if opcode == CLOSE {
            let state = self.channels.entry(channel).or_default();
            // Unanswered requests are void. After CLOSE in both directions the channel is new.
            self.pending -= std::mem::take(&mut state.pending).len();
            state.closed[direction as usize] = true;
            if state.closed == [true, true] {
                self.channels.remove(&channel);
            }
        } else if opcode == FRAGMENT && bytes.len() > LONG_HEADER_LEN {
            let (flags, slice) = (bytes[LONG_HEADER_LEN], &bytes[LONG_HEADER_LEN + 1..]);
            let state = self.channels.entry(channel).or_default();
            state.fragments.extend_from_slice(slice);
            if state.fragments.len() > FRAME_BYTES_MAX {
                return self.lose(direction, "fragments of more than the view holds");
            }
            if flags & 1 == 1 {
                let whole = std::mem::take(&mut state.fragments);
                let (picture, seen) = Way { binary: true, replies: true }.draw(&whole, Limits::DEFAULT);
                match seen {
                    Seen::Whole(len) if len == whole.len() => self.reply(channel, &picture, &whole),
                    _ => self.lose(direction, "the fragments put together are not one frame"),
                }
            }
        }
    }

    fn line(
        &self,
        direction: Direction,
        picture: &Picture,
        sequence: Option<u32>,
        text: &str,
        len: usize,
        latency: Option<Duration>,
    ) {
        let from_client = direction == Direction::FromClient;
        if self.shared.json {
            return self.shared.print(
                &json!({
                    "time": now_text(),
                    "connection": self.id,
                    "from": if from_client { "client" } else { "server" },
                    "protocol": if self.binary == Some(true) { "respb" } else { "resp" },
                    "role": picture.role,
                    "channel": picture.channel.unwrap_or(0),
                    "sequence": sequence,
                    "text": text,
                    "bytes": len,
                    "latency_us": latency.map(|latency| latency.as_micros() as u64),
                })
                .to_string(),
            );
        }
        let paint = self.shared.paint;
        let sequence = sequence.map_or("-".into(), |sequence| sequence.to_string());
        let channel = picture.channel.map_or(String::new(), |channel| format!("ch {channel:<5} "));
        let arrow = if from_client { "->" } else { "<-" };
        let text = match (from_client, picture.role) {
            (true, _) => paint.bold(text),
            (false, "push") => paint.yellow(text),
            _ => paint.green(text),
        };
        let mut about = bytes_text(len);
        if let Some(latency) = latency {
            about = format!("{about}, {}", latency_text(latency));
        }
        let mark = match picture.role {
            "push" => "push ",
            "control" => "control ",
            _ => "",
        };
        self.shared.print(&format!(
            "{}  #{} {arrow} {channel}{:>5}  {mark}{text}  {}",
            paint.dim(&now_text()),
            self.id,
            sequence,
            paint.dim(&format!("({about})")),
        ));
    }

    /// The connection has ended; returns how many requests were not answered.
    pub(super) fn close(&mut self) -> usize {
        self.channels.clear();
        std::mem::take(&mut self.pending)
    }
}

/// The first element of an aggregate, if it is text.
fn kind<'a>(picture: &Picture, bytes: &'a [u8]) -> &'a [u8] {
    let first = picture.rows.iter().find(|row| row.depth == 1);
    match first.map(|row| &row.value) {
        Some(Datum::Bytes(span)) => bytes.get(span.clone()).unwrap_or_default(),
        _ => b"",
    }
}

/// A push, or what RESP2 sends in place of one.
fn is_push(picture: &Picture, bytes: &[u8]) -> bool {
    picture.role == "push"
        || picture.channel.is_none() && matches!(kind(picture, bytes), b"message" | b"pmessage" | b"smessage")
}

/// RESP3 answers SUBSCRIBE and its relatives with pushes.
fn confirms(picture: &Picture, bytes: &[u8]) -> bool {
    picture.channel.is_none() && kind(picture, bytes).ends_with(b"subscribe")
}

/// A reply in one line: its value, or what it is and its first elements.
fn value_text(picture: &Picture, bytes: &[u8]) -> String {
    let elements: Vec<String> = picture
        .rows
        .iter()
        .filter(|row| row.depth == 1)
        .take(8)
        .map(|row| match &row.value {
            Datum::None => row.kind.clone(),
            Datum::Int(_) if !row.meaning.is_empty() => format!("({})", row.meaning),
            value => value.text(bytes, 24),
        })
        .collect();
    if elements.is_empty() {
        return picture.name.clone();
    }
    let more =
        if picture.rows.iter().filter(|row| row.depth == 1).count() > elements.len() { " …" } else { "" };
    format!("{}: {}{more}", picture.name, elements.join(" "))
}

/// The time of day, in UTC.
pub(super) fn now_text() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs() % 86_400;
    format!("{:02}:{:02}:{:02}.{:06}", seconds / 3600, seconds / 60 % 60, seconds % 60, since.subsec_micros())
}
