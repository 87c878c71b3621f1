module github.com/weft-db/weft/sdk/go/cache/local

go 1.25.0

require github.com/weft-db/weft/sdk/go v0.1.0

require github.com/maypok86/otter/v2 v2.4.0

