//! The conformance vectors against this crate: each whole, one byte at a time, cut at every byte, with other bytes
//! behind it, and encoded again.
//!
//! Owns how the bytes are fed. A failure names the vector; all of them run before the test fails.

#![allow(clippy::unwrap_used, reason = "a vector file that cannot be read fails the test")]

#[allow(dead_code, reason = "each test uses a part of it")]
mod support;

use std::collections::{BTreeMap, HashSet};

use support::subject::{self, Step, Subject};
use support::{Expected, Protocol, Vector, show};
use weft_protocol::request::Decoded;
use weft_protocol::resp::Version;
use weft_protocol::respb::{Control, Mode, Payload, RequestDecoder, RequestWriter};
use weft_protocol::{Aggregate, Arg, ArgList, Limits, Outcome, Reply, ReplyVisitor, Text, resp, respb};

/// Longest frame that is cut at every byte; longer ones are cut here and there, and at every byte near both ends.
const EVERY_BYTE_MAX: usize = 4096;

/// Cuts of a longer frame between its ends.
const CUTS: usize = 48;

#[test]
fn every_vector() {
    let vectors = support::load();
    let mut ids = HashSet::new();
    let mut runner = Runner::default();
    for vector in &vectors {
        assert!(ids.insert(vector.id.as_str()), "{} is there twice", vector.id);
        if let Err(failure) = runner.run(vector) {
            runner.failures.push(format!("{}: {failure}\n    wire {}", vector.id, show(&vector.wire)));
        }
    }
    for (folder, count) in &runner.counts {
        println!("{count:>6} {folder}");
    }
    println!("{:>6} vectors, {} calls of a decoder", vectors.len(), runner.calls);
    assert!(vectors.len() >= 1200, "{} vectors: some files are missing", vectors.len());
    let shown: Vec<&str> = runner.failures.iter().take(40).map(String::as_str).collect();
    assert!(shown.is_empty(), "{} vectors fail:\n{}", runner.failures.len(), shown.join("\n"));
}

#[derive(Default)]
struct Runner {
    /// Decoders with the default limits, used for one vector after the other.
    subjects: BTreeMap<(bool, bool), Subject>,
    counts: BTreeMap<String, usize>,
    failures: Vec<String>,
    calls: usize,
}

impl Runner {
    fn run(&mut self, vector: &Vector) -> Result<(), String> {
        let kind = if matches!(vector.expected, Expected::Valid { .. }) { "valid" } else { "invalid" };
        *self.counts.entry(format!("{:?}/{kind}", vector.protocol).to_lowercase()).or_default() += 1;
        let fresh = || Subject::new(vector.protocol, vector.request, vector.limits);
        match &vector.expected {
            Expected::Invalid { error, offset } => self.invalid(vector, error, *offset, &fresh),
            Expected::Valid { value, encode_only: true, .. } => {
                let reply = subject::reply_of(&value["reply"]);
                same("encoded", &written(vector, |writer| reply.visit(writer)), &vector.wire)
            }
            Expected::Valid { value, .. } => {
                let key = (vector.protocol == Protocol::Respb, vector.request);
                let kept = self.subjects.remove(&key).filter(|_| vector.default_limits);
                let mut subject = kept.unwrap_or_else(fresh);
                let outcome =
                    self.valid(vector, value, &mut subject).and_then(|()| reencode(vector, &mut subject));
                // A decoder that failed is not used again: its state is void.
                if outcome.is_ok() && vector.default_limits {
                    self.subjects.insert(key, subject);
                }
                outcome
            }
        }
    }

