//! Owns: the small language that groups are written in, and making commands of it. Does not own: values
//! (`crate::dice`).
//!
//! Everything in a template stands between blanks:
//!
//! ```text
//! 4 unordered: SINTER {key}+
//! | |          |      +-- a place, here one to four times
//! | |          +--------- a word
//! | +-------------------- how replies are compared: see `compare`
//! +---------------------- how often, against the others; `first 4`: so many times at the beginning of a
//!                         round, and again now and then
//!
//! [ x ]      perhaps               ( x | y )    one of them
//! < x y >    in any order          ( x y )+     one to four times; with * up to sixty times
//! {key}#     their number, then one to four of them; also ( x y )#, and #* for up to sixty
//! {literal}  a place is one word, filled by `Dice::place` or by the group's own `places`
//! ```

use crate::compare::Rule;
use crate::dice::Dice;

/// Times that `+` and `#` repeat at most.
const REPEAT_MAX: usize = 4;
/// Times that `*` repeats at most: few as often as many.
const MANY_MAX: [usize; 4] = [3, 10, 25, 60];
/// What stands behind a node that is repeated.
const SUFFIX: [char; 3] = ['+', '#', '*'];

/// Fills places that only one group knows.
pub(crate) type Places = fn(&mut Dice, &str) -> Option<Vec<u8>>;

#[derive(Clone, Debug)]
enum Node {
    Word(String),
    Place(String),
    Perhaps(Vec<Node>),
    OneOf(Vec<Vec<Node>>),
    AnyOrder(Vec<Node>),
    Repeat { node: Box<Node>, counted: bool, many: bool },
}

/// A command with places.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    /// How often it is taken.
    pub(crate) weight: usize,
    /// So many times it stands in what begins a round of its group.
    pub(crate) first: usize,
    /// How its replies are compared.
    pub(crate) rule: Rule,
    nodes: Vec<Node>,
}

impl Template {
    /// # Panics
    /// When the text is not a template: a mistake of whoever wrote the group.
    pub(crate) fn parse(text: &str) -> Self {
        let mut tokens: Vec<&str> = text.split_ascii_whitespace().collect();
        let is_first = tokens.first() == Some(&"first");
        tokens.drain(..usize::from(is_first));
        let mut weight = 1;
        if let Some(number) = tokens.first().and_then(|token| token.parse().ok()) {
            weight = number;
            tokens.remove(0);
        }
        let mut rule = Rule::Exact;
        if let Some(name) = tokens.first().and_then(|token| token.strip_suffix(':')) {
            rule = Rule::parse(name).unwrap_or_else(|| panic!("{text}: there is no rule {name}"));
            tokens.remove(0);
        }
        let mut at = 0;
        let mut all = sequences(&tokens, &mut at, "");
        assert!(at == tokens.len() && all.len() == 1, "{text}: what does not belong stands at word {at}");
        let (weight, first) = if is_first { (0, weight) } else { (weight, 0) };
        Self { weight, first, rule, nodes: all.remove(0) }
    }

    /// The command's name, which is always a word.
    pub(crate) fn name(&self) -> (&str, Option<&str>) {
        let word = |at: usize| match self.nodes.get(at) {
            Some(Node::Word(word)) => Some(word.as_str()),
            _ => None,
        };
        (word(0).expect("a template begins with a name"), word(1))
    }

    pub(crate) fn fill(&self, dice: &mut Dice, places: Places) -> Vec<Vec<u8>> {
        let mut words = Vec::new();
        fill_all(&self.nodes, dice, places, &mut words);
        words
    }
}

/// Reads nodes up to `end`, and past it; several sequences where `|` divides them.
fn sequences(tokens: &[&str], at: &mut usize, end: &str) -> Vec<Vec<Node>> {
    let mut all = vec![Vec::new()];
    while let Some(&token) = tokens.get(*at) {
        *at += 1;
        let node = match token {
            "[" => Node::Perhaps(sequences(tokens, at, "]").remove(0)),
            "<" => Node::AnyOrder(sequences(tokens, at, ">").remove(0)),
            "(" => Node::OneOf(sequences(tokens, at, ")")),
            "|" => {
                all.push(Vec::new());
                continue;
            }
            _ if !end.is_empty() && token.trim_end_matches(SUFFIX) == end => {
                // The caller's node is repeated: it sees the suffix on the token before its place.
                return all;
            }
            _ => {
                match token.strip_prefix('{').and_then(|rest| rest.trim_end_matches(SUFFIX).strip_suffix('}'))
                {
                    Some(name) => Node::Place(name.to_string()),
                    None => Node::Word(token.to_string()),
                }
            }
        };
        let last = tokens.get(*at - 1).copied().unwrap_or_default();
        let is_word = matches!(node, Node::Word(_));
        let suffix = &last[last.trim_end_matches(SUFFIX).len()..];
        let node = match suffix {
            "" => node,
            _ if is_word => node,
            _ => Node::Repeat {
                node: Box::new(node),
                counted: suffix.contains('#'),
                many: suffix.contains('*'),
            },
        };
        all.last_mut().expect("there is one").push(node);
    }
    assert!(end.is_empty(), "{tokens:?}: {end} is missing");
    all
}

