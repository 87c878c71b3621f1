//! Owns: requests on a stack of their own: what goes in, what comes out, the door between. Does not own: the stack,
//! when something goes there (`crate::executor`).

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use weft_lua::fiber::Inside;

use crate::args::{Args, Composed};
use crate::reply::{Output, OutputPlace};
use crate::requests::What;
use crate::script::space::Space;
use crate::session::Session;
use crate::waits::Serving;

/// Bytes of arguments whose memory is kept.
const KEPT_BYTES_MAX: usize = 8 << 10;

/// Requests of one client that run there, one behind the other.
#[derive(Debug)]
pub struct Job {
    pub(crate) asked: Vec<(What, Composed)>,
    /// So many of them; the others are there for their memory.
    pub(crate) count: usize,
    pub(crate) session: Session,
    pub(crate) output: Output,
    /// The worker's state of Lua.
    pub(crate) space: Option<Box<Space>>,
    /// Who waits for what the requests have written, and is to be served by later steps, or behind a script that keeps
    /// what that needs.
    pub(crate) serving: VecDeque<Serving>,
    /// What has been taken of the worker's turn, in nanoseconds; nothing where there are no turns.
    pub(crate) turn_ns: Option<u64>,
    pub(crate) done: Arc<Mutex<Done>>,
}

/// How far the requests have come, also for who looks while one of them is left.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// Those that have run.
    pub(crate) ran: usize,
    /// Their replies, as far as nobody has taken them.
    pub(crate) output: Output,
    /// Where the last one of those begins.
    pub(crate) last: OutputPlace,
    /// Nothing more is begun once the replies take more bytes.
    pub(crate) bytes_max: usize,
    /// Nothing more is begun.
    pub(crate) stops: bool,
    /// The last epoch in which they have told something: their replies wait until that is safe.
    pub(crate) told_epoch: u64,
    /// Nanoseconds that they were charged with.
    pub(crate) charged_ns: u64,
}

impl Done {
    pub(crate) fn is_over(&self) -> bool {
        self.stops || self.output.len() > self.bytes_max
    }
}

impl Job {
    /// One that asks for nothing yet.
    pub(crate) fn new(stand_in: Session) -> Box<Self> {
        Box::new(Self {
            asked: Vec::new(),
            count: 0,
            session: stand_in,
            output: Output::default(),
            space: None,
            serving: VecDeque::new(),
            turn_ns: None,
            done: Arc::default(),
        })
    }
    /// Asks for one more. Says how many bytes it has.
    pub(crate) fn ask(&mut self, what: What, args: &Args<'_>) -> usize {
        if self.asked.len() == self.count {
            self.asked.push((what, Composed::default()));
        }
        let (place, words) = &mut self.asked[self.count];
        *place = what;
        words.copy(args);
        self.count += 1;
        words.bytes()
    }
    /// Forgets what was asked, and keeps the memory that short requests take.
    pub(crate) fn rest(&mut self) {
        let bytes = self.asked.iter().map(|(_, words)| words.bytes()).sum::<usize>();
        if bytes > KEPT_BYTES_MAX {
            self.asked.truncate(1);
        }
        self.asked.iter_mut().for_each(|(_, words)| words.clear());
        self.count = 0;
    }
}

/// What goes in.
#[derive(Debug)]
pub enum Input {
    /// A request.
    Job(Box<Job>),
    /// The one that was left goes on.
    GoOn,
    /// The executor ends.
    End,
}

/// What comes out.
#[derive(Debug)]
pub enum JobOutcome {
    /// The request has run.
    Done(Box<Job>),
    /// It takes its time.
    Left,
}

/// From inside.
pub type Door = Inside<Input, JobOutcome>;
