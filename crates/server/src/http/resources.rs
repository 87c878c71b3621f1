//! Owns: keys as resources, `/v1/db/N/…`: which command a request is and what it asks beside it, and what its answer's
//! head says. Does not own: how that is asked under the command's locks (`weft_engine::resource`), heads
//! (`super::answer`).
//!
//! | path | methods | commands |
//! |---|---|---|
//! | `/v1/db/N/keys/KEY`, `/v1/db/N/keys?key64=KEY` | GET, HEAD; PUT; PATCH; DELETE | GET; SET; APPEND, SETRANGE; DEL |
//! | `/v1/db/N/keys` | GET, HEAD | SCAN |
//! | `/v1/db/N/streams/KEY` | GET | XREAD, again and again (`super::entries`) |
//! | `/v1/db/N/mget`, `/v1/db/N/mset` | POST | MGET; MSET, MSETEX |
//! | `/metrics` | GET, HEAD | INFO |
//!
//! All that is behind `/keys/` is the key, `/` too.

use weft_engine::args::{Slot, Slots};
use weft_engine::base64;
use weft_engine::metrics::Form;
use weft_engine::resource::{Asked, ByteRange, Does, ResourceOutcome, ResourceState, TAGS_MAX, Tag, Tags};
use weft_protocol::request::ArgVisitor;

use super::answer::{Answer, BYTES, JSON};
use super::head::{Head, Method, Span};
use super::json;
use super::routes;
use super::target;
use super::{Bench, Content, Whole};

/// Keys of one page of a list, about: what SCAN looks at, and what it looks at unless asked.
const PAGE_KEYS_MAX: u64 = 1000;
const PAGE_KEYS: &[u8] = b"100";

/// Large values are no pages and run no scripts, whatever they look like.
const VALUE_POLICY: &str = "Content-Security-Policy: sandbox; default-src 'none'\r\n";

const KEY_METHODS: &str = "GET, HEAD, PUT, PATCH, DELETE";

/// A request for keys.
pub(crate) struct Asks<'r> {
    pub(crate) head: &'r Head,
    pub(crate) request: &'r [u8],
    /// How many databases there are.
    pub(crate) databases: usize,
}

impl<'r> Asks<'r> {
    pub(super) fn of(whole: &'r Whole, request: &'r [u8], bench: &Bench<'_>) -> Self {
        Self { head: &whole.head, request, databases: bench.engine.keyspace.database_count() }
    }
}

pub(super) type Composed = Result<Option<Asked>, Box<Answer>>;

/// The database that a path names, if it does.
pub(crate) fn database(path: &[u8]) -> Option<u8> {
    split(path).and_then(|(number, _)| std::str::from_utf8(number).ok()?.parse().ok())
}

/// Whether a path is that of a stream's entries.
pub(super) fn is_entries(path: &[u8]) -> bool {
    split(path).is_some_and(|(_, rest)| rest == b"streams" || rest.starts_with(b"streams/"))
}

/// The number and what is behind it, of `/v1/db/N/…`.
fn split(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = path.strip_prefix(b"/v1/db/")?;
    let slash = rest.iter().position(|&byte| byte == b'/')?;
    let (number, rest) = (&rest[..slash], &rest[slash + 1..]);
    let is_number = (1..=3).contains(&number.len()) && number.iter().all(u8::is_ascii_digit);
    is_number.then_some((number, rest))
}

pub(super) fn wrong(text: impl AsRef<str>) -> Box<Answer> {
    Answer::error(400, &format!("ERR {}", text.as_ref()))
}

