module github.com/weft-db/weft/sdk/go/cache/codec/msgpack

go 1.24


require (
	github.com/vmihailenco/msgpack/v5 v5.4.1
	github.com/weft-db/weft/sdk/go v0.1.0
)

require github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
