package respb

// This file owns the tests of the generated helpers.

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/resp"
)

// TestHelperArguments sends commands with helpers to a server that gives back what it got.
func TestHelperArguments(t *testing.T) {
	both(t, func(t *testing.T, p Protocol) {
		var got string
		h := resp.HandlerFunc(func(s *resp.Session, r *resp.Request) error {
			var words []string
			for _, a := range r.Args() {
				words = append(words, string(a))
			}
			got = strings.Join(words, " ")
			return s.WriteArrayHeader(0)
		})
		ctx := testContext(t)
		conn := dial(t, serve(t, &resp.Server{Handler: h}), Options{Protocol: p})
		c, err := conn.Channel(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for want, call := range map[string]func(){
			"SET k v NX GET EX 10":                      func() { _, _ = c.Set(ctx, "k", "v", SetEx(10*time.Second), SetGet(), SetNx()) },
			"ZADD z GT CH 1.5 a inf b":                  func() { _, _ = c.Zadd(ctx, "z", []ZaddData{{1.5, "a"}, {math.Inf(1), "b"}}, ZaddCh(), ZaddGt()) },
			"EVAL return 1 2 a b x":                     func() { _, _ = c.Eval(ctx, "return 1", []string{"a", "b"}, "x") },
			"LMPOP 1 l RIGHT COUNT 3":                   func() { _, _ = c.Lmpop(ctx, []string{"l"}, LmpopWhereRight, LmpopCount(3)) },
			"XREADGROUP GROUP g me COUNT 5 STREAMS s >": func() { _, _ = c.Xreadgroup(ctx, "g", "me", []string{"s"}, []string{">"}, XreadgroupCount(5)) },
			"MSET a 1 b 2":                              func() { _ = c.Mset(ctx, MsetData{"a", "1"}, MsetData{"b", "2"}) },
			"CLIENT KILL ID 5":                          func() { _, _ = c.ClientKill(ctx, "ID", "5") },
			"CLIENT NO-EVICT ON":                        func() { _ = c.ClientNoEvict(ctx, ClientNoEvictEnabledOn) },
			"DEL a b c":                                 func() { _, _ = c.Del(ctx, "a", "b", "c") },
			"BLPOP l 0.5":                               func() { _, _ = c.Blpop(ctx, []string{"l"}, 500*time.Millisecond) },
			"EXPIRE k 2":                                func() { _, _ = c.Expire(ctx, "k", 1001*time.Millisecond) },
			"PSETEX k 1 v":                              func() { _ = c.Psetex(ctx, "k", time.Nanosecond, "v") },
			"XREAD BLOCK 0 STREAMS s $":                 func() { _, _ = c.Xread(ctx, []string{"s"}, []string{"$"}, XreadBlock(0)) },
			"EXPIREAT k 1700000001":                     func() { _, _ = c.Expireat(ctx, "k", time.Unix(1700000000, 5)) },
			"EXPIREAT k 1700000000":                     func() { _, _ = c.Expireat(ctx, "k", time.Unix(1700000000, 0)) },
			"PEXPIREAT k 1700000000002":                 func() { _, _ = c.Pexpireat(ctx, "k", time.Unix(1700000000, 1000001)) },
			"PEXPIREAT k -1500":                         func() { _, _ = c.Pexpireat(ctx, "k", time.Unix(-2, 500_000_000)) },
			"ZCOUNT z (1.5 +inf":                        func() { _, _ = c.Zcount(ctx, "z", Excluding(1.5), Highest) },
			"ZREMRANGEBYSCORE z -inf 2":                 func() { _, _ = c.Zremrangebyscore(ctx, "z", Lowest, Including(2)) },
			"ZINCRBY z 0.5 m":                           func() { _, _ = c.Zincrby(ctx, "z", 0.5, "m") },
			"JSON.SET d $ {} NX":                        func() { _, _ = c.JsonSet(ctx, "d", "$", "{}", JsonSetNx()) },
			"GEOSEARCH g FROMMEMBER m BYRADIUS 1 km ASC WITHDIST": func() {
				_, _ = c.Geosearch(ctx, "g", []string{"BYRADIUS", "1", "km"}, GeosearchFrommember("m"), GeosearchAsc(), GeosearchWithdist())
			},
		} {
			got = ""
			call()
			if !strings.EqualFold(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	})
}

func TestHelperResults(t *testing.T) {
	both(t, func(t *testing.T, p Protocol) {
		ctx := testContext(t)
		c := dial(t, serve(t, &resp.Server{Handler: newStore().handler()}), Options{Protocol: p})
		if s, err := c.Set(ctx, "k", "v"); s != "OK" || err != nil {
			t.Error(s, err)
		}
		if s, err := c.Get(ctx, "k"); s != "v" || err != nil {
			t.Error(s, err)
		}
		if s, err := c.Get(ctx, "none"); s != "" || err != ErrNil {
			t.Error(s, err)
		}
		if n, err := c.Incr(ctx, "n"); n != 1 || err != nil {
			t.Error(n, err)
		}
		if m, err := c.Hgetall(ctx, "h"); len(m) != 2 || m["b"] != "2" || err != nil {
			t.Error(m, err)
		}
		if s, err := c.Smembers(ctx, "s"); len(s) != 2 || err != nil {
			t.Error(s, err)
		}
		if f, err := c.Zscore(ctx, "z", "m"); f != 1.5 || err != nil {
			t.Error(f, err)
		}
		if all, err := c.Mget(ctx, "k", "none"); len(all) != 2 || *all[0] != "v" || all[1] != nil || err != nil {
			t.Error(all, err)
		}
		if _, err := c.Incr(ctx, ""); err != nil {
			t.Error(err)
		}
		pipe := c.Pipeline()
		set, get, n, bad := pipe.Set("p", "1"), pipe.Get("p"), pipe.Incr("p"), pipe.Zscore("z", "m")
		if _, err := pipe.Exec(ctx); err != nil {
			t.Fatal(err)
		}
		if s, err := set.Get(); s != "OK" || err != nil {
			t.Error(s, err)
		}
		if s, err := get.Get(); s != "1" || err != nil {
			t.Error(s, err)
		}
		if n, err := n.Get(); n != 2 || err != nil {
			t.Error(n, err)
		}
		if f, err := bad.Get(); f != 1.5 || err != nil {
			t.Error(f, err)
		}
	})
}

// TestAllocations: a command costs nothing but what its reply is made into.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	c := dial(t, serve(t, &resp.Server{Handler: newStore().handler()}), Options{Protocol: RESPB})
	ctx := context.Background()
	if _, err := c.Set(ctx, "k", "v"); err != nil {
		t.Fatal(err)
	}
	var v Value
	for name, limit := range map[string]float64{"DoInto": 2, "Get": 3} { // the server in this process has its share: the value and the key
		n := testing.AllocsPerRun(500, func() {
			if name == "DoInto" {
				_ = c.DoInto(ctx, &v, "GET", "k")
			} else {
				_, _ = c.Get(ctx, "k")
			}
		})
		if n > limit+2 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
