package resp_test

// This file owns the examples of the package page.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/weft-db/weft/sdk/go/resp"
)

// A server with one command, and a client that calls it.
func Example() {
	mux := resp.NewMux()
	mux.HandleFunc("GREET", 2, func(s *resp.Session, r *resp.Request) error {
		return s.WriteBulkString("hello " + r.String(1))
	})
	server := &resp.Server{Handler: mux, IdleTimeout: time.Minute}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go server.Serve(l)
	defer server.Shutdown(context.Background())

	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	request := resp.NewWriter(conn)
	request.WriteArrayString([]string{"GREET", "world"})
	request.Flush()
	var reply resp.Value
	if err := resp.NewReader(conn).Read(&reply); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", reply.Data)
	// Output: hello world
}

// A connection without a server: read commands, write replies.
func ExampleClientConn() {
	client, server := net.Pipe()
	go func() {
		fmt.Fprint(client, "*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n")
		client.Close()
	}()
	conn := resp.NewClientConn(server)
	defer conn.Close()
	for {
		args, err := conn.Next()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%q\n", args)
	}
	// Output:
	// ["ECHO" "hi"]
	// EOF
}

// What RESP2 lacks is written as what its clients understand.
func ExampleWriter_SetRESP2Compat() {
	for _, resp2 := range []bool{false, true} {
		var out strings.Builder
		w := resp.NewWriter(&out)
		w.SetRESP2Compat(resp2)
		w.WriteMapString([]string{"a", "1"})
		w.WriteFloat(1.5)
		w.WriteNull()
		w.Flush()
		fmt.Printf("%q\n", out.String())
	}
	// Output:
	// "%1\r\n$1\r\na\r\n$1\r\n1\r\n,1.5\r\n_\r\n"
	// "*2\r\n$1\r\na\r\n$1\r\n1\r\n$3\r\n1.5\r\n$-1\r\n"
}

// Errors keep their own prefix.
func ExampleWriter_WriteError() {
	var out strings.Builder
	w := resp.NewWriter(&out)
	w.WriteError(resp.ErrWrongType)
	w.WriteError(resp.Moved(3999, "127.0.0.1:6381"))
	w.WriteErrorString("no such thing")
	w.Flush()
	fmt.Print(strings.ReplaceAll(out.String(), "\r", ""))
	// Output:
	// -WRONGTYPE Operation against a key holding the wrong kind of value
	// -MOVED 3999 127.0.0.1:6381
	// -ERR no such thing
}

// A reply made of many writes leaves in one piece, or not at all.
func ExampleWriter_WriteBuffered() {
	var out strings.Builder
	w := resp.NewWriter(&out)
	w.WriteBuffered(func() error {
		w.WriteArrayHeader(2)
		w.WriteStatusString("hello")
		return w.WriteStatusString("world")
	})
	err := w.WriteBuffered(func() error {
		w.WriteArrayHeader(1000)
		return errors.New("the values are gone")
	})
	w.Flush()
	fmt.Printf("%q %v\n", out.String(), err)
	// Output: "*2\r\n+hello\r\n+world\r\n" the values are gone
}
