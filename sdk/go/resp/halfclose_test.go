package resp

// This file owns the tests of reads that do not wait.

import (
	"io"
	"net"
	"testing"
)

// TestHalfCloseAtOnce: a client that sends and shuts its side down at once is answered and then closed, however the bytes and the end come
// together. A server that takes the kernel's word that nothing is left must not wait for ever.
func TestHalfCloseAtOnce(t *testing.T) {
	addr := startServer(t, &Server{Handler: echoMux()})
	for range 200 {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(nc, "PING\r\nPING\r\n"); err != nil {
			t.Fatal(err)
		}
		_ = nc.(*net.TCPConn).CloseWrite()
		if out, err := io.ReadAll(nc); err != nil || string(out) != "+PONG\r\n+PONG\r\n" {
			t.Fatalf("%q, %v", out, err)
		}
		_ = nc.Close()
	}
}
