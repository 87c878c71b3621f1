//! `/metrics`: in which form, for whom, and that a figure is that of INFO.

use super::http_resources::{Web, header};

fn figure(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().expect("a number")
}

#[test]
fn metrics_are_told_in_the_form_that_is_asked_for() {
    let mut web = Web::new();
    web.runs(r#"["SET","k","v"]"#);
    web.runs(r#"["GET","k"]"#);
    let got = web.asks("GET", "/metrics", "", b"");
    assert_eq!(got.status, 200);
    assert_eq!(header(&got, "Content-Type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    assert_eq!(header(&got, "ETag").or(header(&got, "Weft-Type")), None);
    for (name, expected) in [
        ("redis_up", 1.0),
        ("redis_db_keys{db=\"db0\"}", 1.0),
        ("redis_keyspace_hits_total", 1.0),
        ("redis_commands_total{cmd=\"get\"}", 1.0),
        ("redis_connected_clients", 1.0),
        ("weft_effects_total", 1.0),
    ] {
        assert_eq!(figure(got.text(), name), expected, "{name}");
    }
    let got = web.asks("GET", "/metrics", "Accept: application/openmetrics-text; version=1.0.0\r\n", b"");
    assert_eq!(
        header(&got, "Content-Type"),
        Some("application/openmetrics-text; version=1.0.0; charset=utf-8")
    );
    assert!(got.text().ends_with("\n# EOF\n"));
    assert!(got.text().contains("# TYPE redis_commands counter\n"));
    // Three commands have run, each in a batch of its own, and the two for the pages before this one.
    assert!(figure(got.text(), "weft_batches_total") >= 3.0);
    let head = web.asks("HEAD", "/metrics", "", b"");
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(web.asks("POST", "/metrics", "", b"").status, 405);
    assert_eq!(web.asks("GET", "/metrics?format=json", "", b"").status, 400);
}

#[test]
fn whoever_may_call_info_may_have_metrics() {
    let mut web = Web::new();
    web.runs(r#"["ACL","SETUSER","reader","on",">one","~*","+@read"]"#);
    web.runs(r#"["ACL","SETUSER","scraper","on",">two","+info"]"#);
    let status = |web: &mut Web, token: &str| {
        web.asks("GET", "/metrics", &format!("Authorization: Bearer {token}\r\n"), b"").status
    };
    assert_eq!(status(&mut web, "reader.one"), 403);
    assert_eq!(status(&mut web, "scraper.two"), 200);
    assert_eq!(status(&mut web, "scraper.wrong"), 401);
}
