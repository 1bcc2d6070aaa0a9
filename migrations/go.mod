module checkoutlock/migrations

go 1.26.0

require github.com/golang-migrate/migrate/v4 v4.20.1 // indirect
