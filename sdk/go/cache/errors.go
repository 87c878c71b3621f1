package cache

// This file owns the errors of a cache.

import (
	"errors"
	"fmt"
)

var (
	// ErrMiss says that the key is not cached, or not in a form that can be read.
	ErrMiss = errors.New("cache: miss")
	// ErrNotFound says that the source has no such value. A loader returns it, or wraps it, and with NegativeTTL it is remembered.
	ErrNotFound = errors.New("cache: the source has no such value")
	// ErrClosed is returned by calls after Close, and by loads that it ended.
	ErrClosed = errors.New("cache: closed")
	// ErrTooLarge says that a value's encoding is over Options.ValueBytesMax. It was not stored.
	ErrTooLarge = errors.New("cache: the value is larger than ValueBytesMax")
	// ErrStillLoading is returned by Close when loaders, or operations of the store, have not ended within Options.CloseTimeout. Nobody waits
	// for them any more, and what they come to is not stored.
	ErrStillLoading = errors.New("cache: closed while loads go on that do not heed their context")
	// ErrLoadTimeout says that a loader took longer than Options.LoadTimeout.
	ErrLoadTimeout = errors.New("cache: loading took longer than LoadTimeout")
	// ErrNoTracking is returned by a Tracker whose store cannot tell of changes.
	ErrNoTracking = errors.New("cache: the store does not tell of changes")
)

// StoreError says that an operation of the store failed.
type StoreError struct{ Err error }

func (e *StoreError) Error() string { return "cache: the store failed: " + e.Err.Error() }

// Unwrap returns why.
func (e *StoreError) Unwrap() error { return e.Err }

// EncodeError says that a codec refused a value.
type EncodeError struct{ Err error }

func (e *EncodeError) Error() string { return "cache: encoding failed: " + e.Err.Error() }

// Unwrap returns why.
func (e *EncodeError) Unwrap() error { return e.Err }

// PanicError is what the callers of a loader or codec get that panicked.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("cache: panic: %v", e.Value) }

// Unwrap returns the panic's value if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// ManyError says which items of a call failed: Errs has one for each item, nil for those that are well.
type ManyError struct{ Errs []error }

func (e *ManyError) Error() string {
	failed, first := 0, error(nil)
	for _, err := range e.Errs {
		if err != nil {
			failed++
			if first == nil {
				first = err
			}
		}
	}
	return fmt.Sprintf("cache: %d of %d items failed, the first with: %v", failed, len(e.Errs), first)
}

// Unwrap returns the errors that there are.
func (e *ManyError) Unwrap() []error {
	var errs []error
	for _, err := range e.Errs {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}
