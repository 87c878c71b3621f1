//! What a request over HTTP leaves behind on its connection: no place in the output, nothing on the session.

use super::http::{answers, ask, get, one, post};
use super::{Alone, received};

/// A request that is held back again has no place in the output, which may be sent before it runs.
#[test]
fn what_is_held_again_begins_where_it_runs() {
    let (mut alone, [mut client, mut held]) = Alone::with_clients();
    one(&mut alone, &mut client, &post("/", "", r#"["CLIENT","PAUSE","100000","WRITE"]"#));
    let put = b"PUT /v1/db/0/keys/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nv";
    assert!(ask(&mut alone, &mut held, put).is_empty(), "it waits");
    let index = 1;
    alone.worker.io.get(index).expect("it is there").output.bytes.extend_from_slice(&[b'x'; 77]);
    alone.worker.resume(index, 0);
    alone.worker.io.get(index).expect("it is there").output.clear();
    one(&mut alone, &mut client, &post("/", "", r#"["CLIENT","UNPAUSE"]"#));
    (0..4).for_each(|_| alone.tick());
    let statuses: Vec<u16> = answers(&received(&mut held)).0.iter().map(|got| got.status).collect();
    assert_eq!(statuses, [201]);
}

/// A transaction leaves nothing on its connection, whose next request may be another user's.
#[test]
fn what_a_transaction_sets_is_its_own() {
    for path in ["/multi-exec", "/pipeline"] {
        let (mut alone, [mut client]) = Alone::with_clients();
        let name = get("/client/getname");
        let sets = post(path, "", r#"[["CLIENT","SETNAME","al"],["SET","a","1"]]"#);
        let got = ask(&mut alone, &mut client, &[sets, name.clone()].concat());
        assert_eq!(got.last().expect("two answers").text(), r#"{"result":null}"#, "{path}: {got:?}");
        assert_eq!(one(&mut alone, &mut client, &name).text(), r#"{"result":null}"#, "{path}");
    }
}

/// What comes when nothing is owed leaves no place in the output either.
#[test]
fn what_is_no_answer_begins_none() {
    let (mut alone, [mut client]) = Alone::with_clients();
    one(&mut alone, &mut client, &get("/ping"));
    let output = |alone: &mut Alone| std::mem::take(&mut alone.worker.io.get(0).expect("it is there").output);
    alone.worker.io.get(0).expect("it is there").output.bytes.extend_from_slice(&[b'x'; 77]);
    alone.worker.lend(0, 0);
    alone.worker.settle(0);
    assert_eq!(output(&mut alone).len(), 77);
    ask(&mut alone, &mut client, &get("/v1/db/0/streams/none"));
    let mut other = alone.connect();
    assert_eq!(one(&mut alone, &mut other, &get("/ping")).status, 200);
}
