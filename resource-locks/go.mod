module checkoutlock/resource-locks

go 1.26.0

require (
	checkoutlock/config v0.0.0
	checkoutlock/schemas v0.0.0
	github.com/google/uuid v1.6.0
	github.com/gorilla/websocket v1.5.3
	golang.org/x/time v0.15.0
)

require (
	github.com/caarlos0/env/v10 v10.0.0 // indirect
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3 // indirect
	golang.org/x/text v0.42.0 // indirect
)

replace checkoutlock/schemas => ../schemas

replace checkoutlock/config => ../config
