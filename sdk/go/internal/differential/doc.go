// Package differential compares the RESPB decoders and encoders of the Go SDK with those of crates/protocol, for any bytes, through the
// C library. It is a module of its own, because it needs cgo; scripts/go-differential builds the library and runs it.
package differential
