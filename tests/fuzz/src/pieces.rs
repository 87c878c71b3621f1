//! Feeding a stream to a decoder in pieces: however it is cut, the same must come out.
//!
//! It owns the cuts and what a decoder has promised about them. It knows no encoding.

use weft_protocol::{Limits, Outcome, WireError};

/// What a decoder hands out, as a record that can be compared.
pub trait Recording: Default + PartialEq + std::fmt::Debug {
    /// How many calls were recorded.
    fn len(&self) -> usize;
    /// Whether this begins with all of the other.
    fn starts_with(&self, other: &Self) -> bool;
}

/// One decoder under test.
pub trait Subject {
    /// What it hands out.
    type Recording: Recording;
    /// What it says of a whole frame, for comparison.
    type Frame: PartialEq + std::fmt::Debug;
    /// Decodes the frame at the start of `input`; gives its length too.
    fn decode(&mut self, input: &[u8], into: &mut Self::Recording) -> Outcome<(usize, Self::Frame)>;
}

/// How a stream ended.
#[derive(Debug, PartialEq)]
pub enum End {
    /// At the end of a frame, or inside one.
    Incomplete,
    /// Malformed, at this offset in the frame.
    Invalid(WireError),
}

/// Frames with their lengths and what was handed out for them.
pub type Frames<S> = Vec<(usize, <S as Subject>::Frame, <S as Subject>::Recording)>;

/// What came out of a stream.
pub struct Read<S: Subject> {
    /// The whole frames.
    pub frames: Frames<S>,
    /// What was handed out of the frame that is not whole.
    pub partial: S::Recording,
    /// How it ended.
    pub end: End,
}

/// Feeds `input`, of which first `next(0, 0)` bytes are there; `next` gets what is there and what the decoder said it
/// needs, and gives what is there next.
pub fn read<S: Subject>(
    subject: &mut S,
    input: &[u8],
    mut next: impl FnMut(usize, usize) -> usize,
) -> Read<S> {
    let mut read: Read<S> =
        Read { frames: Vec::new(), partial: S::Recording::default(), end: End::Incomplete };
    let (mut start, mut there, mut need_end) = (0, next(0, 0).min(input.len()), 0);
    loop {
        let before = read.partial.len();
        match subject.decode(&input[start..there], &mut read.partial) {
            Outcome::Complete((len, frame)) => {
                assert!(there >= need_end, "complete before the bytes that it said it needs");
                assert!(len > 0 && len <= there - start, "frame of {len} bytes in {}", there - start);
                read.frames.push((len, frame, std::mem::take(&mut read.partial)));
                (start, need_end) = (start + len, 0);
            }
            Outcome::Invalid(error) => {
                assert!(there >= need_end, "invalid before the bytes that it said it needs");
                assert!(error.offset <= there - start, "{error:?} is not in {} bytes", there - start);
                read.end = End::Invalid(error);
                return read;
            }
            Outcome::Incomplete { need } => {
                assert!(need > there - start, "needs {need} of {} bytes", there - start);
                if there < need_end {
                    assert_eq!(
                        read.partial.len(),
                        before,
                        "handed out before the bytes that it said it needs"
                    );
                }
                need_end = start + need;
                if there == input.len() {
                    return read;
                }
                there = next(there, need_end).clamp(there + 1, input.len());
            }
        }
    }
}

/// The most bytes of a stream that is cut at every byte; a longer one is cut at [`CUTS_MAX`] places.
const CUT_EVERYWHERE_MAX: usize = 64;
const CUTS_MAX: usize = 16;

/// Reads `input` whole, byte by byte, as the decoder asks for it, and cut in two: all must agree. Gives what came out.
pub fn read_all_ways<S: Subject>(new: impl Fn() -> S, input: &[u8]) -> Read<S> {
    let whole = read(&mut new(), input, |_, _| input.len());
    let agrees = |other: Read<S>, how: &str| {
        assert_eq!(whole.end, other.end, "{how}");
        assert_eq!(whole.frames, other.frames, "{how}");
        if whole.end == End::Incomplete {
            let (a, b) = (&whole.partial, &other.partial);
            assert!(a.starts_with(b) || b.starts_with(a), "{how}: {a:?} and {b:?}");
        }
    };
    agrees(read(&mut new(), input, |there, _| there + 1), "byte by byte");
    agrees(read(&mut new(), input, |_, need| need), "as it asks");
    let step = if input.len() <= CUT_EVERYWHERE_MAX { 1 } else { input.len() / CUTS_MAX };
    for cut in (1..input.len()).step_by(step) {
        agrees(read(&mut new(), input, |there, _| if there < cut { cut } else { input.len() }), "cut in two");
    }
    whole
}

/// Limits by a byte: the defaults, those before authentication, and some so low that small inputs exceed them.
pub fn limits(choice: u8) -> Limits {
    let low = Limits {
        arguments_max: 3,
        argument_bytes_max: 8,
        frame_bytes_max: 48,
        inline_bytes_max: 24,
        nesting_max: 2,
        elements_max: 3,
        unauthenticated: false,
    };
    match choice % 6 {
        0 | 1 => Limits::DEFAULT,
        2 => Limits::UNAUTHENTICATED,
        3 => low,
        4 => Limits { unauthenticated: true, frame_bytes_max: 1 << 20, ..low },
        _ => Limits {
            arguments_max: 1 << 20,
            argument_bytes_max: 1 << 17,
            frame_bytes_max: 1 << 18,
            ..Limits::DEFAULT
        },
    }
}
