//! Programs and triggers as resources.

use super::http_resources::{Web, header, tag};

const SELL: &str = r#"{"params":[{"name":"id"},{"name":"count","type":"int","default":1}],"steps":[
  {"do":["DECRBY","stock:${id}","${count}"],"as":"left"},
  {"assert":{">=":["${left}",0]},"code":"OUTOFSTOCK","message":"none left"},
  {"return":{"object":{"left":"${left}"}}}]}"#;

#[test]
fn programs_are_stored_read_run_and_removed() {
    let mut web = Web::new();
    let path = "/v1/programs/sell";
    assert_eq!(web.asks("GET", path, "", b"").status, 404);
    let put = web.asks("PUT", path, "If-None-Match: *\r\n", SELL.as_bytes());
    assert_eq!((put.status, tag(&put)), (201, "\"1\"".into()), "{put:?}");
    let got = web.asks("GET", path, "", b"");
    assert_eq!((got.status, got.text(), tag(&got)), (200, SELL, "\"1\"".into()));
    assert!(got.has("Content-Type: application/json") && got.has("Weft-Type: program"));
    assert_eq!(web.asks("GET", path, "If-None-Match: \"1\"\r\n", b"").status, 304);
    assert_eq!(web.asks("PUT", path, "If-None-Match: *\r\n", SELL.as_bytes()).status, 412);
    assert_eq!(web.asks("PUT", path, "If-Match: \"2\"\r\n", SELL.as_bytes()).status, 412);
    let put = web.asks("PUT", path, "If-Match: \"1\"\r\n", SELL.as_bytes());
    assert_eq!((put.status, tag(&put)), (204, "\"2\"".into()));
    let wrong = web.asks("PUT", path, "", br#"{"steps":[["NOSUCH"]]}"#);
    assert!(wrong.status == 400 && wrong.text().contains("/steps/0"), "{wrong:?}");
    assert_eq!(web.asks("PUT", "/v1/programs/bad%20name", "", SELL.as_bytes()).status, 400);
    web.runs(r#"["SET","stock:7","3"]"#);
    let run = |web: &mut Web, body: &str| {
        let got = web.asks("POST", "/v1/programs/sell/run", "", body.as_bytes());
        (got.status, got.text().to_owned())
    };
    assert_eq!(run(&mut web, r#"["7"]"#), (200, r#"{"left":2}"#.into()));
    assert_eq!(run(&mut web, r#"["7",2]"#), (200, r#"{"left":0}"#.into()));
    assert_eq!(run(&mut web, r#"[7]"#), (409, r#"{"error":"OUTOFSTOCK none left"}"#.into()));
    assert_eq!(web.runs(r#"["GET","stock:7"]"#), r#"{"result":"0"}"#, "nothing of it stays");
    assert_eq!(run(&mut web, r#"["7",2,3]"#).0, 400);
    assert_eq!(run(&mut web, r#"{"id":7}"#).0, 400);
    assert_eq!(web.asks("POST", "/v1/programs/none/run", "", b"").status, 404);
    let dry = web.asks("POST", "/v1/programs/sell/dryrun", "", b"[\"8\",-5]");
    assert!(dry.status == 200 && dry.text().contains("\"effects\":[["), "{dry:?}");
    assert_eq!(web.runs(r#"["EXISTS","stock:8"]"#), r#"{"result":0}"#);
    assert_eq!(web.asks("POST", "/v1/programs/sell/explain", "", b"").status, 200);
    let stats = web.asks("GET", "/v1/programs/sell/stats", "", b"");
    assert!(stats.status == 200 && stats.text().contains("\"failures\":"), "{stats:?}");
    let list = web.asks("GET", "/v1/programs?match=s*", "", b"");
    assert!(list.text().starts_with(r#"[{"name":"sell","version":2"#), "{list:?}");
    assert_eq!(web.asks("GET", "/v1/programs?match=x*", "", b"").text(), "[]");
    for (method, path, status) in [
        ("POST", "/v1/programs/sell", 405),
        ("GET", "/v1/programs/sell/run", 405),
        ("POST", "/v1/programs/sell/stats", 405),
        ("POST", "/v1/programs/sell/nothing", 404),
        ("GET", "/v1/programs/", 404),
        ("GET", "/v1/programs/sell/run/x", 404),
        ("GET", "/v1/programsx", 404),
        ("DELETE", "/v1/programs", 405),
        ("PUT", "/v1/programs/sell?ttl=1", 400),
    ] {
        assert_eq!(web.asks(method, path, "", b"").status, status, "{method} {path}");
    }
    assert_eq!(web.asks("DELETE", path, "If-Match: \"1\"\r\n", b"").status, 412);
    assert_eq!(web.asks("DELETE", path, "If-Match: \"2\"\r\n", b"").status, 204);
    assert_eq!(web.asks("DELETE", path, "", b"").status, 404);
}

#[test]
fn a_program_need_not_be_stored() {
    let mut web = Web::new();
    let mut posts = |body: &str| {
        let got = web.asks("POST", "/v1/programs", "", body.as_bytes());
        (got.status, got.text().to_owned())
    };
    let first = r#"{"params":[{"name":"a","type":"list"}],"steps":[{"return":"${a.0}"}]}"#;
    let wanted = r#"[7,{"none":null,"x":1.5}]"#;
    assert_eq!(posts(&format!(r#"{{"program":{first},"args":[[7]]}}"#)), (200, "7".into()));
    let (status, text) = posts(r#"{"program":{"steps":[{"return":{"literal":[7,{"none":null,"x":1.5}]}}]}}"#);
    assert_eq!((status, text.as_str()), (200, wanted));
    for body in [
        "",
        "[]",
        "{}",
        r#"{"program":1}"#,
        r#"{"program":{"steps":[]},"x":1}"#,
        r#"{"program":{"steps":1}}"#,
    ] {
        assert_eq!(posts(body).0, 400, "{body}");
    }
}

#[test]
fn triggers_are_resources() {
    let mut web = Web::new();
    let path = "/v1/triggers/seen";
    let text = br#"{"key":"user:*","publish":"seen"}"#;
    let put = web.asks("PUT", path, "", text);
    assert_eq!((put.status, tag(&put)), (201, "\"1\"".into()), "{put:?}");
    let got = web.asks("GET", path, "", b"");
    assert_eq!((got.status, &got.body[..], header(&got, "Weft-Type")), (200, &text[..], Some("trigger")));
    assert_eq!(web.asks("POST", "/v1/triggers/seen/disable", "", b"").status, 200);
    assert_eq!(tag(&web.asks("GET", path, "", b"")), "\"2\"");
    assert_eq!(web.asks("POST", "/v1/triggers/seen/enable", "", b"").status, 200);
    let tested = web.asks("POST", "/v1/triggers/seen/test", "", br#"{"key":"user:1"}"#);
    assert!(tested.text().starts_with(r#"{"fires":true"#), "{tested:?}");
    assert_eq!(web.asks("GET", "/v1/triggers/seen/stats", "", b"").status, 200);
    assert!(web.asks("GET", "/v1/triggers", "", b"").text().contains("\"name\":\"seen\""));
    assert_eq!(web.asks("POST", "/v1/triggers", "", b"").status, 405);
    assert_eq!(web.asks("DELETE", path, "If-Match: \"1\"\r\n", b"").status, 412);
    assert_eq!(web.asks("DELETE", path, "If-Match: \"3\"\r\n", b"").status, 204);
    assert_eq!(web.asks("GET", path, "", b"").status, 404);
}

#[test]
fn rights_of_programs_are_those_of_their_commands() {
    let mut web = Web::new();
    assert_eq!(web.asks("PUT", "/v1/programs/sell", "", SELL.as_bytes()).status, 201);
    web.runs(r#"["ACL","SETUSER","clerk","on",">secret","~stock:*","+program|run","+decrby"]"#);
    let who = "Authorization: Bearer clerk.secret\r\n";
    web.runs(r#"["SET","stock:7","3"]"#);
    assert_eq!(web.asks("POST", "/v1/programs/sell/run", who, b"[7]").text(), r#"{"left":2}"#);
    for (method, path) in [
        ("GET", "/v1/programs/sell"),
        ("PUT", "/v1/programs/sell"),
        ("DELETE", "/v1/programs/sell"),
        ("GET", "/v1/programs"),
        ("POST", "/v1/programs/sell/dryrun"),
        ("GET", "/v1/triggers"),
    ] {
        assert_eq!(web.asks(method, path, who, b"").status, 403, "{method} {path}");
    }
    // Without credentials a GET runs nothing: what it reads of programs is no secret.
    assert_eq!(web.asks("GET", "/v1/programs/sell/run", "", b"").status, 405);
}
