//! What the commands of sorted sets answer, errors included.

mod support;

use support::{Bench, script, show};
use weft_engine::blocking::End;
use weft_engine::reply::Protocol;

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";

#[test]
fn members_and_scores() {
    script(&[
        ("ZADD z 1 a 2 b 3 c", "3"),
        ("ZADD z NX 9 a 4 d", "1"),
        ("ZADD z XX CH 1.5 a 9 x", "1"),
        ("ZADD z GT CH 1 a 5 b", "1"),
        ("ZADD z LT CH 2 b 9 c", "1"),
        ("ZADD z INCR 2 a", "3.5"),
        ("ZADD z NX INCR 2 a", "nil"),
        ("ZADD z XX INCR 2 x", "nil"),
        ("ZADD none XX 1 a", "0"),
        ("ZADD z XX NX 1 a", "-ERR XX and NX options at the same time are not compatible"),
        ("ZADD z GT NX 1 a", "-ERR GT, LT, and/or NX options at the same time are not compatible"),
        ("ZADD z INCR 1 a 2 b", "-ERR INCR option supports a single increment-element pair"),
        ("ZADD z 1", "-ERR wrong number of arguments for 'zadd' command"),
        ("ZADD z 1 a 2", "-ERR syntax error"),
        ("ZADD z nan a", "-ERR value is not a valid float"),
        ("ZADD z inf i", "1"),
        ("ZINCRBY z -inf i", "-ERR resulting score is not a number (NaN)"),
        ("ZREM z i x", "1"),
        ("ZINCRBY z 0.5 a", "4"),
        ("ZSCORE z a", "4"),
        ("ZSCORE z x", "nil"),
        ("ZMSCORE z a x", "[4 nil]"),
        ("ZMSCORE none a x", "[nil nil]"),
        ("ZCARD z", "4"),
        ("ZRANGE z 0 -1", "[b c a d]"),
        ("ZRANK z a", "2"),
        ("ZREVRANK z a", "1"),
        ("ZRANK z x", "nil"),
        ("ZRANK z a WITHSCORE", "[2 4]"),
        ("ZRANK z x WITHSCORE", "nil"),
        ("ZRANK z a WITHSCORES", "-ERR syntax error"),
        ("ZSCAN z 0 MATCH a", "[0 [a 4]]"),
        ("ZSCAN z 0 MATCH a NOSCORES", "[0 [a]]"),
        ("ZADD one 1 m", "1"),
        ("ZRANDMEMBER one", "m"),
        ("ZRANDMEMBER one 5", "[m]"),
        ("ZRANDMEMBER one -2", "[m m]"),
        ("ZRANDMEMBER none", "nil"),
        ("ZRANDMEMBER none 1", "[]"),
        ("ZRANDMEMBER none -9223372036854775807", "[]"),
        ("ZRANDMEMBER one -9223372036854775807", "-ERR a reply has at most 4194304 random elements"),
        ("ZADD many 1 a -0 zero", "2"),
        ("ZINCRBY many 0 zero", "0"),
        ("ZRANDMEMBER one 1 X", "-ERR syntax error"),
        ("ZRANDMEMBER one -9223372036854775807 WITHSCORES", "-ERR value is out of range"),
        ("SET str x", "OK"),
        ("ZADD str 1 a", WRONG_TYPE),
        ("ZSCORE str a", WRONG_TYPE),
    ]);
}

