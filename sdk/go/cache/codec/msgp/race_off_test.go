//go:build !race

package msgp

// This file says that the race detector is off.

const raceDetector = false
