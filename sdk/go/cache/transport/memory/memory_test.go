package memory_test

// This file owns the test that the store in memory behaves like the others.

import (
	"testing"

	"github.com/weft-db/weft/sdk/go/cache/transport/memory"
	"github.com/weft-db/weft/sdk/go/cache/transport/transporttest"
)

func TestSuite(t *testing.T) { transporttest.Run(t, &memory.Store{}) }
