//! Owns: the answers that a connection owes, in the order of their requests, and the frame of HTTP around what commands
//! reply. Does not own: what a request asks for (`super::routes`), heads (`super::answer`), sending.
//!
//! A command writes its reply to the end of the connection's output; what it has written since the output was lent is
//! looked at before it is lent again, and before anything is sent. When an answer is whole its head goes before it.

use std::borrow::Cow;
use std::collections::VecDeque;

use weft_engine::error::{Error, ErrorCode};
use weft_engine::push::Push;
use weft_engine::reply::{Output, OutputPlace};
use weft_engine::resource::ResourceState;

use super::answer::{self, About, Answer, BYTES, EVENTS, Extent, JSON, Pen};
use super::entries::Entries;
use super::{events, fixed, gzip, resources};

/// Replies of a pipeline that are sent before all of them are there, as chunks.
const STREAM_BYTES: usize = 16 << 10;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// One answer that is owed.
pub(crate) struct Owed {
    pub(crate) kind: Kind,
    pub(crate) about: About,
}

/// What an answer consists of.
pub(crate) enum Kind {
    /// The reply of one command.
    One,
    /// The replies of so many commands, in a list.
    Many { total: u32, begun: bool, zipped: Option<Box<gzip::Stream>> },
    /// The last of so many replies: those of MULTI and of what it queues are dropped, unless MULTI is refused.
    Last { left: u32, begun: bool },
    /// Events without end.
    Events(events::Opening),
    /// Entries of the stream that is read.
    Entries,
    /// It is there already.
    Ready(Box<Answer>),
    /// `100 Continue`, before the answer proper.
    Continue,
}

/// The answers of a connection.
#[derive(Default)]
pub(crate) struct Ledger {
    owed: VecDeque<Owed>,
    /// Where in the output the piece of the first answer begins that has not been looked at.
    begin: Option<OutputPlace>,
    /// Replies of the list that is being written.
    replied: u32,
    /// How long the output was when the last of them in RESP2 was counted: it is looked at more often than they come.
    counted: usize,
    /// Events flow; in chunks, or as they are.
    flows: Option<Extent>,
    /// How messages are written on it.
    form: events::Form,
    /// The stream whose entries they are.
    entries: Option<Box<Entries>>,
    /// They have begun to, and nobody has asked since.
    begun: bool,
    /// An answer has been written behind which nothing follows.
    over: bool,
}

impl Ledger {
    pub(crate) fn owe(&mut self, kind: Kind, about: About) {
        self.owed.push_back(Owed { kind, about });
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.owed.is_empty()
    }
    /// Whether the connection is to end when its output has been sent.
    pub(crate) const fn is_over(&self) -> bool {
        self.over
    }
    /// Whether it sends events from now on.
    pub(crate) const fn flows(&self) -> bool {
        self.flows.is_some()
    }
    /// Whether they have begun to since this was asked last.
    pub(crate) const fn has_begun_to_flow(&mut self) -> bool {
        std::mem::replace(&mut self.begun, false)
    }
    /// Whether the first answer can be written without any command.
    pub(crate) fn has_ready(&self) -> bool {
        matches!(self.owed.front(), Some(Owed { kind: Kind::Ready(_) | Kind::Continue, .. }))
    }

    /// A command is about to reply. Says how many bytes it and its neighbours may write before this is to be called
    /// again.
    pub(crate) fn lend(&mut self, output: &mut Output, pen: &mut Pen) -> usize {
        self.settle(output, pen, false);
        if self.begin.is_none() {
            self.begin = Some(output.end());
            self.counted = output.len();
        }
        match self.owed.front() {
            Some(Owed { kind: Kind::Many { .. }, about }) => {
                output.go_on_behind(self.replied);
                if about.resp2 { 0 } else { usize::MAX }
            }
            _ => {
                output.go_on_behind(0);
                0
            }
        }
    }

