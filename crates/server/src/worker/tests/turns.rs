//! Programs that take long have turns: whoever comes meanwhile waits for the one that runs, and for no other.

use std::io::Write;
use std::os::unix::net::UnixStream;

use super::{Alone, argv, received, sends};

/// It runs until its time is over, which is longer than a turn.
const SPINS: &[u8] = br#"{"limits":{"steps":1000000,"time-ms":5},
    "steps":[{"for":"i","range":[0,1000000],"do":[{"let":{"x":"${i}"}}]}]}"#;
/// It is over at once, and no quick one.
const SHORT: &[u8] = br#"{"steps":[{"for":"i","range":[0,3],"do":[["INCR","n"]]},{"do":["GET","n"],"as":"n"},
    {"return":"${n}"}]}"#;
const PING: &[u8] = b"PING\r\n";
const PONG: &[u8] = b"+PONG\r\n";

fn eval(program: &[u8]) -> Vec<u8> {
    line(&[b"PROGRAM", b"EVAL", program])
}

fn line(words: &[&[u8]]) -> Vec<u8> {
    let word = |word: &&[u8]| [format!("${}\r\n", word.len()).as_bytes(), word, b"\r\n"].concat();
    [format!("*{}\r\n", words.len()).into_bytes(), words.iter().flat_map(word).collect()].concat()
}

fn write(client: &mut UnixStream, bytes: &[u8]) {
    client.write_all(bytes).expect("it fits into the socket");
}

/// How many programs have run out their time.
fn ends(client: &mut UnixStream) -> usize {
    let bytes = received(client);
    String::from_utf8_lossy(&bytes).matches("too much time").count()
}

#[test]
fn each_has_a_tick_of_its_own_and_others_are_before_it() {
    let mut alone = Alone::new();
    let mut spinning: Vec<UnixStream> = (0..3).map(|_| alone.connect()).collect();
    let mut other = alone.connect();
    for client in &mut spinning {
        write(client, &eval(SPINS));
    }
    for tick in 0..3 {
        write(&mut other, PING);
        alone.tick();
        assert_eq!(received(&mut other), PONG, "in tick {tick}");
        let ended: Vec<usize> = spinning.iter_mut().map(ends).collect();
        let wanted: Vec<usize> = (0..3).map(|at| usize::from(at == tick)).collect();
        assert_eq!(ended, wanted, "in the order in which they came");
        assert_eq!(alone.worker.timeout_ms() == 0, tick < 2, "the next tick does not wait for an event");
    }
}

/// What has come while a program ran is before the next one, whoever sent first, and is sent before that begins.
#[test]
fn who_comes_while_one_runs_is_answered_before_the_next_one() {
    let (mut alone, [mut spins, mut looks, mut other]) = Alone::with_clients();
    write(&mut spins, &eval(SPINS));
    alone.tick();
    assert_eq!(ends(&mut spins), 1);
    // They come in this order, and one read behind the other.
    write(&mut spins, &eval(SPINS));
    write(&mut other, PING);
    alone.tick();
    assert_eq!((ends(&mut spins), received(&mut other)), (0, PONG.to_vec()), "it has to wait for its turn");
    assert_eq!(alone.worker.timeout_ms(), 0, "the next tick does not wait for an event");
    alone.tick();
    assert_eq!(ends(&mut spins), 1);
    // A program that waits for its turn sees how much has been sent before.
    let sent = br#"{"steps":[{"do":["INFO","stats"],"as":"all"},
        {"for":"line","in":{"split":["${all}","\r\n"]},"do":[
            {"if":{"starts_with":["${line}","total_net_output_bytes:"]},"then":[{"return":"${line}"}]}]}]}"#;
    let figure = |client: &mut UnixStream| {
        let reply = String::from_utf8(received(client)).expect("a text");
        let (_, figure) = reply.trim_end().split_once("bytes:").expect("the line");
        figure.parse::<usize>().expect("a number")
    };
    write(&mut looks, &eval(sent));
    alone.tick();
    assert_eq!(received(&mut looks), b"", "it waits for its turn");
    alone.tick();
    let before = figure(&mut looks);
    write(&mut spins, &eval(SPINS));
    let mut spun = 0;
    while spun == 0 {
        alone.tick();
        spun = received(&mut spins).len();
    }
    write(&mut looks, &eval(sent));
    alone.tick();
    write(&mut other, PING);
    alone.tick();
    assert_eq!(received(&mut other), PONG);
    let reply = before.to_string().len() + "$23\r\ntotal_net_output_bytes:\r\n".len();
    assert_eq!(figure(&mut looks), before + reply + spun + PONG.len(), "what was sent before it began");
}

