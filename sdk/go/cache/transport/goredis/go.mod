module github.com/weft-db/weft/sdk/go/cache/transport/goredis

go 1.24

require (
	github.com/redis/go-redis/v9 v9.0.0
	github.com/weft-db/weft/sdk/go v0.1.0
)

require (
	github.com/cespare/xxhash/v2 v2.2.0 // indirect
	github.com/dgryski/go-rendezvous v0.0.0-20200823014737-9f7001d12a5f // indirect
)

