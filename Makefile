# The list of modules stands in go.work alone.
MODULES := $(shell sed -n 's,^[[:space:]]*\./,,p' go.work)

# Modules outside go.work, whose requirements must not change those of the others. The two of Locket
# are left out: they have no sums but those that their builds need.
NESTED := integration-tests/alerts integration-tests/manifests

# Linters change their minds between versions, so the version is part of the path.
LINT_VERSION := v2.15.0
LINT := $(CURDIR)/.tools/golangci-lint-$(LINT_VERSION)/golangci-lint

# Runs a command with TEST_DATABASE_URL set to one PostgreSQL for all packages,
# which would each start their own otherwise.
WITH_DB := go run ./integration-tests/cmd/withdb

# The race detector leaves out bcrypt, whose loops touch only arrays of their own: they would take
# twenty times as long.
GC_FLAGS := -gcflags=golang.org/x/crypto/blowfish=-race=false

# No test waits for ever; this is for machines that are slow. go test allows 10 minutes. A process
# with the race detector waits for 1 s at its end, which 80 packages need not. make lint vets. GOGC is
# that of the services: the heap of a test is small too.
GO_TEST := env GORACE=atexit_sleep_ms=50 GOGC=300 go test -race $(GC_FLAGS) -vet=off -count=1 -timeout 60m

SERVICES := circulation circulation-storage resource-locks

# Without the tag, gRPC brings pages of its own with templates. Templates call methods by name, so the
# linker would keep all exported methods: a fifth of circulation-storage.
TAGS := -tags=grpcnotrace

# What a release is made of, and checked with.
CYCLONEDX := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

# A revision without a tag is no release.
VERSION = $(patsubst v%,%,$(or $(shell git describe --tags --exact-match --match 'v*' 2>/dev/null),devel))

# The plug-ins of protoc.
PROTOC_GEN_GO := google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
PROTOC_GEN_GO_GRPC := google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2

.DEFAULT_GOAL := help
.PHONY: help run demo test fuzz mutants torture screenshots bench ha lint fmt build release release-check vulnerabilities licences proto tools rename \
	compiler go-lines row-locks words

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## start PostgreSQL, all services and the demo library; Ctrl-C stops all
	@echo "Building the services, which takes a minute or two the first time ..."
	@go build -o bin/dev ./integration-tests/cmd/dev # go run would call Ctrl-C an error
	@exec bin/dev

demo: ## 20 check-outs at once against a limit of 15, without and with the lock
	go run ./integration-tests/cmd/demo

# The integration tests run services, races and browsers: alone, and eight tests at once, because many
# wait for time-outs. Before them, races run one by one. Those of failovers run after those of
# resource-locks: side by side, they keep a slow host too busy to start an instance within a minute. The
# bursts of check-outs have their full size without the race detector only.
test: compiler ## run all tests with the race detector on a real PostgreSQL
	CGO_ENABLED=1 $(WITH_DB) -isolation serializable -- $(GO_TEST) $$(go list work | grep -vE '/integration-tests(/resourcelocks|/ha)?$$')
	CGO_ENABLED=1 $(WITH_DB) -- $(GO_TEST) -parallel 8 ./integration-tests
	CGO_ENABLED=1 $(WITH_DB) -- $(GO_TEST) -p 1 -parallel 4 ./integration-tests/resourcelocks ./integration-tests/ha
	$(WITH_DB) -- go test -vet=off -count=1 -run '^TestOverload|^TestIdempotencyKey_ConcurrentRepeats' ./integration-tests

# Each target runs alone, because go test fuzzes one at a time. What finds something is kept in
# testdata/fuzz of its package, where it is a case of the ordinary tests.
FUZZTIME := 30s
fuzz: ## run each fuzz target for FUZZTIME
	@$(WITH_DB) -- sh -ec 'git grep --untracked -oE "^func Fuzz\w+" -- "*_test.go" | sed "s,/[^/]*:func , ," | \
		while read -r package target; do echo "$$package $$target"; \
			go test -run "^$$" -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "./$$package" </dev/null || exit 1; done'

mutants: ## break 50 lines that hold a promise, one by one; a test must fail for each. ONLY selects by file and test
	$(WITH_DB) -- go run ./integration-tests/cmd/mutants -only '$(ONLY)'

# ROUNDS is how often each test runs. The histories of locks are long.
ROUNDS := 1
torture: compiler ## run the tests of faults with long histories and print a table; ONLY selects subjects
	$(WITH_DB) -- go run ./integration-tests/cmd/torture -rounds $(ROUNDS) -only '$(ONLY)' -report '$(REPORT)'