/// Reading a large program takes long too, and what is queued is read when it is.
#[test]
fn programs_that_are_read_have_turns() {
    let steps = vec![r#"["SET","k",1]"#; 20_000].join(",");
    let large = format!(r#"{{"steps":[{steps}]}}"#);
    let explain = || line(&[b"PROGRAM", b"EXPLAIN", large.as_bytes()]);
    let set = |name: &[u8]| line(&[b"PROGRAM", b"SET", name, large.as_bytes()]);
    let queues = [b"MULTI\r\n", &set(b"queued")[..]].concat();
    let mut alone = Alone::new();
    let mut clients: Vec<UnixStream> = (0..3).map(|_| alone.connect()).collect();
    let mut other = alone.connect();
    // More than a socket takes at once, and than is read at once.
    for (client, bytes) in clients.iter_mut().zip([explain(), queues, set(b"stored")]) {
        client.set_nonblocking(true).expect("it can be set");
        let mut left = &bytes[..bytes.len() - 1];
        while !left.is_empty() {
            match client.write(left) {
                Ok(len) => left = &left[len..],
                Err(_) => alone.tick(),
            }
        }
    }
    (0..20).for_each(|_| alone.tick());
    for client in &mut clients {
        assert!(!String::from_utf8_lossy(&received(client)).contains("locks"), "it is not whole");
        client.write_all(b"\n").expect("it fits into the socket");
    }
    for at in 0..3 {
        write(&mut other, PING);
        alone.tick();
        assert_eq!(received(&mut other), PONG, "in tick {at}");
        let replies: Vec<String> = clients
            .iter_mut()
            .map(|client| String::from_utf8_lossy(&received(client)).into_owned())
            .collect();
        let done =
            [replies[0].contains("locks"), replies[1].contains("QUEUED"), replies[2].contains(":1\r\n")];
        assert_eq!(done, [at == 0, at == 1, at == 2], "in tick {at}: {replies:?}");
    }
    sends(&mut alone, &mut clients[1], b"EXEC\r\n");
    assert_eq!(received(&mut clients[1]), b"*1\r\n:1\r\n");
}

#[test]
fn transactions_with_programs_have_turns_and_others_do_not_wait() {
    let mut alone = Alone::new();
    let mut clients: Vec<UnixStream> = (0..2).map(|_| alone.connect()).collect();
    let mut plain = alone.connect();
    for client in &mut clients {
        write(client, &[b"MULTI\r\n", &eval(SPINS)[..], b"EXEC\r\n"].concat());
    }
    write(&mut plain, b"MULTI\r\nPING\r\nEXEC\r\n");
    alone.tick();
    let ended: Vec<usize> = clients.iter_mut().map(ends).collect();
    assert_eq!(ended, [1, 0]);
    assert_eq!(received(&mut plain), b"+OK\r\n+QUEUED\r\n*1\r\n+PONG\r\n");
    alone.tick();
    let ended: Vec<usize> = clients.iter_mut().map(ends).collect();
    assert_eq!(ended, [0, 1]);
}

#[test]
fn who_sends_several_waits_behind_those_of_others() {
    let (mut alone, [mut many, mut one]) = Alone::with_clients();
    write(&mut many, &[&eval(SPINS).repeat(3)[..], &eval(SHORT), PING].concat());
    alone.tick();
    assert_eq!(ends(&mut many), 1);
    write(&mut one, &eval(SPINS));
    alone.tick();
    assert_eq!((ends(&mut many), ends(&mut one)), (1, 0), "it came before");
    alone.tick();
    assert_eq!((ends(&mut many), ends(&mut one)), (0, 1), "the third of one client came to its turn later");
    alone.tick();
    assert_eq!(ends(&mut many), 1);
    (0..2).for_each(|_| alone.tick());
    assert_eq!(received(&mut many), [b"$1\r\n3\r\n", PONG].concat(), "what stands behind them, in its order");
    assert!(alone.worker.timeout_ms() > 0, "nothing is left");
}

#[test]
fn short_ones_answer_each_in_its_order() {
    let (mut alone, [mut client]) = Alone::with_clients();
    write(&mut client, &eval(SHORT).repeat(50));
    let mut replies = Vec::new();
    for _ in 0..51 {
        alone.tick();
        replies.extend(received(&mut client));
    }
    let wanted: Vec<String> = (1..=50_usize).map(|at| (3 * at).to_string()).collect();
    let wanted: String = wanted.iter().map(|text| format!("${}\r\n{text}\r\n", text.len())).collect();
    assert_eq!(String::from_utf8_lossy(&replies), wanted);
}

#[test]
fn who_ends_behind_a_program_that_waits_is_answered_and_who_is_gone_leaves_nothing() {
    let mut alone = Alone::new();
    let mut clients: Vec<UnixStream> = (0..3).map(|_| alone.connect()).collect();
    for client in &mut clients {
        sends(&mut alone, client, PING);
        assert_eq!(received(client), PONG);
    }
    for client in &mut clients {
        write(client, &eval(SPINS));
    }
    alone.tick();
    let mut gone = clients.pop();
    let (half, first) = (clients.pop(), clients.pop());
    let (mut half, mut first) = (half.expect("there are three"), first.expect("there are three"));
    half.shutdown(std::net::Shutdown::Write).expect("it is open");
    drop(gone.take());
    (0..5).for_each(|_| alone.tick());
    assert_eq!((ends(&mut first), ends(&mut half)), (1, 1));
    assert_eq!(alone.engine.clients.len(), 1, "the two others are taken away");
    assert!(alone.worker.timeout_ms() > 0 && alone.worker.io.turns.is_empty());
}

#[test]
fn channels_whose_programs_wait_are_answered_though_no_more_is_sent() {
    let (mut alone, [mut client]) = Alone::with_clients();
    let spins = |channel| argv(channel, &[b"PROGRAM", b"EVAL", SPINS]);
    write(&mut client, &[spins(1), spins(3), argv(3, &[b"ECHO", b"behind"])].concat());
    client.shutdown(std::net::Shutdown::Write).expect("it is open");
    (0..5).for_each(|_| alone.tick());
    let bytes = received(&mut client);
    let replies = String::from_utf8_lossy(&bytes);
    assert_eq!(replies.matches("too much time").count(), 2, "{replies}");
    assert!(replies.ends_with("behind") && alone.clients() == 0, "{replies}");
}

#[test]
fn a_channel_waits_and_the_others_do_not() {
    let (mut alone, [mut client]) = Alone::with_clients();
    sends(&mut alone, &mut client, &argv(2, &[b"PING"]));
    let pong = received(&mut client);
    let spins = |channel| argv(channel, &[b"PROGRAM", b"EVAL", SPINS]);
    write(&mut client, &[spins(1), spins(3), argv(2, &[b"PING"])].concat());
    alone.tick();
    let replies = received(&mut client);
    assert_eq!(String::from_utf8_lossy(&replies).matches("too much time").count(), 1);
    assert!(replies.ends_with(&pong), "channel 2 does not wait for channel 3");
    alone.tick();
    assert_eq!(ends(&mut client), 1);
}

#[test]
fn writes_that_fire_programs_that_take_long_have_turns_too() {
    let (mut alone, [mut many, mut other]) = Alone::with_clients();
    let spins =
        String::from_utf8_lossy(SPINS).replacen('{', r#"{"params":[{"name":"event","type":"object"}],"#, 1);
    let set = line(&[b"PROGRAM", b"SET", b"spins", spins.as_bytes()]);
    sends(&mut alone, &mut many, &set);
    assert_eq!(received(&mut many), b":1\r\n");
    sends(&mut alone, &mut many, &line(&[b"TRIGGER", b"SET", b"t", br#"{"key":"k*","inside":"spins"}"#]));
    assert_eq!(received(&mut many), b":1\r\n");
    // Those that would run among neighbours, and one that would not.
    let writes = [&b"SET k1 v\r\n"[..], b"APPEND k2 v\r\n", b"SET k3 v\r\n", b"MSET k4 v k5 v\r\n"].concat();
    write(&mut many, &[&writes[..], b"SET other v\r\n", PING].concat());
    for at in 0..4 {
        write(&mut other, PING);
        alone.tick();
        assert_eq!(received(&mut other), PONG, "in tick {at}");
        let bytes = received(&mut many);
        let replies = String::from_utf8_lossy(&bytes).into_owned();
        assert_eq!(replies.matches("too much time").count(), 1, "in tick {at}: {replies}");
        assert_eq!(
            replies.ends_with("+PONG\r\n"),
            at == 3,
            "what stands behind them, in its order: {replies}"
        );
    }
    assert!(alone.worker.timeout_ms() > 0, "nothing is left");
}

/// Scripts have turns as programs do, wherever they run: what one client sends in a row is not run in a row.
#[test]
fn scripts_that_take_long_have_turns() {
    // Longer than a turn, though the clock is that of all threads of the tests, and not so long that anybody is told.
    let spins = b"local t = os.clock() while os.clock() - t < 0.03 do end return 'spun'";
    let spins = line(&[b"EVAL", spins, b"0"]);
    for mut alone in [Alone::new(), Alone::with_stack()] {
        let (mut spinning, mut other) = (alone.connect(), alone.connect());
        write(&mut spinning, &spins.repeat(6));
        let mut spun = 0;
        while spun < 6 {
            write(&mut other, PING);
            alone.tick();
            assert_eq!(received(&mut other), PONG, "behind {spun} scripts");
            let more = String::from_utf8_lossy(&received(&mut spinning)).matches("spun").count();
            assert!(more <= 1, "{more} in one tick");
            spun += more;
        }
        // Short ones run together: at some time all of them are answered in one tick, though one that a busy machine
        // holds up may have taken its turn for itself.
        let short = line(&[b"EVAL", b"return 'short'", b"0"]).repeat(6);
        let together = (0..50).any(|_| {
            write(&mut spinning, &short);
            let (mut answered, mut most) = (0, 0);
            while answered < 6 {
                alone.tick();
                let now = String::from_utf8_lossy(&received(&mut spinning)).matches("short").count();
                (answered, most) = (answered + now, most.max(now));
            }
            most == 6
        });
        assert!(together, "each had a turn of its own");
    }
}