    /// Looks at what commands have replied, and writes the answers that are whole. `flush`: the output is about to be
    /// sent, and must not end within an answer whose length is not known.
    pub(crate) fn settle(&mut self, output: &mut Output, pen: &mut Pen, flush: bool) {
        while !self.over
            && let Some(Owed { kind, about }) = self.owed.front_mut()
        {
            match kind {
                Kind::Ready(answer) => write_ready(output, pen, answer, about),
                Kind::Continue => output.bytes.extend_from_slice(CONTINUE),
                _ => {
                    let Some(begin) = self.begin else { return };
                    if output.len() == begin.len && !output.has_resource_state() || !output.is_whole() {
                        self.begin = None;
                        return;
                    }
                    let error = output.take_error();
                    match kind {
                        Kind::Many { total, begun, zipped } => {
                            let is_new = output.len() > self.counted;
                            self.counted = output.len();
                            self.replied =
                                if about.resp2 { self.replied + u32::from(is_new) } else { output.answers() };
                            let piece = Piece { total: *total, is_last: self.replied == *total };
                            if !piece.is_last && !flush && output.len() - begin.len < STREAM_BYTES {
                                return;
                            }
                            about.keeps_alive &= piece.is_last && !*begun || !about.is_old;
                            write_piece(output, pen, (begin, about), (begun, zipped), piece);
                            self.begin = None;
                            if !piece.is_last {
                                return;
                            }
                        }
                        Kind::Last { left, begun } if *left > 1 && (*begun || error.is_none()) => {
                            *left -= 1;
                            *begun = true;
                            output.take_back(begin);
                            self.begin = None;
                            return;
                        }
                        Kind::Events(opening) if error.is_none() => {
                            output.take_back(begin);
                            let extent = open_stream(output, pen, about);
                            opening.write(output, extent);
                            self.form = opening.form();
                            self.flows = Some(extent);
                            self.begun = true;
                            self.begin = None;
                            self.owed.clear();
                            return;
                        }
                        Kind::Entries => {
                            let reply = output.bytes.split_off(begin.bytes);
                            output.take_back(begin);
                            self.begin = None;
                            self.begun |= self.flows.is_none() && error.is_none();
                            self.over = self.read_entries(&reply, error, (output, pen));
                            self.owed.clear();
                            return;
                        }
                        Kind::Events(_) => {
                            // What is behind a stream is passed over, also where the stream was refused.
                            about.keeps_alive = false;
                            let answer = refused(output, begin, error);
                            write_ready(output, pen, &answer, about);
                        }
                        _ => match output.take_resource_state() {
                            Some(told) => write_resource(output, pen, begin, (&told, error, about)),
                            None => write_one(
                                output,
                                pen,
                                begin,
                                (error.map_or(200, ErrorCode::http_status), about),
                            ),
                        },
                    }
                }
            }
            self.begin = None;
            self.replied = 0;
            self.over = !about.keeps_alive && !matches!(kind, Kind::Continue);
            self.owed.pop_front();
        }
        // What was written is no answer, such as an event: nothing begins there, and it may be sent before one does.
        self.begin = None;
    }

    /// Tells of what was read of a stream; says whether that was the last, since it cannot be read.
    fn read_entries(
        &mut self,
        reply: &[u8],
        error: Option<ErrorCode>,
        (output, pen): (&mut Output, &mut Pen),
    ) -> bool {
        let Some(entries) = &mut self.entries else { return true };
        match (error, self.flows) {
            (Some(error), None) => {
                let about = About { keeps_alive: false, ..entries.about.clone() };
                let extent = Extent::Bytes(reply.len());
                output.bytes.append(end_head(pen.head(error.http_status(), JSON, extent, &about)));
                output.bytes.extend_from_slice(reply);
            }
            (Some(_), Some(extent)) => {
                events::write_error(reply, output, extent);
            }
            (None, flows) => {
                let extent = flows.unwrap_or_else(|| open_stream(output, pen, &entries.about));
                self.flows = Some(extent);
                events::write_text(&entries.events(reply), output, extent);
            }
        }
        error.is_some()
    }
    /// The stream that is read, where nothing of it is on its way.
    pub(crate) fn entries(&mut self) -> Option<&mut Entries> {
        self.entries.as_deref_mut().filter(|_| self.owed.is_empty())
    }
    /// What flows from now on are the entries of a stream.
    pub(super) fn read_stream(&mut self, entries: Entries) {
        self.entries = Some(Box::new(entries));
    }

