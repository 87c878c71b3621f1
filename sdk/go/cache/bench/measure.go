package main

// This file owns measuring: contestants take turns, a chunk each, so that what the machine does meanwhile hits all alike.

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// The modes.
const (
	modeOne      = "one by one"
	modePipeline = "pipeline"
	modeMany     = "MSET/MGET"
	modeKitOne   = "kit, one by one"
	modeKitMany  = "kit, many"
)

var modes = []string{modeOne, modePipeline, modeMany, modeKitOne, modeKitMany}

const (
	opSet = "set"
	opGet = "get"
)

// Chunks: what is done between two looks at the clock. Batches are short, so a chunk is several of them.
const (
	batchesPerChunk = 4
	chunksOfAllocs  = 2
	countingRounds  = 4
)

// row is what is measured of one contestant. Times and counts are per item. A time is what client and server were on a processor, since others may
// use the machine too; with a placement of its own it is by the clock, since waiting for each other is what is asked there.
type row struct {
	Shape  string `json:"shape"`
	Codec  string `json:"codec"`
	Op     string `json:"op"`
	Target string `json:"target"`
	Mode   string `json:"mode"`
	// Placement is where servers and client were, if not on the usual cores.
	Placement string  `json:"placement,omitempty"`
	Items     int     `json:"items"`
	Nanos     float64 `json:"ns"`
	P10       float64 `json:"ns_p10"`
	P90       float64 `json:"ns_p90"`
	Ratio     float64 `json:"of_first"` // the median of each round's time over that of the group's first contestant
	Bytes     float64 `json:"b_op"`
	Allocs    float64 `json:"allocs_op"`
	Payload   float64 `json:"payload"`
	CPU       float64 `json:"cpu_ns"`
	CPUUse    float64 `json:"cpu_use"`
	Server    float64 `json:"server_cpu_ns"`
	// Calls are the system calls of the client: all, read, write, epoll_pwait, futex. A section of its own counts them.
	Calls *[5]float64 `json:"calls,omitempty"`
}

func (r *row) key() string {
	key := r.Shape + "/" + r.Codec + "/" + r.Op + "/" + r.Target + "/" + r.Mode
	if r.Placement != "" {
		key += "/" + r.Placement
	}
	return key
}

// contestant is one row while it is measured.
type contestant struct {
	row     row
	pid     int
	subject subject
	keys    []string
	batched bool
	// run does a batch of items once.
	run func(ctx context.Context) error
	// verify reads everything back another way than run wrote it, or is nil.
	verify func(ctx context.Context) error

	chunks            []float64
	cpu, wall, server time.Duration
	calls             calls
}

// turn is one chunk, with everything that is noted of it.
func (p *contestant) turn(ctx context.Context, overhead *calls) error {
	repeat := 1
	if p.batched {
		repeat = batchesPerChunk
	}
	server, callsBefore := cpuOf(p.pid), readCalls()
	cpu, begun := cpuOf(0), time.Now()
	for range repeat {
		if err := p.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", p.row.key(), err)
		}
	}
	wall := time.Since(begun)
	client := cpuOf(0) - cpu
	callsAfter := readCalls()
	served := cpuOf(p.pid) - server
	p.cpu += client
	p.server += served
	p.wall += wall
	took := client + served
	if p.row.Placement != "" {
		took = wall
	}
	for i := range callsAfter {
		p.calls[i] += callsAfter[i] - callsBefore[i] - overhead[i]
	}
	p.chunks = append(p.chunks, float64(took)/float64(repeat*batch))
	p.row.Items += repeat * batch
	return nil
}

// callOverhead is what looking at the clocks and counters adds to the counts.
func callOverhead() (least calls) {
	for i := range 20 {
		before := readCalls()
		cpuOf(0)
		cpuOf(0)
		after := readCalls()
		for j := range after {
			if d := after[j] - before[j]; i == 0 || d < least[j] {
				least[j] = d
			}
		}
	}
	return least
}

// allocations counts what a chunk allocates.
func (p *contestant) allocations(ctx context.Context) error {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range chunksOfAllocs {
		if err := p.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", p.row.key(), err)
		}
	}
	runtime.ReadMemStats(&after)
	p.row.Bytes = float64(after.TotalAlloc-before.TotalAlloc) / (chunksOfAllocs * batch)
	p.row.Allocs = float64(after.Mallocs-before.Mallocs) / (chunksOfAllocs * batch)
	return nil
}

// finish makes the row of what was noted.
func (p *contestant) finish(first *contestant, counting bool) {
	r := &p.row
	n := float64(r.Items)
	if counting {
		var each [5]float64
		for i, c := range p.calls {
			each[i] = float64(c) / n
		}
		r.Calls = &each
		return
	}
	ratios := make([]float64, len(p.chunks))
	for i := range p.chunks {
		ratios[i] = p.chunks[i] / first.chunks[i]
	}
	r.Ratio = quantile(ratios, 0.5)
	r.Nanos, r.P10, r.P90 = quantile(p.chunks, 0.5), quantile(p.chunks, 0.1), quantile(p.chunks, 0.9)
	r.CPU, r.CPUUse, r.Server = float64(p.cpu)/n, float64(p.cpu)/float64(p.wall), float64(p.server)/n
}

