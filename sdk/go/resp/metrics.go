package resp

// This file owns who is told of commands: OnCommand, and the counters that can be put there.

import (
	"errors"
	"sync/atomic"
	"time"
)

// ErrErrorReply is what Server.OnCommand is told of a handler that wrote an error reply by itself and returned nil.
var ErrErrorReply = errors.New("resp: the handler wrote an error reply")

// served has a command served and tells it.
func (s *Server) served(sess *Session, r *Request) error {
	if s.OnCommand == nil {
		return s.Handler.ServeCommand(sess, r)
	}
	written, start := sess.errors, time.Now()
	err := s.Handler.ServeCommand(sess, r)
	told := err
	if told == nil && sess.errors != written {
		told = ErrErrorReply
	}
	s.OnCommand(sess, r, time.Since(start), told)
	return err
}

// CommandMetrics counts commands by name, for Server.OnCommand:
//
//	metrics := resp.NewCommandMetrics(mux)
//	server := &resp.Server{Handler: mux, OnCommand: metrics.Observe}
//
// It has the commands of a [Mux], and all others together as OTHER: what clients send cannot make it grow. Counting takes no lock and no memory.
type CommandMetrics struct {
	mux *Mux
	of  []commandCounters // those of mux, in its order, and OTHER
}

// commandBounds are the upper bounds of CommandStats.Buckets; what takes longer is in none.
var commandBounds = [...]time.Duration{
	10 * time.Microsecond, 50 * time.Microsecond, 100 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 5 * time.Millisecond,
	10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, time.Second, 5 * time.Second, 10 * time.Second,
}

type commandCounters struct {
	calls, failed, took atomic.Int64
	buckets             [len(commandBounds)]atomic.Int64
}

// CommandStats is what CommandMetrics has counted of one command.
type CommandStats struct {
	Name          string
	Calls, Errors int64
	Took          time.Duration // of all calls together
	// Buckets has, for each of Bounds, how many calls took at most that; the way in which Prometheus counts.
	Buckets []int64
	Bounds  []time.Duration
}

// NewCommandMetrics returns counters for the commands that mux has by now.
func NewCommandMetrics(mux *Mux) *CommandMetrics {
	return &CommandMetrics{mux: mux, of: make([]commandCounters, len(mux.entries)+1)}
}

// Observe counts a command. It is what Server.OnCommand takes.
func (m *CommandMetrics) Observe(_ *Session, r *Request, took time.Duration, err error) {
	c := &m.of[len(m.of)-1]
	if i := m.mux.place(r.Name()); i < len(m.of)-1 {
		c = &m.of[i]
	}
	c.calls.Add(1)
	c.took.Add(int64(took))
	if err != nil {
		c.failed.Add(1)
	}
	for i, bound := range commandBounds {
		if took <= bound {
			c.buckets[i].Add(1)
			return
		}
	}
}

// Stats returns what was counted of each command that was called.
func (m *CommandMetrics) Stats() []CommandStats {
	var all []CommandStats
	for i := range m.of {
		c := &m.of[i]
		calls := c.calls.Load()
		if calls == 0 {
			continue
		}
		s := CommandStats{Name: "OTHER", Calls: calls, Errors: c.failed.Load(), Took: time.Duration(c.took.Load()), Bounds: commandBounds[:]}
		if i < len(m.of)-1 {
			s.Name = m.mux.entries[i].name
		}
		sum := int64(0)
		for j := range c.buckets {
			sum += c.buckets[j].Load()
			s.Buckets = append(s.Buckets, sum)
		}
		all = append(all, s)
	}
	return all
}