#[test]
fn ranges() {
    script(&[
        ("ZADD z 1 a 2 b 3 c 4 d", "4"),
        ("ZRANGE z 1 2", "[b c]"),
        ("ZRANGE z 1 2 REV", "[c b]"),
        ("ZREVRANGE z 0 0", "[d]"),
        ("ZRANGE z -2 -1", "[c d]"),
        ("ZRANGE z 5 9", "[]"),
        ("ZRANGE z (1 3 BYSCORE", "[b c]"),
        ("ZRANGE z 3 (1 BYSCORE REV", "[c b]"),
        ("ZRANGE z -inf +inf BYSCORE LIMIT 1 2", "[b c]"),
        ("ZREVRANGEBYSCORE z +inf -inf LIMIT 1 2", "[c b]"),
        ("ZRANGEBYSCORE z 1 2 LIMIT 0 -1", "[a b]"),
        ("ZRANGEBYSCORE z 1 2 LIMIT -1 1", "[]"),
        ("ZRANGEBYSCORE z x 2", "-ERR min or max is not a float"),
        (
            "ZRANGE z 1 2 LIMIT 0 1",
            "-ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
        ),
        (
            "ZRANGE z - + BYLEX WITHSCORES",
            "-ERR syntax error, WITHSCORES not supported in combination with BYLEX",
        ),
        ("ZRANGE z 0 1 BYLEX", "-ERR min or max not valid string range item"),
        ("ZRANGE z 0 1 NONSENSE", "-ERR syntax error"),
        ("ZRANGE z a b", "-ERR value is not an integer or out of range"),
        ("ZCOUNT z (1 +inf", "3"),
        ("ZADD l 0 a 0 b 0 c 0 d", "4"),
        ("ZRANGEBYLEX l [b (d", "[b c]"),
        ("ZREVRANGEBYLEX l + [b LIMIT 1 1", "[c]"),
        ("ZLEXCOUNT l - (c", "2"),
        ("ZRANGESTORE t z 2 3 BYSCORE", "2"),
        ("ZRANGE t 0 -1", "[b c]"),
        ("ZRANGESTORE t z 8 9 BYSCORE", "0"),
        ("ZCARD t", "0"),
        ("ZREMRANGEBYRANK z 0 0", "1"),
        ("ZREMRANGEBYSCORE z 4 9", "1"),
        ("ZREMRANGEBYLEX l - [b", "2"),
        ("ZRANGE z 0 -1", "[b c]"),
        ("ZRANGE l 0 -1", "[c d]"),
        ("ZREMRANGEBYRANK z 0 -1", "2"),
        ("ZCARD z", "0"),
    ]);
}

#[test]
fn several_sets() {
    script(&[
        ("ZADD z 1 a 2 b", "2"),
        ("ZADD y 10 b 20 c", "2"),
        ("SADD s a c", "2"),
        ("ZUNION 2 z y", "[a b c]"),
        ("ZUNIONSTORE t 3 z y s WEIGHTS 2 1 5", "3"),
        ("ZMSCORE t a b c", "[7 14 25]"),
        ("ZUNIONSTORE t 2 z y AGGREGATE MAX", "3"),
        ("ZSCORE t b", "10"),
        ("ZINTERSTORE t 2 z y AGGREGATE MIN", "1"),
        ("ZSCORE t b", "2"),
        ("ZINTER 2 z s", "[a]"),
        ("ZINTERCARD 2 z y LIMIT 1", "1"),
        ("ZDIFF 2 z y", "[a]"),
        ("ZDIFFSTORE t 2 z s", "1"),
        ("ZDIFF 1 none", "[]"),
        ("ZUNION 0 z", "-ERR at least 1 input key is needed for 'zunion' command"),
        ("ZUNION 3 z y", "-ERR syntax error"),
        ("ZUNION 2 z y WEIGHTS 1", "-ERR syntax error"),
        ("ZUNION 2 z y WEIGHTS 1 x", "-ERR weight value is not a float"),
        ("ZUNION 2 z y AGGREGATE AVG", "-ERR syntax error"),
        ("ZDIFF 2 z y WEIGHTS 1 1", "-ERR syntax error"),
        ("ZUNIONSTORE t 1 z WITHSCORES", "-ERR syntax error"),
        ("ZINTERCARD 2 z y LIMIT -1", "-ERR LIMIT can't be negative"),
        ("ZINTERSTORE t 2 z none", "0"),
        ("ZCARD t", "0"),
        ("SET str x", "OK"),
        ("ZUNION 2 z str", WRONG_TYPE),
    ]);
}

