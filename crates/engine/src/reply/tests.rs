//! Owns: the tests of the sink.

use super::*;
use weft_store::{Rng, XorShift};

const JSON: [Protocol; 3] = [
    Protocol::Json(JsonForm::Upstash),
    Protocol::Json(JsonForm::UpstashBase64),
    Protocol::Json(JsonForm::Plain),
];
const ALL: [Protocol; 7] =
    [Protocol::Resp2, Protocol::Resp3, Protocol::Respb, JSON[0], JSON[1], JSON[2], Protocol::Captured];

fn written(protocol: Protocol, write: impl FnOnce(&mut ReplySink<'_>)) -> Vec<u8> {
    let mut out = Output::default();
    write(&mut ReplySink::new(&mut out, Wire { protocol, channel: 7 }));
    assert!(out.open.is_empty(), "every aggregate is complete");
    out.to_vec()
}

fn nested(sink: &mut ReplySink<'_>) {
    sink.array(3);
    sink.map(1);
    sink.bulk(b"k");
    sink.double(1.5);
    sink.deferred();
    sink.int(1);
    sink.array(0);
    sink.null();
    sink.close();
    sink.bool(true);
}

#[test]
fn the_same_calls_on_every_wire() {
    assert_eq!(
        written(Protocol::Resp2, nested),
        b"*3\r\n*2\r\n$1\r\nk\r\n$3\r\n1.5\r\n*3\r\n:1\r\n*0\r\n$-1\r\n:1\r\n"
    );
    assert_eq!(
        written(Protocol::Resp3, nested),
        b"*3\r\n%1\r\n$1\r\nk\r\n,1.5\r\n*3\r\n:1\r\n*0\r\n_\r\n#t\r\n"
    );
    let respb = written(Protocol::Respb, nested);
    assert_eq!(respb[..8], [0x80, 4, 0, 7, 0, 0, 0, 3]);
    let mut decoder = weft_protocol::respb::ReplyDecoder::new(weft_protocol::Limits::DEFAULT);
    let mut builder = weft_protocol::reply::ReplyBuilder::new();
    let outcome = decoder.decode(&respb, &mut builder);
    assert!(matches!(outcome, weft_protocol::Outcome::Complete(_)), "{outcome:?}");
    use weft_protocol::Reply;
    let expected = Reply::Array(vec![
        Reply::Map(vec![(Reply::Bulk(b"k".to_vec()), Reply::Double(1.5))]),
        Reply::Array(vec![Reply::Int(1), Reply::Array(vec![]), Reply::Null]),
        Reply::Bool(true),
    ]);
    assert_eq!(builder.take(), Some(expected));
}

#[test]
fn byte_strings_in_a_row_are_those_one_by_one() {
    let all: Vec<u8> = (0..=255).cycle().take(300).collect();
    let lengths = (0..=130).chain([200, 256, 300]);
    let strings: Vec<&[u8]> = lengths.map(|len| &all[300 - len..]).collect();
    for protocol in ALL {
        for count in [0, 1, 2, 40, strings.len() / 2] {
            let in_a_row = |sink: &mut ReplySink<'_>| {
                let fill = |out: &mut Bulks<'_>| strings[..count].iter().for_each(|bytes| out.push(bytes));
                sink.deferred();
                sink.array_of_bulks(count, fill);
                sink.set_of_bulks(count, fill);
                sink.map_of_bulks(count, |out| strings[..2 * count].iter().for_each(|bytes| out.push(bytes)));
                sink.close();
                sink.array_of_bulks(strings.len(), |out| strings.iter().for_each(|bytes| out.push(bytes)));
            };
            let one_by_one = |sink: &mut ReplySink<'_>| {
                sink.deferred();
                sink.array(count);
                strings[..count].iter().for_each(|bytes| sink.bulk(bytes));
                sink.set(count);
                strings[..count].iter().for_each(|bytes| sink.bulk(bytes));
                sink.map(count);
                strings[..2 * count].iter().for_each(|bytes| sink.bulk(bytes));
                sink.close();
                sink.array(strings.len());
                strings.iter().for_each(|bytes| sink.bulk(bytes));
            };
            assert_eq!(written(protocol, in_a_row), written(protocol, one_by_one), "{protocol:?} {count}");
        }
    }
}

