//! The prompt of `weft cli` in a pseudo-terminal, against redis-server and `weft serve`: what somebody types and sees.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};

use common::Folder;
use common::servers::{LONG, Server};
use nix::pty::{Winsize, openpty};
use weft_client::Protocol;

/// A terminal with the prompt in it.
struct Terminal {
    child: Child,
    keyboard: File,
    screen: Arc<Screen>,
    /// What of the screen has been looked at.
    seen: usize,
}

/// What was printed, without escape sequences.
#[derive(Default)]
struct Screen {
    text: Mutex<(String, bool)>,
    changed: Condvar,
}

impl Screen {
    /// Reads until the terminal is gone.
    fn read(&self, mut master: File) {
        let (mut bytes, mut pending) = ([0; 4096], Vec::new());
        loop {
            // When the program has ended, reading the master is an error.
            let len = master.read(&mut bytes).unwrap_or(0);
            pending.extend_from_slice(&bytes[..len]);
            let whole = without_escapes(&mut pending);
            let mut text = self.text.lock().unwrap();
            text.0.push_str(&whole);
            text.1 |= len == 0;
            self.changed.notify_all();
            if len == 0 {
                return;
            }
        }
    }
}

/// Takes what is whole from the bytes: text as it is, escape sequences away.
fn without_escapes(pending: &mut Vec<u8>) -> String {
    let (mut out, mut at) = (Vec::new(), 0);
    while at < pending.len() {
        if pending[at] != 0x1b {
            out.push(pending[at]);
            at += 1;
            continue;
        }
        // ESC [ parameters letter, or ESC and a letter.
        let end = match pending.get(at + 1) {
            None => break,
            Some(b'[') => match pending[at + 2..].iter().position(|byte| (0x40..=0x7E).contains(byte)) {
                Some(len) => at + 3 + len,
                None => break,
            },
            Some(_) => at + 2,
        };
        at = end;
    }
    pending.drain(..at);
    String::from_utf8_lossy(&out).into_owned()
}

