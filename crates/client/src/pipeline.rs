//! Owns requests that are collected and sent together. Does not own the connection.

use weft_protocol::Reply;

use crate::codec::Encoder;
use crate::connection::{Connection, Expected, refuse};
use crate::error::{Error, Result, ServerError};

/// Requests that leave together. One that is dropped without being executed has sent nothing.
///
/// ```no_run
/// # fn main() -> Result<(), weft_client::Error> {
/// # let mut connection = weft_client::Connection::connect(&weft_client::Config::default())?;
/// let mut pipeline = connection.pipeline();
/// pipeline.add(&["SET", "k", "1"])?.add(&["INCR", "k"])?;
/// let replies = pipeline.execute()?;
/// assert_eq!(replies[1], weft_client::Reply::Int(2));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Pipeline<'a> {
    connection: &'a mut Connection,
    channel: u16,
    encoder: Encoder,
    bytes: Vec<u8>,
    expected: Vec<Expected>,
}

impl<'a> Pipeline<'a> {
    pub(crate) fn new(connection: &'a mut Connection) -> Self {
        let (channel, encoder) = connection.encoder();
        Pipeline { connection, channel, encoder, bytes: Vec::new(), expected: Vec::new() }
    }

    /// Adds a request.
    pub fn add<T: AsRef<[u8]>>(&mut self, args: &[T]) -> Result<&mut Self> {
        refuse(self.connection.session().protocol(), args)?;
        self.encoder.encode(self.channel, args, &mut self.bytes)?;
        self.expected.push(Expected::of(args));
        Ok(self)
    }

    /// How many requests were added.
    pub fn len(&self) -> usize {
        self.expected.len()
    }

    /// Whether none was added.
    pub fn is_empty(&self) -> bool {
        self.expected.is_empty()
    }

    /// Sends all and gives all replies, in order; error replies are among them.
    pub fn execute(mut self) -> Result<Vec<Reply>> {
        self.exchange()
    }

    /// The same between MULTI and EXEC, in one round trip. None when a watched key had changed; an error of the server
    /// when a command could not be queued, in which case none has run.
    pub fn execute_transaction(mut self) -> Result<Option<Vec<Reply>>> {
        let mut bytes = Vec::new();
        self.encoder.encode(self.channel, &["MULTI"], &mut bytes)?;
        bytes.append(&mut self.bytes);
        self.bytes = bytes;
        self.expected.insert(0, Expected::of(&["MULTI"]));
        self.add(&["EXEC"])?;
        let mut replies = self.exchange()?;
        let server = |text: &[u8]| Error::Server(ServerError::new(text));
        match replies.pop() {
            Some(Reply::Array(replies)) => Ok(Some(replies)),
            Some(Reply::Null | Reply::NullArray) => Ok(None),
            Some(Reply::Error(text)) => {
                // The first refusal says more than the EXECABORT that follows from it.
                let first = replies.iter().find_map(|reply| match reply {
                    Reply::Error(text) => Some(server(text)),
                    _ => None,
                });
                Err(first.unwrap_or_else(|| server(&text)))
            }
            _ => Err(self.connection.fail(Error::Unexpected("the reply to EXEC is no array"))),
        }
    }

    fn exchange(&mut self) -> Result<Vec<Reply>> {
        self.connection.idle()?;
        let count = self.expected.len();
        self.connection.send_encoded(&mut self.bytes, &mut self.expected)?;
        (0..count).map(|_| self.connection.receive()).collect()
    }
}
