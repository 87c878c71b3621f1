module github.com/weft-db/weft/examples/redcon

go 1.26.0

require (
	github.com/tidwall/redcon v1.6.4
	github.com/weft-db/weft/sdk/go v0.0.0
)

require (
	github.com/tidwall/btree v1.1.0 // indirect
	github.com/tidwall/match v1.1.1 // indirect
)

replace github.com/weft-db/weft/sdk/go => ../../sdk/go
