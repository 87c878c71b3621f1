// Command after is the same server on sdk/go/resp.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"log"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/weft-db/weft/sdk/go/resp"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:6380", "where to listen")
	flag.Parse()

	var mu sync.RWMutex
	var news resp.PubSub
	items := map[string][]byte{}
	mux := resp.NewMux()
	mux.HandleFunc("PING", -1, func(s *resp.Session, r *resp.Request) error {
		return s.WriteStatusString("PONG")
	})
	mux.HandleFunc("SET", 3, func(s *resp.Session, r *resp.Request) error {
		mu.Lock()
		items[r.String(1)] = bytes.Clone(r.Arg(2)) // arguments are lent
		mu.Unlock()
		return s.WriteOK()
	})
	mux.HandleFunc("GET", 2, func(s *resp.Session, r *resp.Request) error {
		mu.RLock()
		value, ok := items[r.String(1)]
		mu.RUnlock()
		if !ok {
			return s.WriteNull()
		}
		return s.WriteBulkBytes(value)
	})
	mux.HandleFunc("KEYS", -1, func(s *resp.Session, r *resp.Request) error {
		mu.RLock()
		defer mu.RUnlock()
		keys := make([]string, 0, len(items))
		for key := range items {
			keys = append(keys, key)
		}
		return s.WriteArrayString(keys)
	})
	news.Register(mux) // SUBSCRIBE, PSUBSCRIBE, PUBLISH and what belongs to them

	server := &resp.Server{Handler: mux}
	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	stopped := make(chan error, 1)
	go func() {
		<-stop.Done()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		stopped <- server.Shutdown(ctx)
	}()
	if err := server.ListenAndServe(*addr); !errors.Is(err, resp.ErrServerClosed) {
		log.Fatal(err)
	}
	if err := <-stopped; err != nil {
		log.Fatal(err)
	}
}
