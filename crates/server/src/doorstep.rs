//! Owns: connections that are refused before any worker has them: what each is told, in the protocol of its first
//! bytes. Does not own: which are refused (`crate::listener`).
//!
//! Clients of RESP and of HTTP need other answers, and a client has mostly not sent anything yet when it is accepted:
//! a few of those who are refused stand here until they have, or until their time is over.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};

use crate::http::answer::{self, Answer};
use crate::http::head;
use crate::listener::Speaks;
use crate::poll::{Poll, borrowed};

/// Connections that wait at once, each of which is an open file: who comes beyond it is answered at once.
pub(crate) const WAITING_MAX: usize = 32;
/// How long a client's first bytes are waited for.
const WAIT: Duration = Duration::from_millis(250);
/// What is received of a client that is refused, so that closing does not take the answer away from it.
const PASSED_OVER_BYTES: usize = 16 << 10;
/// A place in the poll that no listener has.
const TOKEN: u64 = (u32::MAX - 1) as u64;

/// Why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// There are as many clients as there may be.
    Full,
    /// It comes from another machine, and there is no password.
    Protected,
}

impl Refused {
    const fn line(self) -> &'static str {
        match self {
            Self::Full => "ERR max number of clients reached",
            Self::Protected => {
                "DENIED Weft is running in protected mode because protected mode is enabled and no password is set for \
                 the default user. In this mode connections are only accepted from the loopback interface. To connect \
                 from another machine, set a password (CONFIG SET requirepass, or --requirepass), or switch protected \
                 mode off (CONFIG SET protected-mode no, from this machine, or --protected-mode no) if nobody else can \
                 reach the port."
            }
        }
    }
    const fn status(self) -> u16 {
        match self {
            Self::Full => 503,
            Self::Protected => 403,
        }
    }
    fn text(self, is_http: bool, now_ms: u64) -> Vec<u8> {
        if is_http {
            return answer::last(&Answer::error(self.status(), self.line()), now_ms);
        }
        format!("-{}\r\n", self.line()).into_bytes()
    }
}

/// Those that are refused and have not been told.
#[derive(Debug, Default)]
pub(crate) struct Doorstep {
    /// In the order in which their time is over.
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    fd: OwnedFd,
    why: Refused,
    until: Instant,
}

impl Doorstep {
    /// Refuses a connection, at once where it is known what it speaks.
    pub(crate) fn refuse(
        &mut self,
        (fd, speaks): (OwnedFd, Speaks),
        why: Refused,
        (poll, now_ms): (&Poll, u64),
    ) {
        let first = first_bytes(&fd);
        let is_known = first.is_some() || speaks == Speaks::Tls;
        if !is_known && self.waiting.len() < WAITING_MAX && poll.add(borrowed(&fd), TOKEN).is_ok() {
            return self.waiting.push_back(Waiting { fd, why, until: Instant::now() + WAIT });
        }
        let is_http = first.map_or(speaks == Speaks::Http, |first| first == First::Http);
        part(&fd, &why.text(is_http, now_ms));
    }
    /// Answers those that have sent something, or have had their time.
    pub(crate) fn look(&mut self, now_ms: u64) {
        let now = Instant::now();
        self.waiting.retain(|Waiting { fd, why, until }| {
            let first = first_bytes(fd);
            let stays = first.is_none() && now < *until;
            if !stays {
                part(fd, &why.text(first == Some(First::Http), now_ms));
            }
            stays
        });
    }
    /// When it is to be looked at at the latest.
    pub(crate) fn timeout_ms(&self) -> u64 {
        let left = |waiting: &Waiting| waiting.until.saturating_duration_since(Instant::now());
        self.waiting.front().map_or(u64::MAX, |waiting| left(waiting).as_millis() as u64 + 1)
    }
}

/// What a client has begun with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Http,
    /// Something else, or its end.
    Other,
}

/// Looks at what a client has sent; nothing where it has not.
fn first_bytes(fd: &OwnedFd) -> Option<First> {
    let mut bytes = [0; 16];
    match recv(fd, &mut bytes[..], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Ok((len, _)) => {
            Some(if head::begins_with_method(&bytes[..len]) { First::Http } else { First::Other })
        }
        Err(Errno::WOULDBLOCK | Errno::INTR) => None,
        Err(_) => Some(First::Other),
    }
}

