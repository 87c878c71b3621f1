package main

// This file owns the CPU profiles: which functions the client's time goes to in each mode.

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"time"
)

// profile is the head of a CPU profile.
type profile struct {
	Shape  string  `json:"shape"`
	Codec  string  `json:"codec"`
	Op     string  `json:"op"`
	Target string  `json:"target"`
	Mode   string  `json:"mode"`
	Nanos  float64 `json:"ns"`
	Top    string  `json:"top"` // what `go tool pprof -top` prints
}

const (
	profileTime  = 2500 * time.Millisecond
	profileNodes = "12"
)

// measureProfiles profiles SET of JSON, as seed 004 did, with small and large structs.
func (c *config) measureProfiles(r *report) error {
	ctx := context.Background()
	b, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer b.close()
	dir, err := os.MkdirTemp("", "cache-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var all []*contestant
	for _, shape := range []string{"small", "large"} {
		group, err := c.group(ctx, b, subjectsOf(shape)[0], shape, opSet)
		if err != nil {
			return err
		}
		for _, p := range group {
			if p.row.Target != targetWeft {
				all = append(all, p)
			}
		}
	}
	r.Profiles = nil
	progress := newProgress(len(all))
	for i, p := range all {
		one, err := p.profile(ctx, filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			return err
		}
		r.Profiles = append(r.Profiles, one)
		progress.step("profile of " + p.row.key())
	}
	return nil
}

func (p *contestant) profile(ctx context.Context, name string) (*profile, error) {
	if err := p.run(ctx); err != nil {
		return nil, err
	}
	file, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, err
	}
	var batches int
	begun := time.Now()
	for ; err == nil && time.Since(begun) < profileTime; batches++ {
		err = p.run(ctx)
	}
	wall := time.Since(begun)
	pprof.StopCPUProfile()
	if err != nil {
		return nil, err
	}
	top, err := exec.Command("go", "tool", "pprof", "-top", "-nodecount", profileNodes, name).Output()
	if err != nil {
		return nil, fmt.Errorf("go tool pprof: %w", err)
	}
	if i := bytes.Index(top, []byte("Duration:")); i >= 0 { // above it are the file's name and time
		top = top[i:]
	}
	return &profile{
		p.row.Shape, p.row.Codec, p.row.Op, p.row.Target, p.row.Mode, float64(wall) / float64(batches*batch), plainNames(string(top)),
	}, nil
}

// typeArguments are those of instances, which spell out whole structs.
var typeArguments = regexp.MustCompile(`\[go\.shape\..*\]`)

func plainNames(top string) string { return typeArguments.ReplaceAllString(top, "[…]") }
