//! Owns: the steps of a round: which commands, by whom, in which batches, and what happens between them. Does not own:
//! running them.

use std::collections::VecDeque;

use weft_protocol::table;

use crate::accepted::{self, Accepted};
use crate::compare::Rule;
use crate::dice::Dice;
use crate::groups::{Group, no_places};
use crate::mode::{Mode, Part, keep_apart};
use crate::pair::{ADMIN, Pair, Step, TEAM, TRACKER, command};
use crate::template::{Template, disturb};

/// Commands of a round, beside what it begins with.
const STEPS: usize = 120;
/// So many steps lie between the times that a group with an opening has it: databases are emptied and left.
const REOPENS: usize = 40;

/// What is common in pipelines, and goes ways of its own: mixed into every group, more where commands come in batches.
static COMMON: Group = Group { name: "common", templates: COMMON_TEMPLATES, redis: true, places: no_places };

const COMMON_TEMPLATES: &[&str] = &[
    "6 GET {key}",
    "4 SET {key} {value}",
    "2 SET {key} {value} EX {seconds}",
    "2 MGET {key}+",
    "2 MSET ( {key} {value} )+",
    "2 INCR {key}",
    "HGET {key} {element}",
    "HSET {key} {element} {value}",
    "EXPIRE {key} {seconds}",
    "LPUSH {key} {element}",
    "LPOP {key}",
    "SADD {key} {element}",
    "DEL {key}",
    "SELECT ( 0 | 1 )",
    "PING",
    "PING {value}",
];

/// A time that is far away, in seconds, and no other's.
const FAR_AWAY: &str = "5000000001";

/// A group with its templates.
#[derive(Clone)]
pub(crate) struct Prepared {
    pub(crate) group: &'static Group,
    templates: Vec<Template>,
    pub(crate) weight: usize,
}

/// What every run needs beside its groups.
pub(crate) fn common(pair: &mut Pair) -> Prepared {
    prepare(pair, &COMMON, &mut Vec::new())
}

/// A group without what one of the two does not have.
pub(crate) fn prepare(pair: &mut Pair, group: &'static Group, left_out: &mut Vec<String>) -> Prepared {
    let mut templates: Vec<Template> = group.templates.iter().map(|text| Template::parse(text)).collect();
    templates.retain(|template| {
        let (name, sub) = template.name();
        let Some(id) = table::by_name(name.as_bytes()) else { return true };
        let sub_id = sub.and_then(|sub| table::subcommand(id, sub.as_bytes()));
        let shown =
            if sub_id.is_some() { format!("{name}|{}", sub.unwrap_or_default()) } else { name.into() };
        let ours =
            weft_engine::requests::is_container(id) && sub_id.is_none() || pair.serves(sub_id.unwrap_or(id));
        let both = ours && pair.peer.has(&shown);
        if !both {
            left_out.push(format!("{shown} ({})", if ours { "the other has none" } else { "Weft has none" }));
        }
        both
    });
    let weight = templates.iter().map(|template| template.weight).sum();
    Prepared { group, templates, weight }
}

impl Prepared {
    /// What a round begins with, and brings back now and then.
    fn opening<'a>(&'a self) -> impl Iterator<Item = (&'a Self, &'a Template)> {
        let times = move |template: &'a Template| std::iter::repeat_n((self, template), template.first);
        self.templates.iter().flat_map(times)
    }
    /// A template, by chance.
    fn choose(&self, dice: &mut Dice) -> &Template {
        let mut left = dice.below(self.weight);
        let chosen = self.templates.iter().find(|template| {
            let here = left < template.weight;
            left = left.wrapping_sub(template.weight);
            here
        });
        chosen.expect("weights add up")
    }
}

/// What steps are made of.
pub(crate) struct Plan<'p> {
    /// The first is mixed into all.
    pub(crate) groups: &'p [Prepared],
    /// The first of those that a round is about.
    pub(crate) from: usize,
    pub(crate) common: &'p Prepared,
    pub(crate) accepted: &'p [Accepted],
    pub(crate) mode: Mode,
    /// Time passes on both sides as it is told, so that nothing is too short.
    pub(crate) is_told: bool,
}

