package main

// This file owns the report: its order and its tables.

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// page is a report that is being written.
type page struct {
	strings.Builder
	r      *report
	byKey  map[string]*row
	folder string // of the plots
}

func (r *report) write(name string) error {
	p := &page{r: r, byKey: map[string]*row{}, folder: strings.TrimSuffix(name, ".md")}
	for _, one := range r.Rows {
		p.byKey[one.key()] = one
	}
	p.introduction()
	p.goals()
	p.modes()
	p.times()
	p.memory()
	p.processor()
	p.systemCalls()
	p.codecs()
	p.theSeed()
	p.profiles()
	p.method()
	if err := os.MkdirAll(p.folder, 0o755); err != nil {
		return err
	}
	for file, svg := range map[string]string{
		"modes.svg": p.plotModes(), "codecs.svg": p.plotCodecs(), "memory.svg": p.plotMemory(), "calls.svg": p.plotCalls(),
	} {
		if err := os.WriteFile(filepath.Join(p.folder, file), []byte(svg), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(name, []byte(wrap(p.String())), 0o644)
}

// find returns a row, an empty one if it was not measured.
func (p *page) find(shape, codec, op, target, mode string) *row {
	return p.findAt(shape, codec, op, target, mode, "")
}

func (p *page) findAt(shape, codec, op, target, mode, placement string) *row {
	want := row{Shape: shape, Codec: codec, Op: op, Target: target, Mode: mode, Placement: placement}
	if found := p.byKey[want.key()]; found != nil {
		return found
	}
	return &want
}

func (p *page) say(format string, args ...any) { fmt.Fprintf(p, format, args...) }

// table writes the head of a table: the first columns are texts, the others numbers.
func (p *page) table(texts int, columns ...string) {
	p.say("\n| %s |\n|", strings.Join(columns, " | "))
	for i := range columns {
		if i < texts {
			p.say("---|")
		} else {
			p.say("---:|")
		}
	}
	p.say("\n")
}

func (p *page) line(cells ...string) { p.say("| %s |\n", strings.Join(cells, " | ")) }

// number is x with as many digits as mean something; nothing was measured where it is 0.
func number(x float64) string {
	switch {
	case x == 0:
		return ""
	case x < 10:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", x), ".0")
	}
	return fmt.Sprintf("%.0f", x)
}

// memory is bytes and allocations of one item.
func memory(bytes, allocs float64) string {
	return fmt.Sprintf("%.0f / %.3g", bytes, float64(int(allocs*10+0.5))/10)
}

func (p *page) introduction() {
	p.say(`# The Go cache kit: codecs, batches, speed

What does it cost to keep Go structs in a cache? Ten codecs, five sizes of structs, writing and reading, one by one,
pipelined, and with MSET and MGET, by hand and through [`+"`sdk/go/cache`"+`](../../sdk/go/cache). Seed 004 asked this for six codecs
on another machine; its figures [stand apart](#another-machine-seed-004). Everything here comes from [`+"`data/go-cache.json`"+`](data/go-cache.json). Losses are shown.

**Read this first.** %s, %d cores, %s, %s, %s, %s. The machine is virtual and small: %s. A time is
how long client and server together were on a processor, by the kernel's clocks: others used the machine at the same time, whose
load was up to %s, and how long anything took by the clock is also what they did. By the clock there is [placement](#placement)
only: where servers and client have a core each, every command one by one waits for the virtual machine to wake a sleeping
processor, which takes longer than everything else. Compare figures of one table: all rows with the same struct, codec and
direction took turns, %d of them, and the median of those is shown.
`, p.r.Machine, p.r.Cores, p.r.Kernel, p.r.Go, p.r.Redis, p.r.Weft, p.r.Placement, number(slices.Max(append(slices.Collect(maps.Values(p.r.Loads)), 0))), p.r.Rounds)
	var versions []string
	for _, name := range libraries {
		if v := p.r.Libraries[name]; v != "" {
			versions = append(versions, name[strings.Index(name, "/")+1:]+" "+v)
		}
	}
	p.say("\nLibraries: %s. Generated with msgp v1.6.5, protoc 3.21.12, protoc-gen-go v1.36.12, protoc-gen-go-vtproto\nv0.6.0 (`sdk/go/cache/bench/fixture/generate`).\n",
		strings.Join(versions, ",\n"))
	p.say("\n    make bench-cache\n")
}

// kitModes are the modes through the kit of the best transport there is.
var batchModes = []string{modePipeline, modeMany, modeKitMany}

func (p *page) modes() {
	p.say("\n## What batching does\n\n![Time per item by mode](%s/modes.svg)\n\nJSON, nanoseconds of processor time per item; the last column is the best batch's gain over one by one.\n",
		filepath.Base(p.folder))
	columns := append([]string{"struct", "", "server and client"}, modes...)
	p.table(3, append(columns, "gain")...)
	for _, shape := range []string{"small", "large"} {
		for _, op := range []string{opSet, opGet} {
			for _, target := range []string{targetRedis, targetWeft, targetWeftOwn} {
				cells := []string{shape, op, target}
				best := 0.0
				for _, mode := range modes {
					ns := p.find(shape, codecJSON, op, target, mode).Nanos
					cells = append(cells, number(ns))
					if slices.Contains(batchModes, mode) && ns > 0 && (best == 0 || ns < best) {
						best = ns
					}
				}
				gain := ""
				if one := p.find(shape, codecJSON, op, target, modeOne).Nanos; one > 0 && best > 0 {
					gain = fmt.Sprintf("%.1f ×", one/best)
				}
				p.line(append(cells, gain)...)
			}
		}
	}
	p.spread()
	p.say("\nSo the seed's lesson holds: one by one the round trip hides most of what a codec costs, in batches the codec decides.\n")
}

// spread says how far codecs lie apart, one by one and batched: the seed's lesson, in our figures.
func (p *page) spread() {
	p.say("\nSlowest codec over fastest, without raw and hashes, over go-redis on redis-server:\n")
	p.table(1, "struct", "set one by one", "set MSET", "get one by one", "get MGET")
	for _, shape := range shapes {
		cells := []string{shape}
		for _, op := range []string{opSet, opGet} {
			for _, mode := range []string{modeOne, modeMany} {
				least, most := 0.0, 0.0
				for _, codec := range codecNames {
					if codec == codecRaw || codec == codecHash {
						continue
					}
					ns := p.find(shape, codec, op, targetRedis, mode).Nanos
					most = max(most, ns)
					if least == 0 || ns > 0 && ns < least {
						least = ns
					}
				}
				cells = append(cells, ratio(most, least))
			}
		}
		p.line(cells...)
	}
}

func ratio(a, b float64) string {
	if a == 0 || b == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", a/b)
}

// column is a target and mode of the large tables.
type column struct{ head, target, mode string }

var columns = []column{
	{"redis, go-redis: one", targetRedis, modeOne}, {"pipeline", targetRedis, modePipeline}, {"M…", targetRedis, modeMany},
	{"kit one", targetRedis, modeKitOne}, {"kit many", targetRedis, modeKitMany},
	{"weft, go-redis: one", targetWeft, modeOne}, {"pipeline", targetWeft, modePipeline}, {"M…", targetWeft, modeMany},
	{"kit one", targetWeft, modeKitOne}, {"kit many", targetWeft, modeKitMany},
	{"weft, respb: one", targetWeftOwn, modeOne}, {"pipeline", targetWeftOwn, modePipeline}, {"M…", targetWeftOwn, modeMany},
	{"kit one", targetWeftOwn, modeKitOne}, {"kit many", targetWeftOwn, modeKitMany},
}

// wide writes a table of all structs and codecs, with a cell for each target and mode.
func (p *page) wide(op string, cell func(one *row) string) {
	heads := []string{"struct", "codec", "payload"}
	for _, c := range columns {
		heads = append(heads, c.head)
	}
	p.table(2, heads...)
	for _, shape := range shapes {
		for _, codec := range codecNames {
			first := p.find(shape, codec, op, targetRedis, modeOne)
			if first.Items == 0 {
				continue
			}
			cells := []string{shape, codec, number(first.Payload)}
			for _, c := range columns {
				one := p.find(shape, codec, op, c.target, c.mode)
				if one.Items == 0 {
					cells = append(cells, "")
					continue
				}
				cells = append(cells, cell(one))
			}
			p.line(cells...)
		}
	}
}

func (p *page) times() {
	p.say("\n## Times\n\nNanoseconds of processor time per item, client and server together. “one” is one by one, “pipeline” and “M…” (MSET, MGET) batches of %d; “kit” is `sdk/go/cache`, whose\n"+
		"payload has 6 bytes more. “payload” is the mean length in bytes of what the codec makes. MSET sets no time to live, hashes\n"+
		"by hand have none, everything else has one; the kit replaces a whole hash in a transaction.\n", batch)
	for _, op := range []string{opSet, opGet} {
		p.say("\n### %s\n", op)
		p.wide(op, func(one *row) string { return number(one.Nanos) })
	}
}

func (p *page) memory() {
	p.say("\n## Memory\n\n![Bytes allocated for one item](%s/memory.svg)\n\nB/op and allocs/op of the client, per item.\n", filepath.Base(p.folder))
	for _, op := range []string{opSet, opGet} {
		p.say("\n### %s, memory\n", op)
		p.wide(op, func(one *row) string { return memory(one.Bytes, one.Allocs) })
	}
}

func (p *page) processor() {
	p.say("\n## Processor\n\nJSON. Processor time of the client and of the server per item in nanoseconds, and the client's use of a core: its time over\n" +
		"the time that passed. All other rows are in the raw data.\n")
	p.table(4, "struct", "", "server and client", "mode", "client ns", "client use", "server ns")
	for _, shape := range []string{"small", "large"} {
		for _, op := range []string{opSet, opGet} {
			for _, target := range []string{targetRedis, targetWeft, targetWeftOwn} {
				for _, mode := range modes {
					if one := p.find(shape, codecJSON, op, target, mode); one.Items > 0 {
						p.line(shape, op, target, mode, number(one.CPU), fmt.Sprintf("%.0f %%", 100*one.CPUUse), number(one.Server))
					}
				}
			}
		}
	}
	p.placement()
}

func (p *page) placement() {
	p.say("\n### Placement\n\nThe same with servers on core 0 and client on core 1 (“apart”), and with nobody pinned (“anywhere”), by the\n" +
		"clock, and on one core as processor time. Small struct, JSON, set; nanoseconds per item, median and from the 10th to the 90th\n" +
		"percentile.\n")
	p.table(2, "server and client", "mode", "one core", "apart", "anywhere")
	for _, target := range []string{targetRedis, targetWeft, targetWeftOwn} {
		for _, mode := range modes {
			if p.find("small", codecJSON, opSet, target, mode).Items == 0 {
				continue
			}
			cells := []string{target, mode}
			for _, placement := range append([]string{""}, placements...) {
				one := p.findAt("small", codecJSON, opSet, target, mode, placement)
				if one.Items == 0 {
					cells = append(cells, "")
					continue
				}
				cells = append(cells, fmt.Sprintf("%.0f (%.0f…%.0f)", one.Nanos, one.P10, one.P90))
			}
			p.line(cells...)
		}
	}
}

func (p *page) systemCalls() {
	p.say("\n## System calls\n\n![System calls for one item](%s/calls.svg)\n\nOf the client, per item: all, and the four that matter. The kernel counts them (tracepoints on all threads of the process, in runs\n"+
		"of their own, since counting makes each dearer); what looking at the counters adds is taken off.\n", filepath.Base(p.folder))
	p.table(5, "struct", "codec", "", "server and client", "mode", "all", "read", "write", "epoll_pwait", "futex")
	for _, c := range []struct{ shape, codec string }{{"small", codecJSON}, {"large", codecJSON}, {"large", codecTinylib}, {"large", codecHash}} {
		for _, op := range []string{opSet, opGet} {
			for _, target := range []string{targetRedis, targetWeft, targetWeftOwn} {
				for _, mode := range modes {
					one := p.find(c.shape, c.codec, op, target, mode)
					if one.Calls == nil {
						continue
					}
					cells := []string{c.shape, c.codec, op, target, mode}
					for _, n := range one.Calls {
						cells = append(cells, fmt.Sprintf("%.3g", max(n, 0)))
					}
					p.line(cells...)
				}
			}
		}
	}
}

func (p *page) codecs() {
	p.say("\n## Codecs alone\n\n![Time of encoding and decoding](%s/codecs.svg)\n\n“by hand” is the library's plain function, “kit” the codec of `sdk/go/cache` with a buffer that is used again. Nanoseconds, and bytes /\n"+
		"allocations. Decoding makes a new struct each time. Encoding with the kit allocates nothing with tinylib and vtprotobuf, which\n"+
		"`TestEncodeAllocatesNothing` asserts. The kit's MessagePack decoders first look through the data, so that a header cannot promise\n"+
		"more than there is.\n", filepath.Base(p.folder))
	p.table(2, "struct", "codec", "payload", "encode by hand", "B / allocs", "encode, kit", "B / allocs", "decode by hand", "B / allocs",
		"decode, kit", "B / allocs")
	for _, c := range p.r.Codecs {
		cells := []string{c.Shape, c.Codec, number(c.Payload)}
		for _, f := range []figure{c.Encode, c.Append, c.Decode, c.Parse} {
			cells = append(cells, number(f.Nanos), memory(f.Bytes, f.Allocs))
		}
		p.line(cells...)
	}
	if len(p.r.Local) > 0 {
		p.say("\n## First level\n")
		p.table(1, "", "ns", "B / allocs")
		for _, l := range p.r.Local {
			p.line(l.Name, number(l.Nanos), memory(l.Bytes, l.Allocs))
		}
	}
}

func (p *page) theSeed() {
	p.say("\n## Another machine: seed 004\n\nThe seed measured on an Apple M4 under macOS, where a round trip took 70 µs and more. Its times stand apart,\n" +
		"[below](#the-seeds-times): they compare with each other only. What can be compared is how its codecs lie to JSON of the same struct\n" +
		"and direction, and memory. Its structs had the same numbers of fields, not the same fields, and its SET had no time to live. Ours is\n" +
		"go-redis on redis-server.\n")
	p.table(1, "seed's name", "seed × JSON", "ours × JSON", "seed B / allocs", "ours B / allocs", "ours, payload")
	for _, s := range seed {
		own := p.find(s.shape, s.codec, s.op, targetRedis, s.mode)
		if own.Items == 0 {
			continue
		}
		json := p.find(s.shape, codecJSON, s.op, targetRedis, s.mode)
		p.line(s.name, ratio(s.nanos, seedNanos(s.shape, codecJSON, s.op, s.mode)), ratio(own.Nanos, json.Nanos), memory(s.bytes, s.allocs),
			memory(own.Bytes, own.Allocs), number(own.Payload))
	}
	p.say("\nWhat a batch of 100 gains, JSON, set:\n")
	p.table(2, "struct", "batch", "seed", "ours, redis-server, go-redis", "ours, weft, go-redis", "ours, weft, respb")
	for _, shape := range []string{"small", "large"} {
		for _, mode := range []string{modePipeline, modeMany} {
			cells := []string{shape, mode, ratio(seedNanos(shape, codecJSON, opSet, modeOne), seedNanos(shape, codecJSON, opSet, mode))}
			for _, target := range []string{targetRedis, targetWeft, targetWeftOwn} {
				cells = append(cells, ratio(p.find(shape, codecJSON, opSet, target, modeOne).Nanos, p.find(shape, codecJSON, opSet, target, mode).Nanos))
			}
			p.line(cells...)
		}
	}
	p.say("\nThe seed's gain is larger because its round trip is dearer: with a core for each side ours is too, %s for the small struct's pipeline\n"+
		"([placement](#placement)).\n", ratio(p.findAt("small", codecJSON, opSet, targetRedis, modeOne, "apart").Nanos,
		p.findAt("small", codecJSON, opSet, targetRedis, modePipeline, "apart").Nanos))
	p.say("\n### The seed's times\n\nNanoseconds on that other machine.\n")
	p.table(1, "seed's name", "ns")
	for _, s := range seed {
		p.line(s.name, number(s.nanos))
	}
}

func (p *page) profiles() {
	p.say("\n## CPU profiles\n\nSET of JSON, the client's process, as `go tool pprof -top` prints it. The seed found 63 %% of one by one in `syscall.syscall` and 32 %% in\n" +
		"`kevent`; batched, `syscall.syscall` kept 75 %% of far fewer samples for each item.\n")
	for _, one := range p.r.Profiles {
		p.say("\n### %s struct, %s, %s\n\n%.0f ns per item.\n\n```\n%s```\n", one.Shape, one.Target, one.Mode, one.Nanos, plainNames(one.Top))
	}
}

func (p *page) method() {
	p.say("\n## How it is measured\n\n" +
		"- `weft serve --threads 1` and Debian's `redis-server` without persistence, each a child of the benchmark. One connection or pool\n" +
		"  for each client, its defaults, no concurrency in the client: one goroutine.\n" +
		"- 100 values of each struct, in two generations. Rows of one struct, codec and direction take turns of 100 items one by one, or\n" +
		"  four batches of 100. Before each turn of writing the generation changes.\n" +
		"- Every value that was read is compared with what was written, after each turn and outside the clock. What was written is read back\n" +
		"  and compared after the first two turns and the last. A difference ends the run.\n" +
		"- B/op and allocs/op come from the runtime's counters over 200 items, before the turns. The kit reads with GETs then; while the\n  batches of the turns are found whole they leave as MGET.\n" +
		"- By hand means the library's plain function (`json.Marshal`, `msgpack.Marshal`, `MarshalMsg(nil)`, `proto.Marshal`, …) and the\n" +
		"  client's plain call; over respb the pipeline and the buffer of replies are used again, as its documentation shows. CBOR writes\n" +
		"  times as text, since its default loses what is below a second.\n" +
		"- The structs are `sdk/go/cache/bench/fixture`: 5, 10 and 25 fields of ints, strings, floats, bools and times in equal numbers; nested\n" +
		"  is 5 fields and 5 or 10 items of a string and an int. Hashes have dotted names for items.\n" +
		"- Processor time is the kernel's, to the nanosecond (CPU clocks of both processes), and a mean: what collects garbage is in it, while a median of\n" +
		"times leaves rare turns out.\n")
}
