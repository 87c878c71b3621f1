//! Owns: the first line of a script or library, `#!lua name=… flags=…`: what it says and what is wrong with it. Does
//! not
//! own: what the flags change.

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
    let end = body.iter().position(|byte| *byte == b'\n').ok_or("Invalid script shebang")?;
    let mut words = words(&body[..end]);
    engine(words.next().unwrap_or_default(), "Could not find scripting engine")?;
    let mut flags = 0;
    for word in words {
        let list = word
            .strip_prefix(b"flags=")
            .ok_or_else(|| format!("Unknown lua shebang option: {}", String::from_utf8_lossy(word)))?;
        let named = list.split(|byte| *byte == b',').filter(|_| !list.is_empty());
        let is_new = |name: &&[u8]| !flag::OF_COURSE.iter().any(|known| known.as_bytes() == *name);
        for name in named.filter(is_new) {
            // Unlike those of functions, these are told apart by case.
            let known = flag::NAMES.iter().find(|(_, known)| known.as_bytes() == name);
            flags |= known
                .ok_or_else(|| {
                    format!("Unexpected flag in script shebang: {}", String::from_utf8_lossy(name))
                })?
                .0;
        }
    }
    Ok(Script { source: &body[end..], flags })
}

/// A library without its first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Library<'s> {
    /// Its name.
    pub name: &'s [u8],
    /// The source, from the end of the first line on.
    pub source: &'s [u8],
}

/// Reads the first line of a library.
pub fn library(body: &[u8]) -> Result<Library<'_>, String> {
    if !body.starts_with(b"#!") {
        return Err("Missing library metadata".to_owned());
    }
    let end = body.iter().position(|byte| *byte == b'\n').ok_or("Invalid library metadata")?;
    let mut words = words(&body[..end]);
    let first = words.next().unwrap_or_default();
    let mut name = None;
    for word in words {
        let value = word
            .get(..5)
            .filter(|start| start.eq_ignore_ascii_case(b"name="))
            .map(|_| &word[5..])
            .ok_or_else(|| format!("Invalid metadata value given: {}", String::from_utf8_lossy(word)))?;
        if name.replace(value).is_some() {
            return Err("Invalid metadata value, name argument was given multiple times".to_owned());
        }
    }
    let name = name.ok_or("Library name was not given")?;
    if !is_name(name) {
        return Err(
            "Library names can only contain letters, numbers, or underscores(_) and must be at least one \
                    character long"
                .to_owned(),
        );
    }
    let engine = &first[2..];
    if !engine.eq_ignore_ascii_case(b"lua") {
        return Err(format!("Engine '{}' not found", String::from_utf8_lossy(engine)));
    }
    Ok(Library { name, source: &body[end..] })
}

/// Whether this may be the name of a library or function.
#[must_use]
pub fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

fn engine(word: &[u8], error: &str) -> Result<(), String> {
    let name = &word[2..];
    if name.eq_ignore_ascii_case(b"lua") {
        return Ok(());
    }
    Err(format!("{error} '{}'", String::from_utf8_lossy(name)))
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty())
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
            library(body.as_bytes()).map(|library| std::str::from_utf8(library.name).unwrap())
        };
        assert_eq!(read("#!lua name=a_1\nx"), Ok("a_1"));
        assert!(read("#!lua\nx").is_err() && read("#!lua name=a b=c\nx").is_err());
        assert!(read("#!lua name=a-b\nx").is_err() && read("#!js name=a\nx").is_err());
    }
}