/// Says why, and ends the connection. A socket has room for one answer; whoever does not read it is closed all the
/// same.
fn part(fd: &OwnedFd, text: &[u8]) {
    let mut passed_over = [0; PASSED_OVER_BYTES];
    let _ = recv(fd, &mut passed_over[..], RecvFlags::DONTWAIT);
    let _ = send(fd, text, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    let _ = shutdown(fd, Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    struct Door {
        step: Doorstep,
        poll: Poll,
    }

    impl Door {
        fn new() -> Self {
            Self { step: Doorstep::default(), poll: Poll::new(0).expect("there is epoll") }
        }
        /// A client that has sent something, and is refused.
        fn comes(&mut self, sent: &[u8], speaks: Speaks, why: Refused) -> UnixStream {
            let (mut client, server) = UnixStream::pair().expect("a pair of sockets");
            client.write_all(sent).expect("it fits");
            self.step.refuse((server.into(), speaks), why, (&self.poll, 0));
            client
        }
        fn waits(&self) -> usize {
            self.step.waiting.len()
        }
    }

    fn text_of(mut client: UnixStream) -> String {
        let mut text = String::new();
        client.read_to_string(&mut text).expect("it ends");
        text
    }

    #[test]
    fn each_is_told_in_its_own_protocol() {
        let mut door = Door::new();
        for (sent, why, begins) in [
            (&b"GET /get/k HTTP/1.1\r\n"[..], Refused::Full, "HTTP/1.1 503 "),
            (b"POST / HTTP/1.1\r\n", Refused::Protected, "HTTP/1.1 403 "),
            (b"*1\r\n$4\r\nPING\r\n", Refused::Full, "-ERR max number of clients reached\r\n"),
            (b"GET k\r\n", Refused::Protected, "-DENIED "),
            (b"\0\0", Refused::Full, "-ERR "),
        ] {
            let text = text_of(door.comes(sent, Speaks::Any, why));
            assert!(text.starts_with(begins), "{text}");
            let in_head = |line: &str| text.contains(line) == text.starts_with("HTTP");
            assert!(in_head("Connection: close\r\n") && in_head("{\"error\":\""), "{text}");
            assert_eq!(text.contains("Retry-After"), text.starts_with("HTTP/1.1 503"), "{text}");
        }
        assert!(text_of(door.comes(b"", Speaks::Tls, Refused::Full)).starts_with("-ERR"));
        assert_eq!(door.waits(), 0);
    }

    #[test]
    fn who_has_sent_nothing_is_waited_for_a_while_and_not_by_all() {
        let mut door = Door::new();
        let mut web = door.comes(b"", Speaks::Any, Refused::Full);
        let silent = door.comes(b"", Speaks::Any, Refused::Full);
        let gone = door.comes(b"", Speaks::Http, Refused::Full);
        drop(gone);
        door.step.look(0);
        assert_eq!(door.waits(), 2, "who is gone is not waited for");
        assert!(door.step.timeout_ms() <= WAIT.as_millis() as u64 + 1);
        web.write_all(b"HEAD / HTTP/1.1\r\n").expect("it fits");
        door.step.look(0);
        assert!(text_of(web).starts_with("HTTP/1.1 503"));
        let others: Vec<_> = (1..WAITING_MAX).map(|_| door.comes(b"", Speaks::Any, Refused::Full)).collect();
        assert_eq!(door.waits(), WAITING_MAX);
        assert!(text_of(door.comes(b"", Speaks::Any, Refused::Full)).starts_with("-ERR"), "one past it");
        assert!(text_of(door.comes(b"", Speaks::Http, Refused::Full)).starts_with("HTTP/1.1 503"));
        for waiting in &mut door.step.waiting {
            waiting.until = Instant::now();
        }
        door.step.look(0);
        assert_eq!((door.waits(), door.step.timeout_ms()), (0, u64::MAX));
        assert!(text_of(silent).starts_with("-ERR"));
        drop(others);
    }
}
