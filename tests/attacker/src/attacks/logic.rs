//! Owns: attacks by what users may run: scripts and programs that loop, grow, and are killed. Does not
//! own: how they are written, which their pages say.

use weft_client::{Incoming, Protocol, Reply};

use crate::hostile::{Hostile, Line, Outcome, Trouble, USER, is_busy, wrong};
use crate::web::post;
use crate::words::{as_resp, frame, mutate};

/// Rounds of the loop of a script that nobody kills: it ends by itself some time. A thread that has begun to wait for
/// its lock waits until then, and with it honest clients (docs/scripts.md): without optimization and beside others a
/// round may take a microsecond, and all of them must take less than [`WAIT_MAX`](crate::WAIT_MAX).
const ROUNDS_MAX: usize = 5_000_000;

/// Scripts that want more than they get: each has an error.
const GREEDY: [&str; 10] = [
    "local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1e6) .. i end",
    "local t = {} for i = 1, 1e9 do t[i] = i end",
    "return ('x'):rep(2e9)",
    "local s = 'x' while true do s = s .. s end",
    "local s = 'x' while true do s = s:gsub('x', 'xx') end",
    "local t = {} while true do t[#t + 1] = 'xxxxxxxx' t = {table.concat(t), t[1] .. t[1]} end",
    "local function f() return 1 + f() end return f()",
    "return cjson.decode(('['):rep(1e6))",
    "local t = {} t[1] = t return cjson.encode(t)",
    "local t = {} setmetatable(t, {__index = function(u, k) return u[k + 1] end}) return t[1]",
];

/// Programs that want more than they get.
const GREEDY_PROGRAMS: [&str; 6] = [
    r#"{"steps":[{"for":"i","range":[1,1000000000000],"do":[{"let":{"x":"${i}"}}]}]}"#,
    r#"{"steps":[{"let":{"s":"xxxxxxxx"}},{"for":"i","range":[1,100],"do":[{"let":{"s":"${s}${s}"}}]}]}"#,
    r#"{"steps":[{"let":{"l":[1]}},{"for":"i","range":[1,100],"do":[{"let":{"l":{"concat":["${l}","${l}"]}}}]}]}"#,
    r#"{"steps":[{"for":"i","range":[1,1000000000],"do":[["RPUSH","a:1","${i}"]]}]}"#,
    r#"{"steps":[["SET","KEY","1"],{"for":"i","range":[1,1000000000],"do":[["INCR","KEY"]]}]}"#,
    r#"{"steps":[["SET","KEY","1"],{"fail":"NO","message":"all of it is taken back"}]}"#,
];

/// A connection of one of the wires, and how something is asked there.
struct Asking {
    line: Line,
    wire: Wire,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wire {
    Resp,
    Respb,
    Http,
}

impl Asking {
    fn new(hostile: &mut Hostile) -> Result<Self, Trouble> {
        let wire = *hostile.rng.pick(&[Wire::Resp, Wire::Respb, Wire::Http]);
        Self::over(hostile, wire)
    }

    fn over(hostile: &mut Hostile, wire: Wire) -> Result<Self, Trouble> {
        let line = match wire {
            Wire::Resp => hostile.authenticated()?,
            Wire::Respb => hostile.authenticated_respb()?,
            Wire::Http => hostile.line()?,
        };
        Ok(Self { line, wire })
    }

    fn send(&mut self, words: &[&str]) -> Outcome {
        let bytes = match self.wire {
            Wire::Resp => as_resp(words),
            Wire::Respb => frame(7, words),
            Wire::Http => match serde_json::to_vec(words) {
                Ok(body) => post("/", USER, &body),
                Err(error) => return wrong(format!("{words:?} has no JSON: {error}")),
            },
        };
        Ok(self.line.send(&bytes)?)
    }

