module github.com/weft-db/weft/sdk/go/internal/differential

go 1.24

require github.com/weft-db/weft/sdk/go v0.0.0

replace github.com/weft-db/weft/sdk/go => ../..
