//! Vectors of every command's own layout: the smallest form, lengths, numbers, lists, options, enumerations, and each
//! way in which one of its fields can be wrong.
//!
//! It owns which cases a layout has. The bytes are [`super::layout`]'s.

use std::borrow::Cow;

use serde_json::{Value as Json, json};

use super::argument::{Arg, Args};
use super::bytes::Bytes;
use super::layout::{Length, Number, Plan, Sample, argv_frame, command_header, sample};
use super::options::Bits;
use super::vector::{Outcome, Uses, Vector};
use crate::model::Command;
use crate::respb::{Field, FieldType};

/// Doubles with their canonical texts.
pub const DOUBLES: &[(&str, f64, &str)] = &[
    ("zero", 0.0, "0"),
    ("minus-zero", -0.0, "-0"),
    ("negative", -2.25, "-2.25"),
    ("inf", f64::INFINITY, "inf"),
    ("minus-inf", f64::NEG_INFINITY, "-inf"),
    ("smallest", 5e-324, "5e-324"),
    ("largest", f64::MAX, "1.7976931348623157e+308"),
];

/// Byte lengths around the sizes of a length field.
const LENGTHS: &[(&str, Length)] = &[
    ("0", Length::Exact(0)),
    ("1", Length::Exact(1)),
    ("255", Length::Exact(255)),
    ("256", Length::Exact(256)),
    ("max", Length::Max),
];

/// Commands whose lists are also tried with 65,535 items: one for each shape of list.
const LONG_LISTS: &[&str] =
    &["MGET", "SADD", "MSET", "HSET", "ZADD", "XREAD", "EVAL", "ZUNION", "HEXPIRE", "BLPOP"];

/// The vectors of a command with a typed layout: valid and invalid.
#[must_use]
pub fn typed(command: &Command, fields: &[Field]) -> (Vec<Vector>, Vec<Vector>) {
    let cases = Cases { command, fields };
    let mut valid = vec![cases.smallest()];
    cases.lengths_and_numbers(&mut valid);
    cases.lists(&mut valid);
    cases.enumerations(&mut valid);
    let mut invalid = Vec::new();
    if let Some((field, bits)) = cases.options() {
        cases.option_sets(&bits, &mut valid);
        cases.wrong_bits(field, &bits, &mut invalid);
    }
    cases.wrong_values(&mut invalid);
    (valid, invalid)
}

/// The vectors of a command with the `args` layout.
#[must_use]
pub fn args_layout(command: &Command) -> (Vec<Vector>, Vec<Vector>) {
    let many = |arg: &str, count| {
        let mut args = Args::default();
        args.push_repeat(vec![Arg::Bytes(Bytes::from(arg))], count);
        args
    };
    let long = |len| {
        let mut args = Args::texts(&["SUB"]);
        args.push(Arg::Bytes(Bytes::repeated(b"x", len)));
        args
    };
    let valid = [
        ("0-arguments", "no argument", Args::default()),
        ("1-argument", "one argument", Args::texts(&["SUB"])),
        ("3-arguments", "three arguments", Args::texts(&["SUB", "one", "two"])),
        ("empty-arguments", "arguments of no bytes", Args::texts(&["", "", ""])),
        ("256-arguments", "256 arguments", many("a", 256)),
        ("length-255", "an argument of 255 bytes", long(255)),
        ("length-65536", "an argument longer than a str16 can say", long(65_536)),
    ];
    let valid = valid.into_iter().map(|(suffix, comment, args)| {
        let wire = command_header(command, 0).join(&args.sized());
        let comment = format!("{}: {comment}", command.full_name());
        request(
            &id(command, suffix),
            "4.4",
            comment,
            wire,
            value(command, 0, None, &args),
            &args.named(&command.full_name()),
        )
    });
    let at = command_header(command, 0).len();
    let wrong = |suffix: &str, comment: &str, payload: &[u8], offset: usize| {
        let wire = command_header(command, 0).and(payload);
        let error = ("length-mismatch", at + offset);
        Vector::invalid(
            "request",
            id(command, suffix),
            "4.4",
            format!("{}: {comment}", command.full_name()),
            wire,
            error,
        )
    };
    let invalid = vec![
        wrong(
            "argument-past-end",
            "an argument that ends behind the total",
            &[0, 0, 0, 6, 0, 0, 0, 3, b'a', b'b'],
            4,
        ),
        wrong("length-past-end", "less than a length left", &[0, 0, 0, 7, 0, 0, 0, 1, b'a', 0, 0], 9),
    ];
    (valid.collect(), invalid)
}

/// A valid request on RESPB that is canonical.
#[must_use]
pub fn request(
    id: &str,
    section: &'static str,
    comment: String,
    wire: Bytes,
    value: Json,
    argv: &Args,
) -> Vector {
    let outcome = Outcome::Valid {
        value,
        argv: Some(argv.to_resp()),
        canonical: true,
        canonical_wire: None,
        uses: Uses::All,
    };
    Vector { id: id.into(), section, comment, direction: "request", limits: Vec::new(), wire, outcome }
}

