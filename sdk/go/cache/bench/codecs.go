package main

// This file owns the rows of codecs alone: encoding and decoding, as one does it by hand and with the kit's codec.

import (
	"fmt"
	"runtime"
)

// codecRow is one codec with one shape. B is bytes and allocs allocations per value.
type codecRow struct {
	Shape   string  `json:"shape"`
	Codec   string  `json:"codec"`
	Payload float64 `json:"payload"`
	// Encode and Decode are the library's plain functions, Append and Parse the kit's codec with a buffer that is used again.
	Encode figure `json:"encode"`
	Append figure `json:"append"`
	Decode figure `json:"decode"`
	Parse  figure `json:"parse"`
}

type figure struct {
	Nanos  float64 `json:"ns"`
	Bytes  float64 `json:"b"`
	Allocs float64 `json:"allocs"`
}

// codecRepeat is how often a chunk goes through all values.
const codecRepeat = 4

// measureCodecs measures all codecs with all shapes, those of one shape in turns.
func (c *config) measureCodecs(r *report) error {
	r.Codecs = nil
	progress := newProgress(len(shapes))
	for _, shape := range shapes {
		var rows []*codecRow
		var lanes []*lane
		for _, s := range subjectsOf(shape) {
			if s.name() == codecHash { // it has no bytes of its own
				continue
			}
			row, four, err := codecLanes(shape, s)
			if err != nil {
				return err
			}
			rows, lanes = append(rows, row), append(lanes, four...)
		}
		for range c.rounds {
			for _, l := range lanes {
				if err := l.turn(); err != nil {
					return err
				}
			}
		}
		for _, l := range lanes {
			l.figure.Nanos = quantile(l.chunks, 0.5)
		}
		r.Codecs = append(r.Codecs, rows...)
		progress.step("codecs, " + shape)
	}
	return nil
}

// lane is one of a codec's four figures while it is measured.
type lane struct {
	figure *figure
	run    func(i int) error
	chunks []float64
}

func (l *lane) turn() error {
	begun := cpuOf(0)
	for range codecRepeat {
		for i := range batch {
			if err := l.run(i); err != nil {
				return err
			}
		}
	}
	l.chunks = append(l.chunks, float64(cpuOf(0)-begun)/(codecRepeat*batch))
	return nil
}

// codecLanes checks that everything comes back and counts allocations, and returns what is to be timed.
func codecLanes(shape string, s subject) (*codecRow, []*lane, error) {
	payload, err := s.payload()
	if err != nil {
		return nil, nil, err
	}
	row := &codecRow{Shape: shape, Codec: s.name(), Payload: payload}
	byHand, byKit := make([][]byte, batch), make([][]byte, batch)
	for i := range batch {
		if byHand[i], err = s.encode(i); err != nil {
			return nil, nil, err
		}
		if byKit[i], err = s.appendEncode(nil, i); err != nil {
			return nil, nil, err
		}
	}
	var buffer []byte
	lanes := []*lane{
		{figure: &row.Encode, run: func(i int) error {
			_, err := s.encode(i)
			return err
		}},
		{figure: &row.Append, run: func(i int) (err error) {
			buffer, err = s.appendEncode(buffer[:0], i)
			return err
		}},
		{figure: &row.Decode, run: func(i int) error { return s.decode(byHand[i], i) }},
		{figure: &row.Parse, run: func(i int) error { return s.parse(byKit[i], i) }},
	}
	for n, l := range lanes {
		s.clear()
		if err := l.turn(); err != nil {
			return nil, nil, fmt.Errorf("%s, %s: %w", shape, s.name(), err)
		}
		if n >= 2 {
			if err := s.check(0, batch); err != nil {
				return nil, nil, err
			}
		}
		if err := l.allocations(s); err != nil {
			return nil, nil, err
		}
		l.chunks = nil
	}
	return row, lanes, nil
}

// allocations counts once through all values, decoding into fresh ones.
func (l *lane) allocations(s subject) error {
	var before, after runtime.MemStats
	s.clear()
	runtime.GC()
	for i := range batch { // fills pools that the collection has emptied
		if err := l.run(i); err != nil {
			return err
		}
	}
	s.clear()
	runtime.ReadMemStats(&before)
	for i := range batch {
		if err := l.run(i); err != nil {
			return err
		}
	}
	runtime.ReadMemStats(&after)
	l.figure.Bytes = float64(after.TotalAlloc-before.TotalAlloc) / batch
	l.figure.Allocs = float64(after.Mallocs-before.Mallocs) / batch
	return nil
}
