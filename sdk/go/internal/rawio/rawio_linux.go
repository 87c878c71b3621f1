//go:build linux && (amd64 || arm64) && !race

package rawio

// This file owns the reads and writes that do not wait, as Linux has them at the least cost:
//
// Without telling Go's scheduler. syscall.Read hands the processor to another thread's care before and takes it back after, because a
// system call may wait; these never do. Where one client sends one command at a time, that is most of what a request
// costs beyond the calls themselves, since the runtime's monitor otherwise takes the processor away in the middle.
//
// And without the read that only finds that there is nothing left: TCP_INQ has the kernel say so with the bytes. It counts the end
// of the stream as something left, so that none is missed.
//
// Under the race detector rawio_unix.go is used: it knows of reads and writes what a program in one process shares through a socket.

import (
	"io"
	"net"
	"syscall"
	"unsafe"
)

const (
	tcpInq = 36 // TCP_INQ and its control message TCP_CM_INQ
	// quickBytes is the most that is written without telling the scheduler: what is copied in a few microseconds.
	quickBytes = 64 << 10
)

// Inquiry is what recvmsg needs to tell with bytes whether there are more. It is used by one goroutine at a time.
type Inquiry struct{ msg *inquiryMessage }

type inquiryMessage struct {
	iov     syscall.Iovec
	header  syscall.Msghdr
	control [64]byte // holds one message of an int, and others that nobody asked for
}

// Begin turns TCP_INQ on; kernels before 4.18 have none.
func (q *Inquiry) Begin(nc net.Conn, raw syscall.RawConn) {
	if _, ok := nc.(*net.TCPConn); !ok {
		return
	}
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpInq, 1)
	})
	if err != nil || failed != nil {
		return
	}
	m := &inquiryMessage{}
	m.iov.SetLen(0)
	m.header.Iov, m.header.Iovlen = &m.iov, 1
	m.header.Control = &m.control[0]
	q.msg = m
}

// Read reads what is there. more is false when that was certainly all; again means that nothing was.
func (q *Inquiry) Read(fd uintptr, b []byte) (n int, more, again bool, err error) {
	m := q.msg
	if m == nil {
		n, again, err = Read(fd, b)
		return n, true, again, err
	}
	m.iov.Base = &b[0]
	m.iov.SetLen(len(b))
	m.header.SetControllen(len(m.control))
	for {
		got, _, errno := syscall.RawSyscall(syscall.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&m.header)), 0)
		if errno == syscall.EINTR {
			continue
		}
		m.iov.Base = nil
		if errno != 0 || got == 0 {
			again, err = outcome(errno)
			return 0, false, again, err
		}
		return int(got), m.left() != 0, false, nil
	}
}

// left is how many bytes the kernel says there are, or 1 if it says nothing.
func (m *inquiryMessage) left() int32 {
	if int(m.header.Controllen) < syscall.CmsgLen(4) {
		return 1
	}
	c := (*syscall.Cmsghdr)(unsafe.Pointer(&m.control[0]))
	if c.Level != syscall.IPPROTO_TCP || c.Type != tcpInq {
		return 1
	}
	return *(*int32)(unsafe.Pointer(&m.control[syscall.CmsgLen(0)]))
}

// outcome turns the error of a read that got nothing into what Read returns.
func outcome(errno syscall.Errno) (again bool, err error) {
	switch errno {
	case 0:
		return false, io.EOF
	case syscall.EAGAIN:
		return true, nil
	}
	return false, errno
}

// Read reads what is there. again means that nothing is.
func Read(fd uintptr, b []byte) (n int, again bool, err error) {
	for {
		got, _, errno := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		if errno == syscall.EINTR {
			continue
		}
		if errno != 0 || got == 0 {
			again, err = outcome(errno)
			return 0, again, err
		}
		return int(got), false, nil
	}
}

// Write writes what the socket takes at once; after a short write it takes no more for now.
func Write(fd uintptr, b []byte) (n int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	for {
		var put uintptr
		var errno syscall.Errno
		if len(b) <= quickBytes {
			put, _, errno = syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		} else {
			put, _, errno = syscall.Syscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		}
		switch errno {
		case 0:
			return int(put), nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, nil
		default:
			return 0, errno
		}
	}
}
