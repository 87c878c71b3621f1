//go:build unix && !(linux && (amd64 || arm64) && !race)

package rawio

// This file owns the reads and writes that do not wait. With them a connection that waits for its client holds no
// buffer, one that was not read from is noticed before anything blocks, and a server's loop saves the read
// that only finds out that there is nothing left.

import (
	"io"
	"net"
	"syscall"
)

// Inquiry would tell whether a socket has more to read; here nothing does.
type Inquiry struct{}

// Begin prepares to ask about a connection.
func (q *Inquiry) Begin(net.Conn, syscall.RawConn) {}

// Read is the function Read, and reports whether there may be more.
func (q *Inquiry) Read(fd uintptr, b []byte) (n int, more, again bool, err error) {
	n, again, err = Read(fd, b)
	return n, true, again, err
}

// Read reads what is there. again means that nothing is.
func Read(fd uintptr, b []byte) (n int, again bool, err error) {
	for {
		n, err = syscall.Read(int(fd), b)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return 0, true, nil
		case err != nil:
			return 0, false, err
		case n == 0:
			return 0, false, io.EOF
		}
		return n, false, nil
	}
}

// Write writes what the socket takes at once; after a short write it takes no more for now.
func Write(fd uintptr, b []byte) (n int, err error) {
	for {
		n, err = syscall.Write(int(fd), b)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return 0, nil
		case err != nil:
			return 0, err
		}
		return n, nil
	}
}
