module github.com/weft-db/weft/sdk/go/cache/bench

go 1.26.0

replace github.com/weft-db/weft/sdk/go => ../..

require (
	github.com/bytedance/sonic v1.15.5
	github.com/fxamacker/cbor/v2 v2.9.6
	github.com/goccy/go-json v0.12.0
	github.com/planetscale/vtprotobuf v0.6.0
	github.com/redis/go-redis/v9 v9.23.0
	github.com/tinylib/msgp v1.6.5
	github.com/vmihailenco/msgpack/v5 v5.4.1
	golang.org/x/sys v0.48.0
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/bytedance/gopkg v0.1.3 // indirect
	github.com/bytedance/sonic/loader v0.5.3 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/cloudwego/base64x v0.1.6 // indirect
	github.com/klauspost/cpuid/v2 v2.4.0 // indirect
	github.com/maypok86/otter/v2 v2.4.0 // indirect
	github.com/twitchyliquid64/golang-asm v0.15.1 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/arch v0.0.0-20210923205945-b76863e36670 // indirect
)

require (
	github.com/philhofer/fwd v1.2.0 // indirect
	github.com/weft-db/weft/sdk/go v0.0.0
	github.com/weft-db/weft/sdk/go/cache/codec/cbor v0.0.0
	github.com/weft-db/weft/sdk/go/cache/codec/goccy v0.0.0
	github.com/weft-db/weft/sdk/go/cache/codec/msgpack v0.0.0
	github.com/weft-db/weft/sdk/go/cache/codec/protobuf v0.0.0
	github.com/weft-db/weft/sdk/go/cache/codec/sonic v0.0.0
	github.com/weft-db/weft/sdk/go/cache/local v0.0.0
	github.com/weft-db/weft/sdk/go/cache/transport/goredis v0.0.0
)

replace github.com/weft-db/weft/sdk/go/cache/codec/goccy => ../codec/goccy

replace github.com/weft-db/weft/sdk/go/cache/codec/sonic => ../codec/sonic

replace github.com/weft-db/weft/sdk/go/cache/codec/msgpack => ../codec/msgpack

replace github.com/weft-db/weft/sdk/go/cache/codec/cbor => ../codec/cbor

replace github.com/weft-db/weft/sdk/go/cache/codec/protobuf => ../codec/protobuf

replace github.com/weft-db/weft/sdk/go/cache/transport/goredis => ../transport/goredis

replace github.com/weft-db/weft/sdk/go/cache/local => ../local