func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}

// measureShape measures all codecs with structs of one shape.
func (c *config) measureShape(r *report, shape, placement string, counting bool) error {
	subjects := subjectsOf(shape)
	if subjects == nil {
		return fmt.Errorf("there is no section %s", shape)
	}
	ctx := context.Background()
	b, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer b.close()
	progress := newProgress(2 * len(subjects))
	for _, s := range subjects {
		for _, op := range []string{opSet, opGet} {
			group, err := c.group(ctx, b, s, shape, op)
			if err != nil {
				return err
			}
			for _, p := range group {
				p.row.Placement = placement
			}
			if len(group) > 0 {
				if err := c.measureGroup(ctx, b, group, counting); err != nil {
					return err
				}
			}
			for _, p := range group {
				p.finish(group[0], counting)
				r.add(&p.row)
			}
			progress.step(fmt.Sprintf("%s %s %s", shape, s.name(), op))
		}
	}
	return nil
}

// group makes the contestants for one subject and operation.
func (c *config) group(ctx context.Context, b *bed, s subject, shape, op string) (group []*contestant, err error) {
	payload, err := s.payload()
	if err != nil {
		return nil, err
	}
	for t, target := range b.targets {
		for m, mode := range modes {
			p := &contestant{pid: target.server.cmd.Process.Pid, subject: s, batched: mode != modeOne && mode != modeKitOne}
			p.row = row{Shape: shape, Codec: s.name(), Op: op, Target: target.name, Mode: mode, Payload: payload}
			if !c.only.MatchString(p.row.key()) || s.name() == codecHash && mode == modeMany {
				continue
			}
			for i := range batch {
				p.keys = append(p.keys, fmt.Sprintf("bench%d%d:v1:%05d", t, m, i))
			}
			if err := p.arm(ctx, target, op, fmt.Sprintf("kit%d%d", t, m)); err != nil {
				return nil, err
			}
			group = append(group, p)
		}
	}
	return group, nil
}

// arm sets what the contestant runs, and stores what it reads.
func (p *contestant) arm(ctx context.Context, t *target, op, prefix string) error {
	s, keys, get := p.subject, p.keys, op == opGet
	var set, read func(ctx context.Context) error
	switch p.row.Mode {
	case modeOne:
		set = func(ctx context.Context) error {
			return eachKey(keys, func(i int) error { return t.client.set(ctx, s, keys[i], i) })
		}
		read = func(ctx context.Context) error {
			return eachKey(keys, func(i int) error { return t.client.get(ctx, s, keys[i], i) })
		}
	case modePipeline:
		set = func(ctx context.Context) error { return t.client.setPipelined(ctx, s, keys) }
		read = func(ctx context.Context) error { return t.client.getPipelined(ctx, s, keys) }
	case modeMany:
		set = func(ctx context.Context) error { return t.client.setMany(ctx, s, keys) }
		read = func(ctx context.Context) error { return t.client.getMany(ctx, s, keys) }
	default:
		k, err := s.kit(t.transport, prefix)
		if err != nil {
			return err
		}
		one := func(f func(ctx context.Context, i int) error) func(ctx context.Context) error {
			return func(ctx context.Context) error { return eachKey(keys, func(i int) error { return f(ctx, i) }) }
		}
		if set, read = k.setMany, k.getMany; p.row.Mode == modeKitOne {
			set, read = one(k.set), one(k.get)
		}
	}
	p.run, p.verify = set, read
	if get {
		s.use(0)
		p.run, p.verify = read, nil
		return set(ctx)
	}
	return nil
}

func eachKey(keys []string, f func(i int) error) error {
	for i := range keys {
		if err := f(i); err != nil {
			return err
		}
	}
	return nil
}

// measureGroup lets the contestants take turns. What was read is compared after each turn; what was written is read back after the first two
// turns, which write different values, and after the last.
func (c *config) measureGroup(ctx context.Context, b *bed, group []*contestant, counting bool) error {
	rounds := c.rounds
	if counting {
		rounds = countingRounds
	}
	for _, p := range group { // what is made once is not measured: connections, plans of types, pools
		for range 2 {
			if err := p.run(ctx); err != nil {
				return fmt.Errorf("%s: %w", p.row.key(), err)
			}
		}
		if err := p.allocations(ctx); err != nil {
			return err
		}
	}
	runtime.GC()
	overhead := callOverhead()
	for round := range rounds {
		generation := round % 2
		for _, p := range group {
			if p.verify == nil {
				generation = 0
			}
			p.subject.use(generation)
			p.subject.clear()
			if err := p.turn(ctx, &overhead); err != nil {
				return err
			}
			if p.verify != nil {
				if round > 1 && round < rounds-1 {
					continue
				}
				if err := p.verify(ctx); err != nil {
					return fmt.Errorf("%s, reading back: %w", p.row.key(), err)
				}
			}
			if err := p.subject.check(generation, batch); err != nil {
				return fmt.Errorf("%s: %w", p.row.key(), err)
			}
		}
	}
	for _, t := range b.targets {
		if err := t.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}
