//go:build race

package respb

// This file says that the race detector is on.

const raceEnabled = true
