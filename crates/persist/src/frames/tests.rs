//! Every effect there and back, alone and in groups.

use weft_store::effect::{Cause, Effect, Kind, Pairs, Tape, Text};
use weft_store::list::End;
use weft_store::stream::StreamId;
use weft_store::{Config, Expiry, Keyspace, NewValue, Op, Recorder, Section, wants};

use super::{Decoder, Encoder, MEMBERS_MAX, Mark};

/// One of each, with numbers at their ends.
fn all() -> Vec<Effect<'static>> {
    let id = StreamId::new(u64::MAX, u64::MAX);
    let long: &'static [u8] = Box::leak(vec![b'x'; 70_000].into());
    let (one, none) = (Some(1_u64 << 50), None);
    vec![
        Effect::Set { value: Text::Bytes(b"value"), expire_ms: none },
        Effect::Set { value: Text::Bytes(b""), expire_ms: one },
        Effect::Set { value: Text::Bytes(b"PXAT"), expire_ms: none },
        Effect::Set { value: Text::Bytes(long), expire_ms: one },
        Effect::New { kind: Kind::List, expire_ms: none },
        Effect::New { kind: Kind::Stream, expire_ms: one },
        Effect::Write { offset: 1 << 33, bytes: b"\0" },
        Effect::Expire { expire_ms: one },
        Effect::Expire { expire_ms: none },
        Effect::Delete { cause: Cause::Deleted },
        Effect::Move { to_db: 255, to: b"to" },
        Effect::Copy { to_db: 3, to: long },
        Effect::ListPush { end: End::Front, element: b"" },
        Effect::ListPush { end: End::Back, element: long },
        Effect::ListPop { end: End::Front, count: 1 << 40 },
        Effect::ListPop { end: End::Back, count: 1 },
        Effect::ListSet { index: 70_000, element: b"e" },
        Effect::ListInsert { index: 0, element: long },
        Effect::ListRemove { index: 9 },
        Effect::HashSet { field: b"f", value: b"v", expire_ms: none },
        Effect::HashSet { field: long, value: b"FIELDS", expire_ms: one },
        Effect::HashExpire { field: b"f", expire_ms: one },
        Effect::HashExpire { field: long, expire_ms: none },
        Effect::HashDelete { field: b"1" },
        Effect::SetAdd { member: b"7" },
        Effect::SetRemove { member: long },
        Effect::SortedSetAdd { member: b"NX", score: f64::NEG_INFINITY },
        Effect::SortedSetAdd { member: long, score: 0.1 },
        Effect::SortedSetRemove { member: b"m" },
        Effect::StreamAppend { id, fields: Pairs::Slices(&[(b"f", b"v"), (b"MAXLEN", b"1")]) },
        Effect::StreamDelete { id },
        Effect::StreamTrim { len: 1000 },
        Effect::StreamCounters { last_id: id, entries_added: 4, max_deleted_id: StreamId::MIN },
        Effect::GroupCreate { group: b"g", last_id: id, entries_read: none },
        Effect::GroupCreate { group: b"CREATE", last_id: id, entries_read: one },
        Effect::GroupDestroy { group: b"g" },
        Effect::GroupPosition { group: b"g", last_id: id, entries_read: one },
        Effect::Consumer { group: b"g", consumer: b"c", seen_ms: 1 << 50, active_ms: none },
        Effect::Consumer { group: b"g", consumer: b"c", seen_ms: 0, active_ms: one },
        Effect::ConsumerDelete { group: b"g", consumer: b"c" },
        Effect::Pending { group: b"g", consumer: b"c", id, delivered_ms: 1, deliveries: 1 << 40 },
        Effect::PendingRemove { group: b"g", id },
        Effect::Catalogue { section: Section::Outbox, value: Some(b"") },
        Effect::Catalogue { section: Section::Functions, value: None },
    ]
}

/// What comes back, each as text, with marks of groups as such.
fn decoded(bytes: &[u8]) -> Vec<String> {
    let mut all = Vec::new();
    let result = Decoder::default().each(bytes, |mark, told| match mark {
        Mark::Effects => all.extend(told.iter().map(|told| format!("{told:?}"))),
        mark => all.push(format!("{mark:?}")),
    });
    result.expect("what was written is read");
    all
}

