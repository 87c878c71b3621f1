module github.com/weft-db/weft/sdk/go/cache/codec/cbor

go 1.24


require (
	github.com/fxamacker/cbor/v2 v2.9.6
	github.com/weft-db/weft/sdk/go v0.1.0
)

require github.com/x448/float16 v0.8.4 // indirect
