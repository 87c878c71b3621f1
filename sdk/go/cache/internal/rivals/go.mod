module github.com/weft-db/weft/sdk/go/cache/internal/rivals

go 1.26.0

require (
	github.com/go-redis/cache/v9 v9.0.0
	github.com/redis/go-redis/v9 v9.23.0
	github.com/redis/rueidis v1.0.79
	github.com/redis/rueidis/rueidisaside v1.0.64
	github.com/weft-db/weft/sdk/go v0.1.0
	github.com/weft-db/weft/sdk/go/cache/local v0.0.0
	github.com/weft-db/weft/sdk/go/cache/transport/goredis v0.0.0
	github.com/weft-db/weft/sdk/go/cache/transport/rueidisgo v0.0.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/klauspost/compress v1.13.6 // indirect
	github.com/maypok86/otter/v2 v2.4.0 // indirect
	github.com/vmihailenco/go-tinylfu v0.2.2 // indirect
	github.com/vmihailenco/msgpack/v5 v5.3.4 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sync v0.1.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)

replace (
	github.com/weft-db/weft/sdk/go => ../../..
	github.com/weft-db/weft/sdk/go/cache/local => ../../local
	github.com/weft-db/weft/sdk/go/cache/transport/goredis => ../../transport/goredis
	github.com/weft-db/weft/sdk/go/cache/transport/rueidisgo => ../../transport/rueidisgo
)