    fn valid(
        &mut self,
        vector: &Vector,
        value: &serde_json::Value,
        subject: &mut Subject,
    ) -> Result<(), String> {
        let wire = &vector.wire;
        let total = wire.len();
        // Whole, and compared with the value; every other way must hand out the same.
        subject.clear();
        match subject.feed(wire) {
            Step::Complete(len) if len == total => {}
            other => return Err(format!("whole: {other:?} instead of {total} bytes")),
        }
        let seen = &subject.fingerprint(wire);
        subject.compare(wire, value).map_err(|error| format!("whole: {error}"))?;
        let finish = |subject: &mut Subject, input: &[u8], how: &str| {
            let step = subject.feed(input);
            if step != Step::Complete(total) {
                return Err(format!("{how}: {step:?} instead of {total} bytes"));
            }
            match subject.fingerprint(wire) == *seen {
                true => Ok(()),
                false => Err(format!("{how}: not the values that it has whole")),
            }
        };
        for behind in [0x00u8, 0xFF, b'\n', b'*'] {
            let input = [wire.as_slice(), &[behind; 16]].concat();
            subject.clear();
            finish(subject, &input, &format!("with {behind:#04x} behind it"))?;
        }
        let cuts = cuts(total);
        self.calls += 6 + 3 * cuts.len();
        subject.clear();
        for &cut in &cuts {
            incomplete(subject.feed(&wire[..cut]), cut, total)
                .map_err(|error| format!("piece by piece: {error}"))?;
        }
        finish(subject, wire, "piece by piece")?;
        subject.clear();
        let mut there = 0;
        loop {
            match subject.feed(&wire[..there]) {
                Step::Incomplete(need) if need > there && need <= total => there = need,
                Step::Complete(len) if len == total && there == total => break,
                other => return Err(format!("by what it needs, {there} bytes: {other:?}")),
            }
        }
        if subject.fingerprint(wire) != *seen {
            return Err("by what it needs: not the values that it has whole".into());
        }
        for &cut in &cuts {
            subject.clear();
            incomplete(subject.feed(&wire[..cut]), cut, total).map_err(|error| format!("cut: {error}"))?;
            finish(subject, wire, &format!("cut at {cut}"))?;
        }
        Ok(())
    }

    fn invalid(
        &mut self,
        vector: &Vector,
        error: &str,
        offset: usize,
        fresh: &dyn Fn() -> Subject,
    ) -> Result<(), String> {
        let wire = &vector.wire;
        let wrong = |step: &Step| matches!(step, Step::Invalid(name, at) if *name == error && *at == offset);
        let whole = fresh().feed(wire);
        if !wrong(&whole) {
            return Err(format!("whole: {whole:?} instead of {error} at {offset}"));
        }
        let behind = fresh().feed(&[wire.as_slice(), &[0xFF; 16]].concat());
        if !wrong(&behind) {
            return Err(format!("with bytes behind it: {behind:?} instead of {error} at {offset}"));
        }
        let cuts = cuts(wire.len());
        self.calls += 2 + 2 * cuts.len();
        let mut subject = fresh();
        let mut found = None;
        for &cut in cuts.iter().chain([&wire.len()]) {
            match subject.feed(&wire[..cut]) {
                Step::Incomplete(need) if need > cut && cut < wire.len() => {}
                step if wrong(&step) => {
                    found = Some(cut);
                    break;
                }
                step => {
                    return Err(format!(
                        "piece by piece, {cut} bytes: {step:?} instead of {error} at {offset}"
                    ));
                }
            }
        }
        let found = found.ok_or("piece by piece: nothing found")?;
        for &cut in cuts.iter().take_while(|&&cut| cut < found) {
            let mut subject = fresh();
            if !matches!(subject.feed(&wire[..cut]), Step::Incomplete(need) if need > cut) {
                return Err(format!("cut at {cut}: not incomplete"));
            }
            let step = subject.feed(wire);
            if !wrong(&step) {
                return Err(format!("cut at {cut}: {step:?} instead of {error} at {offset}"));
            }
        }
        Ok(())
    }
}

fn incomplete(step: Step, cut: usize, total: usize) -> Result<(), String> {
    match step {
        Step::Incomplete(need) if need > cut && need <= total => Ok(()),
        other => Err(format!("{cut} of {total} bytes: {other:?}")),
    }
}

/// Where a frame is cut: at every byte, or near the ends and now and then between them.
fn cuts(total: usize) -> Vec<usize> {
    if total <= EVERY_BYTE_MAX {
        return (0..total).collect();
    }
    let between = (1..CUTS).map(|i| 64 + (total - 128) / CUTS * i);
    (0..64).chain(between).chain(total - 64..total).collect()
}