impl Plan<'_> {
    /// The steps of a round.
    pub(crate) fn steps(&self, seed: u64) -> Vec<Step> {
        let mut steps = Vec::new();
        for team in 0..self.mode.teams() {
            let dice = Dice::new(seed.wrapping_add((team as u64) << 32));
            steps.extend(self.steps_of(team, dice));
        }
        leave_to_order(&mut steps);
        steps
    }

    fn steps_of(&self, team: usize, mut dice: Dice) -> Vec<Step> {
        let main = |dice: &mut Dice| &self.groups[self.from + dice.below(self.groups.len() - self.from)];
        let (one, two) = (main(&mut dice), main(&mut dice));
        // One client alone is fast; more of them meet while they wait and watch.
        let alone = dice.one_in(2);
        let in_batches = self.mode.has(Part::Batches);
        let (mut client, mut paused) = (0, false);
        let mut last: Option<(&Prepared, &Template)> = None;
        let mut steps: Vec<Step> = Vec::new();
        let mut opening: VecDeque<(&Prepared, &Template)> = one.opening().chain(two.opening()).collect();
        for _ in 0..STEPS + opening.len() {
            if opening.is_empty() && one.opening().next().is_some() && dice.one_in(REOPENS) {
                opening.extend(one.opening());
            }
            // Pipelines are one client's for a while, and of few kinds of commands.
            client = match () {
                () if alone => client,
                () if in_batches && !dice.one_in(6) => client,
                () if in_batches || dice.one_in(3) => dice.below(TEAM),
                () => 0,
            };
            let (group, template) = match last {
                _ if !opening.is_empty() => opening.pop_front().expect("it is not empty"),
                Some(last) if in_batches && dice.one_in(3) => last,
                _ => {
                    let group = match dice.below(8) {
                        0 => &self.groups[0],
                        1 => self.common,
                        2 if in_batches => self.common,
                        2..=5 => one,
                        _ => two,
                    };
                    (group, group.choose(&mut dice))
                }
            };
            let (template, mut words) = self.words((group, template), &mut dice);
            last = Some((group, template));
            if self.mode.has(Part::Threads) && !keep_apart(team, &mut words) {
                continue;
            }
            let client = team * TEAM + client;
            let ends_batch = !in_batches || dice.one_in(14);
            steps.push(Step { client, ends_batch, ..Step::new(template.rule, words) });
            self.between(&mut dice, client, &mut steps, &mut paused);
        }
        steps
    }

    /// A command that may be run: of this template, or another of its group.
    fn words<'t>(
        &self,
        (group, mut template): (&'t Prepared, &'t Template),
        dice: &mut Dice,
    ) -> (&'t Template, Vec<Vec<u8>>) {
        loop {
            let mut words = template.fill(dice, group.group.places);
            disturb(&mut words, dice);
            if (self.is_told || !may_pass(&words))
                && !is_chance(&words)
                && !is_endless(&words)
                && !self.mode.leaves_out(&words)
                && !accepted::leaves_out(self.accepted, &command(&words))
            {
                return (template, words);
            }
            template = group.choose(dice);
        }
    }

    /// What happens behind a step.
    fn between(&self, dice: &mut Dice, client: usize, steps: &mut Vec<Step>, paused: &mut bool) {
        let words = |line: &str| line.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
        let mut keyed = |dice: &mut Dice, line: &str, client: usize| {
            let mut words = words(line);
            words.insert(1, dice.place("key").expect("everybody knows keys"));
            let ends_batch = !self.mode.has(Part::Batches);
            steps.push(Step { client, ends_batch, ..Step::new(Rule::Exact, words) });
        };
        if self.mode.has(Part::Ttl) && dice.one_in(3) {
            keyed(dice, &format!("EXPIREAT {FAR_AWAY}"), client);
        }
        if self.mode.has(Part::Tracked) && client < TEAM && dice.one_in(6) {
            let line = dice.pick(&["EXISTS", "GET", "TYPE"]);
            keyed(dice, line, TRACKER);
        }
        if self.mode.has(Part::Pause) && client < TEAM {
            let line = match *paused {
                true if dice.one_in(8) => Some("CLIENT UNPAUSE"),
                false if dice.one_in(20) => Some("CLIENT PAUSE 1000000 WRITE"),
                false if dice.one_in(40) => Some("CLIENT PAUSE 1000000 ALL"),
                _ => None,
            };
            if let Some(line) = line {
                *paused = !*paused;
                steps.push(Step { client: ADMIN, ..Step::new(Rule::Exact, words(line)) });
            }
        }
        if let Some(step) = steps.last_mut().filter(|step| step.ends_batch)
            && self.is_told
            && !*paused
            && !self.mode.has(Part::Threads)
        {
            // Sometimes so much that relative times pass.
            step.after_ms = match dice.below(16) {
                0 => dice.below(200_000_000) as u64,
                1..=4 => dice.below(10) as u64,
                _ => 0,
            };
        }
    }
}

/// Whether no pause begins while one holds everything: it would be held too, and nobody would end either.
pub(crate) fn pauses_one_by_one(steps: &[Step]) -> bool {
    let mut holds_all = false;
    steps.iter().filter(|step| step.client == ADMIN).all(|step| {
        let begins = step.words.get(1).is_some_and(|word| word == b"PAUSE");
        let fits = !(begins && holds_all);
        holds_all = begins && step.words.get(3).is_some_and(|word| word == b"ALL");
        fits
    })
}

