//! Writes a C file that does not compile when `include/respb.h` and `src/types.rs` differ: sizes, offsets and numbers
//! as Rust has them, as array types of negative length where C has another.

use core::mem::{align_of, offset_of, size_of};

use respb::table::Command;
use respb::types::{self, Batch, Frame, LimitsC, Value};
use weft_protocol::Malformed;
use weft_protocol::limits::NESTING_MAX;
use weft_protocol::table::{TABLE_VERSION, flag};

/// Writes one assertion.
fn check(count: &mut usize, condition: &str) {
    *count += 1;
    println!("typedef char check_{count}[({condition}) ? 1 : -1];");
}

macro_rules! layout {
    ($count:expr, $c:literal, $rust:ty, $($field:ident),*) => {
        check($count, &format!("sizeof({}) == {}", $c, size_of::<$rust>()));
        $(check($count, &format!("offsetof({}, {}) == {}", $c, stringify!($field), offset_of!($rust, $field)));)*
    };
}

fn structs(count: &mut usize) {
    layout!(count, "respb_value", Value, value, len, offset, kind, format, reserved);
    layout!(
        count,
        "respb_frame",
        Frame,
        data,
        len,
        first,
        count,
        taken,
        number,
        channel,
        opcode,
        command,
        options,
        kind,
        last,
        reserved
    );
    layout!(
        count,
        "respb_batch",
        Batch,
        frames,
        frames_capacity,
        frames_len,
        values,
        values_capacity,
        values_len,
        partial,
        taken,
        consumed,
        need,
        error,
        error_offset,
        error_channel,
        reserved
    );
    layout!(
        count,
        "respb_limits",
        LimitsC,
        arguments_max,
        argument_bytes_max,
        frame_bytes_max,
        inline_bytes_max,
        elements_max,
        nesting_max,
        unauthenticated,
        first_frame,
        reserved
    );
    layout!(
        count,
        "respb_command",
        Command,
        name,
        arity,
        flags,
        id,
        container,
        opcode,
        module,
        module_command,
        key_first,
        key_last,
        key_step
    );
    for (name, size, align, words) in [
        (
            "respb_request_decoder",
            size_of::<respb::decode::RequestDecoder>(),
            align_of::<respb::decode::RequestDecoder>(),
            respb::decode::REQUEST_DECODER_WORDS,
        ),
        (
            "respb_reply_decoder",
            size_of::<respb::decode::ReplyDecoder>(),
            align_of::<respb::decode::ReplyDecoder>(),
            respb::decode::REPLY_DECODER_WORDS,
        ),
        (
            "respb_writer",
            size_of::<respb::writer::Writer>(),
            align_of::<respb::writer::Writer>(),
            respb::writer::WRITER_WORDS,
        ),
    ] {
        eprintln!("{name}: {size} of {} bytes", words * 8);
        check(count, &format!("sizeof({name}) == {}", words * 8));
        check(count, &format!("sizeof({name}) >= {size}"));
        check(count, &format!("sizeof(uint64_t) >= {align}"));
    }
}

fn numbers(count: &mut usize) {
    use types::{frame_kind, kind};
    let mut equal = |name: &str, value: i64| check(count, &format!("RESPB_{name} == {value}"));
    for (name, value) in [
        ("ABI_VERSION", types::ABI_VERSION.into()),
        ("TABLE_VERSION", TABLE_VERSION.into()),
        ("NESTING_MAX", NESTING_MAX.into()),
        ("VALUES_MIN", types::VALUES_MIN as i64),
        ("NO_OFFSET", types::NO_OFFSET.into()),
        ("NO_COMMAND", types::NO_COMMAND.into()),
        ("OK", types::OK.into()),
        ("INCOMPLETE", types::INCOMPLETE.into()),
        ("FULL", types::FULL.into()),
        ("INVALID", types::INVALID.into()),
        ("EINVAL", types::EINVAL.into()),
        ("EDEPTH", types::EDEPTH.into()),
    ] {
        equal(name, value);
    }
    for (name, value) in [
        ("BYTES", kind::BYTES),
        ("QUOTED", kind::QUOTED),
        ("INTEGER", kind::INTEGER),
        ("DOUBLE", kind::DOUBLE),
        ("KEYWORD", kind::KEYWORD),
        ("SIMPLE", kind::SIMPLE),
        ("ERROR", kind::ERROR),
        ("BIG_NUMBER", kind::BIG_NUMBER),
        ("VERBATIM", kind::VERBATIM),
        ("BOOLEAN", kind::BOOLEAN),
        ("NULL", kind::NULL),
        ("NULL_ARRAY", kind::NULL_ARRAY),
        ("ARRAY", kind::ARRAY),
        ("MAP", kind::MAP),
        ("SET", kind::SET),
        ("PUSH", kind::PUSH),
        ("ATTRIBUTE", kind::ATTRIBUTE),
        ("CLOSE", kind::CLOSE),
        ("TEXT", kind::TEXT),
        ("FRAME_RESP", frame_kind::RESP),
        ("FRAME_CORE", frame_kind::CORE),
        ("FRAME_MODULE", frame_kind::MODULE),
        ("FRAME_ARGV", frame_kind::ARGV),
        ("FRAME_PASSTHROUGH", frame_kind::PASSTHROUGH),
        ("FRAME_CLOSE", frame_kind::CLOSE),
        ("FRAME_CANCEL", frame_kind::CANCEL),
        ("FRAME_WINDOW", frame_kind::WINDOW),
        ("FRAME_GOAWAY", frame_kind::GOAWAY),
        ("FRAME_FRAGMENT", frame_kind::FRAGMENT),
        ("FRAME_UNKNOWN", frame_kind::UNKNOWN),
        ("FRAME_IGNORED", frame_kind::IGNORED),
        ("FRAME_REPLY", frame_kind::REPLY),
        ("FRAME_PUSH", frame_kind::PUSH),
    ] {
        equal(name, value.into());
    }
    for error in Malformed::ALL {
        let name = error.name().to_uppercase().replace('-', "_");
        equal(&format!("ERR_{name}"), respb::errors::number(*error).into());
    }
    for (bit, name) in flag::NAMES {
        if HEADER_FLAGS.contains(name) {
            equal(&format!("FLAG_{}", name.to_uppercase()), (*bit).into());
        }
    }
}

/// The flags that the header names.
const HEADER_FLAGS: [&str; 12] = [
    "write", "readonly", "denyoom", "admin", "pubsub", "noscript", "blocking", "loading", "stale", "fast",
    "no_auth", "no_multi",
];

fn main() {
    println!("/* Written by the example abi_asserts of weft-protocol-ffi. */");
    println!("#include \"respb.h\"");
    let mut count = 0;
    structs(&mut count);
    numbers(&mut count);
    println!("int main(void) {{ return respb_abi_version() == RESPB_ABI_VERSION ? 0 : 1; }}");
    eprintln!("{count} assertions");
}
