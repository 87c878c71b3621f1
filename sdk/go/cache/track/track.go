// Package track listens to what CLIENT TRACKING tells, over a connection of its own for each node, so that it works beside any client. It is
// for those who write a transport.
package track

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/resp"
)

// Bounds of time. A connection that has gone without a sign is noticed after silenceMax, and what has changed meanwhile is seen that late.
const (
	dialTimeout = 5 * time.Second
	pingEvery   = time.Second
	silenceMax  = 3 * time.Second
	lookEvery   = 5 * time.Second // for nodes that have come or gone
	pauseMin    = 20 * time.Millisecond
	pauseMax    = 2 * time.Second
)

// Node says how to reach one server.
type Node struct {
	// Network is "tcp" unless set.
	Network, Addr string
	// Dialer replaces net.Dialer.
	Dialer             func(ctx context.Context) (net.Conn, error)
	TLSConfig          *tls.Config
	Username, Password string
}

func (n *Node) name() string { return n.Network + "/" + n.Addr }

// Source returns the nodes that there are: all that take writes. It is asked again from time to time.
type Source func(ctx context.Context) ([]Node, error)

// Nodes is the Source of nodes that are always the same.
func Nodes(nodes ...Node) Source {
	return func(context.Context) ([]Node, error) { return nodes, nil }
}

// Start listens for writes to keys with the prefix, on all nodes. It returns once all are heard, with cache.ErrNoTracking if one cannot tell,
// and then goes on until the context ends.
func Start(ctx context.Context, prefix string, events cache.TrackEvents, source Source) error {
	nodes, err := source(ctx)
	if err != nil {
		return err
	}
	t := &tracker{prefix: prefix, events: events, source: source, listeners: map[string]*listener{}}
	for _, n := range nodes {
		l := t.add(ctx, n)
		if err := l.connect(ctx); err != nil {
			t.stop()
			return err
		}
	}
	for _, l := range t.listeners {
		t.heard(l, true)
		go l.run() // ends with the context, or when the node is gone
	}
	go t.look(ctx) // ends with the context
	return nil
}

// tracker has a listener for each node.
type tracker struct {
	prefix string
	events cache.TrackEvents
	source Source

	mu        sync.Mutex // also while events are told
	listeners map[string]*listener
	live      bool
}

type listener struct {
	t      *tracker
	node   Node
	ctx    context.Context
	cancel context.CancelFunc
	nc     net.Conn
	reader *resp.Reader
	heard  bool // guarded by tracker.mu
}

func (t *tracker) add(ctx context.Context, n Node) *listener {
	if n.Network == "" {
		n.Network = "tcp"
	}
	l := &listener{t: t, node: n}
	l.ctx, l.cancel = context.WithCancel(ctx)
	t.mu.Lock()
	t.listeners[n.name()] = l
	t.mu.Unlock()
	return l
}

// stop closes listeners that do not run yet.
func (t *tracker) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.listeners {
		l.cancel()
		if l.nc != nil {
			_ = l.nc.Close()
		}
	}
}

// heard notes whether a node is heard, and tells when that changes what may be believed.
func (t *tracker) heard(l *listener, heard bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l.heard = heard
	live := len(t.listeners) > 0
	for _, each := range t.listeners {
		live = live && each.heard
	}
	if live != t.live {
		t.live = live
		t.events.Live(live)
	}
}

// look finds nodes that have come or gone.
func (t *tracker) look(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		nodes, err := t.source(ctx)
		if err != nil || len(nodes) == 0 {
			continue
		}
		there := map[string]bool{}
		for _, n := range nodes {
			if n.Network == "" {
				n.Network = "tcp"
			}
			there[n.name()] = true
			t.mu.Lock()
			known := t.listeners[n.name()] != nil
			t.mu.Unlock()
			if !known {
				l := t.add(ctx, n)
				t.heard(l, false)
				go l.run() // ends with the context, or when the node is gone
			}
		}
		t.mu.Lock()
		var gone *listener
		for name, l := range t.listeners {
			if !there[name] {
				delete(t.listeners, name)
				l.cancel()
				gone = l
			}
		}
		t.mu.Unlock()
		if gone != nil { // its slots are others' now
			t.events.Flush()
			t.heard(gone, false)
		}
	}
}

