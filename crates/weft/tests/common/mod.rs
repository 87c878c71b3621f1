//! What the end-to-end tests share: running the binary, a folder that goes away, random numbers from a printed seed.

#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod client;
pub(crate) mod cluster;
pub(crate) mod kept;
pub(crate) mod servers;
#[path = "../../../protocol/tests/support/skipped.rs"]
pub(crate) mod skipped;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The binary under test.
pub(crate) fn weft() -> Command {
    Command::new(env!("CARGO_BIN_EXE_weft"))
}

/// Runs it with standard input.
pub(crate) fn run(args: &[&str], input: &[u8]) -> Output {
    output(weft().args(args), input)
}

/// Runs any program with standard input; the input is written by a thread, so that neither side waits for the other.
pub(crate) fn output(command: &mut Command, input: &[u8]) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe was asked for");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // It may have read enough before the end.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().expect("the program ends");
    writer.join().expect("the writer does not panic");
    output
}

/// Runs it, expects success and returns its output.
pub(crate) fn good(args: &[&str], input: &[u8]) -> Vec<u8> {
    let output = run(args, input);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A folder of its own, removed at the end.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("weft-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Folder(path)
    }

    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).expect("a file for the test");
        path.display().to_string()
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn read(path: impl AsRef<Path>) -> Vec<u8> {
    let path = path.as_ref();
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A command as RESP.
pub(crate) fn resp<T: AsRef<[u8]>>(argv: &[T]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", argv.len()).into_bytes();
    for argument in argv {
        out.extend_from_slice(format!("${}\r\n", argument.as_ref().len()).as_bytes());
        out.extend_from_slice(argument.as_ref());
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// xorshift64*; the seed is printed, and taken from WEFT_TEST_SEED if that is set.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(test: &str) -> Random {
        let given = std::env::var("WEFT_TEST_SEED").ok().and_then(|text| text.parse().ok());
        let seed = given.unwrap_or_else(|| {
            let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            since.map_or(1, |since| since.as_nanos() as u64) | 1
        });
        println!("{test}: WEFT_TEST_SEED={seed}");
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn bytes(&mut self, len_max: usize) -> Vec<u8> {
        (0..self.below(len_max + 1)).map(|_| self.next() as u8).collect()
    }
}
