//go:build !race

package main

// This file says that the race detector is off.

const raceDetector = false
