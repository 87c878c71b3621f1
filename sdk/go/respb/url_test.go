package respb

// This file owns the tests of Options as a URL, and of what a Conn tells about itself.

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/resp"
)

func TestParseURL(t *testing.T) {
	for text, want := range map[string]Options{
		"redis://":                                    {Addr: "localhost:6379"},
		"redis://host":                                {Addr: "host:6379"},
		"valkey://[::1]:7000/3":                       {Addr: "[::1]:7000", DB: 3},
		"redis://:p%40ss@host/":                       {Addr: "host:6379", Password: "p@ss"},
		"respb://me:secret@host:1?db=2&name=x":        {Addr: "host:1", Username: "me", Password: "secret", DB: 2, Name: "x"},
		"unix:///run/weft.sock?db=1&protocol=RESP3":   {Network: "unix", Addr: "/run/weft.sock", DB: 1, Protocol: RESP3},
		"redis://h?read_timeout=500ms&dial_timeout=2": {Addr: "h:6379", ReadTimeout: 500 * time.Millisecond, DialTimeout: 2 * time.Second},
		"redis://h?ping_interval=0&protocol=respb":    {Addr: "h:6379", PingInterval: -1, Protocol: RESPB},
	} {
		got, err := ParseURL(text)
		if err != nil || got.Addr != want.Addr || got.Network != want.Network || got.Username != want.Username || got.Password != want.Password ||
			got.DB != want.DB || got.Name != want.Name || got.Protocol != want.Protocol || got.ReadTimeout != want.ReadTimeout ||
			got.DialTimeout != want.DialTimeout || got.PingInterval != want.PingInterval || got.TLSConfig != nil {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	if o, err := ParseURL("rediss://host:1"); err != nil || o.TLSConfig == nil || o.TLSConfig.ServerName != "host" {
		t.Errorf("%+v, %v", o, err)
	}
	for text, want := range map[string]string{
		"http://host": "begins with", "redis://user@host": "no password", "redis://h/x": "database", "redis://h/-1": "database", "unix://run/x": "whole path",
		"redis://h?tiemout=1": `"tiemout"`, "redis://h?read_timeout=soon": "read_timeout", "redis://h?protocol=4": "protocol", "redis://:secret@h:x": "read",
		"redis://:secret#x@h": "%23", "redis://:x/secret@h": "%2F", "redis://u:12/secret@h": "%2F", "redis://u:12?secret@h": "%3F", "redis://:x?secret@h:1": "%3F",
		"redis://h?read_timeout=NaN": "read_timeout", "redis://h?read_timeout=inf": "read_timeout", "redis://h?dial_timeout=1e300": "dial_timeout",
		"redis://h/1?db=2": "twice", "redis://h/secret": "database",
	} {
		_, err := ParseURL(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestWhatAConnTells: its protocol before and after connecting, that it fell back and why, breaks, and counters.
func TestWhatAConnTells(t *testing.T) {
	ctx := testContext(t)
	for _, mode := range []resp.RESPBMode{resp.RESPBDetect, resp.RESPBOff} {
		addr := serve(t, &resp.Server{Handler: newStore().handler(), RESPB: mode})
		told, broke := make(chan Connected, 10), make(chan error, 10)
		c := New(Options{Addr: addr, Reconnect: soon, OnConnect: func(e Connected) { told <- e }, OnBreak: func(err error) { broke <- err }})
		defer c.Close()
		if p := c.Protocol(); p != Auto || p.String() != "Auto" {
			t.Error(p)
		}
		if _, err := c.Do(ctx, "PING"); err != nil {
			t.Fatal(err)
		}
		e := <-told
		if e.Protocol != c.Protocol() || e.Addr.String() != addr || (e.FellBack != nil) != (mode == resp.RESPBOff) || (e.Protocol == RESP3) != (mode == resp.RESPBOff) {
			t.Errorf("%+v, and %v", e, c.Protocol())
		}
		_, _ = c.Do(ctx, "KILLME")
		var lost *ConnError
		if err := <-broke; !errors.As(err, &lost) {
			t.Error(err)
		}
		if _, err := c.Do(ctx, "PING"); err != nil {
			t.Error(err)
		}
		if s := c.Stats(); s.Connections != 1 || s.Channels != 1 || s.Connects != 2 || s.Breaks != 1 || s.Replies != 2 || s.BytesIn == 0 || s.BytesOut == 0 || s.Pending != 0 {
			t.Errorf("%+v", s)
		}
	}
}

// TestErrorsSayWhatToDo where a server cannot be reached, or speaks something else.
func TestErrorsSayWhatToDo(t *testing.T) {
	ctx := testContext(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	old := resp.HandlerFunc(func(s *resp.Session, r *resp.Request) error {
		return resp.Errorf("ERR", "unknown command `%s`", r.Name())
	})
	for _, each := range []struct {
		opts      Options
		want, not string
	}{
		{Options{Addr: addr}, "no connection: dial tcp", "lost"},
		{Options{Addr: serve(t, &resp.Server{Handler: old, HandshakeByHandler: true}), Protocol: RESP3}, "as Redis before 6", "lost"},
		{Options{Addr: serve(t, &resp.Server{Handler: old, RESPB: resp.RESPBOff}), Protocol: RESPB}, "falls back to RESP3", "lost"},
		{Options{Addr: serve(t, &resp.Server{Handler: old, Auth: func(*resp.Session, string, string) error { return resp.ErrWrongPass }}), Password: "x"}, "WRONGPASS", "speaks"},
	} {
		_, err := Dial(ctx, each.opts)
		if err == nil || !strings.Contains(err.Error(), each.want) || strings.Contains(err.Error(), each.not) {
			t.Errorf("%v, want %q", err, each.want)
		}
	}
}