// run listens, and connects again, until the context ends.
func (l *listener) run() {
	defer func() {
		l.cancel()
		if l.nc != nil { // the context ended before anybody listened
			_ = l.nc.Close()
		}
	}()
	for failures := 0; l.ctx.Err() == nil; {
		if l.nc == nil {
			if err := l.connect(l.ctx); err != nil {
				failures++
				d := min(pauseMin<<min(failures, 10), pauseMax)
				timer := time.NewTimer(d/2 + rand.N(d/2+1))
				select {
				case <-timer.C:
				case <-l.ctx.Done():
				}
				timer.Stop()
				continue
			}
			l.t.heard(l, true)
		}
		failures = 0
		l.listen()
		l.t.heard(l, false)
		_ = l.nc.Close()
		l.nc = nil
	}
}

// connect opens the connection and turns tracking on.
func (l *listener) connect(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var nc net.Conn
	if l.node.Dialer != nil {
		nc, err = l.node.Dialer(ctx)
	} else {
		nc, err = (&net.Dialer{}).DialContext(ctx, l.node.Network, l.node.Addr)
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = nc.Close()
		}
	}()
	end, _ := ctx.Deadline()
	if err := nc.SetDeadline(end); err != nil {
		return err
	}
	if l.node.TLSConfig != nil {
		config := l.node.TLSConfig.Clone()
		if config.ServerName == "" {
			config.ServerName, _, _ = net.SplitHostPort(l.node.Addr)
		}
		nc = tls.Client(nc, config)
	}
	hello := []string{"HELLO", "3"}
	if l.node.Password != "" || l.node.Username != "" {
		user := l.node.Username
		if user == "" {
			user = "default"
		}
		hello = append(hello, "AUTH", user, l.node.Password)
	}
	l.reader = resp.NewReader(nc)
	for _, command := range [][]string{hello, {"CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", l.t.prefix}} {
		if err := send(nc, command); err != nil {
			return err
		}
		var v resp.Value
		if err := l.reader.Read(&v); err != nil {
			return err
		}
		if err := v.Err(); err != nil {
			return refusal(err)
		}
	}
	if err := nc.SetDeadline(time.Time{}); err != nil {
		return err
	}
	l.nc = nc
	return nil
}

// refusal tells a server that has no tracking from one that has it, but not now.
func refusal(err error) error {
	text := strings.ToLower(err.Error())
	for _, sign := range []string{"unknown", "noproto", "noperm", "syntax"} {
		if strings.Contains(text, sign) {
			return errors.Join(cache.ErrNoTracking, err)
		}
	}
	return err
}

func send(nc net.Conn, words []string) error {
	w := bufio.NewWriter(nc)
	fmt.Fprintf(w, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(w, "$%d\r\n%s\r\n", len(word), word)
	}
	return w.Flush()
}

// listen tells what comes until the connection breaks.
func (l *listener) listen() {
	nc := l.nc
	stop := context.AfterFunc(l.ctx, func() { _ = nc.Close() })
	defer stop()
	done := make(chan struct{})
	defer close(done)
	go func() { // ends with the connection
		ticker := time.NewTicker(pingEvery)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				_ = nc.SetWriteDeadline(time.Now().Add(silenceMax))
				if send(nc, []string{"PING"}) != nil {
					_ = nc.Close()
					return
				}
			}
		}
	}()
	var v resp.Value
	for {
		if err := nc.SetReadDeadline(time.Now().Add(silenceMax)); err != nil {
			return
		}
		if err := l.reader.Read(&v); err != nil {
			return
		}
		if v.Kind != resp.Push || len(v.Elems) != 2 || string(v.Elems[0].Data) != "invalidate" {
			continue // the reply to PING
		}
		keys := &v.Elems[1]
		if keys.Kind == resp.Null {
			l.t.events.Flush()
			continue
		}
		for i := range keys.Elems {
			l.t.events.Invalidate(keys.Elems[i].Data)
		}
	}
}