impl Asks<'_> {
    /// Writes the arguments of the command. Gives what is asked beside it.
    pub(super) fn compose(&self, body: Content, slots: &mut Slots) -> Composed {
        let path = self.head.path.of(self.request);
        if path == b"/metrics" {
            return self.metrics(slots);
        }
        if !path.starts_with(b"/v1/db/") {
            return self.stored(body, slots);
        }
        let rest = self.rest()?;
        if let Some(key) = rest.strip_prefix(b"keys/") {
            return self.key(KeyText::Path(key), body, slots);
        }
        match rest {
            b"keys" => match self.parameter(b"key64")? {
                Some(key) => {
                    let key = base64::decode(&key).ok_or_else(|| wrong("key64 is no base64"))?;
                    self.key(KeyText::Bytes(&key), body, slots)
                }
                None => self.list(slots),
            },
            b"mget" | b"mset" if self.head.method != Method::Post => Err(routes::other_methods("POST")),
            b"mget" => self.get_all(&body, slots),
            b"mset" => self.set_all(&body, slots),
            _ => Err(routes::missing()),
        }
    }

    /// What is behind the number of the database, which is one of those that there are.
    pub(super) fn rest(&self) -> Result<&[u8], Box<Answer>> {
        let path = self.head.path.of(self.request);
        let (_, rest) = split(path).ok_or_else(routes::missing)?;
        let db = database(path).map(usize::from).filter(|&db| db < self.databases);
        if db.is_none() {
            let text = format!("ERR the databases are 0 to {}", self.databases - 1);
            return Err(Answer::error(404, &text));
        }
        Ok(rest)
    }

    fn key(&self, key: KeyText<'_>, body: Content, slots: &mut Slots) -> Composed {
        let method = self.head.method;
        let is_put = method == Method::Put;
        let known: &[&[u8]] = if is_put { &[b"ttl", b"ttl_ms", b"nx", b"xx", b"key64"] } else { &[b"key64"] };
        // A path that names a key names all of it.
        let by_path = usize::from(matches!(key, KeyText::Path(_)));
        self.only(&known[..known.len() - by_path])?;
        if self.head.content_range.is_some() && method != Method::Patch {
            return Err(wrong("Content-Range is for PATCH, which writes a part"));
        }
        let word = |slots: &mut Slots, word: &[u8]| slots.aside(|side| side.extend_from_slice(word));
        // First of all, so that nothing is copied.
        let value =
            matches!(method, Method::Put | Method::Patch).then(|| body.into_slot(self.request, slots));
        let named = |slots: &mut Slots, name: &[u8]| {
            word(slots, name);
            key.push(self.request, slots)
        };
        let does = match (method, value) {
            (Method::Get | Method::Head, _) => {
                named(slots, b"GET")?;
                Does::Read
            }
            (Method::Delete, _) => {
                named(slots, b"DEL")?;
                Does::Remove
            }
            (Method::Put, Some((value, _))) => {
                named(slots, b"SET")?;
                slots.list.push(value);
                self.push_time(slots)?;
                Does::Write
            }
            (Method::Patch, Some((value, len))) => {
                match self.head.content_range.map(|range| place(range.of(self.request), len)) {
                    Some(place) => {
                        let place = place?;
                        named(slots, b"SETRANGE")?;
                        word(slots, place.to_string().as_bytes());
                    }
                    None => named(slots, b"APPEND")?,
                }
                slots.list.push(value);
                Does::Write
            }
            _ => return Err(routes::other_methods(KEY_METHODS)),
        };
        self.conditions(does).map(Some)
    }

    /// `ttl` in seconds, or `keep`; `ttl_ms` in milliseconds.
    fn push_time(&self, slots: &mut Slots) -> Result<(), Box<Answer>> {
        let mut push = |word: &[u8]| slots.aside(|side| side.extend_from_slice(word));
        match (self.parameter(b"ttl")?, self.parameter(b"ttl_ms")?) {
            (Some(_), Some(_)) => return Err(wrong("ttl and ttl_ms exclude each other")),
            (Some(keep), None) if keep == b"keep" => push(b"KEEPTTL"),
            (Some(seconds), None) => [b"EX", &seconds[..]].into_iter().for_each(push),
            (None, Some(ms)) => [b"PX", &ms[..]].into_iter().for_each(push),
            (None, None) => {}
        }
        Ok(())
    }

    pub(super) fn conditions(&self, does: Does) -> Result<Asked, Box<Answer>> {
        let Head { method, if_match, if_none_match, range, if_range, .. } = *self.head;
        let text = |span: Option<Span>| span.map(|span| span.of(self.request));
        let (nx, xx) = self.flags()?;
        let flag = |is_set: bool| is_set.then_some(Tags::Any);
        let either = |header: Option<Tags>, flag: Option<Tags>| match (header, flag) {
            (Some(_), Some(_)) => Err(wrong("a condition may be said once: by the header or by nx or xx")),
            (header, flag) => Ok(header.or(flag)),
        };
        let header = |span, is_weak| text(span).map(|text| tags(text, is_weak)).transpose();
        Ok(Asked {
            does,
            stored: None,
            matching: either(header(if_match, false)?, flag(xx))?,
            none_matching: either(header(if_none_match, true)?, flag(nx))?,
            range: text(range).filter(|_| method == Method::Get).and_then(byte_range),
            // A date is no tag, and holds for nothing.
            range_of: text(if_range).map(|text| tags(text, false).unwrap_or(Tags::These(Box::default()))),
        })
    }

    /// `nx` and `xx`, of which one may be said.
    fn flags(&self) -> Result<(bool, bool), Box<Answer>> {
        let flag = |name: &[u8]| match self.parameter(name)?.as_deref() {
            None => Ok(false),
            Some(b"" | b"1" | b"true") => Ok(true),
            Some(_) => Err(wrong("nx and xx have no value: ?nx, or leave it out")),
        };
        match (flag(b"nx")?, flag(b"xx")?) {
            (true, true) => Err(wrong("nx and xx exclude each other")),
            flags => Ok(flags),
        }
    }

    /// Whoever may call INFO may have the metrics.
    fn metrics(&self, slots: &mut Slots) -> Composed {
        self.only(&[])?;
        slots.aside(|side| side.extend_from_slice(b"INFO"));
        let form = if self.head.openmetrics { Form::OpenMetrics } else { Form::Prometheus };
        Ok(Some(Asked::plainly(Does::Metrics(form))))
    }

    fn list(&self, slots: &mut Slots) -> Composed {
        if !matches!(self.head.method, Method::Get | Method::Head) {
            return Err(routes::other_methods("GET, HEAD; with ?key64= also PUT, PATCH, DELETE"));
        }
        self.only(&[b"match", b"cursor", b"limit", b"type"])?;
        let mut word = |word: &[u8]| slots.aside(|side| side.extend_from_slice(word));
        word(b"SCAN");
        word(self.parameter(b"cursor")?.as_deref().unwrap_or(b"0"));
        let limit = self.parameter(b"limit")?;
        let number = limit.as_deref().map(|limit| std::str::from_utf8(limit).ok()?.parse().ok());
        if number.is_some_and(|number| !number.is_some_and(|number| (1..=PAGE_KEYS_MAX).contains(&number))) {
            return Err(wrong(format!("limit is a number from 1 to {PAGE_KEYS_MAX}")));
        }
        word(b"COUNT");
        word(limit.as_deref().unwrap_or(PAGE_KEYS));
        for (name, option) in [(&b"match"[..], &b"MATCH"[..]), (b"type", b"TYPE")] {
            if let Some(value) = self.parameter(name)? {
                word(option);
                word(&value);
            }
        }
        Ok(Some(Asked::plainly(Does::List)))
    }

    fn get_all(&self, body: &Content, slots: &mut Slots) -> Composed {
        self.only(&[])?;
        let mut push = |word: &[u8]| slots.aside(|side| side.extend_from_slice(word));
        push(b"MGET");
        let read = json::texts(body.place(self.request).body, false, |key| push(&key));
        read.map_err(|why| Answer::error(400, &why))?;
        Ok(None)
    }

    /// With a condition or a time, MSETEX.
    fn set_all(&self, body: &Content, slots: &mut Slots) -> Composed {
        self.only(&[b"ttl", b"ttl_ms", b"nx", b"xx"])?;
        let mut texts = Vec::new();
        let read = json::texts(body.place(self.request).body, true, |text| texts.push(text));
        read.map_err(|why| Answer::error(400, &why))?;
        let mut options = Slots::default();
        self.push_time(&mut options)?;
        let (nx, xx) = self.flags()?;
        let conditions: Vec<&[u8]> = [(nx, &b"NX"[..]), (xx, b"XX")]
            .into_iter()
            .filter_map(|(is_set, option)| is_set.then_some(option))
            .collect();
        let is_plain = options.list.is_empty() && conditions.is_empty();
        let mut push = |word: &[u8]| slots.aside(|side| side.extend_from_slice(word));
        push(if is_plain { b"MSET" } else { b"MSETEX" });
        if !is_plain {
            push((texts.len() / 2).to_string().as_bytes());
        }
        texts.iter().for_each(|text| push(text));
        conditions.into_iter().for_each(&mut push);
        for slot in &options.list {
            if let Slot::Side { offset, len } = *slot {
                push(&options.side[offset as usize..][..len as usize]);
            }
        }
        Ok(Some(Asked::plainly(Does::WriteAll)))
    }

    /// A parameter of the query, its escapes undone.
    pub(super) fn parameter(&self, wanted: &[u8]) -> Result<Option<Vec<u8>>, Box<Answer>> {
        let mut values = self.parameters(wanted)?.into_iter();
        let first = values.next().map(Vec::from);
        if values.next().is_some() {
            return Err(wrong(format!("{} stands there twice", String::from_utf8_lossy(wanted))));
        }
        Ok(first)
    }
    /// All values of a parameter that may stand there often.
    pub(super) fn parameters(&self, wanted: &[u8]) -> Result<Vec<Box<[u8]>>, Box<Answer>> {
        let query = self.head.query.map(|query| query.of(self.request)).unwrap_or_default();
        let values = target::parameters(query).filter(|&(name, _)| name == wanted).map(|(_, value)| {
            let mut decoded = Vec::new();
            target::decode(value.unwrap_or_default(), true, &mut decoded)
                .map_err(|why| Answer::error(400, &why))?;
            Ok(decoded.into_boxed_slice())
        });
        values.collect()
    }

    /// Refuses parameters that a request does not have: one that is passed over would be believed to hold.
    pub(super) fn only(&self, known: &[&[u8]]) -> Result<(), Box<Answer>> {
        let Some(query) = self.head.query else { return Ok(()) };
        let mut names = target::parameters(query.of(self.request)).map(|(name, _)| name);
        match names.find(|name| *name != target::TOKEN && !known.contains(name)) {
            Some(name) => {
                let name = String::from_utf8_lossy(&name[..name.len().min(64)]).into_owned();
                let known: Vec<_> = known.iter().map(|name| String::from_utf8_lossy(name)).collect();
                Err(wrong(format!("there is no parameter '{name}' here, but these: {}", known.join(", "))))
            }
            None => Ok(()),
        }
    }
}

