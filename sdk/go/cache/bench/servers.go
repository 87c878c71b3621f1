package main

// This file owns the servers: starting them as children on their core, and ending them.

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/weft-db/weft/sdk/go/cache"
	goredisstore "github.com/weft-db/weft/sdk/go/cache/transport/goredis"
	weftstore "github.com/weft-db/weft/sdk/go/cache/transport/weft"
	"github.com/weft-db/weft/sdk/go/respb"
)

// server is a child that listens on a port of its own.
type server struct {
	name string
	addr string
	cmd  *exec.Cmd
	dir  string
}

// startServer starts a server that saves nothing, and waits until it answers.
func startServer(core int, name string, command ...string) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{name: name, addr: l.Addr().String()}
	_, port, _ := net.SplitHostPort(s.addr)
	_ = l.Close()
	if s.dir, err = os.MkdirTemp("", "cache-bench"); err != nil {
		return nil, err
	}
	command = append(command, "--port", port, "--bind", "127.0.0.1")
	if core >= 0 {
		command = append([]string{"taskset", "-c", strconv.Itoa(core)}, command...)
	}
	if s.cmd, err = s.spawn(command); err != nil {
		_ = os.RemoveAll(s.dir)
		return nil, err
	}
	client := redis.NewClient(&redis.Options{Addr: s.addr})
	defer client.Close()
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if err = client.Ping(context.Background()).Err(); err == nil {
			return s, nil
		}
		if time.Now().After(until) {
			s.stop()
			return nil, fmt.Errorf("%s does not answer: %w", name, err)
		}
	}
}

func (s *server) spawn(command []string) (*exec.Cmd, error) {
	log, err := os.Create(s.dir + "/log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w; name another with a flag", s.name, err)
	}
	return cmd, nil
}

func (s *server) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	_ = os.RemoveAll(s.dir)
}

// bed is the servers with the clients that are compared.
type bed struct {
	servers []*server
	targets []*target
	redis   []*redis.Client
	conn    *respb.Conn
}

// target is a server through a client.
type target struct {
	name   string
	server *server
	client client
	flush  func(ctx context.Context) error

	transport cache.Transport
}

// The targets. The first is what others are compared with.
const (
	targetRedis   = "redis-server, go-redis"
	targetWeft    = "weft, go-redis"
	targetWeftOwn = "weft, respb"
)

// open starts both servers, each with one thread that runs commands, and connects.
func (c *config) open(ctx context.Context) (b *bed, err error) {
	b = &bed{}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	peer, err := startServer(c.serverCore, "redis-server", c.redis, "--save", "", "--appendonly", "no")
	if err != nil {
		return b, err
	}
	b.servers = append(b.servers, peer)
	weft, err := startServer(c.serverCore, "weft serve", c.weft, "serve", "--threads", "1")
	if err != nil {
		return b, err
	}
	b.servers = append(b.servers, weft)
	for _, t := range []*target{{name: targetRedis, server: peer}, {name: targetWeft, server: weft}} {
		rdb := redis.NewClient(&redis.Options{Addr: t.server.addr})
		b.redis = append(b.redis, rdb)
		t.client, t.transport = &goRedis{rdb}, goredisstore.New(rdb)
		t.flush = func(ctx context.Context) error { return rdb.FlushAll(ctx).Err() }
		b.targets = append(b.targets, t)
	}
	options := respb.Options{Addr: weft.addr, Protocol: respb.RESPB}
	if b.conn, err = respb.Dial(ctx, options); err != nil {
		return b, err
	}
	own := &ownClient{conn: b.conn, pipeline: b.conn.Pipeline()}
	b.targets = append(b.targets, &target{name: targetWeftOwn, server: weft, client: own, flush: own.flush, transport: weftstore.New(b.conn, options)})
	return b, nil
}

func (b *bed) close() {
	if b.conn != nil {
		_ = b.conn.Close()
	}
	for _, rdb := range b.redis {
		_ = rdb.Close()
	}
	for _, s := range b.servers {
		s.stop()
	}
}
