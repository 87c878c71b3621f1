module github.com/weft-db/weft/sdk/go/cache/transport/valkeygo

go 1.25.0

require (
	github.com/valkey-io/valkey-go v1.0.79
	github.com/weft-db/weft/sdk/go v0.0.0
)

require golang.org/x/sys v0.47.0 // indirect

replace github.com/weft-db/weft/sdk/go => ../../..
