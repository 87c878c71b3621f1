//go:build race

package main

// This file says that the race detector is on.

const raceDetector = true
