module github.com/weft-db/weft/sdk/go/cache/codec/msgpack

go 1.24

replace github.com/weft-db/weft/sdk/go => ../../..

require (
	github.com/vmihailenco/msgpack/v5 v5.4.1
	github.com/weft-db/weft/sdk/go v0.0.0
)

require github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
