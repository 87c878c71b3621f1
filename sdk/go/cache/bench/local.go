package main

// This file owns the rows of the first level.

// localRow is one way of reading a value that is in the process already.
type localRow struct {
	Name   string  `json:"name"`
	Nanos  float64 `json:"ns"`
	Bytes  float64 `json:"b_op"`
	Allocs float64 `json:"allocs_op"`
}

func (c *config) measureLocal(r *report) error { return nil }
