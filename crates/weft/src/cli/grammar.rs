//! Owns what may follow the words of a command, from the argument trees of the command table: for hints and completion.
//! Does not own the terminal.

use weft_protocol::table::{Argument, ArgumentKind, CommandId};

/// What may follow the words that are there.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Next {
    /// The arguments that are still to come, as they are shown.
    pub(super) rest: Vec<String>,
    /// Keywords that the next word may be.
    pub(super) tokens: Vec<&'static str>,
    /// The next word may be a key.
    pub(super) key: bool,
}

/// What came of fitting words to an argument.
enum Step {
    /// It took so many words, and there are more.
    Done(usize),
    /// It took them all, and this may follow inside it; `complete` when nothing has to.
    Open { next: Next, complete: bool },
    /// The words do not fit.
    Unfit,
}

/// What may follow a command and these arguments of it; none when they do not fit.
pub(super) fn next(command: CommandId, words: &[&[u8]]) -> Option<Next> {
    match sequence(command.arguments(), words, &[]) {
        Step::Open { next, .. } => Some(next),
        Step::Done(taken) if taken == words.len() => Some(Next::default()),
        Step::Done(_) | Step::Unfit => None,
    }
}

/// All keywords of a command.
pub(super) fn tokens(arguments: &'static [Argument], out: &mut Vec<&'static str>) {
    for argument in arguments {
        out.extend(argument.token.into_iter().flat_map(|token| token.split(' ')));
        tokens(argument.arguments, out);
    }
}

/// A whole command line of its arguments, as it is shown.
pub(super) fn syntax(command: CommandId) -> String {
    let arguments: Vec<String> = command.arguments().iter().map(shown).collect();
    let name = full_name(command);
    if arguments.is_empty() { name } else { format!("{name} {}", arguments.join(" ")) }
}

/// The name of a command, with its container's.
pub(super) fn full_name(command: CommandId) -> String {
    let spec = command.spec();
    match spec.container {
        Some(container) => format!("{} {}", container.spec().name, spec.name),
        None => spec.name.to_string(),
    }
}

/// Arguments one after the other; optional ones that stand together come in any order.
fn sequence(arguments: &'static [Argument], words: &[&[u8]], outer_stops: &[&'static str]) -> Step {
    let (mut at, mut index) = (0, 0);
    while index < arguments.len() {
        if at == words.len() {
            return open(Next::default(), true, &arguments[index..]);
        }
        let optional = arguments[index..].iter().take_while(|argument| argument.optional).count();
        let end = index + optional.max(1);
        let mut unused: Vec<&'static Argument> = arguments[index..end].iter().collect();
        let after = &arguments[end..];
        let needed = after.iter().filter(|argument| !argument.optional).count();
        while at < words.len() && !unused.is_empty() {
            let Some(place) = pick(&unused, &words[at..], optional > 0, needed) else { break };
            let argument = unused.remove(place);
            let mut stops = outer_stops.to_vec();
            let others = unused.iter().copied().chain(after);
            others.for_each(|argument| firsts(argument, &mut Next::default(), &mut stops));
            match one(argument, &words[at..], &stops) {
                Step::Done(taken) => at += taken,
                Step::Open { next, complete } => {
                    let rest: Vec<_> = unused.into_iter().chain(after).collect();
                    return open_refs(next, complete, &rest);
                }
                Step::Unfit => return Step::Unfit,
            }
        }
        if at == words.len() {
            let rest: Vec<_> = unused.into_iter().chain(after).collect();
            return if rest.is_empty() { Step::Done(at) } else { open_refs(Next::default(), true, &rest) };
        }
        index = end;
    }
    Step::Done(at)
}