    fn reply(&mut self) -> Result<Reply, Trouble> {
        let protocol = match self.wire {
            Wire::Resp => Protocol::Resp2,
            Wire::Respb => Protocol::Respb,
            Wire::Http => {
                let answer = self.line.answer()?;
                return answer.reply().or_else(|error| wrong(format!("{answer:?}: {error:#}")));
            }
        };
        match self.line.frame(protocol)? {
            Incoming::Reply { reply, .. } => Ok(reply),
            other => wrong(format!("a reply is {other:?}")),
        }
    }

    /// Asks until no script is in the way.
    fn ask(&mut self, words: &[&str]) -> Result<Reply, Trouble> {
        loop {
            self.send(words)?;
            let reply = self.reply()?;
            if !is_busy(&reply) {
                return Ok(reply);
            }
        }
    }
}

fn is_error(reply: &Reply, what: &str) -> Outcome {
    match reply {
        Reply::Error(_) => Ok(()),
        other => {
            let text: String = format!("{other:?}").chars().take(200).collect();
            wrong(format!("{what} is answered {text}"))
        }
    }
}

pub(super) fn greedy_scripts(hostile: &mut Hostile) -> Outcome {
    let mut asking = Asking::new(hostile)?;
    for _ in 0..hostile.rng.between(1, 4) {
        let script = *hostile.rng.pick(&GREEDY);
        let reply = asking.ask(&["EVAL", script, "1", "a:1"])?;
        is_error(&reply, script)?;
    }
    hostile.end(asking.line);
    Ok(())
}

/// Programs at the end of their budgets, and ones whose text is broken. What fails leaves nothing.
pub(super) fn greedy_programs(hostile: &mut Hostile) -> Outcome {
    let mut asking = Asking::new(hostile)?;
    for _ in 0..hostile.rng.between(1, 4) {
        let key = format!("a:program:{}", hostile.rng.next());
        let program = hostile.rng.pick(&GREEDY_PROGRAMS).replace("KEY", &key);
        let reply = asking.ask(&["PROGRAM", "EVAL", &program])?;
        is_error(&reply, &program)?;
        let left = asking.ask(&["EXISTS", &key])?;
        if left != Reply::Int(0) {
            return wrong(format!("{program} has left its key: {left:?}"));
        }
        let mut broken = program.into_bytes();
        mutate(&mut hostile.rng, &mut broken);
        let broken = String::from_utf8_lossy(&broken).into_owned();
        asking.ask(&["PROGRAM", "EVAL", &broken])?;
        let deep = hostile.rng.between(1, 100_000);
        let deep = format!("{{\"steps\":{}{}}}", "[".repeat(deep), "]".repeat(deep));
        is_error(&asking.ask(&["PROGRAM", "EVAL", &deep])?, "a deep program")?;
    }
    hostile.end(asking.line);
    Ok(())
}

/// A script that takes its time, and somebody who kills it, or whose client is gone meanwhile.
pub(super) fn killed(hostile: &mut Hostile) -> Outcome {
    let mut asking = Asking::new(hostile)?;
    let rounds = hostile.rng.between(ROUNDS_MAX / 100, ROUNDS_MAX);
    let begins = *hostile.rng.pick(&["", "", "redis.call('SET', KEYS[1], 'w')"]);
    let script = format!("{begins} local n = 0 for i = 1, {rounds} do n = n + i end return 'at its end'");
    asking.send(&["EVAL", &script, "1", "a:1"])?;
    let mut killer = Asking::over(hostile, Wire::Resp)?;
    while !hostile.is_over() {
        killer.send(&["SCRIPT", "KILL"])?;
        match killer.reply()? {
            Reply::Simple(text) if text == b"OK" => break,
            Reply::Error(_) => {}
            other => return wrong(format!("SCRIPT KILL is answered {other:?}")),
        }
    }
    hostile.end(killer.line);
    if hostile.rng.one_in(3) {
        hostile.end(asking.line);
        return Ok(());
    }
    match asking.reply()? {
        Reply::Error(_) => {}
        Reply::Bulk(text) if text == b"at its end" => {}
        other => return wrong(format!("a script that was killed is answered {other:?}")),
    }
    hostile.end(asking.line);
    Ok(())
}
