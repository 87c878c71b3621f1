package resp_test

// This file owns the examples of servers: waiting, stopping, streaming, publishing.

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/weft-db/weft/sdk/go/resp"
)

// exampleClient sends commands and prints what each is answered with.
type exampleClient struct {
	net.Conn
	r *resp.Reader
}

func exampleServer(s *resp.Server) (*exampleClient, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go s.Serve(l)
	nc, err := net.Dial("tcp", l.Addr().String())
	return &exampleClient{nc, resp.NewReader(nc)}, err
}

func (c *exampleClient) send(words ...string) {
	w := resp.NewWriter(c)
	w.WriteArrayString(words)
	w.Flush()
}

func (c *exampleClient) print() {
	var v resp.Value
	if err := c.r.Read(&v); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(v.String())
}

// A handler that waits waits for its request's context too: it ends when the client is gone, and when the server shuts down, which the client is
// told.
func ExampleRequest_Context() {
	jobs, waiting := make(chan string), make(chan bool)
	mux := resp.NewMux()
	mux.HandleFunc("NEXTJOB", 1, func(s *resp.Session, r *resp.Request) error {
		ctx := r.Context()
		waiting <- true
		select {
		case job := <-jobs:
			return s.WriteBulkString(job)
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	server := &resp.Server{Handler: mux}
	client, err := exampleServer(server)
	if err != nil {
		fmt.Println(err)
		return
	}
	client.send("NEXTJOB")
	<-waiting
	jobs <- "sweep"
	client.print()
	client.send("NEXTJOB")
	<-waiting
	if err := server.Shutdown(context.Background()); err != nil {
		fmt.Println(err)
	}
	client.print()
	// Output:
	// "sweep"
	// (error) ERR server is shutting down
}

// Shutdown lets commands finish, for as long as its context says, and then cuts what is left.
func ExampleServer_Shutdown() {
	begun, done := make(chan bool), make(chan bool)
	mux := resp.NewMux()
	mux.HandleFunc("STUCK", 1, func(s *resp.Session, r *resp.Request) error {
		begun <- true
		<-done // listens to nothing
		return s.WriteOK()
	})
	server := &resp.Server{Handler: mux}
	client, err := exampleServer(server)
	if err != nil {
		fmt.Println(err)
		return
	}
	client.send("STUCK")
	<-begun
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	fmt.Println(server.Shutdown(ctx))
	close(done)
	// Output: context deadline exceeded
}

// A large argument is read as it arrives, behind middleware too.
func ExampleMux_HandleStream() {
	mux := resp.NewMux()
	mux.StreamBytes = 1 << 10
	mux.HandleStream("UPLOAD", 3, func(s *resp.Session, r *resp.Request) error {
		if r.Body() == nil { // small, or over RESPB
			return s.WriteInt(len(r.Arg(2)))
		}
		n, err := io.Copy(io.Discard, r.Body())
		if err != nil {
			return err
		}
		return s.WriteInt64(n)
	})
	logging := func(next resp.Handler) resp.Handler {
		return resp.HandlerFunc(func(s *resp.Session, r *resp.Request) error {
			fmt.Printf("%s streams: %v\n", r.Name(), r.Body() != nil)
			return next.ServeCommand(s, r)
		})
	}
	server := &resp.Server{Handler: resp.Chain(mux, logging)}
	client, err := exampleServer(server)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	for _, n := range []int{10, 1 << 20} {
		client.send("UPLOAD", "name", strings.Repeat("x", n))
		client.print()
	}
	// Output:
	// UPLOAD streams: false
	// 10
	// UPLOAD streams: true
	// 1048576
}

// SUBSCRIBE and its like for any server.
func ExamplePubSub() {
	var news resp.PubSub
	mux := resp.NewMux()
	news.Register(mux)
	server := &resp.Server{Handler: mux, StartRESP3: true}
	client, err := exampleServer(server)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	client.send("SUBSCRIBE", "weather")
	client.print()
	news.Publish("weather", []byte("rain"))
	client.print()
	// Output:
	// >["subscribe" "weather" 1]
	// >["message" "weather" "rain"]
}

// Certificates are read anew while the server runs: at SIGHUP, or when their files have changed.
func ExampleTLSFiles() {
	files, err := resp.LoadTLSFiles("server.crt", "server.key", "")
	if err != nil {
		fmt.Println("no certificate")
		return
	}
	mux := resp.NewMux()
	server := &resp.Server{Handler: mux, TLSConfig: files.Config()}
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	go func() {
		for range reload {
			if err := files.Reload(); err != nil {
				log.Print(err) // the one before stays
			}
		}
	}()
	log.Fatal(server.ListenAndServe(":6380"))
	// Output: no certificate
}

// transaction is what MULTI begins; it is kept in Session.Data.
type transaction struct{ queued [][]string }

// MULTI and EXEC for any server, as middleware: commands are queued and then served one behind the other, their replies in one array. The
// handlers know nothing of it. What a handler must not see in between, a lock around the loop keeps out.
func ExampleMiddleware() {
	var all sync.Mutex
	transactions := func(next resp.Handler) resp.Handler {
		return resp.HandlerFunc(func(s *resp.Session, r *resp.Request) error {
			tx, _ := s.Data.(*transaction)
			switch name := strings.ToUpper(string(r.Name())); {
			case name == "MULTI" && tx == nil:
				s.Data = &transaction{}
				return s.WriteOK()
			case name == "MULTI":
				return resp.Errorf("ERR", "MULTI calls can not be nested")
			case tx == nil && (name == "EXEC" || name == "DISCARD"):
				return resp.Errorf("ERR", "%s without MULTI", name)
			case name == "DISCARD":
				s.Data = nil
				return s.WriteOK()
			case name == "EXEC":
				s.Data = nil
				all.Lock()
				defer all.Unlock()
				if err := s.WriteArrayHeader(len(tx.queued)); err != nil {
					return err
				}
				for _, args := range tx.queued {
					if err := next.ServeCommand(s, resp.NewRequest(args...)); err != nil {
						if err := s.WriteError(err); err != nil {
							return err
						}
					}
				}
				return nil
			case tx != nil:
				var args []string // they are only lent
				for _, arg := range r.Args() {
					args = append(args, string(arg))
				}
				tx.queued = append(tx.queued, args)
				return s.WriteStatusString("QUEUED")
			}
			all.Lock()
			defer all.Unlock()
			return next.ServeCommand(s, r)
		})
	}
	n := 0
	mux := resp.NewMux()
	mux.HandleFunc("INCR", 1, func(s *resp.Session, r *resp.Request) error {
		n++
		return s.WriteInt(n)
	})
	client, err := exampleServer(&resp.Server{Handler: resp.Chain(mux, transactions)})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, command := range []string{"MULTI", "INCR", "NONSENSE", "INCR", "EXEC", "EXEC"} {
		client.send(command)
		client.print()
	}
	// Output:
	// OK
	// QUEUED
	// QUEUED
	// QUEUED
	// *[1 (error) ERR unknown command 'NONSENSE', with args beginning with:  2]
	// (error) ERR EXEC without MULTI
}

// Calls, errors and times of each command, for any system of metrics.
func ExampleCommandMetrics() {
	mux := resp.NewMux()
	mux.HandleFunc("PING", -1, func(s *resp.Session, r *resp.Request) error { return s.WriteStatusString("PONG") })
	metrics := resp.NewCommandMetrics(mux)
	client, err := exampleServer(&resp.Server{Handler: mux, OnCommand: metrics.Observe})
	if err != nil {
		fmt.Println(err)
		return
	}
	client.send("PING")
	client.print()
	client.send("PING", "again")
	client.print()
	for _, c := range metrics.Stats() {
		fmt.Println(c.Name, c.Calls, c.Errors)
	}
	// Output:
	// PONG
	// PONG
	// PING 2 0
}
