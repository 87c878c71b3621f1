//! Every layout, read in the decoder's shorter ways and walked field by field: frames that are whole, that come
//! in two pieces, that are broken, and visitors that have no more room.
//!
//! Owns the frames, which are made from the table and a seed. The vectors (`vectors.rs`) say what is right.

use weft_protocol::respb::RequestDecoder;
use weft_protocol::respb::frame::MODULE;
use weft_protocol::table::{self, CommandSpec, Field, Kind, Layout, Opcode};
use weft_protocol::{ArgVisitor, Limits, Outcome, WireError};

/// Frames of each layout.
const ROUNDS: usize = 120;
const SEED: u64 = 0x5eed_0f1a_1a70_0e75;

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
    fn bytes(&mut self) -> Vec<u8> {
        let len = if self.one_in(40) { 300 } else { self.below(6) };
        (0..len).map(|_| self.next() as u8).collect()
    }
}

/// Appends a field that is right, as a rule.
fn put(field: &Field, rng: &mut Rng, frame: &mut Vec<u8>) {
    match &field.kind {
        Kind::Str16 => {
            let text = rng.bytes();
            frame.extend((text.len() as u16).to_be_bytes());
            frame.extend(text);
        }
        Kind::Blob32 => {
            let text = rng.bytes();
            frame.extend((text.len() as u32).to_be_bytes());
            frame.extend(text);
        }
        Kind::I64 => frame.extend(rng.next().to_be_bytes()),
        Kind::F64 if rng.one_in(30) => frame.extend(f64::NAN.to_be_bytes()),
        Kind::F64 => frame.extend((rng.below(1000) as f64 / 8.0).to_be_bytes()),
        Kind::U16 => frame.extend((rng.next() as u16).to_be_bytes()),
        Kind::U8 => frame.push(rng.next() as u8),
        Kind::Enum(values) => {
            let none = usize::from(rng.one_in(20));
            frame.push(rng.below(values.len() + none) as u8);
        }
        Kind::List(list) => {
            let count = if rng.one_in(10) { 20 } else { rng.below(4) };
            frame.extend((count as u16).to_be_bytes());
            for _ in 0..count {
                list.items.iter().for_each(|item| put(item, rng, frame));
            }
        }
        Kind::Options(options) => {
            let any = 1_u16 << options.bits.len();
            let bits = match rng.below(4) {
                0 => 0,
                1 => rng.next() as u16 % any,
                _ => 1 << rng.below(options.bits.len()),
            };
            frame.push(bits as u8);
            let given = options.bits.iter().enumerate().filter(|(place, _)| bits >> place & 1 == 1);
            given.for_each(|(_, bit)| bit.fields.iter().for_each(|field| put(field, rng, frame)));
        }
    }
}

/// What it was handed, and how much more it takes.
#[derive(Debug)]
struct Told {
    all: Vec<String>,
    room: usize,
}

impl Default for Told {
    fn default() -> Self {
        Self { all: Vec::new(), room: usize::MAX }
    }
}

impl Told {
    fn push(&mut self, text: String) {
        self.all.push(text);
        self.room = self.room.saturating_sub(1);
    }
}

impl ArgVisitor for Told {
    fn bytes(&mut self, offset: usize, bytes: &[u8]) {
        self.push(format!("{offset}: {}", bytes.escape_ascii()));
    }
    fn int(&mut self, value: i64) {
        self.push(format!("int {value}"));
    }
    fn double(&mut self, value: f64) {
        self.push(format!("double {value}"));
    }
    fn keyword(&mut self, word: &'static str) {
        self.push(word.into());
    }
    fn options(&mut self, bits: u16) {
        // That there are none is not told on the shortest ways.
        if bits != 0 {
            self.all.push(format!("options {bits}"));
        }
    }
    fn has_room(&self) -> bool {
        self.room > 0
    }
    fn quoted(&mut self, offset: usize, raw: &[u8]) {
        self.bytes(offset, raw);
    }
}

/// Appends a payload of the `args` layout, whose total is right, as a rule.
fn put_args(rng: &mut Rng, frame: &mut Vec<u8>) {
    let mut payload = Vec::new();
    for _ in 0..rng.below(5) {
        let text = rng.bytes();
        payload.extend((text.len() as u32).to_be_bytes());
        payload.extend(text);
    }
    let total = payload.len() + usize::from(rng.one_in(20));
    frame.extend((total as u32).to_be_bytes());
    frame.extend(payload);
}

/// A frame of a command, and maybe something behind it.
fn frame_of(spec: &CommandSpec, rng: &mut Rng) -> Vec<u8> {
    let mut input = match spec.opcode {
        Opcode::Core(opcode) => [opcode.to_be_bytes(), [0, 7]].concat(),
        Opcode::Module { module, command } => {
            [MODULE.to_be_bytes(), [0, 7], module.to_be_bytes(), command.to_be_bytes()].concat()
        }
    };
    match spec.layout {
        Layout::Fields { fields, .. } => fields.iter().for_each(|field| put(field, rng, &mut input)),
        Layout::Args => put_args(rng, &mut input),
    }
    let random = |rng: &mut Rng, input: &[u8]| 4 + rng.below(input.len() - 3);
    if rng.one_in(4) {
        let at = random(rng, &input);
        if let Some(byte) = input.get_mut(at) {
            *byte = rng.next() as u8;
        }
    }
    if rng.one_in(2) {
        let behind = rng.bytes();
        input.extend(behind);
    }
    if rng.one_in(8) {
        input.truncate(random(rng, &input));
    }
    input
}

