//! Owns: the first line of a script or library, `#!lua name=… flags=…`: what it says and what is wrong with it. Does
//! not own: what the flags change.
//!
//! The line is split as Valkey splits it, with `sdssplitargs`: words may stand in quotes, as a whole or in part, and
//! inside of double ones `\n`, `\r`, `\t`, `\b`, `\a` and `\xHH` are bytes. A NUL ends it, so that it has no end then.

use std::borrow::Cow;

/// What a script says of itself.
pub mod flag {
    /// It writes nothing.
    pub const NO_WRITES: u32 = 1 << 0;
    /// It may run when memory is used up.
    pub const ALLOW_OOM: u32 = 1 << 1;
    /// It may run on a replica that has lost its primary.
    pub const ALLOW_STALE: u32 = 1 << 2;
    /// It must not run in a cluster.
    pub const NO_CLUSTER: u32 = 1 << 3;
    /// It may use keys of several slots.
    pub const ALLOW_CROSS_SLOT: u32 = 1 << 4;
    /// It has no first line, and none of the rules that follow from one.
    pub const COMPAT: u32 = 1 << 5;

    /// The flags by name, in the order that FUNCTION LIST shows them.
    pub const NAMES: &[(u32, &str)] = &[
        (NO_WRITES, "no-writes"),
        (ALLOW_OOM, "allow-oom"),
        (ALLOW_STALE, "allow-stale"),
        (NO_CLUSTER, "no-cluster"),
        (ALLOW_CROSS_SLOT, "allow-cross-slot-keys"),
    ];

    /// Those of others that say what holds here for every script: that it locks no more than the keys that it names
    /// (Upstash).
    pub const OF_COURSE: &[&str] = &["allow-key-locking"];

    /// The flag of a name.
    #[must_use]
    pub fn of(name: &[u8]) -> Option<u32> {
        NAMES.iter().find(|(_, known)| known.as_bytes().eq_ignore_ascii_case(name)).map(|(flag, _)| *flag)
    }
}

/// A script without its first line, and what that said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Script<'s> {
    /// The source, from the end of the first line on, so that lines keep their numbers.
    pub source: &'s [u8],
    /// Bits of [`flag`].
    pub flags: u32,
}

/// Reads the first line of a script.
pub fn script(body: &[u8]) -> Result<Script<'_>, String> {
    if !body.starts_with(b"#!") {
        return Ok(Script { source: body, flags: flag::COMPAT });
    }
    let end = line_end(body).ok_or("Invalid script shebang")?;
    let words = words(&body[..end]).filter(|words| words[0].len() >= 2);
    let words = words.ok_or("Invalid engine in script shebang")?;
    let mut flags = 0;
    for word in &words[1..] {
        let list = word
            .strip_prefix(b"flags=")
            .ok_or_else(|| format!("Unknown lua shebang option: {}", shown(word)))?;
        let named = list.split(|byte| *byte == b',').filter(|_| !list.is_empty());
        let is_new = |name: &&[u8]| !flag::OF_COURSE.iter().any(|known| known.as_bytes() == *name);
        for name in named.filter(is_new) {
            // Unlike those of functions, these are told apart by case.
            let known = flag::NAMES.iter().find(|(_, known)| known.as_bytes() == name);
            flags |= known.ok_or_else(|| format!("Unexpected flag in script shebang: {}", shown(name)))?.0;
        }
    }
    engine(&words[0], |name| format!("Could not find scripting engine '{name}'"))?;
    Ok(Script { source: &body[end..], flags })
}

/// A library without its first line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library<'s> {
    /// Its name.
    pub name: Cow<'s, [u8]>,
    /// The source, from the end of the first line on.
    pub source: &'s [u8],
}

/// Reads the first line of a library.
pub fn library(body: &[u8]) -> Result<Library<'_>, String> {
    if !body.starts_with(b"#!") {
        return Err("Missing library metadata".to_owned());
    }
    let end = line_end(body).ok_or("Invalid library metadata")?;
    let mut words = words(&body[..end]).ok_or("Invalid library metadata")?.into_iter();
    let first = words.next().unwrap_or_default();
    let mut name = None;
    for word in words {
        if !word.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"name=")) {
            return Err(format!("Invalid metadata value given: {}", shown(&word)));
        }
        let value = match word {
            Cow::Borrowed(word) => Cow::Borrowed(&word[5..]),
            Cow::Owned(word) => Cow::Owned(word[5..].to_vec()),
        };
        if name.replace(value).is_some() {
            return Err("Invalid metadata value, name argument was given multiple times".to_owned());
        }
    }
    let name = name.ok_or("Library name was not given")?;
    if !is_name(&name) {
        return Err(
            "Library names can only contain letters, numbers, or underscores(_) and must be at least one \
                    character long"
                .to_owned(),
        );
    }
    engine(&first, |name| format!("Engine '{name}' not found"))?;
    Ok(Library { name, source: &body[end..] })
}

