package e2e

// This file owns the tests of typed arguments and replies against real servers.

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/respb"
)

func TestRespbTyped(t *testing.T) {
	servers(t, func(ctx context.Context, t *testing.T, addr string, p respb.Protocol) {
		c := connect(ctx, t, addr, p)
		check := func(name string, got any, err error, want string) {
			t.Helper()
			if err != nil || fmt.Sprint(got) != want {
				t.Errorf("%s: got %v, %v, want %s", name, got, err, want)
			}
		}
		// Times.
		_, err := c.Set(ctx, "k", "v", respb.SetPx(1500*time.Millisecond))
		check("SET PX", "", err, "")
		if left, err := c.Pttl(ctx, "k"); err != nil || left <= 0 || left > 1500*time.Millisecond {
			t.Error("PTTL", left, err)
		}
		_, err = c.Set(ctx, "k", "v")
		check("SET", "", err, "")
		left, err := c.Ttl(ctx, "k")
		check("TTL without expiry", left == respb.NoExpiry, err, "true")
		if _, err := c.Ttl(ctx, "none"); !errors.Is(err, respb.ErrNil) {
			t.Error("TTL of nothing:", err)
		}
		at := time.Now().Add(time.Hour).Truncate(time.Second)
		_, err = c.Expireat(ctx, "k", at)
		check("EXPIREAT", "", err, "")
		until, err := c.Expiretime(ctx, "k")
		check("EXPIRETIME", until.Equal(at), err, "true")
		now, err := c.Time(ctx)
		if err != nil || time.Since(now).Abs() > time.Hour {
			t.Error("TIME", now, err)
		}
		// Bytes.
		b, err := c.GetBytes(ctx, "k")
		check("GetBytes", string(b), err, "v")
		if _, err := c.GetBytes(ctx, "none"); !errors.Is(err, respb.ErrNil) {
			t.Error("GetBytes of nothing:", err)
		}
		list, err := c.MgetBytes(ctx, "k", "none")
		check("MgetBytes", fmt.Sprintf("%q %v", list, list[1] == nil), err, `["v" ""] true`)
		// Sorted sets.
		_, err = c.Zadd(ctx, "z", []respb.ZaddData{{Score: 1, Member: "a"}, {Score: 2.5, Member: "b"}, {Score: 3, Member: "c"}})
		check("ZADD", "", err, "")
		score, err := c.Zincrby(ctx, "z", 0.5, "a")
		check("ZINCRBY", score, err, "1.5")
		n, err := c.Zcount(ctx, "z", respb.Excluding(1.5), respb.Highest)
		check("ZCOUNT", n, err, "2")
		members, err := c.Zrange(ctx, "z", "0", "-1", respb.ZrangeWithscores())
		check("ZRANGE WITHSCORES", members, err, "[{a 1.5} {b 2.5} {c 3}]")
		members, err = c.Zrange(ctx, "z", "0", "1")
		check("ZRANGE", members, err, "[{a 0} {b 0}]")
		rank, err := c.Zrank(ctx, "z", "b")
		check("ZRANK", rank, err, "{1 0}")
		if _, err := c.Zrank(ctx, "z", "none"); !errors.Is(err, respb.ErrNil) {
			t.Error("ZRANK of nothing:", err)
		}
		scores, err := c.Zmscore(ctx, "z", "c", "none")
		check("ZMSCORE", *scores[0], err, "3")
		check("ZMSCORE of nothing", scores[1] == nil, err, "true")
		page, err := c.Zscan(ctx, "z", 0)
		check("ZSCAN", page, err, "{0 [a 1.5 b 2.5 c 3]}")
		members, err = c.Zpopmin(ctx, "z")
		check("ZPOPMIN", members, err, "[{a 1.5}]")
		members, err = c.Zpopmax(ctx, "z", respb.ZpopmaxCount(5))
		check("ZPOPMAX", members, err, "[{c 3} {b 2.5}]")
		_, err = c.Zadd(ctx, "z", []respb.ZaddData{{Score: 1, Member: "a"}, {Score: 2, Member: "b"}})
		check("ZADD", "", err, "")
		ch, err := c.Channel(ctx)
		if err != nil {
			t.Fatal(err)
		}
		popped, err := ch.Bzpopmin(ctx, []string{"z"}, time.Second)
		check("BZPOPMIN", popped, err, "{z [{a 1}]}")
		popped, err = c.Zmpop(ctx, []string{"z"}, respb.ZmpopWhereMax)
		check("ZMPOP", popped, err, "{z [{b 2}]}")
		if _, err = c.Zmpop(ctx, []string{"z"}, respb.ZmpopWhereMax); !errors.Is(err, respb.ErrNil) {
			t.Error("ZMPOP of nothing:", err)
		}
		if _, err = ch.Bzpopmin(ctx, []string{"z"}, 10*time.Millisecond); !errors.Is(err, respb.ErrNil) {
			t.Error("BZPOPMIN of nothing:", err)
		}
		_, err = c.Rpush(ctx, "l", "x", "y")
		check("RPUSH", "", err, "")
		values, err := c.Lmpop(ctx, []string{"l"}, respb.LmpopWhereLeft, respb.LmpopCount(5))
		check("LMPOP", values, err, "{l [x y]}")
		// Streams.
		for i := range 2 {
			_, err = c.Xadd(ctx, "s", fmt.Sprint(i+1, "-0"), []respb.XaddData{{Field: "f", Value: fmt.Sprint(i)}})
			check("XADD", "", err, "")
		}
		entries, err := c.Xrange(ctx, "s", "-", "+")
		check("XRANGE", entries, err, "[{1-0 [{f 0}]} {2-0 [{f 1}]}]")
		streams, err := c.Xread(ctx, []string{"s"}, []string{"1"})
		check("XREAD", streams, err, "[{s [{2-0 [{f 1}]}]}]")
		streams, err = c.Xread(ctx, []string{"s"}, []string{"2"})
		check("XREAD of nothing", len(streams), err, "0")
		// Sets and places.
		_, err = c.Sadd(ctx, "set", "m")
		check("SADD", "", err, "")
		is, err := c.Smismember(ctx, "set", "m", "n")
		check("SMISMEMBER", is, err, "[true false]")
		_, err = c.Geoadd(ctx, "g", []respb.GeoaddData{{Longitude: 13.361389, Latitude: 38.115556, Member: "Palermo"}})
		check("GEOADD", "", err, "")
		positions, err := c.Geopos(ctx, "g", "Palermo", "none")
		check("GEOPOS", fmt.Sprintf("%.3f %v", *positions[0], positions[1] == nil), err, "{13.361 38.116} true")
		places, err := c.Geosearch(ctx, "g", []string{"BYRADIUS", "1", "km"}, respb.GeosearchFrommember("Palermo"), respb.GeosearchWithdist(),
			respb.GeosearchWithcoord(), respb.GeosearchWithhash())
		if err != nil || len(places) != 1 || places[0].Member != "Palermo" || places[0].Distance > 0.001 || places[0].Hash != 3479099956230698 ||
			places[0].Position != *positions[0] {
			t.Error("GEOSEARCH", places, err)
		}
		clients, err := c.ClientList(ctx)
		check("CLIENT LIST", len(clients) > 0 && clients[0]["id"] != "", err, "true")
	})
}