/// The value of a typed frame.
#[must_use]
pub fn value(command: &Command, channel: u16, options: Option<u16>, args: &Args) -> Json {
    let module = command.respb.as_ref().is_some_and(|respb| respb.module.is_some());
    let frame = if module { "module" } else { "core" };
    let mut value = json!({"channel": channel, "frame": frame, "command": command.full_name()});
    if let Some(bits) = options {
        value["options"] = json!(format!("0x{bits:04x}"));
    }
    value["args"] = args.to_json();
    value
}

/// The identifier of a command's vector.
#[must_use]
pub fn id(command: &Command, suffix: &str) -> String {
    format!("respb.{}.{}", command.full_name().to_lowercase(), suffix.to_lowercase().replace(' ', "-"))
}

/// A valid frame of a typed layout.
#[must_use]
pub fn typed_vector(
    command: &Command,
    fields: &[Field],
    suffix: &str,
    section: &'static str,
    comment: &str,
    plan: &Plan,
) -> Vector {
    let Sample { wire, args, options, complete, .. } = sample(command, fields, plan);
    let named = args.named(&command.full_name());
    let value = value(command, plan.channel, options, &args);
    let comment = format!("{}: {comment}", command.full_name());
    let mut vector = request(&id(command, suffix), section, comment, wire, value, &named);
    if !complete {
        not_canonical(&mut vector, Some(argv_frame(plan.channel, &named)));
    }
    vector
}

/// Says that encoding gives another wire.
pub fn not_canonical(vector: &mut Vector, wire: Option<Bytes>) {
    if let Outcome::Valid { canonical, canonical_wire, .. } = &mut vector.outcome {
        *canonical = false;
        *canonical_wire = wire;
    }
}

struct Cases<'a> {
    command: &'a Command,
    fields: &'a [Field],
}

impl<'a> Cases<'a> {
    fn vector(&self, suffix: &str, section: &'static str, comment: &str, plan: &Plan) -> Vector {
        typed_vector(self.command, self.fields, suffix, section, comment, plan)
    }

    fn smallest(&self) -> Vector {
        let module = self.command.respb.as_ref().is_some_and(|respb| respb.module.is_some());
        let section = if module { "3.4" } else { "3.3" };
        self.vector("smallest", section, "no options, as few items as the command takes", &Plan::SMALLEST)
    }

    fn options(&self) -> Option<(&'a Field, Bits<'a>)> {
        let field = self.fields.iter().find(|field| !field.bits.is_empty())?;
        Some((field, Bits::new(field)))
    }

    /// The fields outside the options, then those of each bit: lengths, integers and doubles of all that have any.
    fn lengths_and_numbers(&self, out: &mut Vec<Vector>) {
        let plain = self.fields.iter().filter(|field| field.bits.is_empty());
        let base: Vec<&Field> = plain
            .flat_map(|field| if field.items.is_empty() { std::slice::from_ref(field) } else { &field.items })
            .collect();
        self.variations("", 0, &base, out);
        if let Some((field, bits)) = self.options() {
            for (index, bit) in field.bits.iter().enumerate() {
                let prefix = format!("{}.", bit.label());
                self.variations(
                    &prefix,
                    bits.closure(1 << index),
                    &bit.fields.iter().collect::<Vec<_>>(),
                    out,
                );
            }
        }
    }

    fn variations(&self, prefix: &str, bits: u16, fields: &[&Field], out: &mut Vec<Vector>) {
        let has = |kinds: &[FieldType]| {
            fields.iter().any(|field| kinds.contains(&field.kind) && field.values.is_empty())
        };
        let plan = Plan { bits, ..Plan::SMALLEST };
        if has(&[FieldType::Str16, FieldType::Blob32]) {
            for (name, length) in LENGTHS {
                let plan = Plan { length: *length, list: self.first_list(1), ..plan.clone() };
                out.push(self.vector(
                    &format!("{prefix}length-{name}"),
                    "4.1",
                    &format!("byte fields of length {name}"),
                    &plan,
                ));
            }
        }
        let mut numbers = vec![("least", Number::Least), ("greatest", Number::Greatest)];
        if has(&[FieldType::I64]) {
            numbers.extend([("zero", Number::Zero), ("minus-one", Number::MinusOne)]);
        }
        if has(&[FieldType::I64, FieldType::U16, FieldType::U8]) {
            for (name, number) in numbers {
                let plan = Plan { number, ..plan.clone() };
                out.push(self.vector(
                    &format!("{prefix}int-{name}"),
                    "4.1",
                    &format!("integer fields: {name}"),
                    &plan,
                ));
            }
        }
        if has(&[FieldType::F64]) {
            for (name, value, text) in DOUBLES {
                let plan =
                    Plan { double: (*value, Cow::Borrowed(*text)), list: self.first_list(1), ..plan.clone() };
                out.push(self.vector(
                    &format!("{prefix}double-{name}"),
                    "E.3",
                    &format!("double fields: {text}"),
                    &plan,
                ));
            }
        }
    }