/// Encodes what `subject` has just decoded, and compares with the canonical wire.
fn reencode(vector: &Vector, subject: &mut Subject) -> Result<(), String> {
    let Expected::Valid { value, argv, canonical, canonical_wire, folded, .. } = &vector.expected else {
        return Ok(());
    };
    let wire = if *canonical { Some(&vector.wire) } else { canonical_wire.as_ref() };
    subject.clear();
    subject.feed(&vector.wire);
    if !vector.request {
        let reply = subject.compare(&vector.wire, value)?;
        return match (reply, wire) {
            (Some(reply), Some(wire)) => replies(vector, &reply, wire),
            (None, Some(wire)) => controls(vector, wire),
            _ => Ok(()),
        };
    }
    if vector.protocol != Protocol::Respb {
        return resp_request(vector, subject.args(), wire);
    }
    match (argv, wire) {
        (Some(argv), Some(wire)) if *folded => folded_request(vector, subject, argv, wire),
        (Some(argv), Some(wire)) => respb_request(vector, subject, argv, wire),
        (None, Some(wire)) => controls(vector, wire),
        _ => Ok(()),
    }
}

fn same(how: &str, got: &[u8], wanted: &[u8]) -> Result<(), String> {
    if got == wanted {
        return Ok(());
    }
    Err(format!("{how}: {}\n    instead of {}", show(got), show(wanted)))
}

/// A request that came in RESP: back to RESP, and through RESPB to RESP.
fn resp_request(vector: &Vector, list: &ArgList, wire: Option<&Vec<u8>>) -> Result<(), String> {
    let Some(wire) = wire.filter(|_| !list.is_empty()) else { return Ok(()) };
    let mut out = Vec::new();
    resp::encode::request(None, &Decoded { list, frame: &vector.wire }, &mut out);
    same("encoded", &out, wire)?;
    let mut binary = Vec::new();
    RequestWriter::new(&mut binary, 9).arguments(&Decoded { list, frame: &vector.wire }, Mode::Exact);
    same("through RESPB", &to_resp(&binary)?, wire)
}

/// The argument form of a RESPB request, in RESP.
fn to_resp(binary: &[u8]) -> Result<Vec<u8>, String> {
    let mut list = ArgList::new();
    let outcome = respb::RequestDecoder::new(Limits::DEFAULT).decode(binary, &mut list);
    let Outcome::Complete(frame) = outcome else { return Err(format!("RESPB of it: {outcome:?}")) };
    let name = frame.frame.command().map(|id| id.spec().name.as_bytes());
    let mut out = Vec::new();
    resp::encode::request(name, &Decoded { list: &list, frame: binary }, &mut out);
    Ok(out)
}

/// A request that came in RESPB: to its argument form, and from there, and from its typed arguments, back.
fn respb_request(vector: &Vector, subject: &Subject, argv: &[u8], wire: &[u8]) -> Result<(), String> {
    let channel = u16::from_be_bytes([vector.wire[2], vector.wire[3]]);
    let name = subject.command();
    plain(vector, subject)?;
    let decoded = Decoded { list: subject.args(), frame: &vector.wire };
    let mut out = Vec::new();
    resp::encode::request(name.map(str::as_bytes), &decoded, &mut out);
    same("argument form", &out, argv)?;
    let mut list = ArgList::new();
    let outcome = resp::RequestDecoder::new(Limits::DEFAULT).decode(argv, &mut list);
    if !matches!(outcome, Outcome::Complete(frame) if frame.len == argv.len()) {
        return Err(format!("argument form decoded: {outcome:?}"));
    }
    let mut out = Vec::new();
    RequestWriter::new(&mut out, channel).arguments(&Decoded { list: &list, frame: argv }, Mode::Exact);
    same("from the argument form", &out, wire)?;
    same("and back", &to_resp(&out)?, argv)?;
    let Some(name) = name else { return Ok(()) };
    let typed: Vec<Arg<'_>> =
        std::iter::once(Arg::Bytes(name.as_bytes())).chain(subject.args().iter(&vector.wire)).collect();
    let mut out = Vec::new();
    RequestWriter::new(&mut out, channel).arguments(typed.as_slice(), Mode::Exact);
    same("from its typed arguments", &out, wire)?;
    folded(&typed, channel, wire)
}

