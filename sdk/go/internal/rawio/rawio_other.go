//go:build !unix

package rawio

// This file owns raw reads and writes where there are none.

import (
	"io"
	"net"
	"syscall"
)

// Elsewhere connections use net.Conn's own Read and Write; see rawio_unix.go for what that costs.

// Inquiry would tell whether a socket has more to read.
type Inquiry struct{}

// Begin does nothing.
func (q *Inquiry) Begin(net.Conn, syscall.RawConn) {}

// Read is never called.
func (q *Inquiry) Read(uintptr, []byte) (n int, more, again bool, err error) {
	return 0, false, false, io.ErrNoProgress
}

// ConnOf returns nil: use the connection itself.
func ConnOf(net.Conn) syscall.RawConn { return nil }

// Read is never called.
func Read(uintptr, []byte) (int, bool, error) { return 0, false, io.ErrNoProgress }

// Write is never called.
func Write(uintptr, []byte) (int, error) { return 0, io.ErrShortWrite }
