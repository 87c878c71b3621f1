//! The target that compares frames: a command as a typed frame, as ARGV, as passthrough and as RESP is the same
//! command.
//!
//! The bytes choose a command of the table and build arguments that fit its layout, or nearly.

use std::collections::BTreeMap;

use weft_protocol::request::Texts;
use weft_protocol::respb::{Frame, Mode, RequestWriter};
use weft_protocol::table::{COMMANDS, CommandId, Field, Kind, Layout};
use weft_protocol::{Limits, Outcome, resp, respb};

use super::arguments::{Call, Calls};
use super::pieces::{Subject, read_all_ways};
use super::requests::{Resp, Respb};

type Argv = Vec<Vec<u8>>;

/// Decodes bytes that must be exactly one frame: the name that its opcode implies, and all arguments if it is a
/// command.
pub fn decode_one(bytes: &[u8]) -> (Option<&'static str>, Option<Argv>) {
    let mut calls = Calls::default();
    let mut decoder = respb::RequestDecoder::new(Limits::DEFAULT);
    let Outcome::Complete(frame) = decoder.decode(bytes, &mut calls) else {
        panic!("not a frame: {bytes:02x?}")
    };
    assert_eq!(frame.len, bytes.len());
    let name = frame.frame.command().map(|id| id.spec().name);
    let is_command = name.is_some() || matches!(frame.frame, Frame::Argv | Frame::Passthrough);
    let texts = name.into_iter().map(|name| name.as_bytes().to_vec()).chain(calls.texts());
    (name, is_command.then(|| texts.collect()))
}

fn encode(argv: &Argv, mode: Mode) -> (bool, Vec<u8>) {
    let mut out = Vec::new();
    let typed = RequestWriter::new(&mut out, 7).command(argv, mode);
    (typed, out)
}

/// Everything that must hold of a command, whatever its arguments.
pub fn assert_same(argv: &Argv) {
    // Exactly: every byte comes back.
    let (typed, exact) = encode(argv, Mode::Exact);
    let (name, back) = decode_one(&exact);
    assert_eq!(typed, name.is_some());
    assert_eq!(back.as_ref(), Some(argv));
    // As arguments, and as a RESP command inside a frame.
    let (mut as_argv, mut inside) = (Vec::new(), Vec::new());
    RequestWriter::new(&mut as_argv, 7).argv(&Texts(argv));
    assert_eq!(decode_one(&as_argv), (None, Some(argv.clone())));
    RequestWriter::new(&mut inside, 7).passthrough(&Texts(argv));
    assert_eq!(decode_one(&inside), (None, Some(argv.clone())));
    assert_folded(argv);
}

/// Folding changes the case of the name and of keywords and the order of options, and nothing else; folding again
/// changes nothing at all.
fn assert_folded(argv: &Argv) {
    let (typed, folded) = encode(argv, Mode::Fold);
    let (name, back) = decode_one(&folded);
    assert_eq!(typed, name.is_some());
    let back = back.expect("an encoder writes commands");
    let mut calls = Calls::default();
    let mut decoder = respb::RequestDecoder::new(Limits::DEFAULT);
    assert!(matches!(decoder.decode(&folded, &mut calls), Outcome::Complete(_)));
    assert!(back[0].eq_ignore_ascii_case(&argv[0]));
    let mut given: BTreeMap<&[u8], i64> = BTreeMap::new();
    argv[1..].iter().for_each(|text| *given.entry(text).or_default() += 1);
    let mut keywords: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
    let skip_name = usize::from(name.is_none());
    for call in calls.0.iter().filter(|call| !matches!(call, Call::Options(_))).skip(skip_name) {
        let text = call.text().expect("options are left out above");
        match call {
            Call::Keyword(_) => *keywords.entry(text.to_ascii_uppercase()).or_default() += 1,
            _ => *given.entry(&argv[1 + position(argv, &text)]).or_default() -= 1,
        }
    }
    for (text, count) in given {
        assert!(count >= 0, "{text:02x?} came back more often than it was given");
        *keywords.entry(text.to_ascii_uppercase()).or_default() -= count;
    }
    assert!(keywords.values().all(|&count| count == 0), "{argv:02x?} became {back:02x?}");
    assert_eq!(encode(&back, Mode::Fold), (typed, folded), "folding is not done after one time");
}

/// Where in the arguments behind the name this text stands.
fn position(argv: &Argv, text: &[u8]) -> usize {
    let found = argv[1..].iter().position(|given| given == text);
    found.unwrap_or_else(|| panic!("{text:02x?} was not given in {argv:02x?}"))
}