fn tape(effects: &[(u8, &[u8], Effect<'_>)]) -> Tape {
    let mut tape = Tape::default();
    effects.iter().for_each(|(db, key, effect)| tape.push(*db, key, effect));
    tape
}

#[test]
fn every_effect_comes_back_as_it_was() {
    let long = vec![b'k'; 70_000];
    for key in [&b"key"[..], b"", &long] {
        for effect in all() {
            let tape = tape(&[(9, key, effect)]);
            let mut bytes = Vec::new();
            assert_eq!(Encoder::default().group(tape.read(), &mut bytes), 1);
            let told = tape.read().next().expect("one");
            assert_eq!(decoded(&bytes), [format!("{told:?}")]);
        }
    }
    let swap = tape(&[(4, b"", Effect::Swap { with: 15 }), (2, b"", Effect::Flush)]);
    let mut bytes = Vec::new();
    assert_eq!(Encoder::default().group(swap.read(), &mut bytes), 4);
    assert_eq!(
        decoded(&bytes),
        [
            "Begin",
            "KeyedEffect { db: 4, key: [], effect: Swap { with: 15 } }",
            "KeyedEffect { db: 2, key: [], effect: Flush }",
            "End"
        ]
    );
}

#[test]
fn a_group_of_all_comes_back_in_order() {
    let effects: Vec<_> =
        all().into_iter().enumerate().map(|(at, e)| (at as u8 / 10, &b"k"[..], e)).collect();
    let tape = tape(&effects);
    let mut bytes = Vec::new();
    Encoder::default().group(tape.read(), &mut bytes);
    let told: Vec<String> = tape.read().map(|told| format!("{told:?}")).collect();
    let read = decoded(&bytes);
    assert_eq!((&read[0][..], &read[read.len() - 1][..]), ("Begin", "End"));
    assert_eq!(read[1..read.len() - 1], told);
}

#[test]
fn what_is_no_string_of_digits_and_what_went_by_itself_is_said_by_its_like() {
    let effects: [(u8, &[u8], Effect<'_>); 3] = [
        (0, b"n", Effect::Set { value: Text::Int(i64::MIN), expire_ms: None }),
        (0, b"n", Effect::Delete { cause: Cause::Evicted }),
        (0, b"h", Effect::FieldExpired { field: b"f" }),
    ];
    let mut bytes = Vec::new();
    Encoder::default().group(tape(&effects).read(), &mut bytes);
    let read = decoded(&bytes);
    assert!(read[1].contains(&format!("{:?}", b"-9223372036854775808")), "{}", read[1]);
    assert!(read[2].contains("Deleted") && read[3].contains("HashDelete"), "{read:?}");
}

#[test]
fn members_of_one_key_share_a_request_up_to_a_limit() {
    let requests = |count: usize| {
        let members: Vec<Vec<u8>> = (0..count).map(|at| at.to_string().into_bytes()).collect();
        let effects: Vec<_> =
            members.iter().map(|member| (0, &b"s"[..], Effect::SetAdd { member })).collect();
        let mut bytes = Vec::new();
        let requests = Encoder::default().group(tape(&effects).read(), &mut bytes);
        assert_eq!(decoded(&bytes).iter().filter(|line| line.contains("SetAdd")).count(), count);
        requests
    };
    assert_eq!((requests(2), requests(MEMBERS_MAX)), (1, 1));
    assert_eq!(requests(MEMBERS_MAX + 1), 4, "two requests and their marks");
}

/// What a worker tells in a row is a request already: the one that the same effect makes where it is told otherwise.
#[test]
fn a_row_is_the_requests_that_its_effects_make() {
    let keyspace = Keyspace::new(Config { shards: 4, ..Config::default() });
    let mut worker = keyspace.worker().expect("there is a place");
    let mut merger = worker.merger(wants::VALUES).expect("it is the first");
    let mut recorder = Recorder::default();
    recorder.attach(&keyspace);
    let texts: [(&[u8], &[u8]); 4] =
        [(b"key", b"text"), (b"", b"t"), (&[b'k'; 300], b"text"), (b"\0\x80", &[0; 40])];
    let keys: Vec<_> = texts.iter().map(|(key, _)| keyspace.key(key)).collect();
    let mut batch = worker.enter();
    for (key, (_, text)) in keys.iter().zip(texts) {
        let mut op = Op::new(3, 1, &mut recorder);
        batch.lock(key).set(&mut op, key, NewValue::string(&vec![b'-'; text.len()]), Expiry::None);
        recorder.end_group();
        recorder.clear();
    }
    keys.iter().for_each(|key| batch.prefetch_bucket(3, key.hash(), false));
    batch.prefetch_entries(0, keys.iter().map(|key| (key.hash(), true)));
    let mut rewrites = batch.rewrites((3, 1), &recorder).expect("nothing else is wanted");
    for (at, (_, text)) in texts.into_iter().enumerate() {
        assert!(rewrites.text(at, &keys[at], text), "it is written over what is there");
    }
    drop(rewrites);
    drop(batch);
    let mut rows = 0;
    let polled = merger.poll(|group| {
        let Some((row, count)) = group.row() else { return };
        rows += count;
        let mut made = Vec::new();
        for told in group.read() {
            let mut tape = Tape::default();
            tape.push(told.db, told.key, &told.effect);
            assert_eq!(Encoder::default().group(tape.read(), &mut made), 1);
        }
        assert_eq!(row, made);
    });
    polled.expect("nothing is lost");
    assert_eq!(rows, 4);
}

#[test]
fn nothing_beside_the_data_is_kept() {
    let effects: [(u8, &[u8], Effect<'_>); 2] =
        [(0, b"k", Effect::Wrote { by_itself: false }), (0, b"k", Effect::Missed)];
    let mut bytes = Vec::new();
    assert_eq!(Encoder::default().group(tape(&effects).read(), &mut bytes), 0);
    assert!(bytes.is_empty());
}

#[test]
fn what_says_no_effect_is_refused_at_its_place() {
    use weft_protocol::respb::{Mode, RequestWriter};
    for strange in
        [&[&b"GET"[..], b"k"][..], &[b"WEFT.WHAT", b"k"], &[b"HSET", b"k", b"f"], &[b"XADD", b"k", b"*"]]
    {
        let mut bytes = Vec::new();
        RequestWriter::new(&mut bytes, 0).command(&[&b"DEL"[..], b"k"], Mode::Exact);
        let offset = bytes.len();
        RequestWriter::new(&mut bytes, 0).command(strange, Mode::Exact);
        let mut seen = 0;
        let error = Decoder::default().each(&bytes, |_, _| seen += 1).expect_err("it says none");
        assert_eq!((error.offset, seen), (offset, 1));
    }
}
