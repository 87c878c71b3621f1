//! Owns: a host that answers with the arguments, and a result as text. Does not own: any test.
#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used)]

use std::sync::Arc;
use weft_lua::vm::{Given, World};
use weft_lua::{Budget, Called, Frame, Host, Identity, Level, Out, Verdict, Vm};

#[derive(Debug)]
pub struct Answering {
    pub ticks_left: u64,
}

impl Default for Answering {
    fn default() -> Self {
        Self { ticks_left: 1_000_000 }
    }
}

impl Host for Answering {
    fn call(&mut self, args: &[&[u8]], reply: &mut Frame<'_>) -> Called {
        if args[0] == b"fail" {
            reply.push_error("ERR told to fail");
            return Called::Error;
        }
        reply.push_table(args.len(), 0);
        for (at, arg) in args.iter().enumerate() {
            reply.push_bytes(arg);
            reply.raw_set_at(-2, at + 1);
        }
        Called::Reply
    }
    fn tick(&mut self) -> Verdict {
        self.ticks_left = self.ticks_left.saturating_sub(1);
        if self.ticks_left == 0 { Verdict::End("ERR told to end".into()) } else { Verdict::GoOn }
    }
    fn log(&mut self, _: Level, _: &[u8]) {}
    fn set_resp(&mut self, _: u8) {}
    fn may(&mut self, args: &[&[u8]]) -> Option<bool> {
        (args[0] == b"get").then_some(true)
    }
}

pub fn vm() -> Vm {
    let identity =
        Identity { redis_version: "7.4.0", valkey_version: "9.1.0", server_name: "weft", insecure: false };
    Vm::new(Arc::new(Budget::new(32 << 20)), &identity).expect("there is memory")
}

pub fn eval(script: &str) -> String {
    eval_with(script, &mut Answering::default())
}
pub fn eval_with(script: &str, host: &mut Answering) -> String {
    run(&mut vm(), script, (&[b"k1"], &[b"a1", b"a2"]), host)
}
pub fn eval_on(vm: &mut Vm, script: &str, given: Given<'_>) -> String {
    run(vm, script, given, &mut Answering::default())
}
fn run(vm: &mut Vm, script: &str, given: Given<'_>, host: &mut Answering) -> String {
    let chunk = match vm.compile(script.as_bytes()) {
        Ok(chunk) => chunk,
        Err(error) => return format!("!{error}"),
    };
    match vm.call(World::Scripts, &chunk, given, host) {
        Ok(()) => result_of(vm, World::Scripts),
        Err(error) => format!("-{}", String::from_utf8_lossy(&error.line)),
    }
}
/// The result of the call before.
pub fn result_of(vm: &mut Vm, world: World) -> String {
    let mut out = Text::default();
    vm.write(world, &mut out);
    out.text
}

#[derive(Debug, Default)]
pub struct Text {
    pub text: String,
    open: Vec<(usize, &'static str)>,
}

impl Text {
    fn put(&mut self, text: &str) {
        if !self.text.is_empty() && !self.text.ends_with(['[', '{']) {
            self.text.push(' ');
        }
        self.text.push_str(text);
        self.close();
    }
    fn close(&mut self) {
        while let Some((left, end)) = self.open.last_mut() {
            if *left > 1 {
                *left -= 1;
                return;
            }
            self.text.push_str(end);
            self.open.pop();
        }
    }
    fn begin(&mut self, start: &str, len: usize, end: &'static str) {
        if len == 0 {
            return self.put(&format!("{start}{end}"));
        }
        if !self.text.is_empty() && !self.text.ends_with(['[', '{']) {
            self.text.push(' ');
        }
        self.text.push_str(start);
        self.open.push((len, end));
    }
}

impl Out for Text {
    fn resp(&self) -> u8 {
        2
    }
    fn bulk(&mut self, bytes: &[u8]) {
        self.put(&format!("{:?}", String::from_utf8_lossy(bytes)));
    }
    fn status(&mut self, text: &[u8]) {
        self.put(&format!("+{}", String::from_utf8_lossy(text)));
    }
    fn error(&mut self, line: &[u8], _: bool) {
        self.put(&format!("-{}", String::from_utf8_lossy(line)));
    }
    fn int(&mut self, value: i64) {
        self.put(&value.to_string());
    }
    fn double(&mut self, value: f64) {
        self.put(&format!(",{value}"));
    }
    fn boolean(&mut self, value: bool) {
        self.put(if value { "#t" } else { "#f" });
    }
    fn big_number(&mut self, digits: &[u8]) {
        self.put(&format!("({}", String::from_utf8_lossy(digits)));
    }
    fn verbatim(&mut self, format: &[u8], text: &[u8]) {
        self.put(&format!("={}:{}", String::from_utf8_lossy(format), String::from_utf8_lossy(text)));
    }
    fn null(&mut self) {
        self.put("nil");
    }
    fn array(&mut self, len: usize) {
        self.begin("[", len, "]");
    }
    fn map(&mut self, len: usize) {
        self.begin("{", 2 * len, "}");
    }
    fn set(&mut self, len: usize) {
        self.begin("~[", len, "]");
    }
}
