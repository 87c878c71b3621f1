package main

// This file owns the goals that were set before anything was built, and whether they are reached.

import (
	"fmt"

	"github.com/weft-db/weft/sdk/go/internal/rounds"
)

func (p *page) goals() {
	p.say(`
## Goals

Over all structs and codecs but hashes: the interval that holds the median of the rows' ratios with 95 %%, and the worst row. The
same server and client. A goal is reached when all of both intervals is on its side, missed when none of one is, and open otherwise.
`)
	p.table(1, "goal", "over", "set: median", "worst", "get: median", "worst", "")
	for _, t := range []string{targetRedis, targetWeft, targetWeftOwn} {
		p.goal("kit one by one at most 1.10 of the client by hand", t, 1.10, func(shape, codec, op string) float64 {
			return over(p.find(shape, codec, op, t, modeKitOne).Nanos, p.find(shape, codec, op, t, modeOne).Nanos)
		})
	}
	for _, t := range []string{targetRedis, targetWeft, targetWeftOwn} {
		p.goal("kit's batch at most 1.00 of what the client's pipeline would give (its gain on the kit's one by one)", t, 1, func(shape, codec, op string) float64 {
			own := over(p.find(shape, codec, op, t, modeKitOne).Nanos, p.find(shape, codec, op, t, modeKitMany).Nanos)
			bare := over(p.find(shape, codec, op, t, modeOne).Nanos, p.find(shape, codec, op, t, modePipeline).Nanos)
			return over(bare, own)
		})
	}
	for _, t := range []string{targetRedis, targetWeft} {
		p.goal("kit's batch at most 1.00 of a go-redis pipeline by hand", t, 1, func(shape, codec, op string) float64 {
			return over(p.find(shape, codec, op, t, modeKitMany).Nanos, p.find(shape, codec, op, t, modePipeline).Nanos)
		})
	}
	p.goal("the same, the kit over RESPB on the same weft", targetWeftOwn, 1, func(shape, codec, op string) float64 {
		return over(p.find(shape, codec, op, targetWeftOwn, modeKitMany).Nanos, p.find(shape, codec, op, targetWeft, modePipeline).Nanos)
	})
	p.own("B/op beyond the codec's own: the kit over RESPB at most 0.50 of go-redis", func(r *row) float64 { return r.Bytes },
		func(f figure) float64 { return f.Bytes })
	p.own("allocs/op beyond the codec's own: the same", func(r *row) float64 { return r.Allocs },
		func(f figure) float64 { return f.Allocs })
	p.say(`
A ratio below 1 is in the kit's favour. Encoding without allocation: see [codecs alone](#codecs-alone). Over respb the pipeline by
hand is the leanest there is: it makes no keys, checks nothing, and uses all of its memory again. The kit's batch makes key,
header and checksum for 20 to 50 ns an item; MGET gives that back where the client is dearer. What makes the worst rows is mostly
tinylib's and vmihailenco's MessagePack, which the kit looks through before it is decoded.
`)
}

func over(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// goal writes a line: a ratio for each row, of which the interval of the median decides.
func (p *page) goal(name, target string, limit float64, of func(shape, codec, op string) float64) {
	cells := []string{name, target}
	said := "reached"
	for _, op := range []string{opSet, opGet} {
		var all []float64
		for _, shape := range shapes {
			for _, codec := range codecNames {
				if r := of(shape, codec, op); r != 0 && codec != codecHash {
					all = append(all, r)
				}
			}
		}
		if len(all) == 0 {
			return
		}
		low, high := rounds.Interval(all)
		switch {
		case low > limit:
			said = missed
		case high > limit && said != missed:
			said = "open"
		}
		cells = append(cells, fmt.Sprintf("%.2f…%.2f", low, high), fmt.Sprintf("%.2f", quantile(all, 1)))
	}
	p.line(append(cells, said)...)
}

const missed = "**missed**"

// own compares what is allocated beyond the codec's own: by hand its plain function, in the kit its reused buffer.
func (p *page) own(name string, ofRow func(r *row) float64, ofCodec func(f figure) float64) {
	alone := map[string]*codecRow{}
	for _, c := range p.r.Codecs {
		alone[c.Shape+c.Codec] = c
	}
	p.goal(name, targetWeftOwn, 0.5, func(shape, codec, op string) float64 {
		c, kit, bare := alone[shape+codec], p.find(shape, codec, op, targetWeftOwn, modeKitOne), p.find(shape, codec, op, targetWeft, modeOne)
		if c == nil || kit.Items == 0 {
			return 0
		}
		byHand, byKit := c.Encode, c.Append
		if op == opGet {
			byHand, byKit = c.Decode, c.Parse
		}
		return max(over(ofRow(kit)-ofCodec(byKit), ofRow(bare)-ofCodec(byHand)), 0.001)
	})
}
