//! `weft script run`: what is shown of a script's calls, its result and its error.

mod common;

use common::{Folder, run};

fn script(text: &str, flags: &[&str]) -> (Option<i32>, String, String) {
    let folder = Folder::new();
    let path = folder.file("s.lua", text.as_bytes());
    let output = run(&[&["script", "run", &path], flags].concat(), b"");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).replace(&path, "s.lua");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn each_call_is_shown_with_its_reply_and_then_the_result() {
    let limit =
        "local n = redis.call('INCR', KEYS[1])\nredis.pcall('LPUSH', KEYS[1], 'a b')\nreturn {n, ARGV[1]}";
    let flags = ["--given", "SET user:7 9", "--keys", "user:7", "--args", "-1", "60"];
    let (code, shown, said) = script(limit, &flags);
    let wrong_type = "WRONGTYPE Operation against a key holding the wrong kind of value";
    let expected = format!("INCR user:7 -> 10\nLPUSH user:7 \"a b\" -> -{wrong_type}\n= [10,\"-1\"]\n");
    assert_eq!((code, shown, said), (Some(0), expected, String::new()));
}

#[test]
fn an_error_has_its_line() {
    let (code, shown, said) = script("local x = 1\nredis.call('NOSUCH')", &[]);
    let refused = "ERR Unknown command called from script";
    assert_eq!((code, shown), (Some(1), format!("NOSUCH -> -{refused}\n")));
    assert_eq!(said, format!("s.lua: {refused} script: on @user_script:2.\n"));
    let (code, _, said) = script("return", &["--given", "SET \"open"]);
    assert!(code == Some(1) && said.contains("a quote is open"), "{said}");
    let (code, _, said) = script("local", &[]);
    assert!(code == Some(1) && said.contains("Error compiling script"), "{said}");
}

#[test]
fn a_function_of_a_library_runs_too() {
    let library = "#!lua name=l\nredis.register_function('grow', function(keys, args)\n\
                   return redis.call('INCRBY', keys[1], args[1]) end)";
    let flags = ["--function", "grow", "--keys", "n", "--args", "5"];
    assert_eq!(script(library, &flags), (Some(0), "INCRBY n 5 -> 5\n= 5\n".into(), String::new()));
    let (code, _, said) = script("return 1", &["--function", "grow"]);
    assert!(code == Some(1) && said.contains("s.lua: ERR"), "{said}");
}