/// What is seen of a frame that is one of the plainest is what decoding it gives, and no part of it is seen as one.
fn plain(vector: &Vector, subject: &Subject) -> Result<(), String> {
    let wire = &vector.wire;
    let decoder = RequestDecoder::new(Limits::DEFAULT);
    let behind = [wire.as_slice(), &[0; 2]].concat();
    let Some(plain) = decoder.plain(&behind) else { return Ok(()) };
    let pieces = match plain.payload {
        Payload::Empty => vec![],
        Payload::Key(key) => vec![key],
        Payload::Pair(key, value) => vec![key, value],
    };
    let texts: Vec<&[u8]> =
        pieces.iter().map(|piece| &wire[piece.offset as usize..][..piece.len as usize]).collect();
    let args: Vec<Arg<'_>> = subject.args().iter(wire).collect();
    if plain.len != wire.len()
        || wire[..4] != [plain.opcode.to_be_bytes(), plain.channel.to_be_bytes()].concat()
        || args != texts.iter().map(|text| Arg::Bytes(text)).collect::<Vec<_>>()
    {
        return Err(format!("plain: {plain:?}"));
    }
    match (0..wire.len()).find(|&cut| decoder.plain(&wire[..cut]).is_some()) {
        Some(cut) => Err(format!("plain: cut at {cut}")),
        None => Ok(()),
    }
}

/// Arguments that a client's encoder gives `wire` for and a converter's keeps as they are: `argv`.
fn folded_request(vector: &Vector, subject: &Subject, argv: &[u8], wire: &[u8]) -> Result<(), String> {
    let channel = u16::from_be_bytes([vector.wire[2], vector.wire[3]]);
    let mut list = ArgList::new();
    let outcome = resp::RequestDecoder::new(Limits::DEFAULT).decode(argv, &mut list);
    if !matches!(outcome, Outcome::Complete(frame) if frame.len == argv.len()) {
        return Err(format!("argv decoded: {outcome:?}"));
    }
    let given = Decoded { list: &list, frame: argv };
    let mut out = Vec::new();
    let is_typed = RequestWriter::new(&mut out, channel).arguments(&given, Mode::Fold);
    same("folded", &out, wire)?;
    let mut out = Vec::new();
    RequestWriter::new(&mut out, channel).arguments(&given, Mode::Exact);
    let mut exact = Vec::new();
    RequestWriter::new(&mut exact, channel).argv(&given);
    same("in exact mode", &out, &exact)?;
    let Some(name) = subject.command() else {
        return if is_typed { Err("a typed frame without a command".into()) } else { Ok(()) };
    };
    // The frame has an argument form of its own, which gives it in either mode.
    let typed: Vec<Arg<'_>> =
        std::iter::once(Arg::Bytes(name.as_bytes())).chain(subject.args().iter(&vector.wire)).collect();
    for mode in [Mode::Exact, Mode::Fold] {
        let mut out = Vec::new();
        RequestWriter::new(&mut out, channel).arguments(typed.as_slice(), mode);
        same("from its typed arguments", &out, wire)?;
    }
    Ok(())
}

