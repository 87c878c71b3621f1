//! Owns what the line editor asks for while somebody types: completion, hints, colours. Does not own the editor, which
//! is `rustyline`, nor what may follow a word, which is [`grammar`]'s.

use std::borrow::Cow;
use std::cell::RefCell;
use std::time::Duration;

use rustyline::completion::{Completer, Pair};
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};
use weft_client::{Config, Connection, Timeouts};
use weft_protocol::table::{self, COMMANDS, CommandId};

use super::words::{self, Word, typed};
use super::{grammar, help, keys};

/// The longest wait for keys to complete with.
const KEYS_WAIT: Duration = Duration::from_millis(500);
/// Keys that are offered.
const KEYS_MAX: usize = 100;
/// Words of the prompt itself.
const OWN_COMMANDS: &[&str] = &["help", "peek", "connect", "clear", "quit", "exit"];

const COMMAND: &str = "\x1b[1;32m";
const UNKNOWN: &str = "\x1b[31m";
const TOKEN: &str = "\x1b[36m";
const TEXT: &str = "\x1b[33m";
const NUMBER: &str = "\x1b[35m";
const DIM: &str = "\x1b[90m";
const PROMPT: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// What the editor asks.
pub(super) struct Assistant {
    pub(super) colors: bool,
    pub(super) hints: bool,
    /// A connection of its own, so that completing disturbs no transaction and no reply; made when it is first needed.
    live: RefCell<Live>,
}

/// Where live keys come from.
#[derive(Default)]
struct Live {
    config: Option<Config>,
    connection: Option<Connection>,
}

/// The command that a line begins with, and the words behind it.
fn command(words: &[Word]) -> Option<(CommandId, &[Word])> {
    let id = table::by_name(&words.first()?.text)?;
    match words.get(1).and_then(|word| table::subcommand(id, &word.text)) {
        Some(sub) => Some((sub, &words[2..])),
        None => Some((id, &words[1..])),
    }
}

fn texts(words: &[Word]) -> Vec<&[u8]> {
    words.iter().map(|word| word.text.as_slice()).collect()
}

impl Assistant {
    pub(super) fn new(colors: bool) -> Assistant {
        Assistant { colors, hints: true, live: RefCell::default() }
    }

    /// Keys come from here now; none while there is no server.
    pub(super) fn set_server(&self, config: Option<Config>) {
        let mut live = self.live.borrow_mut();
        let same = match (&live.config, &config) {
            (Some(old), Some(new)) => {
                (&old.address, old.db, &old.username, &old.password)
                    == (&new.address, new.db, &new.username, &new.password)
            }
            _ => false,
        };
        if !same {
            live.connection = None;
        }
        live.config = config;
    }

    fn keys(&self, prefix: &[u8]) -> Vec<Vec<u8>> {
        let mut live = self.live.borrow_mut();
        let Live { config: Some(config), connection } = &mut *live else { return Vec::new() };
        if !connection.as_mut().is_some_and(Connection::is_open) {
            let mut config = config.clone().with_timeouts(Timeouts::all(Some(KEYS_WAIT)));
            (config.channel, config.name) = (0, None);
            *connection = Connection::connect(&config).ok();
        }
        let Some(open) = connection else { return Vec::new() };
        keys::with_prefix(open, prefix, KEYS_MAX).unwrap_or_default()
    }

    /// The words that may stand where the cursor is, as they are typed.
    fn candidates(&self, before: &[Word], current: &Word) -> Vec<String> {
        let prefix = current.text.as_slice();
        let Some(first) = before.first() else {
            let commands = COMMANDS.iter().filter(|spec| spec.container.is_none()).map(|spec| spec.name);
            return matching(commands.chain(OWN_COMMANDS.iter().copied()), prefix);
        };
        if first.is("help") {
            return match before.len() {
                1 => {
                    let groups = help::groups();
                    let names = COMMANDS.iter().filter(|spec| spec.container.is_none()).map(|spec| spec.name);
                    matching(names.chain(groups.iter().map(String::as_str)), prefix)
                }
                _ => table::by_name(&before[1].text).map(|id| subcommands(id, prefix)).unwrap_or_default(),
            };
        }
        if first.is("peek") {
            return self.keys(prefix).iter().map(|key| typed(key)).collect();
        }
        let Some((id, arguments)) = command(before) else { return Vec::new() };
        let mut found = if before.len() == 1 { subcommands(id, prefix) } else { Vec::new() };
        if let Some(next) = grammar::next(id, &texts(arguments)) {
            if !current.quoted {
                found.extend(matching(next.tokens.into_iter(), prefix));
            }
            if next.key {
                found.extend(self.keys(prefix).iter().map(|key| typed(key)));
            }
        }
        found
    }
}