#[test]
fn a_zero_has_a_sign_where_scores_are_doubles() {
    script(&[
        ("CONFIG SET zset-max-listpack-entries 0", "OK"),
        ("ZADD minus -0 m", "1"),
        ("ZADD plus 0 m", "1"),
        ("ZADD minus CH 0 m", "0"),
        ("ZINCRBY minus 0 m", "0"),
        ("ZSCORE minus m", "-0"),
        ("ZADD plus CH -0 m", "0"),
        ("ZSCORE plus m", "0"),
        ("ZUNIONSTORE to 2 minus plus", "1"),
        ("ZSCORE to m", "0"),
        ("ZUNIONSTORE to 2 plus minus", "1"),
        ("ZSCORE to m", "0"),
        ("ZINTERSTORE to 2 minus plus", "1"),
        ("ZSCORE to m", "0"),
        ("ZUNIONSTORE to 2 minus minus", "1"),
        ("ZSCORE to m", "-0"),
        ("ZUNIONSTORE to 2 minus plus AGGREGATE MIN", "1"),
        ("ZSCORE to m", "-0"),
        ("ZUNIONSTORE to 2 plus minus AGGREGATE MIN", "1"),
        ("ZSCORE to m", "0"),
        ("ZUNIONSTORE to 2 minus plus AGGREGATE MAX", "1"),
        ("ZSCORE to m", "-0"),
        ("ZUNIONSTORE to 2 plus minus AGGREGATE MAX", "1"),
        ("ZSCORE to m", "0"),
    ]);
}

#[test]
fn ends_are_taken() {
    script(&[
        ("ZADD z 1 a 2 b 3 c 4 d", "4"),
        ("ZPOPMIN z", "[a 1]"),
        ("ZPOPMAX z", "[d 4]"),
        ("ZPOPMIN z 0", "[]"),
        ("ZPOPMIN z -1", "-ERR value is out of range, must be positive"),
        ("ZMPOP 2 none z MAX", "[z [[c 3]]]"),
        ("ZMPOP 1 z MIN COUNT 5", "[z [[b 2]]]"),
        ("ZMPOP 1 z MIN", "nil"),
        ("ZMPOP 0 z MIN", "-ERR numkeys should be greater than 0"),
        ("ZMPOP 1 z MID", "-ERR syntax error"),
        ("ZMPOP 1 z MIN COUNT 0", "-ERR count should be greater than 0"),
        ("ZPOPMIN z", "[]"),
        ("ZADD z 1 a", "1"),
        ("BZPOPMIN none z 0", "[z a 1]"),
        ("BZPOPMIN z -1", "-ERR timeout is negative"),
        ("BZMPOP x 1 z MIN", "-ERR timeout is not a float or out of range"),
    ]);
    let mut bench = Bench::new();
    for (protocol, expected) in [(Protocol::Resp2, "[a 1 b 2]"), (Protocol::Resp3, "[[a 1] [b 2]]")] {
        let client = bench.connect(protocol);
        bench.text(client, "ZADD p 1 a 2 b");
        assert_eq!(bench.text(client, "ZRANGE p 0 -1 WITHSCORES"), expected);
        assert_eq!(bench.text(client, "ZPOPMIN p 2"), expected);
    }
}

#[test]
fn waiters_are_served() {
    let (mut bench, [one, two, writer]) =
        Bench::with_clients([Protocol::Resp2, Protocol::Resp3, Protocol::Resp2]);
    assert!(bench.run(one, "BZPOPMAX x z 0").is_empty());
    assert!(bench.run(two, "BZMPOP 0 1 z MIN COUNT 2").is_empty());
    assert_eq!(bench.text(writer, "SADD x not-sorted"), "1");
    assert!(bench.is_waiting(one), "another type does not end the wait");
    assert_eq!(bench.text(writer, "ZADD z 1 a 2 b 3 c"), "3");
    assert_eq!(show(&bench.take(one)[0]), WRONG_TYPE, "the keys are looked at in order");
    assert_eq!(show(&bench.take(two)[0]), "[z [[a 1] [b 2]]]");
    assert_eq!(bench.text(one, "BZPOPMAX y z 0"), "[z c 3]");
    assert_eq!(bench.text(writer, "ZCARD z"), "0");
    assert!(bench.run(one, "BZPOPMIN z 1").is_empty());
    assert_eq!(show(&bench.end_wait(one, End::Timeout)[0]), "nil");
}