screenshots: ## picture the staff pages in docs/screenshots
	TZ=UTC SCREENSHOTS=$(CURDIR)/docs/screenshots go test -count=1 -run TestStaffScreenshots ./integration-tests

# BASE names a revision to compare with, such as a tag. It takes about 20 minutes.
bench: ## measure the services beside yardsticks and write docs/benchmarks.md
	go run ./integration-tests/bench -report docs/benchmarks.md $(if $(BASE),-base $(BASE))

# It needs root and Debian's patroni, etcd-server and haproxy.
ha: ## lose machines of PostgreSQL under Patroni while patrons borrow
	HA_SCENARIOS=all go test -count=1 -timeout 15m -v -run '^TestFailover$$' ./integration-tests/ha

# Four modules at a time; what one of them reports is printed in one piece.
lint: $(LINT) go-lines row-locks words ## check style, words, import directions and go.mod files
	@printf '%s\n' $(MODULES) $(NESTED) | xargs -P 4 -I '{}' sh -c '\
		case " $(NESTED) " in *" {} "*) export GOWORK=off ;; esac; \
		if found=$$(cd {} && { $(LINT) run --allow-parallel-runners ./... && go mod tidy -diff; } 2>&1); then \
			echo "lint {}: ok"; \
		else \
			printf "lint {}:\n%s\n" "$$found"; exit 1; \
		fi'

fmt: $(LINT) ## format all Go code
	@set -e; for m in $(MODULES); do (cd $$m && $(LINT) fmt ./...); done

build: ## build the services into bin/
	CGO_ENABLED=0 go build -trimpath $(TAGS) -o bin/ ./circulation-storage/cmd/circulation-storage ./circulation/cmd/circulation ./resource-locks/cmd/resource-locks

# It builds what is committed, so that the revision in the binaries is true. The settings of Go on
# this host, also those of go env -w, do not change the binaries. They say where modules come from.
release: ## build binaries, SBOMs and checksums of this revision into dist/
	@test -z "$$(git status --porcelain)" || { echo "Commit the changes first: the binaries name their revision." >&2; exit 1; }
	@rm -rf dist && mkdir dist
	@set -e; for name in GOPROXY GOPRIVATE GOSUMDB; do value=$$(go env $$name); export $$name="$$value"; done; \
	unset GOEXPERIMENT GOFIPS140; export GOENV=off GOFLAGS=-trimpath GOAMD64=v1 GOARM64=v8.0 GOWORK=off; \
	variable=$$(sed -n 's/^module //p' config/go.mod).version; \
	for arch in amd64 arm64; do for service in $(SERVICES); do \
		file=dist/$$service-$(VERSION)-linux-$$arch; echo "building $$file"; \
		(cd $$service && CGO_ENABLED=0 GOOS=linux GOARCH=$$arch go build -buildvcs=true $(TAGS) \
			-ldflags "-s -X $$variable=$(VERSION)" -o ../$$file ./cmd/$$service); \
		go run $(CYCLONEDX) bin -json -std -noserial -notimestamp -version $(VERSION) -output $$file.cdx.json $$file; \
	done; done
	@cd dist && sha256sum * >SHA256SUMS && cat SHA256SUMS

# Two clones in folders with different names, the second one with an empty build cache.
release-check: ## make the release twice, in two folders, and compare all bytes
	@set -e; dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	git clone -q . "$$dir/one"; \
	git clone -q "$$dir/one" "$$dir/another/folder"; \
	for copy in one another/folder; do \
		$(MAKE) -s -C "$$dir/$$copy" release >/dev/null; \
		export GOCACHE="$$dir/cache"; \
	done; \
	diff -r "$$dir/one/dist" "$$dir/another/folder/dist"; \
	(cd "$$dir/one/dist" && sha256sum -c --quiet SHA256SUMS && cat SHA256SUMS); \
	echo "both are the same"

# The database of known vulnerabilities: an address, or a folder such as file:///srv/vulndb.
GOVULNDB ?= https://vuln.go.dev
vulnerabilities: ## search the dependencies for known vulnerabilities; GOVULNDB names a mirror of their database
	@for m in $(MODULES); do \
		echo "vulnerabilities $$m"; \
		found=$$(cd $$m && go run $(GOVULNCHECK) -db '$(GOVULNDB)' ./... 2>&1) && status=0 || status=1; \
		printf '%s\n' "$$found"; \
		case "$$found" in *"fetching vulnerabilities"* | *"creating client"*) \
			echo "Nothing was searched: the database $(GOVULNDB) was not reached. GOVULNDB=... names a mirror." >&2 ;; \
		esac; \
		[ $$status -eq 0 ] || exit 1; \
	done