fn fill_all(nodes: &[Node], dice: &mut Dice, places: Places, words: &mut Vec<Vec<u8>>) {
    nodes.iter().for_each(|node| fill(node, dice, places, words));
}

fn fill(node: &Node, dice: &mut Dice, places: Places, words: &mut Vec<Vec<u8>>) {
    match node {
        Node::Word(word) => words.push(word.clone().into()),
        Node::Place(name) => {
            let value = places(dice, name).or_else(|| dice.place(name));
            words.push(value.unwrap_or_else(|| panic!("nobody fills {name}")));
        }
        Node::Perhaps(nodes) => {
            if dice.one_in(2) {
                fill_all(nodes, dice, places, words);
            }
        }
        Node::OneOf(all) => {
            let chosen = dice.below(all.len());
            fill_all(&all[chosen], dice, places, words);
        }
        Node::AnyOrder(nodes) => {
            let mut order: Vec<&Node> = nodes.iter().collect();
            dice.shuffle(&mut order);
            order.into_iter().for_each(|node| fill(node, dice, places, words));
        }
        Node::Repeat { node, counted, many } => {
            let most = if *many { MANY_MAX[dice.below(MANY_MAX.len())] } else { REPEAT_MAX };
            let times = 1 + dice.below(most);
            if *counted {
                words.push(times.to_string().into());
            }
            (0..times).for_each(|_| fill(node, dice, places, words));
        }
    }
}

/// Changes a command here and there: a word less, a word twice, two in the other order, an odd one, other case.
pub(crate) fn disturb(words: &mut Vec<Vec<u8>>, dice: &mut Dice) {
    if dice.one_in(8) {
        words[0].make_ascii_lowercase();
    }
    if !dice.one_in(12) || words.len() < 2 {
        return;
    }
    let at = 1 + dice.below(words.len() - 1);
    match dice.below(5) {
        0 => drop(words.remove(at)),
        1 => words.insert(at, words[at].clone()),
        2 => {
            let other = 1 + dice.below(words.len() - 1);
            words.swap(at, other);
        }
        3 => words[at] = dice.odd(),
        _ => words[at].make_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_read() {
        let template =
            Template::parse("3 unordered: SET k ( NX | XX y ) < [ GET ] EX > {key}+ ( {key} {value} )# end");
        assert_eq!(
            (template.weight, template.rule, template.name()),
            (3, Rule::Unordered, ("SET", Some("k")))
        );
        for seed in 0..200 {
            let mut words = template.fill(&mut Dice::new(seed), |_, name| Some(name.into()));
            let words: Vec<String> = words.drain(..).map(|word| String::from_utf8(word).unwrap()).collect();
            let text = words.join(" ");
            assert!(text.starts_with("SET k NX ") || text.starts_with("SET k XX y "), "{text}");
            let pairs = words.iter().filter(|word| *word == "value").count();
            let count = words.iter().find_map(|word| word.parse::<usize>().ok());
            assert_eq!(count, Some(pairs), "{text}");
            assert!(text.ends_with(" end") && text.contains(" EX ") && text.contains(" key "), "{text}");
        }
    }

    #[test]
    fn what_begins_a_round_has_no_weight() {
        let template = Template::parse("first 3 SET k v");
        assert_eq!((template.weight, template.first, template.name().0), (0, 3, "SET"));
        assert_eq!(Template::parse("SET k first").first, 0);
    }

    #[test]
    fn many_are_up_to_sixty() {
        let template = Template::parse("XADD {key} * {key}#* ( {key} {value} )*");
        let (mut counted, mut pairs) = (0, 0);
        for seed in 0..400 {
            let words = template.fill(&mut Dice::new(seed), |_, name| Some(name.into()));
            assert_eq!(words[2], b"*");
            let count: usize = String::from_utf8_lossy(&words[3]).parse().unwrap();
            assert!(words[4..4 + count].iter().all(|word| word == b"key"));
            let rest = words.len() - 4 - count;
            (counted, pairs) = (counted.max(count), pairs.max(rest / 2));
        }
        assert!((50..=60).contains(&counted) && (50..=60).contains(&pairs), "{counted}, {pairs}");
    }
}
