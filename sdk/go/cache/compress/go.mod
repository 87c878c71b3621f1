module github.com/weft-db/weft/sdk/go/cache/compress

go 1.25.0

require github.com/weft-db/weft/sdk/go v0.0.0

require github.com/klauspost/compress v1.20.3

replace github.com/weft-db/weft/sdk/go => ../..
