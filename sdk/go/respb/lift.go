package respb

// This file owns what RESP2 replies need to be read as those of RESP3: pairs that stand flat. Maps need nothing, helpers take them flat too.

import (
	"math"
	"strconv"

	"github.com/weft-db/weft/sdk/go/resp"
)

// lift makes pairs of members and scores, or fields and values, of a flat array, where a reader could not tell them from a list.
func lift[T string | []byte](args []T, v *Value) {
	if v.Kind != resp.Array || len(v.Elems) == 0 || len(v.Elems)%2 != 0 {
		return
	}
	scores, values := pairsOf(args)
	if !scores && !values || v.Elems[0].Kind == resp.Array {
		return
	}
	pairs := make([]Value, len(v.Elems)/2)
	for i := range pairs {
		pair := v.Elems[2*i : 2*i+2 : 2*i+2]
		if score := &pair[1]; scores && score.Kind == resp.Bulk {
			if f, err := strconv.ParseFloat(string(score.Data), 64); err == nil && !math.IsNaN(f) {
				score.Kind, score.Float = resp.Double, f
			}
		}
		pairs[i] = Value{Kind: resp.Array, Elems: pair}
	}
	v.Elems = pairs
}

// pairsOf says whether a command is answered with members and scores, or with fields and values, in turn.
func pairsOf[T string | []byte](args []T) (scores, values bool) {
	switch name := args[0]; {
	case isWord(name, "ZPOPMIN"), isWord(name, "ZPOPMAX"):
		return true, false
	case isWord(name, "HRANDFIELD"):
		return false, isWord(args[len(args)-1], "WITHVALUES")
	case len(name) > 0 && name[0]|0x20 == 'z':
		for _, arg := range args[1:] {
			scores = scores || isWord(arg, "WITHSCORES")
		}
	}
	return scores, false
}

// lift is lift for each command, and for those of a transaction in the reply to EXEC.
func (p *Pipeline) lift(values []Value) {
	last := &values[len(values)-1]
	i := 0
	p.each(func(args [][]byte) bool {
		if len(args) == 0 {
			i++
			return true
		}
		switch {
		case !p.wrapped:
			lift(args, &values[i])
		case last.Kind == resp.Array && i < len(last.Elems):
			lift(args, &last.Elems[i])
		}
		i++
		return true
	})
}
