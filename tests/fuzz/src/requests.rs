//! Targets for the decoders of requests: the first byte chooses the limits, the rest is a stream.

use weft_protocol::request::Texts;
use weft_protocol::respb::Frame;
use weft_protocol::{Limits, Outcome, resp, respb};

use super::arguments::{Call, Calls};
use super::differential::{assert_same, decode_one};
use super::pieces::{Subject, limits, read_all_ways};

/// A RESP decoder.
pub struct Resp(pub resp::RequestDecoder);

impl Subject for Resp {
    type Recording = Calls;
    type Frame = u32;

    fn decode(&mut self, input: &[u8], into: &mut Calls) -> Outcome<(usize, u32)> {
        match self.0.decode(input, into) {
            Outcome::Complete(frame) => {
                assert_eq!(frame.rest, &input[frame.len..]);
                Outcome::Complete((frame.len, frame.arguments))
            }
            Outcome::Incomplete { need } => Outcome::Incomplete { need },
            Outcome::Invalid(error) => Outcome::Invalid(error),
        }
    }
}

/// A RESPB decoder. Its frames are compared by channel, kind and number, and control frames by what they print.
pub struct Respb(pub respb::RequestDecoder);

impl Subject for Respb {
    type Recording = Calls;
    type Frame = (u16, u8, u16, String);

    fn decode(&mut self, input: &[u8], into: &mut Calls) -> Outcome<(usize, Self::Frame)> {
        match self.0.decode(input, into) {
            Outcome::Complete(frame) => {
                assert_eq!(frame.rest, &input[frame.len..]);
                let (kind, number, printed) = match frame.frame {
                    Frame::Core(opcode) => (0, opcode, String::new()),
                    Frame::Module(id) => (1, id.0, String::new()),
                    Frame::Argv => (2, 0, String::new()),
                    Frame::Passthrough => (3, 0, String::new()),
                    Frame::Unknown { opcode } => (4, opcode, String::new()),
                    Frame::Control(control) => (5, 0, format!("{control:?}")),
                };
                Outcome::Complete((frame.len, (frame.channel, kind, number, printed)))
            }
            Outcome::Incomplete { need } => Outcome::Incomplete { need },
            Outcome::Invalid(error) => Outcome::Invalid(error),
        }
    }
}

/// RESP requests: cut anywhere they are the same, and encoding what was read gives the same arguments again.
pub fn resp_request(data: &[u8]) {
    let Some((choice, input)) = data.split_first() else { return };
    let limits = limits(*choice);
    let read = read_all_ways(|| Resp(resp::RequestDecoder::new(limits)), input);
    let mut at = 0;
    for (len, arguments, calls) in &read.frames {
        calls.assert_in(&input[at..at + len]);
        at += len;
        let texts = calls.texts();
        assert_eq!(texts.len(), *arguments as usize);
        assert!(texts.len() <= limits.arguments_max as usize);
        if texts.is_empty() {
            continue;
        }
        let mut again = Vec::new();
        resp::encode::request(None, &Texts(&texts), &mut again);
        let mut second = Calls::default();
        let outcome = Resp(resp::RequestDecoder::new(Limits::DEFAULT)).decode(&again, &mut second);
        assert_eq!(outcome, Outcome::Complete((again.len(), texts.len() as u32)));
        assert_eq!(second.texts(), texts);
    }
}

/// RESPB requests: cut anywhere they are the same; a command that was read means the same in every frame that can say
/// it.
pub fn respb_request(data: &[u8]) {
    let Some((choice, input)) = data.split_first() else { return };
    let limits = limits(*choice);
    let read = read_all_ways(|| Respb(respb::RequestDecoder::new(limits)), input);
    let mut at = 0;
    for (len, _, calls) in &read.frames {
        let bytes = &input[at..at + len];
        if let Some(plain) = respb::RequestDecoder::new(limits).plain(&input[at..]) {
            assert_plain(plain, bytes, calls);
        }
        at += len;
        calls.assert_in(bytes);
        // Once more, for the frame itself.
        let (name, frame) = decode_one(bytes);
        if let Some(argv) = frame {
            assert_same(&argv);
            assert_fixed_point(name, calls);
        }
    }
}

/// What is seen of a frame without decoding it is what decoding gives.
fn assert_plain(plain: respb::Plain, frame: &[u8], calls: &Calls) {
    let text = |piece: respb::Piece| frame[piece.offset as usize..][..piece.len as usize].to_vec();
    let texts = match plain.payload {
        respb::Payload::Empty => vec![],
        respb::Payload::Key(key) => vec![text(key)],
        respb::Payload::Pair(key, value) => vec![text(key), text(value)],
    };
    assert_eq!(plain.len, frame.len());
    assert_eq!(Calls(calls.0.clone()).texts(), texts);
}

/// What a decoder hands out, given to the encoder as it is, gives a frame that says the same.
fn assert_fixed_point(name: Option<&'static str>, calls: &Calls) {
    let calls: Vec<Call> = name.map(Call::Keyword).into_iter().chain(calls.0.iter().cloned()).collect();
    let args: Vec<_> = calls.iter().filter_map(Call::arg).collect();
    let mut first = Vec::new();
    respb::RequestWriter::new(&mut first, 1).arguments(&args[..], respb::Mode::Exact);
    let (_, argv) = decode_one(&first);
    assert_eq!(argv, Some(Calls(calls).texts()));
}
