//! However long a string or table is: a script that goes through it again and again is looked at often enough to be
//! ended.
#![allow(missing_docs)]

#[path = "support/long.rs"]
mod long;

use std::sync::Arc;
use std::time::{Duration, Instant};

use weft_lua::vm::World;
use weft_lua::{Budget, Called, Frame, Host, Identity, Level, Verdict, Vm};

/// The processor's time that this thread has had, as the kernel counts it.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
    let ns = stat.split(' ').next().and_then(|ns| ns.parse().ok()).expect("it begins with a number");
    Duration::from_nanos(ns)
}

#[test]
fn no_loop_goes_through_long_strings_unseen() {
    // What is gone through is the same in each; Lua is not optimized in a build for tests.
    let (bytes, longest) = (2 << 20, Duration::from_millis(250));
    for of in long::LOOPS {
        let mut watch = long::Watch::new(cpu, (200, Duration::from_millis(150)));
        let said = long::run(*of, bytes, &mut watch);
        assert!(said.starts_with("ERR told to end"), "{}: {said}", of.0);
        assert!(watch.longest < longest, "{}: nobody looked for {:?}", of.0, watch.longest);
    }
}

/// Commands that take long.
struct Slow {
    /// Calls behind the last look, and most of them.
    calls: u32,
    most: u32,
    looks: u32,
}

impl Host for Slow {
    fn call(&mut self, _: &[&[u8]], reply: &mut Frame<'_>) -> Called {
        self.calls += 1;
        self.most = self.most.max(self.calls);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(2) {
            std::hint::spin_loop();
        }
        reply.push_boolean(true);
        Called::Reply
    }
    fn tick(&mut self) -> Verdict {
        (self.calls, self.looks) = (0, self.looks + 1);
        if self.looks == 20 { Verdict::End("ERR told to end".into()) } else { Verdict::GoOn }
    }
    fn log(&mut self, _: Level, _: &[u8]) {}
    fn set_resp(&mut self, _: u8) {}
    fn may(&mut self, _: &[&[u8]]) -> Option<bool> {
        None
    }
}

/// A few instructions of Lua, each a command that takes long: who waits is not seen by counting instructions.
#[test]
fn a_script_whose_calls_take_long_is_looked_at() {
    for script in [
        "for i = 1, 1000 do redis.call('slow') end",
        "for i = 1, 1000 do redis.pcall('slow') end",
        "for i = 1, 1000 do pcall(redis.call, 'slow') end",
    ] {
        let identity = Identity {
            redis_version: "7.4.0",
            valkey_version: "9.1.0",
            server_name: "weft",
            insecure: false,
        };
        let mut vm = Vm::new(Arc::new(Budget::new(32 << 20)), &identity).expect("there is memory");
        let chunk = vm.compile(script.as_bytes()).expect("it compiles");
        let mut slow = Slow { calls: 0, most: 0, looks: 0 };
        let said = vm.call(World::Scripts, &chunk, (&[], &[]), &mut slow);
        // Who catches it has his thousand rounds, and none of them calls anything.
        assert!(
            said.is_ok() || said.is_err_and(|error| error.line.starts_with(b"ERR told to end")),
            "{script}"
        );
        assert!((20..40).contains(&slow.looks), "{script}: {} looks", slow.looks);
        assert!(slow.most <= 3, "{script}: {} calls between two looks", slow.most);
    }
}
