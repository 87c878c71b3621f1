package e2e

// This file owns the tests of replies that say something about servers, streams and clients, and of commands with several helpers, against real
// servers.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/respb"
)

func TestRespbAbout(t *testing.T) {
	servers(t, func(ctx context.Context, t *testing.T, addr string, p respb.Protocol) {
		c := connect(ctx, t, addr, p)
		check := func(name string, got any, err error, want string) {
			t.Helper()
			if err != nil || fmt.Sprint(got) != want {
				t.Errorf("%s: got %v, %v, want %s", name, got, err, want)
			}
		}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		// Streams.
		for i := range 3 {
			_, err := c.Xadd(ctx, "s", fmt.Sprint(i+1, "-0"), []respb.XaddData{{Field: "f", Value: fmt.Sprint(i)}})
			must(err)
		}
		must(c.XgroupCreate(ctx, "s", "g", "0"))
		_, err := c.Xreadgroup(ctx, "g", "me", []string{"s"}, []string{">"}, respb.XreadgroupCount(2))
		must(err)
		s, err := c.XinfoStream(ctx, "s")
		check("XINFO STREAM", fmt.Sprintln(s.Length, s.Groups, s.EntriesAdded, s.LastGeneratedID, s.FirstEntry, s.LastEntry), err, "3 1 3 3-0 {1-0 [{f 0}]} {3-0 [{f 2}]}\n")
		if len(s.Reply.Elems) == 0 {
			t.Error("XINFO STREAM has no Reply")
		}
		full, err := c.XinfoStream(ctx, "s", respb.XinfoStreamFullBlock())
		check("XINFO STREAM FULL", fmt.Sprint(full.Length, full.Groups), err, "3 1")
		groups, err := c.XinfoGroups(ctx, "s")
		check("XINFO GROUPS", groups, err, "[{g 1 2 2 1 2-0}]")
		consumers, err := c.XinfoConsumers(ctx, "s", "g")
		if err != nil || len(consumers) != 1 || consumers[0].Name != "me" || consumers[0].Pending != 2 || consumers[0].Idle > time.Minute {
			t.Error("XINFO CONSUMERS", consumers, err)
		}
		pending, err := c.Xpending(ctx, "s", "g")
		check("XPENDING", pending, err, "{2 1-0 2-0 map[me:2] []}")
		pending, err = c.Xpending(ctx, "s", "g", respb.XpendingFilters("-", "+", "10"))
		if err != nil || pending.Count != 2 || pending.Entries[0].ID != "1-0" || pending.Entries[0].Consumer != "me" || pending.Entries[0].Deliveries != 1 {
			t.Error("XPENDING - + 10", pending, err)
		}
		// One, or several.
		_, err = c.Rpush(ctx, "l", "a", "b", "c", "a")
		must(err)
		at, err := c.Lpos(ctx, "l", "a", respb.LposRank(-1))
		check("LPOS", at, err, "3")
		all, err := c.LposN(ctx, "l", "a", 0)
		check("LPOS COUNT", all, err, "[0 3]")
		if _, err := c.Lpos(ctx, "l", "none"); !errors.Is(err, respb.ErrNil) {
			t.Error("LPOS of nothing:", err)
		}
		one, err := c.Lpop(ctx, "l")
		check("LPOP", one, err, "a")
		several, err := c.RpopN(ctx, "l", 2)
		check("RPOP 2", several, err, "[a c]")
		if _, err := c.Rpop(ctx, "none"); !errors.Is(err, respb.ErrNil) {
			t.Error("RPOP of nothing:", err)
		}
		none, err := c.LpopN(ctx, "none", 2)
		check("LPOP 2 of nothing", len(none), err, "0")
		_, err = c.Sadd(ctx, "set", "3", "1", "2")
		must(err)
		sorted, err := c.Sort(ctx, "set", respb.SortDesc())
		check("SORT", sorted, err, "[3 2 1]")
		n, err := c.SortStore(ctx, "set", "sorted")
		check("SORT STORE", n, err, "3")
		members, err := c.SrandmemberN(ctx, "set", 5)
		slices.Sort(members)
		check("SRANDMEMBER 5", members, err, "[1 2 3]")
		_, err = c.Hset(ctx, "h", respb.HsetData{Field: "f", Value: "v"})
		must(err)
		field, err := c.Hrandfield(ctx, "h")
		check("HRANDFIELD", field, err, "f")
		fields, err := c.HrandfieldN(ctx, "h", 1, respb.HrandfieldNWithvalues())
		check("HRANDFIELD WITHVALUES", fields, err, "[{f v}]")
		_, err = c.Zadd(ctx, "z", []respb.ZaddData{{Score: 1.5, Member: "m"}})
		must(err)
		scored, err := c.ZrandmemberN(ctx, "z", 1, respb.ZrandmemberNWithscores())
		check("ZRANDMEMBER WITHSCORES", scored, err, "[{m 1.5}]")
		must(c.Mset(ctx, respb.MsetData{Key: "k1", Value: "ohmytext"}, respb.MsetData{Key: "k2", Value: "mynewtext"}))
		text, err := c.Lcs(ctx, "k1", "k2")
		check("LCS", text, err, "mytext")
		common, err := c.LcsIdx(ctx, "k1", "k2", respb.LcsIdxWithmatchlen())
		check("LCS IDX", common, err, "{6 [{[4 7] [5 8] 4} {[2 3] [0 1] 2}]}")
		bits, err := c.Bitfield(ctx, "bits", "SET", "u2", "0", "2", "OVERFLOW", "FAIL", "INCRBY", "u2", "0", "2")
		if err != nil || len(bits) != 2 || *bits[0] != 0 || bits[1] != nil {
			t.Error("BITFIELD", bits, err)
		}
		// Servers and clients.
		role, err := c.Role(ctx)
		check("ROLE", role.Role, err, "master")
		counts, err := c.PubsubNumsub(ctx, "x")
		check("PUBSUB NUMSUB", counts, err, "map[x:0]")
		me, err := c.ClientInfo(ctx)
		check("CLIENT INFO", me["db"], err, "0")
		tracking, err := c.ClientTrackinginfo(ctx)
		check("CLIENT TRACKINGINFO", tracking.Flags, err, "[off]")
		must(c.ConfigSet(ctx, respb.ConfigSetData{Parameter: "slowlog-log-slower-than", Value: "0"}))
		_, err = c.Get(ctx, "slow")
		if err != nil && !errors.Is(err, respb.ErrNil) {
			t.Error(err)
		}
		slow, err := c.SlowlogGet(ctx)
		if err != nil || len(slow) == 0 || time.Since(slow[0].At).Abs() > time.Hour || len(slow[0].Args) == 0 || slow[0].Took() > time.Minute {
			t.Error("SLOWLOG GET", slow, err)
		}
		_, err = c.AclGetuser(ctx, "default")
		check("ACL GETUSER", "", err, "")
		log, err := c.AclLog(ctx)
		check("ACL LOG", len(log), err, "0")
		keys, err := c.CommandGetkeysandflags(ctx, "SET", "k", "v")
		check("COMMAND GETKEYSANDFLAGS", keys[0].Key, err, "k")
		killed, err := c.ClientKill(ctx, "ID", "999999")
		check("CLIENT KILL", killed, err, "0")
	})
}
