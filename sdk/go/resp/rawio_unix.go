//go:build unix && !(linux && (amd64 || arm64) && !race)

package resp

// This file owns the reads and writes that do not wait. With them a connection that waits for its client holds no
// buffer, one that was not read from is noticed before anything blocks, and a server's loop saves the read
// that only finds out that there is nothing left.

import (
	"io"
	"net"
	"syscall"
)

// inquiry would tell whether a socket has more to read; here nothing does.
type inquiry struct{}

// begin prepares to ask about a connection.
func (q *inquiry) begin(net.Conn, syscall.RawConn) {}

// read is rawRead, and reports whether there may be more.
func (q *inquiry) read(fd uintptr, b []byte) (n int, more, again bool, err error) {
	n, again, err = rawRead(fd, b)
	return n, true, again, err
}

// rawRead reads what is there. again means that nothing is.
func rawRead(fd uintptr, b []byte) (n int, again bool, err error) {
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

// rawWrite writes what the socket takes at once; after a short write it takes no more for now.
func rawWrite(fd uintptr, b []byte) (n int, err error) {
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