/// Which of the arguments the next word begins.
fn pick(unused: &[&'static Argument], words: &[&[u8]], optional: bool, needed: usize) -> Option<usize> {
    if !optional {
        return Some(0);
    }
    let by_keyword = unused.iter().position(|argument| begins(argument, words[0]));
    // One without a keyword takes a word only when enough are left for those that must be there.
    by_keyword
        .or_else(|| unused.iter().position(|argument| takes_any(argument)).filter(|_| words.len() > needed))
}

/// Whether a word is the first keyword of an argument.
fn begins(argument: &'static Argument, word: &[u8]) -> bool {
    let mut stops = Vec::new();
    firsts(argument, &mut Next::default(), &mut stops);
    stops.iter().any(|stop| stop.as_bytes().eq_ignore_ascii_case(word))
}

/// Whether an argument may begin with any word.
fn takes_any(argument: &Argument) -> bool {
    match (argument.token, argument.kind) {
        (Some(token), _) if !token.is_empty() => false,
        (_, ArgumentKind::PureToken) => false,
        (_, ArgumentKind::Oneof) => argument.arguments.iter().any(takes_any),
        (_, ArgumentKind::Block) => argument.arguments.first().is_some_and(takes_any),
        _ => true,
    }
}

/// One argument, with its keyword and its repetitions.
fn one(argument: &'static Argument, words: &[&[u8]], stops: &[&'static str]) -> Step {
    let mut at = 0;
    let mut times = 0;
    loop {
        if times == 0 || argument.multiple_token {
            match keyword(argument, &words[at..]) {
                Ok(taken) => at += taken,
                Err(step) if times == 0 => return step,
                Err(_) => return Step::Done(at),
            }
        }
        if argument.kind != ArgumentKind::PureToken {
            match item(argument, &words[at..], stops) {
                Step::Done(taken) => at += taken,
                Step::Unfit if times == 0 => return Step::Unfit,
                Step::Unfit => return Step::Done(at),
                open => return open,
            }
        }
        times += 1;
        if !argument.multiple {
            return Step::Done(at);
        }
        if at == words.len() {
            let (mut next, mut stops) = (Next::default(), Vec::new());
            let again = if argument.multiple_token {
                firsts(argument, &mut next, &mut stops);
                once(argument)
            } else {
                body_firsts(argument, &mut next, &mut stops);
                body(argument)
            };
            next.rest.push(format!("[{again} ...]"));
            return Step::Open { next, complete: true };
        }
        if stops.iter().any(|stop| stop.as_bytes().eq_ignore_ascii_case(words[at])) {
            return Step::Done(at);
        }
    }
}

/// The words of an argument's keyword.
fn keyword(argument: &'static Argument, words: &[&[u8]]) -> Result<usize, Step> {
    let Some(token) = argument.token.filter(|token| !token.is_empty()) else { return Ok(0) };
    let mut taken = 0;
    for (index, word) in token.split(' ').enumerate() {
        match words.get(index) {
            Some(typed) if typed.eq_ignore_ascii_case(word.as_bytes()) => taken += 1,
            Some(_) => return Err(Step::Unfit),
            None => {
                let mut rest: Vec<String> = token.split(' ').skip(index).map(String::from).collect();
                rest.extend(Some(body(argument)).filter(|body| !body.is_empty()));
                let next = Next { rest, tokens: vec![word], key: false };
                return Err(Step::Open { next, complete: false });
            }
        }
    }
    Ok(taken)
}

/// What stands behind the keyword, once.
fn item(argument: &'static Argument, words: &[&[u8]], stops: &[&'static str]) -> Step {
    if words.is_empty() {
        let mut next = Next { rest: vec![body(argument)], ..Next::default() };
        body_firsts(argument, &mut next, &mut Vec::new());
        return Step::Open { next, complete: false };
    }
    match argument.kind {
        ArgumentKind::PureToken => Step::Done(0),
        ArgumentKind::Block => sequence(argument.arguments, words, stops),
        ArgumentKind::Oneof => {
            let all = argument.arguments;
            let chosen = all.iter().find(|one| begins(one, words[0]));
            match chosen.or_else(|| all.iter().find(|one| takes_any(one))) {
                Some(chosen) => one(chosen, words, stops),
                None => Step::Unfit,
            }
        }
        _ => Step::Done(1),
    }
}

fn open(next: Next, complete: bool, after: &'static [Argument]) -> Step {
    open_refs(next, complete, &after.iter().collect::<Vec<_>>())
}

