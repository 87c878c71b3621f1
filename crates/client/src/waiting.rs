//! Owns how long a blocking command may take by its own words. Does not own the waiting.

use std::time::Duration;

use weft_protocol::table::{self, flag};

/// How long a reply may take, besides the usual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// The command does not block.
    Usual,
    /// It blocks for so long.
    Longer(Duration),
    /// It blocks without a limit.
    Forever,
}

impl Patience {
    /// What a command's arguments say.
    pub(crate) fn of<T: AsRef<[u8]>>(args: &[T]) -> Patience {
        let Some(id) = args.first().and_then(|name| table::by_name(name.as_ref())) else {
            return Patience::Usual;
        };
        if id.spec().flags & flag::BLOCKING == 0 {
            return Patience::Usual;
        }
        let number = |index: usize| -> Option<f64> { text(args.get(index)?.as_ref())?.parse().ok() };
        let last = args.len() - 1;
        let seconds = match id.spec().name {
            "BLMPOP" | "BZMPOP" => number(1),
            "WAIT" | "WAITAOF" => number(last).map(|ms| ms / 1000.0),
            "XREAD" | "XREADGROUP" => {
                let block = args.iter().position(|arg| arg.as_ref().eq_ignore_ascii_case(b"BLOCK"));
                match block {
                    None => return Patience::Usual,
                    Some(index) => number(index + 1).map(|ms| ms / 1000.0),
                }
            }
            _ => number(last),
        };
        match seconds.map(Duration::try_from_secs_f64) {
            Some(Ok(Duration::ZERO)) => Patience::Forever,
            Some(Ok(time)) => Patience::Longer(time),
            // The server answers a number that is none with an error, at once.
            Some(Err(_)) | None => Patience::Usual,
        }
    }

    /// The whole time, given the usual one.
    pub(crate) fn limit(self, usual: Option<Duration>) -> Option<Duration> {
        match self {
            Patience::Usual => usual,
            Patience::Longer(time) => usual.map(|usual| usual.saturating_add(time)),
            Patience::Forever => None,
        }
    }
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_say_how_long_they_block() {
        let of = |line: &str| Patience::of(&line.split(' ').collect::<Vec<_>>());
        let ms = |n| Patience::Longer(Duration::from_millis(n));
        assert_eq!(of("GET k"), Patience::Usual);
        assert_eq!(of("blpop a b 1.5"), ms(1500));
        assert_eq!(of("BRPOP a 0"), Patience::Forever);
        assert_eq!(of("BLMOVE a b LEFT RIGHT 2"), ms(2000));
        assert_eq!(of("BLMPOP 3 1 a LEFT"), ms(3000));
        assert_eq!(of("WAIT 1 250"), ms(250));
        assert_eq!(of("XREAD COUNT 1 STREAMS a $"), Patience::Usual);
        assert_eq!(of("XREAD block 40 STREAMS a $"), ms(40));
        assert_eq!(of("XREADGROUP GROUP g c BLOCK 0 STREAMS a >"), Patience::Forever);
        assert_eq!(of("BLPOP a x"), Patience::Usual);
        assert_eq!(of("BLPOP a -1"), Patience::Usual);
        assert_eq!(of("NOSUCH 1"), Patience::Usual);
        assert_eq!(Patience::of::<&str>(&[]), Patience::Usual);
    }
}
