module checkoutlock/integration-tests

go 1.26.0

require (
	checkoutlock/circulation v0.0.0
	checkoutlock/circulation-storage v0.0.0
	checkoutlock/config v0.0.0
	checkoutlock/migrations v0.0.0
	checkoutlock/schemas v0.0.0
)

require (
	github.com/google/uuid v1.6.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/pgx/v5 v5.12.0 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/text v0.42.0 // indirect
)

replace checkoutlock/schemas => ../schemas

replace checkoutlock/config => ../config

replace checkoutlock/migrations => ../migrations

replace checkoutlock/circulation-storage => ../circulation-storage

replace checkoutlock/circulation => ../circulation