/// Adds what follows behind an argument that the words ended in.
fn open_refs(mut next: Next, complete: bool, after: &[&'static Argument]) -> Step {
    next.rest.extend(after.iter().map(|argument| shown(argument)));
    let mut reached = complete;
    for argument in after {
        if reached {
            firsts(argument, &mut next, &mut Vec::new());
        }
        reached &= argument.optional;
    }
    Step::Open { next, complete: reached }
}

/// What an argument may begin with.
fn firsts(argument: &Argument, next: &mut Next, stops: &mut Vec<&'static str>) {
    match argument.token.and_then(|token| token.split(' ').next()).filter(|token| !token.is_empty()) {
        Some(token) => {
            next.tokens.push(token);
            stops.push(token);
        }
        None => body_firsts(argument, next, stops),
    }
}

/// The same of what stands behind the keyword.
fn body_firsts(argument: &Argument, next: &mut Next, stops: &mut Vec<&'static str>) {
    match argument.kind {
        ArgumentKind::Key => next.key = true,
        ArgumentKind::Oneof => argument.arguments.iter().for_each(|one| firsts(one, next, stops)),
        ArgumentKind::Block => {
            for argument in argument.arguments {
                firsts(argument, next, stops);
                if !argument.optional {
                    break;
                }
            }
        }
        _ => {}
    }
}

/// An argument as it is shown: `[NX|XX]`, `key [key ...]`, `EX seconds`.
fn shown(argument: &Argument) -> String {
    let once = once(argument);
    let text = match (argument.multiple, argument.multiple_token) {
        (true, true) => format!("{once} [{once} ...]"),
        (true, false) => format!("{once} [{} ...]", body(argument)),
        _ => once,
    };
    match (argument.optional, argument.kind) {
        (true, _) => format!("[{text}]"),
        (false, ArgumentKind::Oneof) if argument.token.is_none() => format!("<{text}>"),
        _ => text,
    }
}

fn once(argument: &Argument) -> String {
    let body = body(argument);
    match argument.token {
        Some("") => format!("\"\" {body}").trim_end().to_string(),
        Some(token) if body.is_empty() => token.to_string(),
        Some(token) => format!("{token} {body}"),
        None => body,
    }
}

fn body(argument: &Argument) -> String {
    let parts = argument.arguments.iter();
    match argument.kind {
        ArgumentKind::PureToken => String::new(),
        ArgumentKind::Oneof => {
            parts.map(|one| shown(&Argument { optional: false, ..*one })).collect::<Vec<_>>().join("|")
        }
        ArgumentKind::Block => parts.map(shown).collect::<Vec<_>>().join(" "),
        _ => argument.display_text.unwrap_or(argument.name).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_protocol::table::{COMMANDS, by_name, subcommand};

    fn after(line: &str) -> Option<Next> {
        let mut words = line.split(' ').map(str::as_bytes);
        let mut command = by_name(words.next().unwrap()).unwrap();
        let mut words: Vec<&[u8]> = words.collect();
        if let Some(sub) = words.first().and_then(|word| subcommand(command, word)) {
            command = sub;
            words.remove(0);
        }
        next(command, &words)
    }

    fn rest(line: &str) -> String {
        after(line).map_or("-".into(), |next| next.rest.join(" "))
    }

    #[test]
    fn hints_shrink_as_words_are_typed() {
        assert_eq!(rest("get"), "key");
        assert_eq!(rest("get k"), "");
        assert_eq!(rest("get k more"), "-");
        let set = "[NX|XX|IFEQ comparison-value] [GET] [EX seconds|PX milliseconds|EXAT unix-time-seconds|\
                   PXAT unix-time-milliseconds|KEEPTTL]";
        assert_eq!(rest("set k v"), set);
        assert_eq!(rest("set k v ex"), "seconds [NX|XX|IFEQ comparison-value] [GET]");
        assert_eq!(rest("set k v ex 5 nx"), "[GET]");
        assert_eq!(rest("set k v what"), "-");
        assert_eq!(rest("mget"), "key [key ...]");
        assert_eq!(rest("mget a b"), "[key ...]");
        assert_eq!(rest("mset a"), "value");
        assert_eq!(rest("mset a 1"), "[key value ...]");
        assert_eq!(rest("sintercard 2 a b limit"), "limit");
        assert_eq!(rest("client setname"), "connection-name");
        assert_eq!(rest("zadd z nx 1"), "member");
        assert_eq!(rest("object encoding"), "key");
    }

    #[test]
    fn keywords_and_keys_are_told() {
        let next = after("set k v").unwrap();
        assert!(next.tokens.contains(&"KEEPTTL") && next.tokens.contains(&"NX") && !next.key);
        let next = after("set k v ex 5").unwrap();
        assert!(next.tokens.contains(&"GET") && !next.tokens.contains(&"PX"));
        assert!(after("get").unwrap().key && after("mget a").unwrap().key && after("del a b").unwrap().key);
        assert!(after("xread count 2 streams").unwrap().key);
        assert!(!after("set k").unwrap().key);
    }

    #[test]
    fn every_command_can_be_shown_and_followed() {
        for id in (0..COMMANDS.len() as u16).map(CommandId) {
            let whole = next(id, &[]).unwrap();
            assert_eq!(syntax(id), format!("{} {}", full_name(id), whole.rest.join(" ")).trim_end());
            // Whatever is typed, it ends.
            for (word, times) in [("a", 1), ("1", 7), ("STREAMS", 4), ("LIMIT", 9)] {
                let _ = next(id, &vec![word.as_bytes(); times]);
            }
        }
    }
}
