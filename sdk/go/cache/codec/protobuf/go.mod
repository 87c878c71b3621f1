module github.com/weft-db/weft/sdk/go/cache/codec/protobuf

go 1.24


require (
	github.com/weft-db/weft/sdk/go v0.1.0
	google.golang.org/protobuf v1.36.12
)
