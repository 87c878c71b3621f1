//! Owns: random commands for the proofs, and how long these run. Does not own: what is proved.

use std::time::{Duration, Instant};

use crate::dice::Dice;
use crate::groups::{GROUPS, Group};
use crate::template::{Template, disturb};

/// What the differential runs leave out: chance and time decide what these do.
const MORE: Group = Group { name: "more", templates: TEMPLATES, redis: false, places };

const TEMPLATES: &[&str] = &[
    "3 SPOP {key}",
    "SPOP {key} {count}",
    "2 SADD {key} ( {member} )+",
    "2 SADD {key} {int} {int} {int}",
    "3 EXPIRE {key} {soon}",
    "2 PEXPIRE {key} {soon-ms}",
    "SET {key} {value} PX {soon-ms}",
    "GETEX {key} PX {soon-ms}",
    "2 HSET {key} {element} {value} {element} {value}",
    "4 HPEXPIRE {key} {soon-ms} FIELDS 1 {element}",
    "2 HSETEX {key} PX {soon-ms} FIELDS 1 {element} {value}",
    "HGETEX {key} PX {soon-ms} FIELDS 1 {element}",
    "HGET {key} {element}",
    "XADD {key} * {element} {value}",
    "XREADGROUP GROUP g c COUNT {count} STREAMS {key} >",
    "2 SWAPDB 0 1",
    "SWAPDB 1 2",
    "FLUSHDB",
    "MOVE {key} 1",
    "COPY {key} {key} DB 1 REPLACE",
    "3 RENAME {key} {key}",
    "SELECT {small-db}",
    "BLPOP {key} {key} 0",
    "BLMOVE {key} {key} LEFT RIGHT 0",
    "BZPOPMIN {key} 0",
    "RPUSH {key} ( {element} )+",
    "ZADD {key} {double} {element}",
    "LPUSH {key} {long} {long} {long} {long} {long} {long} {long} {long} {long} {long} {long} {long}",
    "LTRIM {key} {index} {index}",
    "3 LREM {key} {index} {element}",
    "2 LINSERT {key} BEFORE {element} {value}",
    "2 LSET {key} {index} {value}",
    "2 HSET {key} {element} {long} {member} {long}",
    "APPEND {key} {long}",
    "SETRANGE {key} 5000 {element}",
    "SUNIONSTORE {key} {key} {key}",
    "ZUNIONSTORE {key} 2 {key} {key}",
    "SORT {key} ALPHA STORE {key}",
];

fn places(dice: &mut Dice, name: &str) -> Option<Vec<u8>> {
    Some(match name {
        "soon" => dice.pick(&["1", "2", "3"]).into(),
        "soon-ms" => dice.pick(&["1", "20", "300", "2000"]).into(),
        "small-db" => dice.pick(&["0", "0", "1", "2"]).into(),
        "member" => format!("member:{}", dice.below(300)).into_bytes(),
        "long" => vec![b'a' + dice.below(20) as u8; 200 + dice.below(3000)],
        _ => return None,
    })
}

/// All templates of all groups.
pub(crate) struct Commands {
    groups: Vec<(&'static Group, Vec<Template>)>,
}

impl Commands {
    pub(crate) fn new() -> Self {
        let parse = |group: &'static Group| {
            (group, group.templates.iter().map(|text| Template::parse(text)).collect())
        };
        Self { groups: GROUPS.iter().copied().chain([&MORE]).map(parse).collect() }
    }

