module checkoutlock/resource-locks

go 1.26.0

require (
	checkoutlock/schemas v0.0.0
	github.com/google/uuid v1.6.0
)

replace checkoutlock/schemas => ../schemas