/// A key as a request names it.
#[derive(Clone, Copy)]
enum KeyText<'k> {
    /// In the path, escapes and all.
    Path(&'k [u8]),
    /// As it is.
    Bytes(&'k [u8]),
}

impl KeyText<'_> {
    fn push(self, request: &[u8], slots: &mut Slots) -> Result<(), Box<Answer>> {
        match self {
            Self::Path(text) => {
                target::push(request, text, false, slots).map_err(|why| Answer::error(400, &why))
            }
            Self::Bytes(key) => {
                slots.aside(|side| side.extend_from_slice(key));
                Ok(())
            }
        }
    }
}

impl Content {
    /// The body as an argument that is still to be put among the others, and its length.
    pub(super) fn into_slot(self, request: &[u8], slots: &mut Slots) -> (Slot, usize) {
        match self {
            Self::Frame(span) => {
                slots.bytes(span.from as usize, span.of(request));
                (slots.list.pop().unwrap_or(Slot::Keyword("")), span.len as usize)
            }
            Self::Aside(bytes) => {
                let len = bytes.len();
                (slots.adopt(bytes), len)
            }
        }
    }
}

/// The tags that a condition names. Of a weak one the bytes may differ: it is as good as none where they must not.
fn tags(text: &[u8], is_weak: bool) -> Result<Tags, Box<Answer>> {
    if text.trim_ascii() == b"*" {
        return Ok(Tags::Any);
    }
    let mut all = Vec::new();
    let mut count = 0;
    for part in text.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
        let (weak, tag) = part.strip_prefix(b"W/").map_or((false, part), |tag| (true, tag));
        let tag = tag.strip_prefix(b"\"").and_then(|tag| tag.strip_suffix(b"\""));
        let Some(tag) = tag.filter(|tag| !tag.contains(&b'"')) else {
            return Err(wrong("a condition is *, or tags in quotes with commas between them"));
        };
        count += 1;
        if count > TAGS_MAX {
            return Err(wrong(format!("a condition names at most {TAGS_MAX} tags")));
        }
        if is_weak || !weak {
            all.extend(Tag::of_text(tag));
        }
    }
    Ok(Tags::These(all.into()))
}

