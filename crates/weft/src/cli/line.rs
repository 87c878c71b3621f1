//! Owns what a line says that is no command of the server: at the prompt, and from standard input. Does not own what
//! the prompt alone has, nor what is done about it.

use weft_client::Address;

/// What `:set` sets, where it is told something else.
const SETTINGS: &str = "(:set hints, :set nohints, :set pager PROGRAM, :set nopager)";

/// Times that `N COMMAND` can say.
const TIMES_MAX: u64 = 1_000_000;

/// A line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// Leave.
    Quit,
    /// Clear the screen.
    Clear,
    /// What is known of these words.
    Help(&'a [Vec<u8>]),
    /// Another server.
    Connect(Address),
    /// What is in this key.
    Peek(&'a [u8]),
    /// How the prompt is to behave.
    Set(Setting),
    /// A command, so many times.
    Command(u64, &'a [Vec<u8>]),
    /// Something that cannot be, and why.
    Wrong(&'static str),
}

/// What `:set` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    /// Hints of arguments, or none.
    Hints(bool),
    /// A pager, the words from the third on; or none.
    Pager(bool),
}

/// What the words of a line say; there is at least one.
pub(super) fn parse(words: &[Vec<u8>]) -> Line<'_> {
    let is = |word: &Vec<u8>, name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    match words {
        [only] if is(only, "quit") || is(only, "exit") => Line::Quit,
        [only] if is(only, "clear") => Line::Clear,
        [help, rest @ ..] if is(help, "help") || help == b"?" => Line::Help(rest),
        [peek, key] if is(peek, "peek") => Line::Peek(key),
        [set, rest @ ..] if set == b":set" => setting(rest).map_or(Line::Wrong(SETTINGS), Line::Set),
        [colon, ..] if colon.starts_with(b":") => Line::Wrong(SETTINGS),
        [connect, host, port] if is(connect, "connect") => {
            let port = std::str::from_utf8(port).ok().and_then(|port| port.parse().ok());
            let host = String::from_utf8_lossy(host).into_owned();
            port.map_or(Line::Wrong("(the port is no number from 0 to 65535)"), |port| {
                Line::Connect(Address::Tcp(host, port))
            })
        }
        [count, command @ ..] if !command.is_empty() && is_number(count) => {
            match std::str::from_utf8(count).ok().and_then(|count| count.parse().ok()) {
                Some(times @ 1..=TIMES_MAX) => Line::Command(times, command),
                _ => Line::Wrong("(a command can be repeated 1 to 1000000 times)"),
            }
        }
        words => Line::Command(1, words),
    }
}

fn setting(words: &[Vec<u8>]) -> Option<Setting> {
    match words {
        [only] if only == b"hints" => Some(Setting::Hints(true)),
        [only] if only == b"nohints" => Some(Setting::Hints(false)),
        [only] if only == b"nopager" => Some(Setting::Pager(false)),
        [pager, _, ..] if pager == b"pager" => Some(Setting::Pager(true)),
        _ => None,
    }
}

/// Whether a word is a number, which before a command says how often.
fn is_number(word: &[u8]) -> bool {
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_more_than_commands() {
        let words = |line: &str| line.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
        let of = |line: &str| format!("{:?}", parse(&words(line)));
        let command = |times, line: &str| format!("{:?}", Line::Command(times, &words(line)));
        assert_eq!([of("quit"), of("EXIT"), of("clear")], ["Quit", "Quit", "Clear"]);
        assert_eq!(of("3 ping"), command(3, "ping"));
        assert_eq!(of("1000000 get k"), command(1_000_000, "get k"));
        assert_eq!(of("connect ::1 7000"), format!("{:?}", Line::Connect(Address::Tcp("::1".into(), 7000))));
        for wrong in [
            "0 ping",
            "-1 ping",
            "1000001 ping",
            "99999999999999999999 ping",
            "connect h x",
            "connect h 65536",
        ] {
            assert!(of(wrong).starts_with("Wrong"), "{wrong}: {}", of(wrong));
        }
        for line in
            ["ping", "3", "-1", "connect", "connect h", "quit now", "clear k", "3x ping", "peek", "peek a b"]
        {
            assert_eq!(of(line), command(1, line), "{line}");
        }
        assert_eq!(of("peek k"), format!("{:?}", Line::Peek(b"k")));
        for (line, setting) in [
            (":set hints", Setting::Hints(true)),
            (":set nohints", Setting::Hints(false)),
            (":set pager less -S", Setting::Pager(true)),
            (":set nopager", Setting::Pager(false)),
        ] {
            assert_eq!(of(line), format!("{:?}", Line::Set(setting)), "{line}");
        }
        for wrong in [":set", ":set pager", ":set hints now", ":set colours", ":reset"] {
            assert!(of(wrong).starts_with("Wrong"), "{wrong}");
        }
        assert_eq!(of("? get"), format!("{:?}", Line::Help(&words("get"))));
    }
}
