package passthrough

// This file owns the tests: that a connection behaves as one of a RESP3 server, and where a command ends.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/resp"
	"github.com/weft-db/weft/sdk/go/respb"
)

// dial connects through a channel of a connection to a server that knows ECHO.
func dial(t *testing.T) net.Conn {
	t.Helper()
	m := resp.NewMux()
	m.HandleFunc("ECHO", 2, func(s *resp.Session, r *resp.Request) error { return s.WriteBulkBytes(r.Arg(1)) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &resp.Server{Handler: m}
	go server.Serve(l)
	ctx := context.Background()
	conn, err := respb.Dial(ctx, respb.Options{Addr: l.Addr().String(), Protocol: respb.RESPB})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Dialer(conn)(ctx, "tcp", "anywhere:1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		_ = conn.Close()
		_ = server.Close()
	})
	return c
}

func TestConn(t *testing.T) {
	c := dial(t)
	command := func(words ...string) string {
		text := fmt.Sprintf("*%d\r\n", len(words))
		for _, word := range words {
			text += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
		}
		return text
	}
	long := "a\r\n" + strings.Repeat("b", 100)
	hello, echo, nosuch := command("hello", "3"), command("ECHO", long), command("NOSUCH")
	// However it is cut, it is read as a server of RESP3 answers.
	for _, cut := range []int{1, len(hello), len(hello + echo)} {
		written := hello + echo + nosuch
		for len(written) > 0 {
			n := min(cut, len(written))
			if _, err := c.Write([]byte(written[:n])); err != nil {
				t.Fatal(err)
			}
			written = written[n:]
		}
		r := bufio.NewReader(c)
		if line, err := r.ReadString('\n'); err != nil || line[0] != '%' {
			t.Fatalf("HELLO: %q, %v", line, err)
		}
		text, echoed := "", false
		for !strings.HasPrefix(text, "-ERR") {
			line, err := r.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if line == "$103\r\n" {
				rest, _ := r.ReadString('\n')
				last, _ := r.ReadString('\n')
				if rest+last != long+"\r\n" {
					t.Fatalf("ECHO: %q", rest+last)
				}
				echoed = true
			}
			text = line
		}
		if !echoed {
			t.Error("no reply to ECHO")
		}
	}
}

func TestReadEndsWithItsTimeAndWithTheConnection(t *testing.T) {
	c := dial(t)
	_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("behind its time: %v", err)
	}
	_ = c.SetReadDeadline(time.Time{})
	done := make(chan error)
	go func() {
		_, err := c.Read(make([]byte, 1))
		done <- err
	}()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if err := c.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("twice: %v", err)
	}
}

func TestCommandSize(t *testing.T) {
	const command = "*2\r\n$3\r\nGET\r\n$10\r\nkey:123456\r\n"
	for cut := range command {
		if n, err := commandSize([]byte(command[:cut])); n != 0 || err != nil {
			t.Errorf("%d bytes: %d, %v", cut, n, err)
		}
	}
	if n, err := commandSize([]byte(command + "*1\r\n")); n != len(command) || err != nil {
		t.Error(n, err)
	}
	for _, bad := range []string{"PING\r\n", "*x\r\n", "*-1\r\n", "*1\r\n+OK\r\n", "*1\r\n$-1\r\n"} {
		if _, err := commandSize([]byte(bad)); !errors.Is(err, errTwisted) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