/// Whether this may be the name of a library or function.
#[must_use]
pub fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// Whether the engine is Lua; what its name begins with are the two bytes of `#!`.
fn engine(word: &[u8], error: impl Fn(&str) -> String) -> Result<(), String> {
    let name = word.get(2..).unwrap_or_default();
    if name.eq_ignore_ascii_case(b"lua") { Ok(()) } else { Err(error(&shown(name))) }
}

/// Bytes of a word that an error repeats.
const SHOWN_BYTES_MAX: usize = 128;

/// A word for an error.
fn shown(word: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&word[..word.len().min(SHOWN_BYTES_MAX)])
}

/// Where the first line ends.
fn line_end(body: &[u8]) -> Option<usize> {
    let end = body.iter().position(|byte| matches!(byte, b'\n' | 0))?;
    (body[end] == b'\n').then_some(end)
}

/// The words of a line, of which there are some; nothing if a quote is not closed.
fn words(line: &[u8]) -> Option<Vec<Cow<'_, [u8]>>> {
    // More than C's `isspace` separates words, but only these end one.
    let is_blank = |byte: u8| byte.is_ascii_whitespace() || byte == 0x0B;
    let ends = |byte: u8| matches!(byte, b' ' | b'\r' | b'\t');
    let (mut words, mut rest) = (Vec::new(), line);
    loop {
        rest = &rest[rest.iter().position(|byte| !is_blank(*byte)).unwrap_or(rest.len())..];
        if rest.is_empty() {
            break;
        }
        let plain = rest.iter().position(|byte| ends(*byte) || matches!(byte, b'"' | b'\''));
        let plain = plain.unwrap_or(rest.len());
        let (mut word, mut quote) = (Cow::Borrowed(&rest[..plain]), None);
        rest = &rest[plain..];
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            match quote {
                None if ends(byte) => break,
                None if matches!(byte, b'"' | b'\'') => quote = Some(byte),
                Some(open) if byte == open => quote = None,
                Some(open) if byte == b'\\' => {
                    let (byte, used) = escaped(after, open);
                    word.to_mut().push(byte);
                    rest = &after[used..];
                }
                _ => word.to_mut().push(byte),
            }
        }
        if quote.is_some() {
            return None;
        }
        words.push(word);
    }
    Some(words)
}