    /// One command of a few groups, the same ones for the whole of a round.
    pub(crate) fn of_round(&self, dice: &mut Dice) -> [usize; 4] {
        let last = self.groups.len() - 1;
        [0, last, dice.below(last), dice.below(last)]
    }
    /// The place of a group.
    pub(crate) fn named(&self, name: &str) -> usize {
        self.groups.iter().position(|(group, _)| group.name == name).expect("there is such a group")
    }
    /// What a round of a group begins with.
    pub(crate) fn opening(&self, of: usize, dice: &mut Dice) -> Vec<Vec<Vec<u8>>> {
        let (group, templates) = &self.groups[of];
        let times = templates.iter().flat_map(|template| std::iter::repeat_n(template, template.first));
        times.map(|template| template.fill(dice, group.places)).collect()
    }
    pub(crate) fn any(&self, of: [usize; 4], dice: &mut Dice) -> Vec<Vec<u8>> {
        loop {
            let (group, templates) = &self.groups[of[dice.below(4)]];
            let mut left = dice.below(templates.iter().map(|template| template.weight).sum());
            let chosen = templates.iter().find(|template| {
                let here = left < template.weight;
                left = left.wrapping_sub(template.weight);
                here
            });
            let Some(template) = chosen else { continue };
            let mut words = template.fill(dice, group.places);
            disturb(&mut words, dice);
            if !is_left_out(&words) {
                return words;
            }
        }
    }
}

/// Commands that come in one piece, over few strings: what runs among its neighbours is told of in a row, and what has
/// several keys is one group among them.
pub(crate) fn in_one_piece(dice: &mut Dice) -> Vec<String> {
    let key = |dice: &mut Dice| format!("row:{}", dice.below(20));
    let text = |dice: &mut Dice| format!("{}:text", dice.below(1000));
    let one = |dice: &mut Dice| {
        let (first, second) = (key(dice), key(dice));
        match dice.below(20) {
            0 => format!("MSET {first} {} {second} {} {} 7", text(dice), text(dice), key(dice)),
            1 => format!("MSET {first} {}", text(dice)),
            2 => format!("DEL {first} {second}"),
            3 => format!("RENAME {first} {second}"),
            4 => format!("COPY {first} {second} REPLACE"),
            5 => format!("APPEND {first} more"),
            6 => format!("GET {first}"),
            7 => format!("SET {first} {} PX 100000", text(dice)),
            8 => format!("MSETNX {first} 1 {second} 2"),
            _ => format!("SET {first} {}", text(dice)),
        }
    };
    (0..dice.below(40)).map(|_| one(dice)).collect()
}

/// What would take too long, or needs more than an engine.
fn is_left_out(words: &[Vec<u8>]) -> bool {
    let text = |at: usize| words.get(at).map(|word| word.to_ascii_uppercase()).unwrap_or_default();
    let number = |at: usize| String::from_utf8(text(at)).ok().and_then(|text| text.parse::<i64>().ok());
    let large = |at: usize| number(at).is_some_and(|number| number.unsigned_abs() > 1 << 20);
    match &text(0)[..] {
        b"HRANDFIELD" | b"SRANDMEMBER" | b"ZRANDMEMBER" | b"SETRANGE" | b"SETBIT" | b"BITFIELD" => {
            (2..words.len()).any(large)
        }
        b"SUBSCRIBE" | b"PSUBSCRIBE" | b"MONITOR" | b"QUIT" | b"HELLO" | b"CLIENT" | b"DEBUG" => true,
        _ => false,
    }
}

/// How many rounds a proof runs: a few, or for as long as was asked for.
pub(crate) struct Rounds {
    next: u64,
    left: Option<u64>,
    until: Option<Instant>,
}

impl Rounds {
    pub(crate) fn few(rounds: u64) -> Self {
        let number = |name: &str| {
            std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
        };
        let seconds = number("WEFT_EFFECTS_SECONDS");
        Self {
            next: number("WEFT_EFFECTS_SEED").unwrap_or(1),
            left: seconds.is_none().then_some(rounds),
            until: seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds)),
        }
    }
}

impl Iterator for Rounds {
    type Item = u64;
    fn next(&mut self) -> Option<u64> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(1)?;
        }
        if self.until.is_some_and(|until| Instant::now() > until) {
            return None;
        }
        self.next += 1;
        Some(self.next - 1)
    }
}

/// Commands as text, for who reads what went wrong.
pub(crate) fn shown(words: &[Vec<u8>]) -> String {
    let show = |word: &Vec<u8>| {
        let text = word.escape_ascii().to_string();
        if text.len() > 60 { format!("{}…({})", &text[..40], word.len()) } else { text }
    };
    words.iter().map(show).collect::<Vec<_>>().join(" ")
}
