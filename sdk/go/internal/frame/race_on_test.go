//go:build race

package frame

// This file says that the race detector is on: frames are cut at fewer places then, long ones not at all, since decoders share nothing.

const (
	cutsMax = 32
	wireMax = 2_048
)