#[test]
fn a_number_is_its_digits() {
    let edges =
        (0..20).flat_map(|power| [10_i128.pow(power) - 1, 10_i128.pow(power), 10_i128.pow(power) + 1]);
    let numbers = edges.flat_map(|edge| [edge, -edge]).filter_map(|number| i64::try_from(number).ok());
    for number in numbers.chain([i64::MIN, i64::MAX]) {
        let line = written(Protocol::Resp2, |sink| sink.int(number));
        assert_eq!(String::from_utf8_lossy(&line), format!(":{number}\r\n"));
    }
}

#[test]
fn values_in_a_row_are_those_one_by_one() {
    let (large, short) = (SharedBytes::new(vec![b'x'; PIN_BYTES_MIN]), SharedBytes::new(vec![b'y'; 100]));
    let values = [
        Some(ValueRef::Bytes(b"text")),
        Some(ValueRef::Int(-12)),
        None,
        Some(ValueRef::Shared(&large)),
        Some(ValueRef::Shared(&short)),
        Some(ValueRef::Shared(&large)),
        None,
    ];
    for protocol in ALL {
        for count in 0..=values.len() {
            let (mut row, mut single) = (Output::default(), Output::default());
            let wire = Wire { protocol, channel: 3 };
            ReplySink::new(&mut row, wire).array_of_bulks(count, |out| {
                values[..count].iter().for_each(|value| match value {
                    Some(value) => out.value(value),
                    None => out.null(),
                });
            });
            let mut sink = ReplySink::new(&mut single, wire);
            sink.array(count);
            values[..count].iter().for_each(|value| match value {
                Some(value) => sink.value(value),
                None => sink.null(),
            });
            assert_eq!(row.bytes, single.bytes, "{protocol:?} {count}");
            let places = |output: &Output| output.pins.iter().map(|pin| pin.at).collect::<Vec<_>>();
            assert_eq!(places(&row), places(&single), "{protocol:?} {count}");
        }
    }
}

#[test]
fn large_values_are_pinned_where_they_belong() {
    let value = SharedBytes::new(vec![b'x'; PIN_BYTES_MIN]);
    for protocol in [Protocol::Resp2, Protocol::Resp3, Protocol::Respb] {
        let mut out = Output::default();
        let mut sink = ReplySink::new(&mut out, Wire { protocol, channel: 0 });
        sink.deferred();
        sink.bulk(b"a");
        sink.bulk_shared(&value);
        sink.bulk(b"b");
        sink.close();
        assert_eq!(out.pins.len(), 1);
        let copied = written(protocol, |sink| {
            sink.array(3);
            sink.bulk(b"a");
            sink.bulk(value.as_slice());
            sink.bulk(b"b");
        });
        let mut bytes = out.to_vec();
        if protocol == Protocol::Respb {
            bytes[3] = 7;
        }
        assert_eq!(bytes, copied);
    }
}

#[test]
fn an_error_takes_back_what_was_begun() {
    for protocol in ALL {
        let clean = written(protocol, |sink| {
            sink.array(2);
            sink.error_code(ErrorCode::Syntax);
            sink.int(1);
        });
        let rolled = written(protocol, |sink| {
            sink.array(2);
            let mark = sink.mark();
            sink.array(3);
            sink.bulk_shared(&SharedBytes::new(vec![1; PIN_BYTES_MIN]));
            sink.deferred();
            sink.int(5);
            sink.rollback(mark);
            sink.error_code(ErrorCode::Syntax);
            sink.int(1);
        });
        assert_eq!(rolled, clean, "{protocol:?}");
    }
}

