// The published client of Locket. It is a module of its own, outside go.work, so that its
// requirements do not change those of the services.
module checkoutlock/integration-tests/locketclient

go 1.26.0

require (
	code.cloudfoundry.org/clock v1.78.0
	code.cloudfoundry.org/lager/v3 v3.77.0
	code.cloudfoundry.org/locket v1.5.0
	github.com/tedsuo/ifrit v0.0.0-20260418191334-846868129986
	google.golang.org/grpc v1.82.0
)

require (
	code.cloudfoundry.org/tlsconfig v0.61.0 // indirect
	github.com/Masterminds/semver/v3 v3.5.0 // indirect
	github.com/go-task/slim-sprig/v3 v3.0.0 // indirect
	github.com/gogo/protobuf v1.3.2 // indirect
	github.com/google/pprof v0.0.0-20260709232956-b9395ee17fa0 // indirect
	github.com/nu7hatch/gouuid v0.0.0-20131221200532-179d4d0c4d8d // indirect
	github.com/onsi/ginkgo/v2 v2.32.0 // indirect
	github.com/openzipkin/zipkin-go v0.4.3 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	golang.org/x/mod v0.38.0 // indirect
	golang.org/x/net v0.57.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.40.0 // indirect
	golang.org/x/tools v0.48.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260713224248-f5fc221cf8c4 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
)
