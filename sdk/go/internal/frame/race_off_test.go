//go:build !race

package frame

// This file says that the race detector is off: short frames are cut at every byte.

const (
	cutsMax = 512
	wireMax = 1 << 30
)