fn subcommands(id: CommandId, prefix: &[u8]) -> Vec<String> {
    matching(table::subcommands(id).map(|sub| sub.spec().name), prefix)
}

/// The words that begin with a prefix in any case, in the case of the prefix.
fn matching<'a>(words: impl Iterator<Item = &'a str>, prefix: &[u8]) -> Vec<String> {
    let lower = !prefix.iter().any(u8::is_ascii_uppercase);
    let begins = |word: &&str| {
        word.len() >= prefix.len() && word.as_bytes()[..prefix.len()].eq_ignore_ascii_case(prefix)
    };
    let in_case = |word: &str| if lower { word.to_ascii_lowercase() } else { word.to_ascii_uppercase() };
    let mut found: Vec<String> = words.filter(begins).map(in_case).collect();
    found.sort();
    found.dedup();
    found
}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let mut before = words::split(&line[..pos]);
        let at_word =
            before.last().is_some_and(|word| word.end == pos && (word.broken || !word.text.is_empty()));
        let empty = Word { start: pos, end: pos, text: Vec::new(), quoted: false, broken: false };
        let current = if at_word { before.pop().unwrap_or(empty) } else { empty };
        // A number repeats the command behind it.
        if before.first().is_some_and(is_count) {
            before.remove(0);
        }
        let candidates = self.candidates(&before, &current);
        // When there is nothing to choose, the next word can be typed at once.
        let end = if candidates.len() == 1 { " " } else { "" };
        let pair = |word: String| Pair { replacement: format!("{word}{end}"), display: word };
        Ok((current.start, candidates.into_iter().map(pair).collect()))
    }
}

/// Whether a word is the number of times in `N COMMAND`.
fn is_count(word: &Word) -> bool {
    !word.quoted && !word.text.is_empty() && word.text.iter().all(u8::is_ascii_digit)
}

impl Hinter for Assistant {
    type Hint = Shown;

    fn hint(&self, line: &str, pos: usize, _: &Context<'_>) -> Option<Shown> {
        if !self.hints || pos < line.len() {
            return None;
        }
        let words = words::split(line);
        let words = &words[usize::from(words.first().is_some_and(is_count))..];
        let (id, arguments) = command(words)?;
        let next = grammar::next(id, &texts(arguments))?;
        let rest = next.rest.join(" ");
        let blank = if line.ends_with(char::is_whitespace) { "" } else { " " };
        (!rest.is_empty()).then(|| Shown(format!("{blank}{rest}")))
    }
}

/// A hint that is looked at, and not taken with the right arrow: it has no values.
pub(super) struct Shown(String);

impl rustyline::hint::Hint for Shown {
    fn display(&self) -> &str {
        &self.0
    }
    fn completion(&self) -> Option<&str> {
        None
    }
}