/// What a decoder makes of a frame: its length and arguments, or the error; nothing of one that is not whole.
type Made = Result<(usize, Vec<String>), Option<WireError>>;

/// Feeds what ends at `cut`, and all; to a visitor that takes so much before it is asked again.
fn made(decoder: &mut RequestDecoder, input: &[u8], cut: Option<usize>, room: usize) -> Made {
    let mut told = Told { room, ..Told::default() };
    for end in cut.into_iter().chain([input.len()]) {
        loop {
            match decoder.decode(&input[..end], &mut told) {
                Outcome::Complete(frame) => {
                    assert_eq!(frame.rest.len(), end - frame.len);
                    return Ok((frame.len, told.all));
                }
                Outcome::Incomplete { need } if need > end => break,
                Outcome::Incomplete { .. } => {
                    assert_eq!(told.room, 0, "it stopped without a reason");
                    told.room = room;
                }
                Outcome::Invalid(error) => return Err(Some(error)),
            }
        }
    }
    Err(None)
}

#[test]
fn every_layout_is_read_as_it_is_walked() {
    let mut rng = Rng(SEED);
    let new = || RequestDecoder::new(Limits::DEFAULT);
    let (mut whole, mut decoder) = (0, new());
    for spec in table::COMMANDS {
        for round in 0..ROUNDS {
            let input = frame_of(spec, &mut rng);
            let walked = made(&mut RequestDecoder::walking(Limits::DEFAULT), &input, None, usize::MAX);
            whole += usize::from(walked.is_ok());
            let cut = Some(rng.below(input.len() + 1));
            for (cut, room) in [(None, usize::MAX), (cut, usize::MAX), (None, 1 + rng.below(12)), (cut, 1)] {
                // The same one, whatever it has had before; but a frame that is not whole it would wait for.
                let read = made(&mut decoder, &input, cut, room);
                if read == Err(None) {
                    decoder = new();
                }
                let case = format!("{}, round {round}, cut {cut:?}, room {room}, seed {SEED:#x}", spec.name);
                assert_eq!(read, walked, "{case}: {input:02x?}");
            }
        }
    }
    assert!(whole > table::COMMANDS.len() * ROUNDS / 2, "{whole} whole frames");
}

/// As many arguments as lists can hold, where limits allow one less, as many, and one more.
#[test]
fn long_lists_keep_to_the_limit_on_arguments() {
    let list = |count: u16| {
        let items = [0, 1, b'k'].repeat(usize::from(count));
        [&count.to_be_bytes()[..], &items].concat()
    };
    let opcode = table::COMMANDS.iter().find(|spec| spec.name == "EVAL").map(|spec| spec.opcode);
    let Some(Opcode::Core(opcode)) = opcode else { panic!("EVAL has an opcode") };
    let all = |keys: u16, more: u16| {
        let head = [opcode.to_be_bytes(), [0, 7]].concat();
        [head, vec![0, 0, 0, 1, b's'], list(keys), list(more)].concat()
    };
    for (keys, more) in [(u16::MAX, u16::MAX), (u16::MAX, u16::MAX - 1), (1, u16::MAX)] {
        let input = all(keys, more);
        // The name, the script, how many keys, and both lists.
        let count = 3 + u32::from(keys) + u32::from(more);
        for arguments_max in [count - 1, count, count + 1, 2 * u32::from(u16::MAX) + 2] {
            let limits = Limits { arguments_max, ..Limits::DEFAULT };
            let walked = made(&mut RequestDecoder::walking(limits), &input, None, usize::MAX);
            let read = made(&mut RequestDecoder::new(limits), &input, None, usize::MAX);
            assert_eq!(walked.is_ok(), count <= arguments_max, "{count} of {arguments_max}");
            assert!(read == walked, "{count} of {arguments_max}");
        }
    }
}

/// Handlers compare them as they are.
#[test]
fn keywords_are_upper_case() {
    fn words(field: &Field) -> Vec<&'static str> {
        let inside: Vec<&'static str> = match &field.kind {
            Kind::Enum(values) => values.concat(),
            Kind::List(list) => list.items.iter().flat_map(words).collect(),
            Kind::Options(options) => {
                let of = |bit: &table::Bit| [bit.token.to_vec(), bit.fields.iter().flat_map(words).collect()];
                options.bits.iter().flat_map(of).flatten().collect()
            }
            _ => Vec::new(),
        };
        [field.token.to_vec(), inside].concat()
    }
    let mut count = 0;
    for spec in table::COMMANDS {
        let Layout::Fields { fields, .. } = spec.layout else { continue };
        for word in fields.iter().flat_map(words) {
            assert_eq!(word, word.to_uppercase(), "{}", spec.name);
            count += 1;
        }
    }
    assert!(count > 150, "{count} keywords");
}