impl Terminal {
    /// `setsid --ctty` gives the program the terminal, so that Ctrl-C is a signal where the line editor does not read.
    fn start(flags: &[&str], history: &str) -> Terminal {
        let size = Winsize { ws_row: 24, ws_col: 150, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(Some(&size), None).unwrap();
        let slave = || Stdio::from(pty.slave.try_clone().unwrap());
        let child = Command::new("setsid")
            .arg("--ctty")
            .arg(env!("CARGO_BIN_EXE_weft"))
            .arg("cli")
            .args(flags)
            .env("WEFTCLI_HISTFILE", history)
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR")
            .env_remove("WEFTCLI_PAGER")
            .stdin(slave())
            .stdout(slave())
            .stderr(slave())
            .spawn()
            .unwrap();
        drop(pty.slave);
        let screen = Arc::new(Screen::default());
        let keyboard = File::from(pty.master.try_clone().unwrap());
        let (for_reader, master) = (screen.clone(), File::from(pty.master));
        std::thread::spawn(move || for_reader.read(master));
        Terminal { child, keyboard, screen, seen: 0 }
    }

    /// Types keys as they are.
    fn keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Types a line.
    fn line(&mut self, line: &str) {
        self.keys(&format!("{line}\r"));
    }

    /// Waits until the text is on the screen, behind what was waited for before.
    fn expect(&mut self, wanted: &str) {
        let mut text = self.screen.text.lock().unwrap();
        loop {
            if let Some(at) = text.0[self.seen..].find(wanted) {
                self.seen += at + wanted.len();
                return;
            }
            assert!(!text.1, "ended without {wanted:?}:\n{}", &text.0[self.seen..]);
            let (next, late) = self.screen.changed.wait_timeout(text, LONG).unwrap();
            text = next;
            assert!(!late.timed_out(), "no {wanted:?} in:\n{}", &text.0[self.seen..]);
        }
    }

    /// Types a line, and waits for what it prints and for the next prompt.
    fn run(&mut self, line: &str, printed: &str) {
        self.line(line);
        self.expect(&format!("\r\n{printed}"));
        self.expect("> ");
    }

    /// Leaves with Ctrl-D.
    fn leave(mut self) {
        self.keys("\x04");
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the test's steps against each server, over each of its protocols.
fn everywhere(steps: impl Fn(&Server, &[&str], &str)) {
    for server in Server::all() {
        for protocol in server.flags() {
            let folder = Folder::new();
            server.connect(Protocol::Resp2).command(&["FLUSHALL"]).unwrap();
            steps(&server, &["-s", &server.socket, protocol], &folder.path("history"));
        }
    }
}

fn start(flags: &[&str], history: &str) -> Terminal {
    let mut terminal = Terminal::start(flags, history);
    terminal.expect("> ");
    terminal
}

#[test]
fn commands_options_and_keys_are_completed_and_hinted() {
    everywhere(|_, flags, history| {
        let mut terminal = start(flags, history);
        terminal.run("set user:ada 1", "OK");
        terminal.run("set 'two words' 2", "OK");
        terminal.keys("getd\t");
        terminal.expect("getdel key");
        terminal.keys("\x15get us\t");
        terminal.expect("get user:ada ");
        terminal.keys("\r");
        terminal.expect("\r\n\"1\"\r\n");
        terminal.expect("> ");
        terminal.keys("get tw\t\r");
        terminal.expect("\r\n\"2\"\r\n");
        terminal.expect("> ");
        terminal.keys("client setn\tme\r");
        terminal.expect("\r\nOK\r\n");
        terminal.expect("> ");
        terminal.keys("set k v kee\t\r");
        terminal.expect("set k v keepttl ");
        terminal.expect("\r\nOK\r\n");
        terminal.expect("> ");
        terminal.keys("set k ");
        terminal.expect("value [NX|XX|IFEQ comparison-value] [GET] [EX seconds");
        terminal.keys("\x15");
        terminal.run(":set nohints", "");
        terminal.leave();
    });
}

#[test]
fn the_history_is_searched_and_kept_without_passwords() {
    everywhere(|_, flags, history| {
        let mut terminal = start(flags, history);
        terminal.run("set greeting hello", "OK");
        terminal.run("ping", "PONG");
        terminal.line("auth nobody secret");
        terminal.expect("\r\n(error) ");
        terminal.expect("> ");
        terminal.run(" echo unsaid", "\"unsaid\"");
        // The line before the last: the others are not kept.
        terminal.keys("\x1b[A\r");
        terminal.expect("\r\nPONG\r\n");
        terminal.expect("> ");
        terminal.keys("\x12greet");
        terminal.expect("set greeting hello");
        terminal.keys("\r");
        terminal.expect("\r\nOK\r\n");
        terminal.expect("> ");
        terminal.leave();
        let mut terminal = start(flags, history);
        terminal.keys("\x1b[A\r");
        terminal.expect("set greeting hello");
        terminal.expect("\r\nOK\r\n");
        terminal.expect("> ");
        terminal.leave();
        let kept = std::fs::read_to_string(history).unwrap();
        assert!(kept.contains("set greeting hello") && !kept.contains("secret") && !kept.contains("unsaid"));
    });
}

#[test]
fn the_prompt_shows_database_and_transaction() {
    everywhere(|server, flags, history| {
        let mut terminal = start(flags, history);
        terminal.line("select 2");
        terminal.expect("\r\nOK");
        terminal.expect(&format!("{}[2]> ", server.socket));
        terminal.line("multi");
        terminal.expect("\r\nOK");
        terminal.expect("[2](TX)> ");
        terminal.run("incr n", "QUEUED");
        terminal.line("exec");
        terminal.expect("\r\n1) (integer) 1");
        terminal.expect("[2]> ");
        terminal.run("3 incr n", "(integer) 2\r\n(integer) 3\r\n(integer) 4");
        terminal.run("set k \"open", "Invalid argument(s)");
        terminal.line("quit");
        assert!(terminal.child.wait().unwrap().success());
    });
}

#[test]
fn subscribers_come_back_to_the_prompt() {
    everywhere(|server, flags, history| {
        let mut publisher = server.connect(Protocol::Resp2);
        let mut terminal = start(flags, history);
        terminal.run("select 3", "OK");
        terminal.line("subscribe news other");
        terminal.expect("1) \"subscribe\"\r\n2) \"other\"\r\n3) (integer) 2\r\n");
        terminal.expect("Reading messages... (press Ctrl-C to quit)");
        publisher.command(&["PUBLISH", "news", "hello"]).unwrap();
        terminal.expect("1) \"message\"\r\n2) \"news\"\r\n3) \"hello\"\r\n");
        terminal.keys("\x03");
        terminal.expect("[3]> ");
        terminal.run("ping", "PONG");
        // MONITOR has no end; the connection is made again, as it was.
        if server.connect(Protocol::Resp2).command(&["MONITOR"]).is_ok() {
            terminal.line("monitor");
            terminal.expect("\r\nOK\r\n");
            publisher.command(&["ECHO", "watched"]).unwrap();
            terminal.expect("\"watched\"");
            terminal.keys("\x03");
            terminal.expect("[3]> ");
            terminal.run("ping", "PONG");
        }
        // A command that blocks.
        terminal.line("blpop none 0");
        while publisher.query::<String>(&["INFO", "clients"]).unwrap().contains("blocked_clients:0") {
            std::thread::yield_now();
        }
        terminal.keys("\x03");
        terminal.expect(if flags.contains(&"-4") { "(error) CANCELLED" } else { "(interrupted;" });
        terminal.expect("[3]> ");
        terminal.run("ping", "PONG");
        terminal.leave();
    });
}

#[test]
fn replies_go_through_programs() {
    everywhere(|_, flags, history| {
        let mut terminal = start(flags, history);
        terminal.run("set k 'some text'", "OK");
        terminal.run("get k | tr a-z A-Z", "SOME TEXT\r\n");
        terminal.run("set 'a | b' piped", "OK");
        terminal.run("get 'a | b'", "\"piped\"");
        terminal.run("get k | exit 3", "(exit 3: status 3)");
        terminal.run("rpush l a b c", "(integer) 3");
        terminal.line("peek l");
        terminal.expect("\"l\": list, 3 elements, encoding ");
        terminal.expect("3) \"c\"");
        terminal.expect("> ");
        terminal.line("peek k");
        terminal.expect("some text");
        terminal.expect("> ");
        terminal.line("help getdel");
        terminal.expect("GETDEL key\r\n  summary: ");
        terminal.expect("> ");
        terminal.line(":set pager sed 's/^/paged /'");
        terminal.expect("> ");
        terminal.line("help @string");
        terminal.expect("paged   APPEND key value");
        terminal.expect("> ");
        terminal.leave();
    });
}

#[test]
fn a_lost_connection_is_made_again() {
    everywhere(|server, flags, history| {
        let mut killer = server.connect(Protocol::Resp2);
        let channel: &[&str] = if flags.contains(&"-4") { &["--mux", "7"] } else { &[] };
        let mut terminal = start(&[flags, channel].concat(), history);
        terminal.run("select 5", "OK");
        terminal.run("client setname me", "OK");
        killer.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).unwrap();
        // The end may come only after the command: what reads is sent again.
        terminal.run("ping", "PONG");
        terminal.line("client getname");
        terminal.expect("\r\n\"me\"");
        terminal.expect("[5]> ");
        if flags.contains(&"-4") {
            terminal.line("client info");
            terminal.expect("channel=7");
            terminal.expect("#7[5]> ");
        }
        terminal.run("multi", "OK");
        killer.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).unwrap();
        terminal.line("incr n");
        terminal.expect("the transaction");
        terminal.expect("[5]> ");
        terminal.run("incr n", "(integer) 1");
        terminal.leave();
    });
}

#[test]
fn a_server_that_was_shut_down_is_no_error() {
    everywhere(|_, flags, history| {
        // Each has a server of its own to end.
        let server = if flags.contains(&"-4") { Some(Server::weft(&[])) } else { Server::redis(&[]) };
        let Some(server) = server else { return };
        let protocol: Vec<&str> =
            flags.iter().filter(|flag| flag.len() == 2 && **flag != "-s").copied().collect();
        let mut terminal = start(&[&["-s", &server.socket], &protocol[..]].concat(), history);
        let before = terminal.seen;
        terminal.line("shutdown nosave");
        terminal.expect("not connected> ");
        let text = terminal.screen.text.lock().unwrap().0[before..].to_string();
        assert!(!text.contains("rror"), "{text}");
        terminal.line("ping");
        terminal.expect("Could not connect to the server at ");
        // Ctrl-D before the editor has the terminal would be the terminal's, and lost.
        terminal.expect("not connected> ");
        terminal.leave();
    });
}

#[test]
fn each_line_of_a_paste_is_a_command_of_its_own() {
    everywhere(|server, flags, history| {
        let mut terminal = start(flags, history);
        // As a terminal hands on what is pasted: between marks, lines ended by CR.
        terminal.keys("\x1b[200~set a 1\rset b 'two\r\rincr a\r\nincr a\x1b[201~");
        terminal.keys("\r");
        terminal.expect("\r\nOK\r\nInvalid argument(s)\r\n(integer) 2\r\n(integer) 3\r\n");
        terminal.expect("> ");
        terminal.keys("\x1b[200~incr a\rquit\rincr a\x1b[201~\r");
        terminal.expect("(integer) 4");
        assert!(terminal.child.wait().unwrap().success());
        assert_eq!(server.connect(Protocol::Resp2).query::<i64>(&["GET", "a"]).unwrap(), 4);
        assert_eq!(server.connect(Protocol::Resp2).query::<i64>(&["EXISTS", "b"]).unwrap(), 0);
        let kept = std::fs::read_to_string(history).unwrap();
        assert!(kept.contains("set a 1\n") && kept.contains("incr a\n"), "{kept}");
    });
}

#[test]
fn somebody_can_log_in_at_the_prompt_over_every_protocol() {
    let password = ["--requirepass", "secret"];
    for server in Server::both(&password) {
        for protocol in server.flags() {
            // No password, and a wrong one, with a database and a name that cannot be had yet.
            for more in [&[][..], &["-n", "3", "--name", "me"], &["-a", "wrong", "--no-auth-warning"]] {
                let flags = [&["-s", &server.socket, protocol], more].concat();
                let mut terminal = Terminal::start(&flags, "/dev/null");
                if *protocol != "-2" || !more.is_empty() {
                    terminal.expect("Until AUTH has succeeded, RESP2 is spoken.");
                    terminal.expect("--askpass");
                    terminal.expect("WEFTCLI_AUTH");
                }
                terminal.expect("> ");
                terminal.run("get k", "(error) NOAUTH");
                terminal.run("auth nothing", "(error) WRONGPASS");
                terminal.run("auth secret", "OK");
                terminal.line("client info");
                terminal.expect("\r\nid=");
                if protocol != &"-2" || more.contains(&"-n") {
                    terminal.expect(match *protocol {
                        "-4" => "resp=4",
                        "-3" => "resp=3",
                        _ => "name=me",
                    });
                }
                terminal.expect(if more.contains(&"-n") { "[3]> " } else { "> " });
                terminal.leave();
            }
        }
    }
}

#[test]
fn without_respb_there_is_no_prompt() {
    let Some(server) = Server::redis(&[]) else { return };
    let mut terminal = Terminal::start(&["-s", &server.socket, "-4"], "/dev/null");
    terminal.expect("does not speak RESPB");
    assert_eq!(terminal.child.wait().unwrap().code(), Some(1));
    let mut terminal = Terminal::start(&["-s", "/nobody/there"], "/dev/null");
    terminal.expect("Could not connect to the server at");
    terminal.expect("not connected> ");
    terminal.leave();
}