fn number(text: &[u8]) -> Option<u64> {
    let is_number = (1..=18).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    if is_number { std::str::from_utf8(text).ok()?.parse().ok() } else { None }
}

/// `bytes=1-2`, `bytes=1-`, `bytes=-2`. What is another unit, several ranges or none is passed over: the whole value
/// is the answer, as the RFC has it.
fn byte_range(text: &[u8]) -> Option<ByteRange> {
    let text = text.strip_prefix(b"bytes=")?.trim_ascii();
    let dash = text.iter().position(|&byte| byte == b'-')?;
    match (&text[..dash], &text[dash + 1..]) {
        (b"", count) => number(count).map(ByteRange::Last),
        (from, b"") => Some(ByteRange::From(number(from)?, None)),
        (from, to) => {
            let (from, to) = (number(from)?, number(to)?);
            (from <= to).then_some(ByteRange::From(from, Some(to)))
        }
    }
}

/// Where the body begins in the value: `bytes 5-9/*`, of as many bytes as it has.
fn place(text: &[u8], len: usize) -> Result<u64, Box<Answer>> {
    let of = |text: &[u8]| {
        let text = text.strip_prefix(b"bytes ")?.strip_suffix(b"/*")?;
        let dash = text.iter().position(|&byte| byte == b'-')?;
        let (from, to) = (number(&text[..dash])?, number(&text[dash + 1..])?);
        (from <= to && to - from + 1 == len as u64).then_some(from)
    };
    of(text).ok_or_else(|| wrong("Content-Range is 'bytes FIRST-LAST/*', of as many bytes as the body has"))
}