    /// The first list with so many items, so that its items show in a case that is about their fields.
    fn first_list(&self, count: usize) -> Option<(usize, usize)> {
        self.fields.iter().position(|field| field.kind == FieldType::List16).map(|index| (index, count))
    }

    fn lists(&self, out: &mut Vec<Vector>) {
        let lists = self.fields.iter().enumerate().filter(|(_, field)| field.kind == FieldType::List16);
        for (index, field) in lists {
            let mut counts = vec![0, 1, 2, 255, 256];
            counts.retain(|&count| count != usize::from(field.min.unwrap_or(0)));
            if LONG_LISTS.contains(&self.command.full_name().as_str()) {
                counts.push(65_535);
            }
            for count in counts {
                let plan = Plan { list: Some((index, count)), ..Plan::SMALLEST };
                let suffix = format!("{}-{count}", field.name);
                let few = count < usize::from(field.min.unwrap_or(0));
                let comment = if few {
                    format!("no {}: well-formed, a command error, and sent as ARGV", field.name)
                } else {
                    format!("{count} {}", field.name)
                };
                out.push(self.vector(&suffix, "4.2", &comment, &plan));
            }
        }
    }

    fn enumerations(&self, out: &mut Vec<Vector>) {
        for (index, field) in self.fields.iter().enumerate() {
            for (value, words) in
                field.values.iter().enumerate().filter(|(value, _)| (index, *value) != (0, 0))
            {
                let plan = Plan { choice: (index, value), ..Plan::SMALLEST };
                let comment = format!("{} is {words}", field.name);
                out.push(self.vector(&format!("{}-{words}", field.name), "4.1", &comment, &plan));
            }
        }
    }

    fn option_sets(&self, bits: &Bits<'_>, out: &mut Vec<Vector>) {
        for (name, set) in bits.single().into_iter().chain(bits.together()) {
            let plan = Plan { bits: set, ..Plan::SMALLEST };
            out.push(self.vector(
                &format!("with-{name}"),
                "4.3",
                &format!("options {}", bits.names(set)),
                &plan,
            ));
        }
    }

    fn wrong(
        &self,
        suffix: &str,
        section: &'static str,
        comment: &str,
        plan: &Plan,
        error: (&'static str, &str),
    ) -> Vector {
        let built = sample(self.command, self.fields, plan);
        let offset = built.offset(error.1);
        let comment = format!("{}: {comment}", self.command.full_name());
        Vector::invalid("request", id(self.command, suffix), section, comment, built.wire, (error.0, offset))
    }

    fn wrong_bits(&self, field: &Field, bits: &Bits<'_>, out: &mut Vec<Vector>) {
        for (name, set, error) in bits.wrong() {
            let plan = Plan { bits: set, ..Plan::SMALLEST };
            let comment = format!("option bits {set:#06x}: {name}");
            out.push(self.wrong(&format!("bad-{name}"), "4.3", &comment, &plan, (error, &field.name)));
        }
    }

    /// Enumerations past their last value, and NaN in every double field.
    fn wrong_values(&self, out: &mut Vec<Vector>) {
        for field in self.fields.iter().filter(|field| !field.values.is_empty()) {
            for value in [field.values.len() as u8, 0xFF] {
                let plan = Plan { raw: Some((field.name.clone(), vec![value])), ..Plan::SMALLEST };
                let comment = format!("{} has no value {value}", field.name);
                out.push(self.wrong(
                    &format!("bad-{}-{value}", field.name),
                    "4.1",
                    &comment,
                    &plan,
                    ("bad-enum", &field.name),
                ));
            }
        }
        let bits = self.options().map_or(0, |(field, bits)| {
            let doubles =
                field.bits.iter().position(|bit| bit.fields.iter().any(|field| field.kind == FieldType::F64));
            doubles.map_or(0, |index| bits.closure(1 << index))
        });
        let plan = Plan { bits, ..Plan::SMALLEST };
        let doubles = sample(self.command, self.fields, &plan).fields;
        for (path, ..) in doubles.into_iter().filter(|(_, kind, _)| *kind == FieldType::F64) {
            for (name, nan) in [("nan", 0x7FF8_0000_0000_0000u64), ("signalling-nan", 0xFFF0_0000_0000_0001)]
            {
                let raw = Some((path.clone(), nan.to_be_bytes().to_vec()));
                let plan = Plan { raw, ..plan.clone() };
                let comment = format!("{path} is not a number");
                out.push(self.wrong(
                    &format!("{path}-{name}"),
                    "4.1",
                    &comment,
                    &plan,
                    ("bad-number", &path),
                ));
            }
        }
    }
}
