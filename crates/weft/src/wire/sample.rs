//! Commands made from the table: one example of each for the sizes, and random ones for the tests.
//!
//! Owns the way from a layout to arguments that fit it. It says nothing of what a command means: an example is
//! well-formed, and a server may still answer it with an error.

use weft_protocol::number;
use weft_protocol::table::{COMMANDS, CommandId, Field, Kind, Layout, List};

use weft_measure::Random;

/// Every command that is no subcommand.
pub(super) fn commands() -> impl Iterator<Item = CommandId> {
    let all = (0..COMMANDS.len() as u16).map(CommandId);
    all.filter(|id| id.spec().container.is_none())
}

/// Fills a layout with values.
struct Filler<'a> {
    argv: Vec<Vec<u8>>,
    /// Random values, lists and options; without it the plainest request there is: no option, lists of the fewest
    /// items.
    random: Option<&'a mut Random>,
}

/// The plainest request of a command, its name first.
pub(super) fn example(id: CommandId) -> Vec<Vec<u8>> {
    fill(id, None)
}

/// A random request of a command.
#[cfg(test)]
pub(super) fn random(id: CommandId, random: &mut Random) -> Vec<Vec<u8>> {
    fill(id, Some(random))
}

fn fill(id: CommandId, random: Option<&mut Random>) -> Vec<Vec<u8>> {
    let spec = id.spec();
    let mut filler = Filler { argv: vec![spec.name.as_bytes().to_vec()], random };
    match spec.layout {
        Layout::Fields { fields, .. } => fields.iter().for_each(|field| filler.field(field)),
        Layout::Args => {
            let least = usize::from(spec.arity.unsigned_abs()).max(1);
            let more = filler.below(4);
            while filler.argv.len() < least + more {
                let index = filler.argv.len();
                filler.text(if index == 1 { "key" } else { "argument" });
            }
        }
    }
    filler.argv
}

impl Filler<'_> {
    fn below(&mut self, bound: u64) -> usize {
        self.random.as_mut().map_or(0, |random| random.below(bound) as usize)
    }

    fn words(&mut self, words: &[&str]) {
        self.argv.extend(words.iter().map(|word| word.as_bytes().to_vec()));
    }

    /// A byte string: a short name that says what it is, or any bytes.
    fn text(&mut self, name: &str) {
        let text = match &mut self.random {
            None => name.as_bytes().to_vec(),
            Some(random) => {
                let len = random.below(24) as usize;
                (0..len).map(|_| random.next() as u8).collect()
            }
        };
        self.argv.push(text);
    }

    fn int(&mut self, value: i64) {
        self.argv.push(value.to_string().into_bytes());
    }

    fn field(&mut self, field: &Field) {
        self.words(field.token);
        match &field.kind {
            Kind::List(list) => self.list(list),
            Kind::Options(options) => {
                for (index, bit) in options.bits.iter().enumerate() {
                    let alone = options.exclusive.iter().all(|set| set >> index & 1 == 0);
                    // Of bits that depend on each other none is set: the encoder need not find them out.
                    if self.random.is_some()
                        && self.below(3) == 0
                        && alone
                        && bit.requires == 0
                        && !bit.token.is_empty()
                    {
                        self.words(bit.token);
                        bit.fields.iter().for_each(|field| self.field(field));
                    }
                }
            }
            _ => self.scalar(field),
        }
    }

    fn list(&mut self, list: &List) {
        let count = usize::from(list.min).max(1) + self.below(4);
        if list.counted {
            self.int(count as i64);
        }
        if list.transposed {
            for item in list.items {
                (0..count).for_each(|_| self.scalar(item));
            }
            return;
        }
        for _ in 0..count {
            list.items.iter().for_each(|item| self.scalar(item));
        }
    }

    fn scalar(&mut self, field: &Field) {
        let bits = self.random.as_mut().map(|random| random.next());
        match field.kind {
            Kind::Str16 | Kind::Blob32 => self.text(field.name),
            Kind::I64 => self.int(bits.map_or(10, |bits| bits as i64 >> (bits % 60))),
            Kind::U16 => self.int(bits.map_or(10, |bits| i64::from(bits as u16))),
            Kind::U8 => self.int(bits.map_or(10, |bits| i64::from(bits as u8))),
            Kind::F64 => {
                let value = bits.map_or(1.5, |bits| (bits as i32) as f64 / 8.0);
                let mut text = Vec::new();
                number::push_double(&mut text, value);
                self.argv.push(text);
            }
            Kind::Enum(values) => {
                let chosen = self.below(values.len() as u64);
                self.words(values[chosen]);
            }
            // The table has only scalars inside lists and options.
            Kind::List(_) | Kind::Options(_) => {}
        }
    }
}