    /// What waits until something is safe waits in vain: the first answer of it becomes this error, with which the
    /// connection ends. Says whether that can be said: not within an answer that has begun.
    pub(crate) fn lose_withheld(&mut self, output: &mut Output, pen: &mut Pen, error: &Error) -> bool {
        let Some(from) = output.first_withheld() else { return true };
        if self.flows() || !output.bytes[from.bytes..].starts_with(b"HTTP/1.1 ") {
            return false;
        }
        output.take_back(from);
        let about = About { keeps_alive: false, ..About::default() };
        write_ready(output, pen, &Answer::error(error.code.http_status(), &error.line()), &about);
        self.owed.clear();
        self.begin = None;
        self.over = true;
        true
    }

    /// Something that the client has asked to be told of.
    pub(crate) fn event(&mut self, push: &Push, output: &mut Output) {
        if let Some(extent) = self.flows {
            events::write_push(push, self.form, output, extent);
        }
    }
    /// The same, written already.
    pub(crate) fn events(&mut self, text: &[u8], output: &mut Output) {
        if let Some(extent) = self.flows
            && !text.is_empty()
        {
            events::write_text(text, output, extent);
        }
    }
    /// Says why the stream of events ends.
    pub(crate) fn end_stream(&mut self, error: &[u8], output: &mut Output) {
        if let Some(extent) = self.flows {
            events::write_error(error, output, extent);
            self.over = true;
        }
    }
    /// Says that the stream of events is still there.
    pub(crate) fn heartbeat(&mut self, output: &mut Output) {
        if let Some(extent) = self.flows {
            events::write_heartbeat(output, extent);
        }
    }
}

/// The replies of a list that have come since its last piece was written.
#[derive(Clone, Copy)]
struct Piece {
    total: u32,
    is_last: bool,
}

/// A head with the empty line behind it.
pub(super) fn end_head(head: &mut Vec<u8>) -> &mut Vec<u8> {
    head.extend_from_slice(b"\r\n");
    head
}

/// Writes the head of a stream of events.
fn open_stream(output: &mut Output, pen: &mut Pen, about: &About) -> Extent {
    let extent = if about.is_old { Extent::Connection } else { Extent::Chunks };
    output.bytes.append(end_head(pen.head(200, EVENTS, extent, about)));
    extent
}

/// The command of a stream was refused, in the protocol that streams are asked for in.
fn refused(output: &mut Output, begin: OutputPlace, error: Option<ErrorCode>) -> Box<Answer> {
    let line = output.bytes.get(begin.bytes..).unwrap_or_default().trim_ascii_end();
    let text = String::from_utf8_lossy(line.strip_prefix(b"-").unwrap_or(line)).into_owned();
    output.take_back(begin);
    Answer::error(error.map_or(500, ErrorCode::http_status), &text)
}

fn write_ready(output: &mut Output, pen: &mut Pen, answer: &Answer, about: &About) {
    if let Cow::Borrowed(body) = answer.body
        && body.len() >= fixed::BYTES_MIN
    {
        return write_page(output, pen, (answer, body), about);
    }
    let zipped = gzip::whole(&answer.body, about, pen);
    let body = zipped.as_deref().unwrap_or(&answer.body);
    let head = pen.head(answer.status, answer.content_type, Extent::Bytes(body.len()), about);
    head.extend_from_slice(answer.headers.as_bytes());
    if zipped.is_some() {
        head.extend_from_slice(answer::GZIPPED);
    }
    output.bytes.append(end_head(head));
    if !about.head_only {
        output.bytes.extend_from_slice(body);
    }
}