fn text(protocol: Protocol, write: impl FnOnce(&mut ReplySink<'_>)) -> String {
    String::from_utf8(written(protocol, write)).expect("JSON is UTF-8")
}

#[test]
fn json_says_what_each_value_is() {
    let [upstash, base64, plain] = JSON;
    let check = |write: fn(&mut ReplySink<'_>), expected: [&str; 3]| {
        assert_eq!([upstash, base64, plain].map(|form| text(form, write)), expected);
    };
    check(|sink| sink.ok(), [r#"{"result":"OK"}"#, r#"{"result":"OK"}"#, r#""OK""#]);
    check(|sink| sink.pong(), [r#"{"result":"PONG"}"#, r#"{"result":"UE9ORw=="}"#, r#""PONG""#]);
    // A value that says OK is no status.
    check(|sink| sink.bulk(b"OK"), [r#"{"result":"OK"}"#, r#"{"result":"T0s="}"#, r#""OK""#]);
    let error = r#"{"error":"WRONGTYPE Operation against a key holding the wrong kind of value"}"#;
    check(|sink| sink.error_code(ErrorCode::WrongType), [error; 3]);
    check(|sink| sink.int(-7), [r#"{"result":-7}"#, r#"{"result":-7}"#, "-7"]);
    let exact = r#"{"result":9007199254740992}"#;
    check(|sink| sink.int(1 << 53), [exact, exact, "9007199254740992"]);
    let beyond = r#"{"result":-9007199254740993}"#;
    check(|sink| sink.int(-(1 << 53) - 1), [beyond, beyond, r#""-9007199254740993""#]);
    check(|sink| sink.double(1.5), [r#"{"result":"1.5"}"#, r#"{"result":"MS41"}"#, "1.5"]);
    check(|sink| sink.double(f64::INFINITY), [r#"{"result":"inf"}"#, r#"{"result":"aW5m"}"#, r#""inf""#]);
    check(|sink| sink.double_text("0.10"), [r#"{"result":"0.10"}"#, r#"{"result":"MC4xMA=="}"#, "0.1"]);
    check(|sink| sink.bool(true), [r#"{"result":1}"#, r#"{"result":1}"#, "true"]);
    check(|sink| sink.big_number("12"), [r#"{"result":"12"}"#, r#"{"result":"MTI="}"#, r#""12""#]);
    check(|sink| sink.verbatim(*b"txt", b"x"), [r#"{"result":"x"}"#, r#"{"result":"eA=="}"#, r#""x""#]);
    check(|sink| sink.null(), [r#"{"result":null}"#, r#"{"result":null}"#, "null"]);
    check(|sink| sink.null_array(), [r#"{"result":null}"#, r#"{"result":null}"#, "null"]);
    check(|sink| sink.array(0), [r#"{"result":[]}"#, r#"{"result":[]}"#, "[]"]);
    check(|sink| sink.map(0), [r#"{"result":[]}"#, r#"{"result":[]}"#, "{}"]);
    let replaced = "{\"result\":\"a\u{FFFD}\"}";
    check(|sink| sink.bulk(b"a\xff"), [replaced, r#"{"result":"Yf8="}"#, r#"{"base64":"Yf8="}"#]);
    let escaped = r#"{"result":"\"\\\n\u0001é"}"#;
    check(
        |sink| sink.bulk("\"\\\n\u{1}é".as_bytes()),
        [escaped, r#"{"result":"IlwKAcOp"}"#, r#""\"\\\n\u0001é""#],
    );
}

#[test]
fn json_has_commas_brackets_and_keys_where_they_belong() {
    let write = |sink: &mut ReplySink<'_>| {
        sink.array(4);
        sink.ok();
        sink.map(2);
        sink.bulk(b"k");
        sink.pairs(1);
        sink.pair();
        sink.bulk(b"m");
        sink.double(2.0);
        // Keys that are no text.
        sink.set(2);
        sink.int(1);
        sink.error_code(ErrorCode::Syntax);
        sink.array(0);
        sink.map_of_arrays(1);
        sink.entry();
        sink.bulk(b"[");
        sink.deferred();
        sink.bool(false);
        sink.close();
        sink.null();
    };
    assert_eq!(
        text(JSON[0], write),
        r#"{"result":["OK",["k",["m","2"],[1,{"error":"ERR syntax error"}],[]],[["[",[0]]],null]}"#
    );
    assert_eq!(
        text(JSON[1], write),
        r#"{"result":["T0s=",["aw==",["bQ==","Mg=="],[1,{"error":"ERR syntax error"}],[]],[["Ww==",[0]]],null]}"#
    );
    assert_eq!(
        text(JSON[2], write),
        r#"["OK",{"k":[["m",2]],"[1,{\"error\":\"ERR syntax error\"}]":[]},{"[":[false]},null]"#
    );
}

/// Writes values by chance, the same ones for the same dice.
fn any(sink: &mut ReplySink<'_>, dice: &mut XorShift, depth: u32) {
    let len = dice.below(4) as usize;
    let text: String = (0..dice.below(20)).map(|_| char::from(b' ' + dice.below(95) as u8)).collect();
    let bytes: Vec<u8> = (0..dice.below(300)).map(|_| dice.next_u64() as u8).collect();
    let number = dice.next_u64() as i64 >> dice.below(64);
    let mut elements = |sink: &mut ReplySink<'_>, count: usize, before: fn(&mut ReplySink<'_>)| {
        for at in 0..count {
            if at.is_multiple_of(2) {
                before(sink);
            }
            any(sink, dice, depth + 1);
        }
    };
    match number.unsigned_abs() % if depth < 5 { 22 } else { 13 } {
        0 => sink.ok(),
        1 => sink.simple(&text),
        2 => sink.error(&Error::with_prefix("OWN", text)),
        3 => sink.error_code(ErrorCode::ALL[number.unsigned_abs() as usize % ErrorCode::ALL.len()]),
        4 => sink.int(number),
        5 => sink.double(number as f64 / 1024.0),
        6 => sink.double_text("12.50"),
        7 => sink.bool(number > 0),
        8 => sink.big_number("123456789012345678901234567890"),
        9 => sink.bulk(&bytes),
        10 => sink.bulk_shared(&SharedBytes::new(vec![number as u8; PIN_BYTES_MIN])),
        11 => sink.verbatim(*b"mkd", text.as_bytes()),
        12 => {
            if len > 1 {
                sink.null()
            } else {
                sink.null_array()
            }
        }
        13 => {
            sink.array(len);
            elements(sink, len, |_| {});
        }
        14 => {
            sink.set(len);
            elements(sink, len, |_| {});
        }
        15 => {
            sink.map(len);
            elements(sink, 2 * len, |_| {});
        }
        16 => {
            sink.pairs(len);
            elements(sink, 2 * len, |sink| sink.pair());
        }
        17 => {
            sink.map_of_arrays(len);
            elements(sink, 2 * len, |sink| sink.entry());
        }
        18 => {
            sink.deferred();
            elements(sink, len, |_| {});
            sink.close();
        }
        19 => sink.array_of_bulks(len, |out| (0..len).for_each(|_| out.push(&bytes))),
        20 => sink.map_of_bulks(len, |out| {
            (0..len).for_each(|_| {
                out.push(text.as_bytes());
                out.value(&ValueRef::Int(number));
            });
        }),
        _ => {
            let mark = sink.mark();
            sink.array(len + 2);
            sink.bulk_shared(&SharedBytes::new(vec![0; PIN_BYTES_MIN]));
            sink.rollback(mark);
            sink.error_code(ErrorCode::NoGroup);
        }
    }
}

#[test]
fn what_is_kept_is_written_to_any_wire_as_if_it_had_been_written_there() {
    let seed = std::env::var("WEFT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(17);
    println!("seed {seed} (WEFT_SEED)");
    for round in 0..2000 {
        let dice = XorShift::new(seed + round);
        let kept = Captured::of(|sink| any(sink, &mut dice.clone(), 0));
        for protocol in ALL {
            let mut outputs = [Output::default(), Output::default()];
            let wire = Wire { protocol, channel: 9 };
            let [direct, later] = &mut outputs;
            any(&mut ReplySink::new(direct, wire), &mut dice.clone(), 0);
            kept.write(&mut ReplySink::new(later, wire));
            let [direct, later] = &outputs;
            assert!(later.to_vec() == direct.to_vec(), "{protocol:?} {round}: {kept:?}");
            assert_eq!(later.pins.len(), direct.pins.len());
            assert_eq!(later.error, direct.error);
            assert!(later.is_whole() && direct.is_whole());
        }
        for form in JSON {
            let text = written(form, |sink| kept.write(sink));
            let value: serde_json::Value = serde_json::from_slice(&text).expect("it is JSON");
            let has_envelope = value.get("result").is_some() || value.get("error").is_some();
            assert!(has_envelope || form == JSON[2], "{value}");
        }
    }
}

#[test]
fn a_whole_reply_that_is_an_error_leaves_its_kind() {
    let mut out = Output::default();
    for protocol in ALL {
        let mut sink = ReplySink::new(&mut out, Wire { protocol, channel: 0 });
        sink.array(1);
        sink.error_code(ErrorCode::BusyKey);
        assert_eq!(sink.errors(), 1);
        assert_eq!(out.take_error(), None, "an element");
        ReplySink::new(&mut out, Wire { protocol, channel: 0 }).error_code(ErrorCode::OutOfMemory);
        assert_eq!(out.take_error().map(ErrorCode::http_status), Some(507));
        assert_eq!(out.take_error(), None);
    }
}

#[test]
fn an_error_that_is_kept_is_the_error() {
    for error in [
        Error::err("text"),
        Error::from(ErrorCode::WrongType),
        Error::new(ErrorCode::NoGroup, "No such key 'k'"),
        Error::with_prefix("MINE", "own text"),
        Error::err(""),
    ] {
        let kept = Captured::of(|sink| sink.error(&error));
        let (code, prefix_len) = (error.code, error.prefix().len());
        let item = Item::Error(CapturedError { code, line: &error.line(), prefix_len });
        assert_eq!(kept.items().collect::<Vec<_>>(), [item]);
    }
    let kept = Captured::of(|sink| sink.error(&Error::err("two\r\nlines\r\n")));
    let line = "ERR two  lines";
    let item = Item::Error(CapturedError { code: ErrorCode::Generic, line, prefix_len: 3 });
    assert_eq!(kept.items().collect::<Vec<_>>(), [item]);
}

/// An output of numbers, one byte each, and a large value; each behind a place that waits for its number.
fn withheld() -> Output {
    let mut out = Output::default();
    for number in 1..=4 {
        out.withhold(out.end(), number);
        out.bytes.push(number as u8);
        if number == 2 {
            out.pin(SharedBytes::new(vec![2; PIN_BYTES_MIN]));
        }
    }
    out
}

#[test]
fn what_is_withheld_is_sendable_up_to_what_is_safe() {
    let large = PIN_BYTES_MIN;
    let mut out = withheld();
    assert!(out.is_withheld());
    let sendable = [0, 1, 2, 3].map(|safe| out.sendable(safe));
    assert_eq!(sendable, [0, 1, 2 + large, 3 + large]);
    assert_eq!(out.sendable(u64::MAX), 4 + large);
    assert!(!out.is_withheld());
    // Moved behind another one, and taken away again.
    let mut both = withheld();
    both.append(withheld());
    assert_eq!(both.sendable(3), 3 + large, "the second waits behind the first");
    assert_eq!(both.sendable(4), both.len());
    let mut first = Output::default();
    first.bytes.extend_from_slice(b"before");
    let place = first.end();
    assert!(!first.is_withheld_behind(place));
    first.append(withheld());
    assert!(first.is_withheld_behind(place));
    let mut rest = first.split_off(place.bytes, place.pins);
    assert_eq!((first.sendable(0), first.is_withheld()), (6, false));
    assert_eq!([0, 1, 2, 3].map(|safe| rest.sendable(safe)), sendable);
    // Sent in part.
    for sent in [0, 1, 2, 3, 2 + large] {
        let mut out = withheld();
        assert_eq!(out.sendable(2), 2 + large);
        let left = out.consume(sent);
        assert_eq!(out.sendable(2), 2 + large - (sent - left), "{sent}");
        assert_eq!(out.sendable(3), 3 + large - (sent - left), "{sent}");
    }
    let mut out = withheld();
    out.clear();
    assert!(!out.is_withheld());
}

#[test]
fn places_that_wait_are_bounded() {
    let withhold_all = |count: u64| {
        let mut out = Output::default();
        for epoch in 1..=count {
            out.withhold(out.end(), epoch);
            out.bytes.push(b'x');
        }
        out
    };
    let most = super::output::WITHHELD_MAX as u64;
    assert_eq!(withhold_all(most).sendable(most - 1), most as usize - 1, "each waits for its own");
    // One more waits together with the one before.
    assert_eq!(withhold_all(most + 1).sendable(most), most as usize - 1);
    assert_eq!(withhold_all(most + 1).sendable(most + 1), most as usize + 1);
}
