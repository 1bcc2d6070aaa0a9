// The published server of Locket, which make bench builds and measures. It is a module of
// its own, outside go.work, so that its requirements do not change those of the services.
module checkoutlock/integration-tests/locketserver

go 1.26.0

tool code.cloudfoundry.org/locket/cmd/locket

require (
	code.cloudfoundry.org/clock v1.78.0 // indirect
	code.cloudfoundry.org/debugserver v0.105.0 // indirect
	code.cloudfoundry.org/diego-db-helpers v0.6.0 // indirect
	code.cloudfoundry.org/diego-logging-client v0.115.0 // indirect
	code.cloudfoundry.org/durationjson v0.80.0 // indirect
	code.cloudfoundry.org/go-diodes v0.0.0-20260706112827-32a910f327a2 // indirect
	code.cloudfoundry.org/go-loggregator/v9 v9.2.1 // indirect
	code.cloudfoundry.org/lager/v3 v3.77.0 // indirect
	code.cloudfoundry.org/locket v1.5.0 // indirect
	code.cloudfoundry.org/tlsconfig v0.61.0 // indirect
	filippo.io/edwards25519 v1.2.0 // indirect
	github.com/Masterminds/semver/v3 v3.5.0 // indirect
	github.com/go-sql-driver/mysql v1.10.0 // indirect
	github.com/go-task/slim-sprig/v3 v3.0.0 // indirect
	github.com/gogo/protobuf v1.3.2 // indirect
	github.com/google/pprof v0.0.0-20260709232956-b9395ee17fa0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/pgx/v5 v5.10.0 // indirect
	github.com/jackc/puddle/v2 v2.2.2 // indirect
	github.com/nu7hatch/gouuid v0.0.0-20131221200532-179d4d0c4d8d // indirect
	github.com/onsi/ginkgo/v2 v2.32.0 // indirect
	github.com/openzipkin/zipkin-go v0.4.3 // indirect
	github.com/tedsuo/ifrit v0.0.0-20260418191334-846868129986 // indirect
	golang.org/x/mod v0.38.0 // indirect
	golang.org/x/net v0.57.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.40.0 // indirect
	golang.org/x/tools v0.48.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260713224248-f5fc221cf8c4 // indirect
	google.golang.org/grpc v1.82.0 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
)
