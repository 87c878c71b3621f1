//go:build !unix

package resp

// This file owns raw reads and writes where there are none.

import (
	"io"
	"net"
	"syscall"
)

// Elsewhere connections use net.Conn's own Read and Write; see rawio_unix.go for what that costs.

type inquiry struct{}

func (q *inquiry) begin(net.Conn, syscall.RawConn) {}

func (q *inquiry) read(uintptr, []byte) (n int, more, again bool, err error) {
	return 0, false, false, io.ErrNoProgress
}

func rawConnOf(net.Conn) syscall.RawConn { return nil }

func rawRead(uintptr, []byte) (int, bool, error) { return 0, false, io.ErrNoProgress }

func rawWrite(uintptr, []byte) (int, error) { return 0, io.ErrShortWrite }
