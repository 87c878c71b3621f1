// Package box owns places for values that are encoded by reflection: a library that takes an interface needs a pointer, and a pointer
// to a parameter would be allocated for each call.
package box

import "sync"

// Pool has places for a V. The zero Pool is ready.
type Pool[V any] struct{ pool sync.Pool }

// Put returns a place that holds v.
func (p *Pool[V]) Put(v V) *V {
	place, ok := p.pool.Get().(*V)
	if !ok {
		place = new(V)
	}
	*place = v
	return place
}

// Free takes the place back, and forgets what is in it.
func (p *Pool[V]) Free(place *V) {
	var zero V
	*place = zero
	p.pool.Put(place)
}
