//! What a run of a fleet counts, and how it ended. Owns the adding up.

/// Different error texts that are kept; further ones are counted under the last.
pub const ERROR_TEXTS_MAX: usize = 16;
/// Bytes of an error text that are kept.
const ERROR_TEXT_BYTES_MAX: usize = 100;
/// What further error texts are counted under.
const OTHER_ERRORS: &str = "(other errors)";

/// How a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ended {
    /// All that was sent was answered.
    #[default]
    Done,
    /// Somebody asked for the end, and the answers that were due did not come soon enough after that.
    Stopped,
    /// Requests were due an answer, and none came for the longest time that is waited.
    Stalled,
    /// No connection was left.
    Lost,
}

/// What a run counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that were given to sockets.
    pub requests: u64,
    /// Replies to them, errors included.
    pub replies: u64,
    /// Error replies, and errors inside replies.
    pub errors: u64,
    /// Nulls and empty aggregates: what was asked for was not there.
    pub misses: u64,
    /// Pushes, which answer nothing.
    pub pushes: u64,
    /// Connections that sent what is no reply, or a reply that nobody had asked for; each was closed.
    pub malformed: u64,
    /// Connections and channels that the server closed.
    pub closed: u64,
    /// Requests whose reply never came.
    pub lost: u64,
    /// Bytes given to sockets.
    pub sent_bytes: u64,
    /// Bytes taken from sockets.
    pub received_bytes: u64,
    /// Calls of `send`.
    pub sends: u64,
    /// Calls of `recv`.
    pub receives: u64,
    /// Error texts with how often each came; at most [`ERROR_TEXTS_MAX`].
    pub error_texts: Vec<(String, u64)>,
    /// How it ended.
    pub ended: Ended,
}

impl Counts {
    /// Whether everything was answered, and nothing with an error.
    pub fn is_clean(&self) -> bool {
        self.errors + self.malformed + self.closed + self.lost == 0 && self.ended == Ended::Done
    }

    /// Notes an error's text.
    pub(crate) fn error_text(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(ERROR_TEXT_BYTES_MAX)]).into_owned();
        self.add_text(without_arguments(&text), 1);
    }

    fn add_text(&mut self, text: String, count: u64) {
        if let Some((_, counted)) = self.error_texts.iter_mut().find(|(known, _)| *known == text) {
            *counted += count;
        } else if self.error_texts.len() + 1 < ERROR_TEXTS_MAX {
            self.error_texts.push((text, count));
        } else if text != OTHER_ERRORS {
            self.add_other(count);
        } else {
            self.error_texts.push((text, count));
        }
    }

    fn add_other(&mut self, count: u64) {
        match self.error_texts.iter_mut().find(|(known, _)| known == OTHER_ERRORS) {
            Some((_, counted)) => *counted += count,
            None => self.error_texts.push((OTHER_ERRORS.to_string(), count)),
        }
    }

    /// Adds another thread's counts. The worse end is the end of both.
    pub fn add(&mut self, other: &Counts) {
        self.requests += other.requests;
        self.replies += other.replies;
        self.errors += other.errors;
        self.misses += other.misses;
        self.pushes += other.pushes;
        self.malformed += other.malformed;
        self.closed += other.closed;
        self.lost += other.lost;
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
        self.sends += other.sends;
        self.receives += other.receives;
        self.ended = self.ended.max(other.ended);
        other.error_texts.iter().for_each(|(text, count)| self.add_text(text.clone(), *count));
    }
}

/// The text without what differs from one request to the next: the arguments of a command that is unknown, the slot of
/// a redirection.
fn without_arguments(text: &str) -> String {
    if let Some((text, _)) = text.split_once(", with args beginning with:") {
        return text.to_string();
    }
    let mut words = text.splitn(3, ' ');
    match (words.next(), words.next(), words.next()) {
        (Some(code @ ("MOVED" | "ASK")), Some(_), Some(node)) => format!("{code} to {node}"),
        _ => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_one_whatever_their_arguments() {
        let mut counts = Counts::default();
        for i in 0..100 {
            counts.error_text(
                format!("ERR unknown command 'X', with args beginning with: 'key:{i}' ").as_bytes(),
            );
            counts.error_text(format!("MOVED {i} 10.0.0.1:7000").as_bytes());
        }
        let expected =
            [("ERR unknown command 'X'".to_string(), 100), ("MOVED to 10.0.0.1:7000".to_string(), 100)];
        assert_eq!(counts.error_texts, expected);
    }

    #[test]
    fn error_texts_are_bounded() {
        let mut counts = Counts::default();
        for i in 0..100 {
            counts.error_text(format!("ERR number {i}").as_bytes());
            counts.error_text(b"ERR number 0");
        }
        assert_eq!(counts.error_texts.len(), ERROR_TEXTS_MAX);
        assert_eq!(counts.error_texts[0], ("ERR number 0".to_string(), 101));
        assert_eq!(counts.error_texts.iter().map(|(_, count)| count).sum::<u64>(), 200);
        let mut sum = Counts { ended: Ended::Lost, ..Counts::default() };
        sum.add(&counts);
        sum.add(&counts);
        assert_eq!(sum.error_texts.len(), ERROR_TEXTS_MAX);
        assert_eq!(sum.error_texts.iter().map(|(_, count)| count).sum::<u64>(), 400);
        assert_eq!(sum.ended, Ended::Lost);
    }
}
