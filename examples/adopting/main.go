// Command adopting moves one program from go-redis over RESP3 to RESPB in three steps and measures each:
//
//	go run . -weft PATH/TO/weft
//
// docs/adopting-respb.md tells the story. Without -weft a server that runs already is used, -addr says where.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weft-db/weft/sdk/go/respb"
	"github.com/weft-db/weft/sdk/go/respb/passthrough"
)

// patience is how long go-redis waits for a reply. It would ask again when that is over, and a view that is counted twice is no view that
// was counted: it does not ask again.
const patience = 4 * time.Minute

// step is one form of the program.
type step struct {
	name string
	open func(ctx context.Context, addr string, workers int) (shop, error)
}

var steps = []step{
	{"go-redis, RESP3", func(_ context.Context, addr string, workers int) (shop, error) {
		return redisShop{redis.NewClient(&redis.Options{Addr: addr, PoolSize: workers, MaxRetries: -1, ReadTimeout: patience, WriteTimeout: patience})}, nil
	}},
	{"passthrough", func(ctx context.Context, addr string, workers int) (shop, error) {
		conn, err := respb.Dial(ctx, respb.Options{Addr: addr, Protocol: respb.RESPB})
		if err != nil {
			return nil, err
		}
		return passthroughShop(conn, workers), nil
	}},
	{"typed commands", func(ctx context.Context, addr string, workers int) (shop, error) {
		conn, err := respb.Dial(ctx, respb.Options{Addr: addr, Protocol: respb.RESPB})
		if err != nil {
			return nil, err
		}
		return typedShop{passthroughShop(conn, workers)}, nil
	}},
	{"channels", func(ctx context.Context, addr string, workers int) (shop, error) {
		conn, err := respb.Dial(ctx, respb.Options{Addr: addr, Protocol: respb.RESPB})
		if err != nil {
			return nil, err
		}
		s := channelShop{typedShop: typedShop{overRESPB{conn: conn}}}
		for range workers {
			ch, err := conn.Channel(ctx)
			if err != nil {
				return nil, err
			}
			s.workers = append(s.workers, ch)
		}
		return s, nil
	}},
}

// overRESPB is go-redis over channels; closing it closes the connection as well.
type overRESPB struct {
	redisShop
	conn *respb.Conn
}

func (s overRESPB) close() {
	s.redisShop.close()
	_ = s.conn.Close()
}

// passthroughShop is the program as it was but for the dialer.
func passthroughShop(conn *respb.Conn, workers int) overRESPB {
	db := redis.NewClient(&redis.Options{Dialer: passthrough.Dialer(conn), PoolSize: workers, MaxRetries: -1, ReadTimeout: patience, WriteTimeout: patience})
	return overRESPB{redisShop{db}, conn}
}

func main() {
	log.SetFlags(0)
	addr := flag.String("addr", "127.0.0.1:6379", "a server that runs already")
	weft := flag.String("weft", "", "the program weft: starts a server of its own")
	pid := flag.Int("pid", 0, "the process of the server at -addr, for its CPU time")
	var p plan
	flag.IntVar(&p.workers, "workers", 64, "goroutines")
	flag.IntVar(&p.rounds, "rounds", 5, "how often each step takes its turn")
	flag.DurationVar(&p.each, "each", defaultEach, "how long a turn is")
	flag.Parse()
	if *weft != "" {
		s, err := startServer(*weft)
		if err != nil {
			log.Fatal(err)
		}
		defer s.stop()
		*addr, *pid = s.addr, s.cmd.Process.Pid
	}
	p.addr, p.pid = *addr, *pid
	table, err := p.run(context.Background())
	fmt.Print(strings.TrimLeft(table, "\n"))
	if err != nil {
		log.Print(err)
	}
}
