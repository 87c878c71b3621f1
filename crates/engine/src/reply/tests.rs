//! Owns: the tests of the sink.

use super::*;

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
    for protocol in [Protocol::Resp2, Protocol::Resp3, Protocol::Respb] {
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
    for protocol in [Protocol::Resp2, Protocol::Resp3, Protocol::Respb] {
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
    for protocol in [Protocol::Resp2, Protocol::Respb] {
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
    for protocol in [Protocol::Resp2, Protocol::Resp3, Protocol::Respb] {
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
