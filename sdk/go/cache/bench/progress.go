package main

// This file owns the progress line: which row of how many, and the time that is left.

import (
	"fmt"
	"os"
	"time"
)

type progress struct {
	done, total int
	begun       time.Time
	terminal    bool
}

func newProgress(total int) *progress {
	info, err := os.Stderr.Stat()
	return &progress{total: total, begun: time.Now(), terminal: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

// step says that one more is done.
func (p *progress) step(what string) {
	p.done++
	left := time.Since(p.begun) / time.Duration(p.done) * time.Duration(p.total-p.done)
	end := "\n"
	if p.terminal && p.done < p.total {
		end = "\r\x1b[K"
	}
	section := os.Getenv(envSection)
	if section != "" {
		section = "section " + section + ": "
	}
	fmt.Fprintf(os.Stderr, "%srow %d of %d, %s left: %s%s", section, p.done, p.total, left.Round(time.Second), what, end)
}