#[test]
fn positions() {
    script(&[
        ("GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania", "2"),
        ("GEOADD g NX 1 1 Palermo", "0"),
        ("GEOADD g CH 13.5 38 Palermo", "1"),
        ("GEOADD g 13.361389 38.115556 Palermo", "0"),
        ("GEOADD g 200 1 x", "-ERR invalid longitude,latitude pair 200.000000,1.000000"),
        ("GEOADD g NX XX 1 1 x", "-ERR syntax error"),
        ("GEOADD g 1 1", "-ERR wrong number of arguments for 'geoadd' command"),
        ("ZSCORE g Palermo", "3479099956230698"),
        ("GEODIST g Palermo Catania", "166274.1516"),
        ("GEODIST g Palermo Catania km", "166.2742"),
        ("GEODIST g Palermo x", "nil"),
        ("GEODIST g Palermo Catania parsec", "-ERR unsupported unit provided. please use M, KM, FT, MI"),
        ("GEOHASH g Palermo x", "[sqc8b49rny0 nil]"),
        ("GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km ASC", "[Catania Palermo]"),
        ("GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km DESC COUNT 1", "[Palermo]"),
        (
            "GEOSEARCH g FROMLONLAT 15 37 BYBOX 400 400 km ASC WITHDIST",
            "[[Catania 56.4413] [Palermo 190.4424]]",
        ),
        ("GEOSEARCH g FROMMEMBER x BYRADIUS 1 km", "-ERR member x does not exist"),
        ("GEOSEARCH g FROMMEMBER Palermo BYRADIUS 1 km WITHHASH", "[[Palermo 3479099956230698]]"),
        (
            "GEOSEARCH g BYRADIUS 1 km ASC ASC",
            "-ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for GEOSEARCH",
        ),
        (
            "GEOSEARCH g FROMLONLAT 1 1 ASC ASC",
            "-ERR exactly one of BYRADIUS, BYBOX and BYPOLYGON can be specified for GEOSEARCH",
        ),
        ("GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 1 km ANY", "-ERR the ANY argument requires COUNT argument"),
        ("GEOSEARCH g FROMLONLAT 1 1 BYRADIUS -1 km", "-ERR radius cannot be negative"),
        ("GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 1 km COUNT 0", "-ERR COUNT must be > 0"),
        ("GEOSEARCH g BYPOLYGON 4 12 36 16 36 16 39 12 39 ASC", "[Palermo Catania]"),
        ("GEOSEARCH none FROMLONLAT 1 1 BYRADIUS 1 km", "[]"),
        ("GEOSEARCHSTORE t g FROMLONLAT 15 37 BYRADIUS 100 km STOREDIST", "1"),
        ("ZRANGE t 0 -1", "[Catania]"),
        ("GEORADIUS g 15 37 200 km ASC", "[Catania Palermo]"),
        ("GEORADIUS_RO g 15 37 200 km STORE t", "-ERR syntax error"),
        ("GEORADIUSBYMEMBER g Catania 1 km", "[Catania]"),
        ("GEORADIUS g 15 37 200 km STORE t", "2"),
        ("GEORADIUSBYMEMBER none Catania 1 km STORE t", "0"),
        ("ZCARD t", "0"),
    ]);
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    bench.text(client, "GEOADD g 13.361389 38.115556 Palermo");
    let expected = "[[13.36138933897018433 38.11555639549629859] nil]";
    assert_eq!(bench.text(client, "GEOPOS g Palermo x"), expected);
}

/// Up to 17 digits behind the point and no exponent, which is more than a double says.
#[test]
fn coordinates_have_the_same_digits_in_resp3_as_in_resp2() {
    let (mut bench, client) = Bench::with(Protocol::Resp3);
    bench.text(client, "GEOADD g 13.361389 38.115556 Palermo 0 0 zero");
    bench.execute(client, &[b"GEOPOS", b"g", b"Palermo", b"zero"]);
    let reply = String::from_utf8_lossy(&bench.take_output(client).bytes).into_owned();
    for number in [
        ",13.36138933897018433\r\n",
        ",38.11555639549629859\r\n",
        ",0.00000268220901489\r\n",
        ",0.00000126736058093\r\n",
    ] {
        assert!(reply.contains(number), "{reply}");
    }
}
