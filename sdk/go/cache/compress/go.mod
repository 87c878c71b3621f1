module github.com/weft-db/weft/sdk/go/cache/compress

go 1.24

require (
	github.com/klauspost/compress v1.17.11
	github.com/weft-db/weft/sdk/go v0.1.0
)

