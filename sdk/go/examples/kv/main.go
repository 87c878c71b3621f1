// Command kv is a key-value server in sixty lines: PING, GET, SET and DEL.
package main

import (
	"flag"
	"log"
	"sync"

	"github.com/weft-db/weft/sdk/go/resp"
)

type store struct {
	mu     sync.RWMutex
	values map[string][]byte
}

func ping(s *resp.Session, r *resp.Request) error {
	if r.Len() > 1 {
		return s.WriteBulkBytes(r.Arg(1))
	}
	return s.WriteStatusString("PONG")
}

func (kv *store) get(s *resp.Session, r *resp.Request) error {
	kv.mu.RLock()
	v, ok := kv.values[string(r.Arg(1))]
	kv.mu.RUnlock()
	if !ok {
		return s.WriteNull()
	}
	return s.WriteBulkBytes(v) // v is never changed, only replaced
}

func (kv *store) set(s *resp.Session, r *resp.Request) error {
	v := append([]byte(nil), r.Arg(2)...) // arguments end with the call
	kv.mu.Lock()
	kv.values[r.String(1)] = v
	kv.mu.Unlock()
	return s.WriteOK()
}

func (kv *store) del(s *resp.Session, r *resp.Request) error {
	kv.mu.Lock()
	before := len(kv.values)
	for _, key := range r.Args()[1:] {
		delete(kv.values, string(key))
	}
	n := before - len(kv.values)
	kv.mu.Unlock()
	return s.WriteInt(n)
}

func main() {
	addr := flag.String("addr", "127.0.0.1:6380", "where to listen")
	flag.Parse()
	kv := &store{values: map[string][]byte{}}
	mux := resp.NewMux()
	mux.HandleFunc("PING", -1, ping)
	mux.HandleFunc("GET", 2, kv.get)
	mux.HandleFunc("SET", 3, kv.set)
	mux.HandleFunc("DEL", -2, kv.del)
	log.Fatal((&resp.Server{Handler: mux}).ListenAndServe(*addr))
}
