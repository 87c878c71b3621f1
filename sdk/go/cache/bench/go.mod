module github.com/weft-db/weft/sdk/go/cache/bench

go 1.26.0

replace github.com/weft-db/weft/sdk/go => ../..

require (
	github.com/planetscale/vtprotobuf v0.6.0
	github.com/tinylib/msgp v1.6.5
	google.golang.org/protobuf v1.36.12
)

require github.com/philhofer/fwd v1.2.0 // indirect
