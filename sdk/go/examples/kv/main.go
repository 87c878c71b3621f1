// Command kv is a key-value server in about sixty lines: PING, ECHO, GET, SET, DEL, EXISTS and DBSIZE.
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

func (kv *store) ping(s *resp.Session, r *resp.Request) error {
	if r.Len() > 1 {
		return s.WriteBytes(r.Arg(1))
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
	return s.WriteBytes(v) // v is never changed, only replaced
}

func (kv *store) set(s *resp.Session, r *resp.Request) error {
	v := append([]byte(nil), r.Arg(2)...) // arguments end with the call
	kv.mu.Lock()
	kv.values[r.String(1)] = v
	kv.mu.Unlock()
	return s.WriteOK()
}

func (kv *store) count(s *resp.Session, r *resp.Request, remove bool) error {
	n := 0
	kv.mu.Lock()
	for _, key := range r.Args()[1:] {
		if _, ok := kv.values[string(key)]; ok {
			n++
			if remove {
				delete(kv.values, string(key))
			}
		}
	}
	kv.mu.Unlock()
	return s.WriteInt(n)
}

func (kv *store) size(s *resp.Session) error {
	kv.mu.RLock()
	defer kv.mu.RUnlock()
	return s.WriteInt(len(kv.values))
}

func main() {
	addr := flag.String("addr", "127.0.0.1:6380", "where to listen")
	flag.Parse()
	kv := &store{values: map[string][]byte{}}
	mux := resp.NewMux()
	mux.HandleFunc("PING", -1, kv.ping)
	mux.HandleFunc("ECHO", 2, func(s *resp.Session, r *resp.Request) error { return s.WriteBytes(r.Arg(1)) })
	mux.HandleFunc("GET", 2, kv.get)
	mux.HandleFunc("SET", 3, kv.set)
	mux.HandleFunc("DEL", -2, func(s *resp.Session, r *resp.Request) error { return kv.count(s, r, true) })
	mux.HandleFunc("EXISTS", -2, func(s *resp.Session, r *resp.Request) error { return kv.count(s, r, false) })
	mux.HandleFunc("DBSIZE", 1, func(s *resp.Session, r *resp.Request) error { return kv.size(s) })
	server := &resp.Server{Handler: mux}
	log.Printf("kv: listening on %s", *addr)
	log.Fatal(server.ListenAndServe(*addr))
}
