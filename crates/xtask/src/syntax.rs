//! The syntax line of a command, built from its argument tree.
//!
//! It owns the notation: capitals are typed as they are, `<name>` stands for a value, `[…]` may be left out, `(a | b)`
//! is one of several, `…` marks what may be repeated.

use crate::model::{Argument, ArgumentType, Command};

/// The whole line: name and arguments.
#[must_use]
pub fn line(command: &Command) -> String {
    let mut words = vec![command.full_name()];
    words.extend(command.arguments.iter().map(argument));
    words.join(" ")
}

fn argument(argument: &Argument) -> String {
    let body = given(argument);
    if argument.optional { format!("[{body}]") } else { body }
}

/// The argument as if it were not optional.
fn given(argument: &Argument) -> String {
    let token = argument.token.as_deref().map(quoted);
    let own = body(argument);
    let once = match (&token, own.as_str()) {
        (Some(token), "") => token.clone(),
        (Some(token), own) => format!("{token} {own}"),
        (None, own) => own.to_owned(),
    };
    if !argument.multiple {
        return once;
    }
    // With a token before it, only the rest is repeated unless the token is too.
    let unit = if argument.multiple_token || token.is_none() { &once } else { &own };
    let unit = if is_single(unit) { unit.clone() } else { format!("({unit})") };
    match token {
        Some(token) if !argument.multiple_token => format!("{token} {unit}…"),
        _ => format!("{unit}…"),
    }
}

/// What stands after the token.
fn body(argument: &Argument) -> String {
    match argument.kind {
        ArgumentType::PureToken => String::new(),
        ArgumentType::Block => argument.arguments.iter().map(self::argument).collect::<Vec<_>>().join(" "),
        ArgumentType::Oneof => {
            let alternatives: Vec<_> = argument.arguments.iter().map(given).collect();
            let joined = alternatives.join(" | ");
            // An optional choice has its brackets already.
            let bare = argument.optional && argument.token.is_none() && !argument.multiple;
            if bare || alternatives.len() == 1 { joined } else { format!("({joined})") }
        }
        _ => format!("<{}>", argument.display_text.as_ref().unwrap_or(&argument.name)),
    }
}

/// An empty token is a value that has to be typed as an empty string.
fn quoted(token: &str) -> String {
    if token.is_empty() { "\"\"".to_owned() } else { token.to_owned() }
}

/// True for one word, or for one pair of parentheses around everything.
fn is_single(text: &str) -> bool {
    if !text.contains(' ') {
        return true;
    }
    let mut depth = 0_i32;
    let mut closed_early = false;
    for (index, byte) in text.bytes().enumerate() {
        depth += i32::from(byte == b'(') - i32::from(byte == b')');
        closed_early |= depth == 0 && index + 1 < text.len();
    }
    !closed_early
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model;

    fn line_of(arguments: &str) -> String {
        let text = format!(
            r#"{{"name": "X", "group": "g", "summary": "s", "complexity": "c", "since": "1.0.0", "arity": 1,
            "flags": [], "acl_categories": [], "key_specs": [], "keys": {{"first": 0, "last": 0, "step": 0}},
            "arguments": {arguments}}}"#
        );
        line(&model::parse("x.json", &text).unwrap())
    }

    #[test]
    fn notation() {
        assert_eq!(line_of("[]"), "X");
        assert_eq!(line_of(r#"[{"name": "key", "type": "key", "multiple": true}]"#), "X <key>…");
        assert_eq!(
            line_of(r#"[{"name": "n", "type": "integer", "token": "COUNT", "optional": true}]"#),
            "X [COUNT <n>]"
        );
        assert_eq!(
            line_of(
                r#"[{"name": "get", "type": "string", "token": "GET", "optional": true, "multiple": true,
                "multiple_token": true}]"#
            ),
            "X [(GET <get>)…]"
        );
        assert_eq!(
            line_of(
                r#"[{"name": "data", "type": "block", "multiple": true, "arguments": [
                {"name": "key", "type": "key"}, {"name": "value", "type": "string"}]}]"#
            ),
            "X (<key> <value>)…"
        );
        let choice = r#"{"name": "c", "type": "oneof", OPT "arguments": [
            {"name": "nx", "type": "pure-token", "token": "NX"},
            {"name": "xx", "type": "pure-token", "token": "XX"}]}"#;
        assert_eq!(line_of(&format!("[{}]", choice.replace("OPT", ""))), "X (NX | XX)");
        assert_eq!(line_of(&format!("[{}]", choice.replace("OPT", r#""optional": true,"#))), "X [NX | XX]");
        assert_eq!(line_of(&format!("[{}]", choice.replace("OPT", r#""multiple": true,"#))), "X (NX | XX)…");
    }
}
