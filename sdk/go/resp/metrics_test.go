package resp

// This file owns the tests of the counters of commands.

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

func TestCommandMetrics(t *testing.T) {
	m := NewMux()
	m.HandleFunc("GOOD", -1, func(s *Session, r *Request) error { return s.WriteOK() })
	m.HandleFunc("RETURNS", 1, func(s *Session, r *Request) error { return ErrWrongType })
	m.HandleFunc("WRITES", 1, func(s *Session, r *Request) error { return s.WriteErrorString("no") })
	metrics := NewCommandMetrics(m)
	var told []error
	addr := startServer(t, &Server{Handler: m, OnCommand: func(s *Session, r *Request, took time.Duration, err error) {
		metrics.Observe(s, r, took, err)
		told = append(told, err)
	}})
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(nc, "GOOD\r\ngood 1\r\nRETURNS\r\nWRITES\r\nNONSENSE\r\nOTHERS\r\nQUIT\r\n")
	if _, err := io.ReadAll(nc); err != nil {
		t.Fatal(err)
	}
	want := map[string][2]int64{"GOOD": {2, 0}, "RETURNS": {1, 1}, "WRITES": {1, 1}, "OTHER": {2, 2}}
	all := metrics.Stats()
	for _, got := range all {
		if [2]int64{got.Calls, got.Errors} != want[got.Name] || got.Took <= 0 || got.Buckets[len(got.Buckets)-1] != got.Calls || len(got.Bounds) != len(got.Buckets) {
			t.Errorf("%+v, want %v", got, want[got.Name])
		}
	}
	if len(all) != len(want) || !errors.Is(told[3], ErrErrorReply) || told[1] != nil || told[2] != error(ErrWrongType) {
		t.Errorf("%d commands, told %v", len(all), told)
	}
	r := &Request{args: [][]byte{[]byte("GOOD")}}
	if n := testing.AllocsPerRun(100, func() { metrics.Observe(nil, r, time.Millisecond, nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	before := metrics.Stats()[0].Buckets
	metrics.Observe(nil, r, 10*time.Second, nil) // the last bound, and one past it
	metrics.Observe(nil, r, 10*time.Second+1, nil)
	after := metrics.Stats()[0]
	if last := len(after.Buckets) - 1; after.Buckets[last] != before[last]+1 || after.Calls != before[last]+2 {
		t.Errorf("%+v", after)
	}
}
