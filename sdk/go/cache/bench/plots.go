package main

// This file owns the plots: grouped horizontal bars as SVG, with the figure at each bar's end.

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// bars is a plot of groups that each have the same series.
type bars struct {
	title, unit string
	series      []string
	groups      []barGroup
	logarithmic bool
}

type barGroup struct {
	name   string
	values []float64 // 0: not measured
}

var colours = []string{"#4878a8", "#e08a3c", "#5a9e6f", "#b5555a", "#8468a8"}

const (
	plotWidth  = 900
	plotLeft   = 230
	plotRight  = 80
	barHeight  = 13
	groupSpace = 9
	plotTop    = 62
)

// svg draws the bars. With a logarithmic scale a bar begins at the decade below the least value.
func (b *bars) svg() string {
	least, most := math.Inf(1), 0.0
	for _, g := range b.groups {
		for _, v := range g.values {
			if v > 0 {
				least, most = min(least, v), max(most, v)
			}
		}
	}
	from := 0.0
	if b.logarithmic && most > 0 {
		from = math.Pow(10, math.Floor(math.Log10(least)))
	}
	scale := func(v float64) float64 {
		width := float64(plotWidth - plotLeft - plotRight)
		if b.logarithmic {
			return width * math.Log(v/from) / math.Log(most/from)
		}
		return width * v / most
	}
	var out strings.Builder
	height := plotTop + 20
	for _, g := range b.groups {
		height += len(g.values)*barHeight + groupSpace
	}
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">`+"\n", plotWidth, height)
	fmt.Fprintf(&out, `<rect width="100%%" height="100%%" fill="#fff"/><text x="10" y="20" font-size="15">%s</text>`+"\n", html.EscapeString(b.title))
	x := 10
	for i, name := range b.series {
		fmt.Fprintf(&out, `<rect x="%d" y="34" width="11" height="11" fill="%s"/><text x="%d" y="44">%s</text>`+"\n", x, colours[i%len(colours)], x+16,
			html.EscapeString(name))
		x += 30 + 7*len(name)
	}
	if b.logarithmic && most > 0 {
		for tick := from; tick <= most; tick *= 10 {
			at := plotLeft + scale(tick)
			fmt.Fprintf(&out, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#ddd"/><text x="%.1f" y="%d" fill="#666" text-anchor="middle">%g</text>`+"\n",
				at, at, plotTop-6, height-18, at, height-6, tick)
		}
	}
	y := plotTop
	for _, g := range b.groups {
		fmt.Fprintf(&out, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", plotLeft-8, y+len(g.values)*barHeight/2+4, html.EscapeString(g.name))
		for i, v := range g.values {
			if v > 0 {
				fmt.Fprintf(&out, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/><text x="%.1f" y="%d" font-size="10">%s</text>`+"\n", plotLeft, y,
					max(scale(v), 1), barHeight-2, colours[i%len(colours)], plotLeft+max(scale(v), 1)+4, y+barHeight-3, short(v)+b.unit)
			}
			y += barHeight
		}
		y += groupSpace
	}
	return out.String() + "</svg>\n"
}

func short(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// plotModes shows JSON by mode: what batching does.
func (p *page) plotModes() string {
	b := &bars{title: "JSON, time per item (logarithmic)", unit: " ns", series: []string{targetRedis, targetWeft, targetWeftOwn}, logarithmic: true}
	for _, shape := range []string{"small", "large"} {
		for _, op := range []string{opSet, opGet} {
			for _, mode := range modes {
				g := barGroup{name: shape + ", " + op + ", " + mode}
				for _, target := range b.series {
					g.values = append(g.values, p.find(shape, codecJSON, op, target, mode).Nanos)
				}
				b.groups = append(b.groups, g)
			}
		}
	}
	return b.svg()
}

// plotCodecs shows the codecs alone.
func (p *page) plotCodecs() string {
	b := &bars{title: "Encoding and decoding, large and nested10 (logarithmic)", unit: " ns", logarithmic: true,
		series: []string{"encode by hand", "encode, kit", "decode by hand", "decode, kit"}}
	for _, c := range p.r.Codecs {
		if c.Shape == "large" || c.Shape == "nested10" {
			b.groups = append(b.groups, barGroup{c.Shape + ", " + c.Codec, []float64{c.Encode.Nanos, c.Append.Nanos, c.Decode.Nanos, c.Parse.Nanos}})
		}
	}
	return b.svg()
}

// plotMemory shows B/op of one by one and batched.
func (p *page) plotMemory() string {
	b := &bars{title: "Bytes allocated for one small struct", unit: " B",
		series: []string{"go-redis one by one", "go-redis pipeline", "kit over respb, one by one", "kit over respb, many"}}
	for _, op := range []string{opSet, opGet} {
		for _, codec := range codecNames {
			g := barGroup{name: op + ", " + codec}
			for _, c := range []column{{target: targetWeft, mode: modeOne}, {target: targetWeft, mode: modePipeline},
				{target: targetWeftOwn, mode: modeKitOne}, {target: targetWeftOwn, mode: modeKitMany}} {
				g.values = append(g.values, p.find("small", codec, op, c.target, c.mode).Bytes)
			}
			b.groups = append(b.groups, g)
		}
	}
	return b.svg()
}

// plotCalls shows system calls by mode.
func (p *page) plotCalls() string {
	b := &bars{title: "System calls of the client for one item, small struct, JSON (logarithmic)", logarithmic: true,
		series: []string{targetRedis, targetWeft, targetWeftOwn}}
	for _, op := range []string{opSet, opGet} {
		for _, mode := range modes {
			g := barGroup{name: op + ", " + mode}
			for _, target := range b.series {
				var n float64
				if calls := p.find("small", codecJSON, op, target, mode).Calls; calls != nil {
					n = max(calls[0], 0)
				}
				g.values = append(g.values, n)
			}
			b.groups = append(b.groups, g)
		}
	}
	return b.svg()
}
