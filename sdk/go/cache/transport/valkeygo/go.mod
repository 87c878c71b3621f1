module github.com/weft-db/weft/sdk/go/cache/transport/valkeygo

go 1.24

require (
	github.com/valkey-io/valkey-go v1.0.57
	github.com/weft-db/weft/sdk/go v0.1.0
)

require golang.org/x/sys v0.31.0 // indirect

