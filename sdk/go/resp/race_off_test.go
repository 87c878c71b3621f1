//go:build !race

package resp

// This file says that the race detector is off.

const raceEnabled = false