# What the licence's text resembles, as evidence; the table is not legal advice. The tool needs a
# clone, because it cannot read a worktree of git.
licences: ## list the licences of the dependencies of the services
	@set -e; dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	git clone -q . "$$dir/code"; \
	for service in $(SERVICES); do \
		(cd "$$dir/code/$$service" && GOWORK=off go run $(CYCLONEDX) app -json -licenses -main cmd/$$service \
			-output "$$dir/$$service.json" . 2>"$$dir/log") || { cat "$$dir/log" >&2; exit 1; }; \
	done; \
	cat "$$dir"/*.json | awk -F'"' '/^      "name":/ {name = $$4} /^      "version":/ {module = name " " $$4; licence[module] = "none found"} \
		/^ +"id":/ {licence[module] = $$4} END {for (m in licence) print m, licence[m]}' | sort

# protoc itself is Debian's package protobuf-compiler.
proto: ## generate Go code from the .proto files
	GOBIN=$(CURDIR)/.tools/protoc GOFLAGS= go install $(PROTOC_GEN_GO)
	GOBIN=$(CURDIR)/.tools/protoc GOFLAGS= go install $(PROTOC_GEN_GO_GRPC)
	PATH=$(CURDIR)/.tools/protoc:$$PATH go generate ./resource-locks/internal/locket/locketpb

rename: ## give all modules the path of the repository: MODULE=example.org/locks
	@go run ./integration-tests/cmd/rename $(MODULE)

tools: $(LINT) ## install the linter into .tools/

# It is copied from the PATH, if that has this version. The copy stays when the original changes.
$(LINT):
	@mkdir -p $(@D); \
	if cp "$$(command -v golangci-lint)" $@.new 2>/dev/null && \
		$@.new version --short 2>/dev/null | grep -qxE 'v?$(subst .,\.,$(LINT_VERSION:v%=%))'; then mv $@.new $@; exit; fi; \
	rm -f $@.new; \
	echo "compiling golangci-lint $(LINT_VERSION), which takes some minutes once; in the PATH there is none of this version"; \
	GOBIN=$(@D) CGO_ENABLED=0 GOFLAGS= go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)

# The race detector is C code, so cgo has to be on.
compiler:
	@cc=$$(go env CC); command -v $${cc%% *} >/dev/null || { \
		echo "The race detector needs a C compiler and there is no $$cc here. On Debian, as root: apt-get install gcc libc6-dev" >&2; exit 1; }

# A newer go line in one module would raise what all who build the pair need.
go-lines:
	@test "$$(grep -h '^go ' go.work $(MODULES:%=%/go.mod) $(NESTED:%=%/go.mod) | sort -u | wc -l)" -eq 1 || { \
		echo "The go lines differ:" >&2; grep '^go ' go.work $(MODULES:%=%/go.mod) $(NESTED:%=%/go.mod) >&2; exit 1; }

# One function gives the order in which transactions lock rows, and so its file has all
# locking clauses. golangci-lint does not look into SQL.
ROW_LOCKS := circulation-storage/internal/postgres/rowlocks.go
row-locks:
	@! grep -rniE '\bFOR +((NO +KEY +)?UPDATE|(KEY +)?SHARE)\b' $(MODULES) --include='*.go' --exclude='*_test.go' | \
		grep -vE '^($(ROW_LOCKS)|integration-tests/cmd/mutants/table.go):' >&2 || { echo "Row locks belong in $(ROW_LOCKS), which gives their order." >&2; exit 1; }

# The words that CONTRIBUTING.md rules out, except the Linux user nobody and http.NoBody. SQL files
# never change once they are released.
RULED_OUT := whoever|whom|nobody|somebody|tells|told|behind their backs|all the same|but for
# Odd turns that have no good use here.
ODD_TURNS := of now|of before|no call more|the house.s own|\(wanted:|which is refused|of typed texts|surrogate pair for one|what must be of
words:
	@! git grep --untracked -nIiwE '$(RULED_OUT)|$(ODD_TURNS)' -- ':!*.sql' ':!Makefile' | grep -vE '"nobody"|user nobody|http\.NoBody' || { \
		echo "CONTRIBUTING.md rules these words out" >&2; exit 1; }
	@! git grep --untracked -nE 'func Test\w*(Whoever|Whom|Nobody|Somebody|Tells|Told|AllTheSame|ButFor)' || { \
		echo "CONTRIBUTING.md rules these words out" >&2; exit 1; }
