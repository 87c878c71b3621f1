//go:build race

package msgp

// This file says that the race detector is on.

const raceDetector = true
