module checkoutlock/config

go 1.26.0

require (
	checkoutlock/schemas v0.0.0
	github.com/caarlos0/env/v10 v10.0.0
	go.opentelemetry.io/otel/trace v1.47.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	go.opentelemetry.io/otel v1.47.0 // indirect
)

replace checkoutlock/schemas => ../schemas
