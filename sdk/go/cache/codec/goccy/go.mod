module github.com/weft-db/weft/sdk/go/cache/codec/goccy

go 1.24


require (
	github.com/goccy/go-json v0.12.0
	github.com/weft-db/weft/sdk/go v0.1.0
)
