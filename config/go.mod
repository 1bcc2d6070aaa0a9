module checkoutlock/config

go 1.26.0

require (
	checkoutlock/schemas v0.0.0
	github.com/caarlos0/env/v10 v10.0.0
)

replace checkoutlock/schemas => ../schemas