/// Whether a command sets a time that could pass while a round runs, or waits so long only.
fn may_pass(words: &[Vec<u8>]) -> bool {
    let text = |at: usize| words.get(at).map(|word| word.to_ascii_uppercase()).unwrap_or_default();
    let is_short = |at: usize, below: i64| {
        let value = words.get(at).and_then(|word| std::str::from_utf8(word).ok()?.parse::<f64>().ok());
        value.is_some_and(|value| value > 0.0 && value < below as f64)
    };
    let name = text(0);
    match &name[..] {
        b"SETEX" | b"EXPIRE" => return is_short(2, 100),
        b"PSETEX" | b"PEXPIRE" => return is_short(2, 100_000),
        b"BLPOP" | b"BRPOP" | b"BZPOPMIN" | b"BZPOPMAX" | b"BLMOVE" | b"BRPOPLPUSH" => {
            return is_short(words.len() - 1, 60);
        }
        b"BLMPOP" | b"BZMPOP" => return is_short(1, 60),
        b"WAIT" | b"WAITAOF" => return words.len() > 2 && words[words.len() - 2] != b"0",
        // An id that is the time of each side.
        b"XADD" => return words.iter().any(|word| word == b"*"),
        b"HEXPIRE" | b"HPEXPIRE" => return is_short(2, 100_000),
        // Valkey keeps what has no time left until its background work comes by.
        b"MSETEX" => {
            let passed = |at: usize| match &text(at)[..] {
                b"EXAT" => is_short(at + 1, 4_000_000_000),
                b"PXAT" => is_short(at + 1, 4_000_000_000_000),
                b"EX" => is_short(at + 1, 100),
                b"PX" => is_short(at + 1, 100_000),
                _ => false,
            };
            return (1..words.len()).any(passed);
        }
        _ => {}
    }
    (1..words.len()).any(|at| match &text(at)[..] {
        b"EX" => is_short(at + 1, 100),
        b"PX" => is_short(at + 1, 100_000),
        b"BLOCK" => is_short(at + 1, 60_000),
        _ => false,
    })
}

/// Whether chance decides what a command leaves behind, or which part of a collection it shows. BY without a star
/// leaves a set in the order of its table.
fn is_chance(words: &[Vec<u8>]) -> bool {
    let name = words[0].to_ascii_uppercase();
    if name == b"SORT" || name == b"SORT_RO" {
        return words.windows(2).any(|pair| pair[0].eq_ignore_ascii_case(b"BY") && !pair[1].contains(&b'*'));
    }
    let scans = matches!(&name[..], b"HSCAN" | b"SSCAN" | b"ZSCAN");
    words.len() == 2 && name == b"SPOP" || scans && !words.iter().any(|word| word == b"1000")
}

/// Whether a command asks for more random elements than the server can send while somebody waits for it.
fn is_endless(words: &[Vec<u8>]) -> bool {
    let name = words[0].to_ascii_uppercase();
    let count = words.get(2).and_then(|word| std::str::from_utf8(word).ok()?.parse::<i64>().ok());
    matches!(&name[..], b"HRANDFIELD" | b"SRANDMEMBER" | b"ZRANDMEMBER")
        && count.is_some_and(|count| count < -100_000)
}

/// With a small `set-max-intset-entries`, the encoding of what SUNIONSTORE and its like store follows from the order in
/// which a hash table gives its members: one integer too many makes a hash table of integers, but a text that comes
/// before it makes a listpack. A round has one or the other.
fn leave_to_order(steps: &mut Vec<Step>) {
    let is = |step: &Step, at: usize, name: &[u8]| {
        step.words.get(at).is_some_and(|word| word.eq_ignore_ascii_case(name))
    };
    if steps.iter().any(|step| is(step, 2, b"set-max-intset-entries")) {
        steps.retain(|step| {
            ![&b"SUNIONSTORE"[..], b"SDIFFSTORE", b"SINTERSTORE"].iter().any(|name| is(step, 0, name))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_a_table_is_left_out() {
        let chance = |command: &str| is_chance(&command.split(' ').map(Into::into).collect::<Vec<_>>());
        assert!(chance("SORT k by x DESC") && chance("sort_ro k LIMIT 0 1 BY ") && !chance("SORT k BY *->f"));
    }

    #[test]
    fn short_times_are_left_out() {
        let passes = |command: &str| {
            let words: Vec<Vec<u8>> = command.split(' ').map(|word| word.into()).collect();
            may_pass(&words)
        };
        assert!(
            passes("MSETEX 2 k v k v EXAT 5")
                && passes("SET k v ex 5")
                && passes("SETEX k 5 v")
                && passes("GETEX k PX 5000")
                && passes("BLPOP k 1")
        );
        assert!(
            !passes("MSETEX 1 k v EXAT 4102444800")
                && !passes("SET k v EX 5000")
                && !passes("SETEX k 0 v")
                && !passes("BLPOP k 0")
                && !passes("SET 5 5")
        );
    }
}