/// The same in lower case: a client's encoder folds the case of names and keywords, a converter's keeps it.
fn folded(typed: &[Arg<'_>], channel: u16, wire: &[u8]) -> Result<(), String> {
    let mut texts: Vec<Vec<u8>> = Vec::new();
    for (index, arg) in typed.iter().enumerate() {
        let mut text = Vec::new();
        arg.push_text(&mut text);
        if index == 0 || matches!(arg, Arg::Keyword(_)) {
            text.make_ascii_lowercase();
        }
        texts.push(text);
    }
    let mut out = Vec::new();
    let is_typed = RequestWriter::new(&mut out, channel).command(&texts, Mode::Fold);
    if is_typed {
        same("folded", &out, wire)?;
    } else if !wire.starts_with(&[0xF0, 0x01]) {
        return Err("folded: no typed frame".into());
    }
    let mut exact = Vec::new();
    if RequestWriter::new(&mut exact, channel).command(&texts, Mode::Exact) {
        return Err("a name in lower case went into a typed frame, which cannot say it".into());
    }
    Ok(())
}

/// A frame without arguments, through the control frames' own encoder.
fn controls(vector: &Vector, wire: &[u8]) -> Result<(), String> {
    let channel = u16::from_be_bytes([vector.wire[2], vector.wire[3]]);
    let mut out = Vec::new();
    if vector.request {
        let mut list = ArgList::new();
        if let Outcome::Complete(respb::RequestFrame { frame: respb::Frame::Control(control), .. }) =
            respb::RequestDecoder::new(vector.limits).decode(&vector.wire, &mut list)
        {
            control.encode(channel, &mut out);
        }
    } else if let Outcome::Complete(frame) =
        respb::ReplyDecoder::new(vector.limits).decode(&vector.wire, &mut subject::Tree::default())
        && let respb::reply::ReplyKind::Control(control) = frame.kind
    {
        let control: Control<'_> = control;
        control.encode(channel, &mut out);
    }
    same("encoded", &out, wire)
}

/// A reply: from its tree, straight from its decoder, and through RESP3.
fn replies(vector: &Vector, reply: &Reply, wire: &[u8]) -> Result<(), String> {
    same("encoded from the tree", &written(vector, |writer| reply.visit(writer)), wire)?;
    let piped = written(vector, |writer| match vector.protocol {
        Protocol::Respb => {
            let _ = respb::ReplyDecoder::new(vector.limits).decode(&vector.wire, writer);
        }
        _ => {
            let _ = resp::ReplyDecoder::new(vector.limits).decode(&vector.wire, writer);
        }
    });
    same("encoded by the decoder", &piped, wire)?;
    if vector.protocol != Protocol::Respb {
        return Ok(());
    }
    let mut lines = Vec::new();
    reply.visit(&mut resp::ReplyWriter::new(&mut lines, Version::Resp3));
    let mut out = Vec::new();
    let channel = u16::from_be_bytes([vector.wire[2], vector.wire[3]]);
    // A line of RESP3 has a limit that RESPB's lengths do not need.
    let limits = Limits { inline_bytes_max: 1 << 20, ..Limits::DEFAULT };
    let outcome =
        resp::ReplyDecoder::new(limits).decode(&lines, &mut respb::ReplyWriter::new(&mut out, channel));
    if !matches!(outcome, Outcome::Complete(frame) if frame.len == lines.len()) {
        return Err(format!("through RESP3: {outcome:?}"));
    }
    same("through RESP3", &out, wire)
}

/// What the vector's own writer makes of the calls.
fn written(vector: &Vector, visit: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    visit(&mut match vector.protocol {
        Protocol::Respb => {
            let channel = u16::from_be_bytes([vector.wire[2], vector.wire[3]]);
            Writer::Respb(respb::ReplyWriter::new(&mut out, channel))
        }
        Protocol::Resp2 => Writer::Resp(resp::ReplyWriter::new(&mut out, Version::Resp2)),
        Protocol::Resp3 => Writer::Resp(resp::ReplyWriter::new(&mut out, Version::Resp3)),
    });
    out
}

/// The writer of a protocol.
enum Writer<'a> {
    Resp(resp::ReplyWriter<'a>),
    Respb(respb::ReplyWriter<'a>),
}

macro_rules! forward {
    ($($name:ident($($arg:ident: $kind:ty),*);)*) => {
        impl ReplyVisitor for Writer<'_> {
            $(fn $name(&mut self, $($arg: $kind),*) {
                match self {
                    Writer::Resp(writer) => writer.$name($($arg),*),
                    Writer::Respb(writer) => writer.$name($($arg),*),
                }
            })*
        }
    };
}

forward! {
    text(kind: Text, offset: usize, bytes: &[u8]);
    int(value: i64);
    double(value: f64);
    boolean(value: bool);
    null(array: bool);
    open(kind: Aggregate, len: Option<u32>);
    close();
    open_text();
}
