//! Owns: reading what a client has got, over any wire, as replies. Does not own: running what it asked for.

use serde_json::Value as Json;
use weft_engine::reply::{JsonForm, Output, Protocol};
use weft_protocol::reply::ReplyBuilder;
use weft_protocol::{Limits, Outcome, Reply, resp, respb};

/// All replies in an output.
pub(crate) fn read(protocol: Protocol, output: Output) -> Vec<Reply> {
    assert!(output.is_whole(), "every aggregate has its elements: {output:?}");
    match protocol {
        Protocol::Resp2 | Protocol::Resp3 => framed(&output.to_vec(), |bytes, builder| {
            let mut decoder = resp::ReplyDecoder::new(Limits::DEFAULT);
            whole(decoder.decode(bytes, builder), bytes).len
        }),
        Protocol::Respb => framed(&output.to_vec(), |bytes, builder| {
            let mut decoder = respb::ReplyDecoder::new(Limits::DEFAULT);
            whole(decoder.decode(bytes, builder), bytes).len
        }),
        Protocol::Json(form) => {
            let bytes = output.to_vec();
            let values = serde_json::Deserializer::from_slice(&bytes).into_iter::<Json>();
            let text = String::from_utf8_lossy(&bytes);
            values
                .map(|value| json(form, value.unwrap_or_else(|error| panic!("{error} in {text}"))))
                .collect()
        }
        Protocol::Captured => unreachable!("what is kept is for whoever writes it to a wire"),
    }
}

fn framed(mut bytes: &[u8], decode: impl Fn(&[u8], &mut ReplyBuilder) -> usize) -> Vec<Reply> {
    let (mut replies, mut builder) = (Vec::new(), ReplyBuilder::new());
    while !bytes.is_empty() {
        let len = decode(bytes, &mut builder);
        replies.push(builder.take().expect("a reply"));
        bytes = &bytes[len..];
    }
    replies
}

fn whole<F: std::fmt::Debug>(outcome: Outcome<F>, bytes: &[u8]) -> F {
    match outcome {
        Outcome::Complete(frame) => frame,
        other => panic!("{other:?} in {:?}", String::from_utf8_lossy(bytes)),
    }
}

/// A whole reply in JSON.
fn json(form: JsonForm, mut value: Json) -> Reply {
    let result = match form {
        JsonForm::Upstash | JsonForm::UpstashBase64 if value.get("error").is_none() => {
            assert_eq!(value.as_object().map(serde_json::Map::len), Some(1), "{value}");
            value["result"].take()
        }
        _ => value,
    };
    match &result {
        Json::String(text) if text == "OK" => Reply::Simple(b"OK".to_vec()),
        _ => element(form, result),
    }
}

fn element(form: JsonForm, value: Json) -> Reply {
    match value {
        Json::Null => Reply::Null,
        Json::Bool(value) => Reply::Bool(value),
        Json::Number(number) => match number.as_i64() {
            Some(value) => Reply::Int(value),
            None => Reply::Double(number.as_f64().expect("a double")),
        },
        Json::String(text) if form == JsonForm::UpstashBase64 => Reply::Bulk(base64(&text)),
        Json::String(text) => Reply::Bulk(text.into_bytes()),
        Json::Array(values) => Reply::Array(values.into_iter().map(|value| element(form, value)).collect()),
        Json::Object(fields) => match (fields.get("error"), fields.get("base64")) {
            (Some(Json::String(line)), _) => Reply::Error(line.as_bytes().to_vec()),
            (_, Some(Json::String(text))) => Reply::Bulk(base64(text)),
            _ => {
                let key = |key: String| Reply::Bulk(key.into_bytes());
                Reply::Map(
                    fields.into_iter().map(|(name, value)| (key(name), element(form, value))).collect(),
                )
            }
        },
    }
}

pub(crate) fn base64(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(4), "padded: {text}");
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => panic!("no digit: {text}"),
    };
    let digits: Vec<u8> = text.trim_end_matches('=').bytes().map(digit).collect();
    let group = |group: &[u8]| {
        let bits =
            group.iter().fold(0u32, |bits, digit| bits << 6 | u32::from(*digit)) << (6 * (4 - group.len()));
        bits.to_be_bytes()[1..group.len()].to_vec()
    };
    digits.chunks(4).flat_map(group).collect()
}
