//! `weft token`: what it makes can be used over HTTP until it is taken away, and survives a start.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

mod common;

use std::fs;
use std::io::Write as _;

use common::client::rest;
use common::servers::Server;
use common::{Folder, run, stderr};

/// A server with a file of users.
struct Served(Server);

impl Served {
    fn new(folder: &Folder) -> Self {
        Self(Server::weft(&["--threads", "1", "--aclfile", &folder.path("users")]))
    }
    /// The status of `GET /get/app:k` with a token.
    fn status(&self, token: &str) -> String {
        let mut stream = self.0.stream();
        let head = format!("GET /get/app:k HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n");
        stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).unwrap();
        rest(stream)["HTTP/1.1 ".len()..][..3].to_owned()
    }
    fn token(&self, words: &[&str]) -> Result<String, String> {
        let output = run(&[&["token"], words, &["-s", &self.0.socket]].concat(), b"");
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        if output.status.success() { Ok(text.trim_end().to_owned()) } else { Err(stderr(&output)) }
    }
}

#[test]
fn a_token_is_made_used_listed_and_taken_away() {
    let folder = Folder::new();
    fs::write(folder.path("users"), "user default on nopass ~* &* +@all\nuser app on ~app:* +get\n").unwrap();
    let served = Served::new(&folder);
    let token = served.token(&["create", "app"]).unwrap();
    let (name, secret) = token.split_once('.').unwrap();
    assert_eq!((name, secret.len()), ("app", 64));
    assert_eq!(served.status(&token), "200");
    assert_eq!(served.status("app.other"), "401");
    let other = served.token(&["create", "app"]).unwrap();
    let users = fs::read_to_string(folder.path("users")).unwrap();
    assert!(!users.contains(secret) && users.contains("#"), "{users}");
    let list = served.token(&["list"]).unwrap();
    assert_eq!(list.lines().filter(|line| line.starts_with("app ")).count(), 2, "{list}");
    assert!(served.token(&["create", "nobody"]).unwrap_err().contains("there is no user nobody"));
    assert!(served.token(&["create", "default"]).unwrap_err().contains("needs no password"));
    assert!(served.token(&["revoke", "app", "12345678"]).unwrap_err().contains("has not one token"));
    assert!(served.token(&["revoke", "app", "1234567"]).unwrap_err().contains("by 8 of its digits"));
    drop(served);
    // They are in the file.
    let served = Served::new(&folder);
    assert_eq!((served.status(&token), served.status(&other)), ("200".into(), "200".into()));
    for line in list.lines() {
        let hash = line.split_once(' ').unwrap().1;
        served.token(&["revoke", "app", &hash[..8]]).unwrap();
    }
    assert_eq!((served.status(&token), served.status(&other)), ("401".into(), "401".into()));
    assert_eq!(served.token(&["list"]).unwrap(), "");
}
