//! Owns: how a digest is shown, and how long a value is as DUMP gives it. Does not own: the digest
//! (`weft_store::Digest`), the commands that show it.

use std::fmt::Write as _;
use weft_store::{Digest, ObjectRef, ValueRef};

use crate::rdb::{Writer, write_stream};

/// Forty hexadecimal digits; only zeros for nothing.
pub(super) fn hex(digest: Digest) -> String {
    let mut text = String::with_capacity(48);
    for byte in digest.bytes() {
        let _ = write!(text, "{byte:02x}");
    }
    text.truncate(40);
    text
}

/// How long a value is as DUMP gives it.
pub(super) fn serialized_len(value: ValueRef<'_>) -> usize {
    let object = match value {
        ValueRef::Bytes(bytes) => return Writer::text(bytes).len(),
        ValueRef::Int(number) => return Writer::text(number.to_string().as_bytes()).len(),
        ValueRef::Shared(bytes) => return Writer::text(bytes.as_slice()).len(),
        ValueRef::Object(object) => object,
        _ => return 0,
    };
    let mut writer;
    match object {
        ObjectRef::Stream(stream) => return write_stream(stream).len(),
        ObjectRef::List(list) => {
            writer = Writer::list(list.len());
            list.iter().for_each(|element| writer.element(element));
        }
        ObjectRef::Set(set) => {
            writer = Writer::set(set.len());
            set.iter().for_each(|member| writer.element(&member));
        }
        ObjectRef::Hash(hash) => {
            writer = Writer::hash(hash.len());
            hash.iter().for_each(|(field, value)| writer.pair(field, value));
        }
        ObjectRef::SortedSet(set) => {
            writer = Writer::zset(set.len());
            set.iter(0..set.len()).for_each(|scored| writer.scored(scored.member, scored.score));
        }
        _ => return 0,
    }
    writer.finish().len()
}
