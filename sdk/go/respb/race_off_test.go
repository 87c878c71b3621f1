//go:build !race

package respb

// This file says that the race detector is off.

const raceEnabled = false
