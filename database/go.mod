module checkoutlock/database

go 1.26.0

require (
	checkoutlock/config v0.0.0
	checkoutlock/devpostgres v0.0.0
	checkoutlock/schemas v0.0.0
	github.com/golang-migrate/migrate/v4 v4.20.1
	github.com/google/uuid v1.6.0
	github.com/jackc/pgx/v5 v5.12.0
	github.com/vgarvardt/pgx-google-uuid/v5 v5.6.0
)

require (
	github.com/caarlos0/env/v10 v10.0.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	golang.org/x/sync v0.23.0 // indirect
	golang.org/x/text v0.42.0 // indirect
)

replace checkoutlock/schemas => ../schemas

replace checkoutlock/config => ../config

replace checkoutlock/devpostgres => ../devpostgres