impl Highlighter for Assistant {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        if !self.colors {
            return Cow::Borrowed(line);
        }
        let words = words::split(line);
        let command = command(&words);
        let mut tokens = Vec::new();
        if let Some((id, _)) = command {
            grammar::tokens(id.arguments(), &mut tokens);
        }
        let arguments = command.map_or(words.len(), |(_, arguments)| arguments.len());
        let (mut out, mut at) = (String::with_capacity(line.len() + 32), 0);
        for (index, word) in words.iter().enumerate() {
            let name = index < words.len() - arguments;
            let typed = &line[word.start..word.end];
            let color = match () {
                () if name => COMMAND,
                () if index == 0 && OWN_COMMANDS.iter().any(|own| word.is(own)) => COMMAND,
                () if index == 0 && command.is_none() && word.end < line.len() && !is_count(word) => UNKNOWN,
                () if word.quoted => TEXT,
                () if typed == "|" => DIM,
                () if tokens.iter().any(|token| word.is(token)) => TOKEN,
                () if typed.parse::<f64>().is_ok() => NUMBER,
                () => "",
            };
            out.push_str(&line[at..word.start]);
            out.push_str(color);
            out.push_str(typed);
            if !color.is_empty() {
                out.push_str(PLAIN);
            }
            at = word.end;
        }
        out.push_str(&line[at..]);
        Cow::Owned(out)
    }

    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        if self.colors { Cow::Owned(format!("{PROMPT}{prompt}{PLAIN}")) } else { Cow::Borrowed(prompt) }
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        if self.colors { Cow::Owned(format!("{DIM}{hint}{PLAIN}")) } else { Cow::Borrowed(hint) }
    }

    fn highlight_char(&self, _: &str, _: usize, kind: CmdKind) -> bool {
        self.colors && kind != CmdKind::MoveCursor
    }
}

impl Validator for Assistant {}

impl Helper for Assistant {}

#[cfg(test)]
mod tests {
    use super::*;
    use rustyline::history::DefaultHistory;

    fn completed(line: &str) -> (usize, Vec<String>) {
        let history = DefaultHistory::new();
        let assistant = Assistant::new(false);
        let (start, pairs) = assistant.complete(line, line.len(), &Context::new(&history)).unwrap();
        (start, pairs.into_iter().map(|pair| pair.replacement).collect())
    }

    fn hint(line: &str) -> Option<String> {
        let history = DefaultHistory::new();
        Assistant::new(false).hint(line, line.len(), &Context::new(&history)).map(|hint| hint.0)
    }

    #[test]
    fn commands_subcommands_and_options_are_completed() {
        assert_eq!(completed("getd"), (0, vec!["getdel ".to_string()]));
        assert_eq!(completed("GETD"), (0, vec!["GETDEL ".to_string()]));
        assert_eq!(completed("client setn"), (7, vec!["setname ".to_string()]));
        assert_eq!(completed("set k v ke"), (8, vec!["keepttl ".to_string()]));
        assert_eq!(completed("5 incrb").1, ["incrby", "incrbyfloat"]);
        assert_eq!(completed("help @stri"), (5, vec!["@string ".to_string()]));
        let (start, tokens) = completed("SET k v ");
        assert_eq!(start, 8);
        assert!(tokens.contains(&"nx".to_string()) && tokens.contains(&"keepttl".to_string()), "{tokens:?}");
        assert!(completed("nosuch ").1.is_empty());
    }

    #[test]
    fn hints_follow_what_is_typed() {
        assert_eq!(hint("get").as_deref(), Some(" key"));
        assert_eq!(hint("mget ").as_deref(), Some("key [key ...]"));
        assert_eq!(hint("3 get").as_deref(), Some(" key"));
        assert_eq!(hint("get k"), None);
        assert_eq!(hint("nosuch"), None);
        assert_eq!(hint(""), None);
    }

    #[test]
    fn colours_change_no_text() {
        let mut assistant = Assistant::new(true);
        let line = "SET \"a b\" 12 EX 5 | cat";
        let plain = |text: &str| {
            let mut out = String::new();
            let mut rest = text;
            while let Some(at) = rest.find('\x1b') {
                out.push_str(&rest[..at]);
                rest = rest[at..].split_once('m').unwrap().1;
            }
            out + rest
        };
        let shown = assistant.highlight(line, 0).into_owned();
        assert_eq!(plain(&shown), line);
        assert!(shown.starts_with("\x1b[1;32mSET\x1b[0m \x1b[33m\"a b\""), "{shown:?}");
        assert!(assistant.highlight("nosuch k", 0).starts_with(UNKNOWN));
        assistant.colors = false;
        assert_eq!(assistant.highlight(line, 0), line);
    }
}