/// The status of an answer.
pub(crate) const fn status(state: &ResourceState) -> u16 {
    match state.outcome {
        ResourceOutcome::Whole | ResourceOutcome::Page(_) => 200,
        ResourceOutcome::Part(..) => 206,
        ResourceOutcome::OutOfRange(_) => 416,
        ResourceOutcome::NotModified => 304,
        ResourceOutcome::Created => 201,
        ResourceOutcome::Changed | ResourceOutcome::Removed => 204,
    }
}

/// What its body is.
pub(crate) fn content_type(state: &ResourceState) -> &'static str {
    match state.outcome {
        ResourceOutcome::Page(kind) => kind,
        _ if state.type_name == Some("string") => BYTES,
        _ => JSON,
    }
}

/// What its head says of the key.
pub(crate) fn push_headers(state: &ResourceState, head: &mut Vec<u8>) {
    let mut line = |name: &str, value: &str| {
        for part in [name, ": ", value, "\r\n"] {
            head.extend_from_slice(part.as_bytes());
        }
    };
    if let Some(tag) = state.tag {
        line("ETag", &format!("\"{tag}\""));
    }
    if let Some(name) = state.type_name {
        line("Weft-Type", name);
    }
    if let Some(left_ms) = state.left_ms {
        line("Weft-TTL-Ms", &left_ms.to_string());
    }
    match state.outcome {
        ResourceOutcome::Part(from, end, len) => {
            line("Content-Range", &format!("bytes {from}-{}/{len}", end - 1))
        }
        ResourceOutcome::OutOfRange(len) => line("Content-Range", &format!("bytes */{len}")),
        _ => {}
    }
    if let (Some("string"), ResourceOutcome::Whole | ResourceOutcome::Part(..)) =
        (state.type_name, state.outcome)
    {
        line("Accept-Ranges", "bytes");
        head.extend_from_slice(VALUE_POLICY.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_or_passed_over() {
        for (text, range) in [
            ("bytes=0-0", Some(ByteRange::From(0, Some(0)))),
            ("bytes=5-", Some(ByteRange::From(5, None))),
            ("bytes=-7", Some(ByteRange::Last(7))),
            ("bytes=2-1", None),
            ("bytes=0-1,3-4", None),
            ("bytes=-", None),
            ("bytes=", None),
            ("bytes=+1-2", None),
            ("bytes=1-9999999999999999999", None),
            ("lines=1-2", None),
        ] {
            assert_eq!(byte_range(text.as_bytes()), range, "{text}");
        }
    }

    #[test]
    fn tags_are_strong_where_bytes_count() {
        let tag = Tag::Value([0xAB; 16]);
        let text = format!("W/\"{tag}\", \"other\"");
        assert_eq!(tags(text.as_bytes(), true).ok(), Some(Tags::These([tag].into())));
        assert_eq!(tags(text.as_bytes(), false).ok(), Some(Tags::These([].into())));
        assert_eq!(tags(b"\"7\"", false).ok(), Some(Tags::These([Tag::Version(7)].into())));
        assert_eq!(tags(b" * ", false).ok(), Some(Tags::Any));
        for bad in ["", "abc", "\"a", "\"a\"b\"", "\"a\",", "W/*"] {
            assert!(tags(bad.as_bytes(), true).is_err(), "{bad}");
        }
        let many = |count: usize| vec!["\"x\""; count].join(",");
        assert!(tags(many(TAGS_MAX).as_bytes(), true).is_ok());
        assert!(tags(many(TAGS_MAX + 1).as_bytes(), true).is_err());
    }

    #[test]
    fn a_part_has_a_place() {
        assert_eq!(place(b"bytes 5-9/*", 5).ok(), Some(5));
        for bad in ["bytes 5-9/*", "bytes 5-9/20", "bytes 9-5/*", "bytes=5-9/*", "bytes */*", "bytes -5/*"] {
            assert!(place(bad.as_bytes(), 4).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_path_names_a_database() {
        assert_eq!(database(b"/v1/db/15/keys/k"), Some(15));
        assert_eq!(database(b"/v1/db/255/keys"), Some(255));
        for bad in ["/v1/db/256/keys", "/v1/db/-1/keys", "/v1/db//keys", "/v1/db/1", "/v1/db/0001/keys"] {
            assert_eq!(database(bad.as_bytes()), None, "{bad}");
        }
    }
}