/// Takes choices from bytes; zeros when they are used up.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    fn take(&mut self, len: usize) -> Vec<u8> {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken.to_vec()
    }

    fn text(&mut self) -> Vec<u8> {
        match self.byte() {
            // Lengths around the borders of the length fields, without needing as many bytes of input.
            255 => vec![b'x'; 65_535],
            254 => vec![b'y'; 65_536],
            253 => vec![b'z'; 256],
            len => self.take(usize::from(len % 24)),
        }
    }

    fn number(&mut self) -> Vec<u8> {
        match self.byte() % 12 {
            0 => b"0".to_vec(),
            1 => i64::MAX.to_string().into_bytes(),
            2 => i64::MIN.to_string().into_bytes(),
            3 => self.word().to_string().into_bytes(),
            4 => self.byte().to_string().into_bytes(),
            5 => (-i64::from(self.word())).to_string().into_bytes(),
            6 => f64::from_be_bytes(std::array::from_fn(|_| self.byte())).to_string().into_bytes(),
            7 => (f64::from(self.word()) / 8.0).to_string().into_bytes(),
            8 => b"9223372036854775808".to_vec(),
            9 => b"-0".to_vec(),
            10 => b"inf".to_vec(),
            _ => self.text(),
        }
    }

    fn words(&mut self, words: &[&str], argv: &mut Argv) {
        for word in words {
            let lower = self.byte() % 8 == 7;
            argv.push(if lower { word.to_ascii_lowercase() } else { word.to_string() }.into_bytes());
        }
    }

    fn scalar(&mut self, field: &Field, argv: &mut Argv) {
        match field.kind {
            Kind::Str16 | Kind::Blob32 => argv.push(self.text()),
            Kind::I64 | Kind::F64 | Kind::U16 | Kind::U8 => argv.push(self.number()),
            Kind::Enum(values) => {
                let choice = usize::from(self.byte()) % values.len();
                self.words(values[choice], argv);
            }
            Kind::List(_) | Kind::Options(_) => {}
        }
    }

    fn field(&mut self, field: &Field, argv: &mut Argv) {
        self.words(field.token, argv);
        match &field.kind {
            Kind::List(list) => {
                let count = usize::from(self.byte() % 6);
                if list.counted {
                    let told = if self.byte() == 255 { count + 1 } else { count };
                    argv.push(told.to_string().into_bytes());
                }
                for index in 0..count * list.items.len() {
                    let column = if list.transposed { index / count } else { index % list.items.len() };
                    self.scalar(&list.items[column], argv);
                }
            }
            Kind::Options(options) => {
                // Any of the bits, in any order, sometimes twice.
                for _ in 0..self.byte() % 6 {
                    let bit = &options.bits[usize::from(self.byte()) % options.bits.len()];
                    self.words(bit.token, argv);
                    bit.fields.iter().for_each(|field| self.scalar(field, argv));
                }
            }
            _ => self.scalar(field, argv),
        }
    }

    /// A command of the table with arguments that fit its layout, or nearly.
    fn command(&mut self) -> Argv {
        let id = CommandId(self.word() % COMMANDS.len() as u16);
        let mut argv = Argv::new();
        match id.spec().container {
            // A subcommand goes under its container's opcode, whose layout is arguments.
            Some(container) => self.words(&[container.spec().name, id.spec().name], &mut argv),
            None => self.words(&[id.spec().name], &mut argv),
        }
        match id.spec().layout {
            Layout::Fields { fields, .. } => fields.iter().for_each(|field| self.field(field, &mut argv)),
            Layout::Args => (0..self.byte() % 6).for_each(|_| argv.push(self.text())),
        }
        self.disturb(&mut argv);
        argv
    }

    /// Now and then leaves an argument out, says one twice, swaps two or puts one in.
    fn disturb(&mut self, argv: &mut Argv) {
        let (choice, last) = (self.byte(), argv.len() - 1);
        let place = usize::from(self.byte()) % argv.len();
        match choice {
            1 if argv.len() > 1 => drop(argv.remove(place)),
            2 => argv.insert(place, argv[place].clone()),
            3 => argv.swap(place, last),
            4 => argv.push(self.text()),
            5 => argv.insert(place, self.number()),
            _ => {}
        }
    }
}

/// One command in every frame: the same arguments, however it is cut.
pub fn respb_differential(data: &[u8]) {
    let argv = Choices(data).command();
    assert_same(&argv);
    if argv.iter().map(Vec::len).sum::<usize>() > 4096 {
        return;
    }
    for mode in [Mode::Exact, Mode::Fold] {
        let (_, frame) = encode(&argv, mode);
        let read = read_all_ways(|| Respb(respb::RequestDecoder::new(Limits::DEFAULT)), &frame);
        assert_eq!(read.frames.len(), 1);
    }
    let mut resp_frame = Vec::new();
    resp::encode::request(None, &Texts(&argv), &mut resp_frame);
    let mut calls = Calls::default();
    let outcome = Resp(resp::RequestDecoder::new(Limits::DEFAULT)).decode(&resp_frame, &mut calls);
    assert_eq!(outcome, Outcome::Complete((resp_frame.len(), argv.len() as u32)));
    assert_eq!(calls.texts(), argv);
}