/// A page is sent from where it lies.
fn write_page(output: &mut Output, pen: &mut Pen, (answer, body): (&Answer, &'static [u8]), about: &About) {
    let (page, is_zipped) = fixed::page(body, about.gzip);
    let extent = Extent::Bytes(page.as_slice().len());
    let head = pen.head(answer.status, answer.content_type, extent, about);
    head.extend_from_slice(answer.headers.as_bytes());
    if is_zipped {
        head.extend_from_slice(answer::GZIPPED);
    }
    output.bytes.append(end_head(head));
    if !about.head_only {
        output.pin(page);
    }
}

/// The head of an answer goes before its body, which is all of the output from `begin` on.
fn write_one(output: &mut Output, pen: &mut Pen, begin: OutputPlace, (status, about): (u16, &About)) {
    let mut is_zipped = false;
    if about.gzip
        && output.pins.len() == begin.pins
        && let Some(zipped) = gzip::whole(&output.bytes[begin.bytes..], about, pen)
    {
        output.bytes.truncate(begin.bytes);
        output.bytes.extend_from_slice(&zipped);
        is_zipped = true;
    }
    let content_type = if about.resp2 { BYTES } else { JSON };
    let extent = Extent::Bytes(output.len() - begin.len);
    if about.head_only {
        output.take_back(begin);
    }
    let head = pen.head(status, content_type, extent, about);
    if status == 401 {
        head.extend_from_slice(super::access::CHALLENGE.as_bytes());
    }
    if is_zipped {
        head.extend_from_slice(answer::GZIPPED);
    }
    output.insert_at(begin, end_head(head));
}

/// The head of the answer about a resource goes before its body. It is not compressed: its tag is that of its bytes.
fn write_resource(
    output: &mut Output,
    pen: &mut Pen,
    begin: OutputPlace,
    (told, error, about): (&ResourceState, Option<ErrorCode>, &About),
) {
    let extent = Extent::Bytes(output.len() - begin.len);
    if about.head_only {
        output.take_back(begin);
    }
    let content_type = if error.is_none() { resources::content_type(told) } else { JSON };
    let head = pen.head(resources::status(told), content_type, extent, about);
    resources::push_headers(told, head);
    output.insert_at(begin, end_head(head));
}

/// Writes what of a list has come: all of it with its length, or a part as a chunk, since the length is not known.
fn write_piece(
    output: &mut Output,
    pen: &mut Pen,
    (begin, about): (OutputPlace, &About),
    (begun, zipped): (&mut bool, &mut Option<Box<gzip::Stream>>),
    Piece { total, is_last }: Piece,
) {
    let opener = if about.resp2 { format!("*{total}\r\n") } else { "[".to_owned() };
    let mut is_zipped = false;
    let mut opener = if *begun { "" } else { &opener };
    if is_last && !about.resp2 {
        output.bytes.push(b']');
    }
    // Replies in JSON have no large values beside the bytes.
    if about.gzip && !about.resp2 {
        let body = [opener.as_bytes(), &output.bytes[begin.bytes..]].concat();
        if !*begun && !is_last {
            *zipped = Some(Box::default());
        }
        let compressed = match zipped {
            Some(stream) => Some(stream.piece(&body, is_last, pen)),
            None => gzip::whole(&body, about, pen),
        };
        if let Some(compressed) = compressed {
            output.bytes.truncate(begin.bytes);
            output.bytes.extend_from_slice(&compressed);
            (opener, is_zipped) = ("", true);
        }
    }
    let len = output.len() - begin.len + opener.len();
    let content_type = if about.resp2 { BYTES } else { JSON };
    let extent = match (*begun || !is_last, about.is_old) {
        (false, _) => Extent::Bytes(len),
        (true, false) => Extent::Chunks,
        (true, true) => Extent::Connection,
    };
    let mut before = Vec::new();
    if !*begun {
        let head = pen.head(200, content_type, extent, about);
        if is_zipped {
            head.extend_from_slice(answer::GZIPPED);
        }
        before.append(end_head(head));
    }
    if extent == Extent::Chunks {
        before.extend_from_slice(format!("{len:x}\r\n").as_bytes());
        output.bytes.extend_from_slice(if is_last { b"\r\n0\r\n\r\n" } else { b"\r\n" });
    }
    before.extend_from_slice(opener.as_bytes());
    output.insert_at(begin, &before);
    *begun = true;
}
