module github.com/weft-db/weft/sdk/go

go 1.24
