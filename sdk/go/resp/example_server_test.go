package resp_test

// This file owns the examples of servers: waiting, stopping, streaming, publishing.

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
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