/// The byte that a backslash in quotes stands for with what follows, and how much of that belongs to it.
fn escaped(after: &[u8], quote: u8) -> (u8, usize) {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    match *after {
        [b'\'', _, ..] if quote == b'\'' => (b'\'', 1),
        [b'x', high, low, _, ..] if quote == b'"' => match (digit(high), digit(low)) {
            (Some(high), Some(low)) => (high << 4 | low, 3),
            _ => (b'x', 1),
        },
        [byte, _, ..] if quote == b'"' => {
            let known = [(b'n', b'\n'), (b'r', b'\r'), (b't', b'\t'), (b'b', 8), (b'a', 7)];
            (known.iter().find(|(letter, _)| *letter == byte).map_or(byte, |(_, byte)| *byte), 1)
        }
        _ => (b'\\', 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_a_script() {
        let read = |body: &str| script(body.as_bytes()).map(|script| script.flags);
        assert_eq!(read("return 1"), Ok(flag::COMPAT));
        assert_eq!(read("#!lua\nreturn 1"), Ok(0));
        assert_eq!(read("#!lua flags=no-writes,allow-oom\n"), Ok(flag::NO_WRITES | flag::ALLOW_OOM));
        assert_eq!(read("#!lua flags=allow-key-locking,no-writes\n"), Ok(flag::NO_WRITES));
        assert_eq!(read("#!lua flags=allow-key-locking\n"), Ok(0));
        assert_eq!(read("#!lua"), Err("Invalid script shebang".into()));
        assert_eq!(read("#!not-lua\n"), Err("Could not find scripting engine 'not-lua'".into()));
        assert_eq!(read("#!lua flags=x\n"), Err("Unexpected flag in script shebang: x".into()));
        assert_eq!(read("#!lua name=a\n"), Err("Unknown lua shebang option: name=a".into()));
    }

    #[test]
    fn name_of_a_library() {
        let read = |body: &'static str| {
            let library = library(body.as_bytes())?;
            Ok::<_, String>(String::from_utf8(library.name.into_owned()).unwrap())
        };
        assert_eq!(read("#!lua name=a_1\nx"), Ok("a_1".into()));
        assert!(read("#!lua\nx").is_err() && read("#!lua name=a b=c\nx").is_err());
        assert!(read("#!lua name=a-b\nx").is_err() && read("#!js name=a\nx").is_err());
    }

    #[test]
    fn words_may_stand_in_quotes() {
        let library = |body: &str| {
            library(body.as_bytes()).map(|library| String::from_utf8(library.name.into_owned()).unwrap())
        };
        // The bodies, and what Valkey 9.1.2 answers to FUNCTION LOAD and to EVAL.
        let no_name = "Library name was not given";
        let bad_name = "Library names can only contain letters, numbers, or underscores(_) and must be at least one \
                        character long";
        let bad = "Invalid library metadata";
        let open = "Invalid engine in script shebang";
        let option = |of: &str| Err(format!("Unknown lua shebang option: {of}"));
        let given = |of: &str| Err(format!("Invalid metadata value given: {of}"));
        for (body, named, flags) in [
            ("#!lua name=\"a\"\n", Ok("a"), option("name=a")),
            ("#!lua \"name=a\"\n", Ok("a"), option("name=a")),
            ("#!\"lua\" name=a\n", Ok("a"), option("name=a")),
            ("#!'l'ua name='a'\n", Ok("a"), option("name=a")),
            ("#!lua name=a\"b\"c\n", Ok("abc"), option("name=abc")),
            ("#!lua name=\"a\\x62\"\n", Ok("ab"), option("name=ab")),
            ("#!lua name=\"a\\x6\"\n", Ok("ax6"), option("name=ax6")),
            ("#!lua \x0bname=a\r\n", Ok("a"), option("name=a")),
            ("#!LUA NAME=a\n", Ok("a"), option("NAME=a")),
            ("#!lua name=\"a\\\"b\"\n", Err(bad_name), option("name=a\"b")),
            ("#!lua name=\"a b\"\n", Err(bad_name), option("name=a b")),
            ("#!lua name=\"\"\n", Err(bad_name), option("name=")),
            ("#!lua name=a\\\n", Err(bad_name), option("name=a\\")),
            ("#!lua name='a\n", Err(bad), Err(open.to_owned())),
            ("#!lua name=\"a\\\n", Err(bad), Err(open.to_owned())),
            ("#!'\n", Err(bad), Err(open.to_owned())),
            ("#!lua name=a\0 b\n", Err(bad), Err("Invalid script shebang".to_owned())),
            ("#!", Err(bad), Err("Invalid script shebang".to_owned())),
            (
                "#!lua\x0bname=a\n",
                Err(no_name),
                Err("Could not find scripting engine 'lua\x0bname=a'".to_owned()),
            ),
            ("#!\n", Err(no_name), Err("Could not find scripting engine ''".to_owned())),
            ("#!lua \x0c\n", Err(no_name), Ok(0)),
            ("#!js \"name=x\"\n", Err("Engine 'js' not found"), option("name=x")),
        ] {
            assert_eq!(library(body), named.map(str::to_owned).map_err(str::to_owned), "{body:?}");
            assert_eq!(script(body.as_bytes()).map(|script| script.flags), flags, "{body:?}");
        }
        assert_eq!(library("#!lua name=a \"\"\n"), given(""));
        assert_eq!(library("#!lua flags=\"no-writes\"\n"), given("flags=no-writes"));
        let flags = |body: &str| script(body.as_bytes()).map(|script| script.flags);
        assert_eq!(flags("#!lua flags=\"no-writes\"\n"), Ok(flag::NO_WRITES));
        let both = flag::NO_WRITES | flag::ALLOW_STALE;
        assert_eq!(flags("#!lua flags=no-writes flags='allow-stale'\n"), Ok(both));
    }
}
