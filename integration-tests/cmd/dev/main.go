// Command dev runs PostgreSQL, both services and a demo library until Ctrl-C, for make run.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/caarlos0/env/v10"

	"checkoutlock/config"
	"checkoutlock/devpostgres"
	"checkoutlock/integration-tests/stack"
	"checkoutlock/schemas/okapi"
)

// settings are those of make run, in addition to those of the services.
type settings struct {
	StoragePort     int    `env:"STORAGE_PORT" envDefault:"8081"`
	CirculationPort int    `env:"CIRCULATION_PORT" envDefault:"9801"`
	LocksPort       int    `env:"RESOURCE_LOCKS_PORT" envDefault:"9810"`
	MachinePort     int    `env:"SIP2_PORT" envDefault:"6001"`
	Tenant          string `env:"TENANT" envDefault:"diku"`
	DatabaseURL     string `env:"DATABASE_URL"`
	Sample          string `env:"SAMPLE" envDefault:"demo"`
	PgBin           string `env:"PG_BIN"`
	// DataDir is the data directory of the private database. If it is empty, all clones of
	// this user share a folder in the user's cache.
	DataDir   string `env:"DATA_DIR"`
	LogLevel  string `env:"LOG_LEVEL" envDefault:"info"`
	StaffAuth string `env:"STAFF_AUTH"`
	// LogFile keeps the log out of the terminal, where it would move the addresses away.
	LogFile string `env:"LOG_FILE" envDefault:"bin/run.log"`
}

// Validate implements config.Validator.
func (s *settings) Validate() error {
	errs := []error{config.Log{Level: s.LogLevel}.Validate()}
	if _, err := okapi.ParseTenant(s.Tenant); err != nil {
		errs = append(errs, fmt.Errorf("TENANT is %s: %w", s.Tenant, err))
	}
	for name, port := range map[string]int{
		"STORAGE_PORT": s.StoragePort, "CIRCULATION_PORT": s.CirculationPort, "RESOURCE_LOCKS_PORT": s.LocksPort,
		"SIP2_PORT": s.MachinePort,
	} {
		if port < 0 || port > 65535 {
			errs = append(errs, config.OutOfRange(name, port, "0 to 65535; 0 picks a free one"))
		}
	}
	if !slices.Contains([]string{"demo", "none"}, s.Sample) {
		errs = append(errs, config.OutOfRange("SAMPLE", s.Sample, "demo, none"))
	}
	return errors.Join(errs...)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	config.SetHeapGrowth(os.Environ()) // as the services do
	err := run(ctx, os.Environ(), os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, environ []string, out io.Writer) (err error) {
	var s settings
	if err := config.Load(&s, environ); err != nil {
		return err
	}
	logFile, err := openLog(s.LogFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, logFile.Close()) }()
	s.LogFile = logFile.Name()
	log := config.Log{Level: s.LogLevel}.New(logFile, "")
	privateDatabase, stopped, stop, err := openDatabase(ctx, s, out, log)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, stop()); err == nil {
			fmt.Fprintln(out, "\nEverything is stopped.")
		}
	}()
	database := cmp.Or(s.DatabaseURL, privateDatabase)
	fmt.Fprintf(out, "Starting the services, which log to %s ...\n", s.LogFile)

	pair, err := stack.Start(ctx, stack.Options{
		DatabaseURL: database, Log: log,
		StorageEnv:     addDefaults(environ, "PORT", s.StoragePort),
		CirculationEnv: append(listenForMachines(s), addDefaults(environ, "PORT", s.CirculationPort)...),
	})
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w.\nTo run on free ports: %s make run", err, freePorts)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pair.Stop()) }()

	st := stack.Client{Base: pair.Storages[0], Tenant: s.Tenant}
	if err := st.InstallTenant(ctx, s.Sample == "demo"); err != nil {
		return fmt.Errorf("installing tenant %s: %w", s.Tenant, err)
	}
	if err := addTerminals(ctx, st, s); err != nil {
		return fmt.Errorf("adding terminals to tenant %s: %w", s.Tenant, err)
	}
	locks, err := startResourceLocks(ctx, database, environ, s, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, locks.Stop()) }()
	printGreeting(out, pair, locks, s, privateDatabase)
	select {
	case <-ctx.Done():
		return nil
	case <-stopped:
		return fmt.Errorf("PostgreSQL ended unexpectedly; %s has its last lines", s.LogFile)
	}
}

// addDefaults returns the settings of one service: those of environ, the feature on unless
// environ sets it, and the service's port.
func addDefaults(environ []string, name string, value int) []string {
	all := slices.Clone(environ)
	if env.ToMap(environ)["CHECKOUT_LOCK_FEATURE_ENABLED"] == "" {
		all = append(all, "CHECKOUT_LOCK_FEATURE_ENABLED=true")
	}
	return append(all, fmt.Sprintf("%s=%d", name, value))
}

// startResourceLocks runs resource-locks with all its fronts on loopback. Variables of
// environ override their addresses.
func startResourceLocks(ctx context.Context, database string, environ []string, s settings, log *slog.Logger) (*stack.ResourceLocks, error) {
	fronts := []string{
		"LOCKET_ADDR=127.0.0.1:8891", "LOCKTOPUS_ADDR=127.0.0.1:9009", "SUNBIRD_ADDR=127.0.0.1:9002", "MUTEX_ADDR=127.0.0.1:9003",
		"SUNBIRD_AUTH=header",
	}
	if env.ToMap(environ)["LOCKET_TLS_CERT"] == "" {
		fronts = append(fronts, "LOCKET_PLAINTEXT=true")
	}
	environ = append(fronts, environ...)
	locks, err := stack.StartResourceLocks(ctx, database, append(environ, fmt.Sprintf("PORT=%d", s.LocksPort)), log)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w.\nTo run on free ports: %s make run", err, freePorts)
	}
	return locks, err
}

// openLog appends to a file, because another make run may write to it. It makes the file and
// its folder. The file's name has its whole path.
func openLog(name string) (*os.File, error) {
	name, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("finding LOG_FILE: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return nil, fmt.Errorf("making the folder of LOG_FILE: %w", err)
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // it is the user's
	if err != nil {
		return nil, fmt.Errorf("opening LOG_FILE: %w", err)
	}
	return file, nil
}

// openDatabase starts a private server, unless s names a database. It returns the server's
// address, a channel that is closed when the server ends unexpectedly, and a function that
// stops it.
func openDatabase(ctx context.Context, s settings, out io.Writer, log *slog.Logger) (string, <-chan struct{}, func() error, error) {
	if s.DatabaseURL != "" {
		return "", nil, func() error { return nil }, nil
	}
	fmt.Fprintln(out, "Starting PostgreSQL ...")
	pg, err := startPostgreSQL(ctx, s, log)
	if err != nil {
		return "", nil, nil, err
	}
	return pg.URL(), pg.Done(), pg.Stop, nil
}

// freePorts are the settings with which make run uses free ports alone.
const freePorts = "STORAGE_PORT=0 CIRCULATION_PORT=0 RESOURCE_LOCKS_PORT=0 SIP2_PORT=0 LOCKET_ADDR=127.0.0.1:0 LOCKTOPUS_ADDR=127.0.0.1:0 SUNBIRD_ADDR=127.0.0.1:0 MUTEX_ADDR=127.0.0.1:0"

// startPostgreSQL starts the private server on its data directory.
func startPostgreSQL(ctx context.Context, s settings, log *slog.Logger) (*devpostgres.Server, error) {
	dir := s.DataDir
	if dir == "" {
		var err error
		if dir, err = devpostgres.DefaultDataDir("check-out-lock-pair"); err != nil {
			return nil, err
		}
	}
	pg, err := devpostgres.Start(ctx, devpostgres.Options{DataDir: dir, BinDir: s.PgBin, Log: log})
	if errors.Is(err, devpostgres.ErrDataDirInUse) {
		return nil, fmt.Errorf("%w.\nmake run in another clone of this user keeps its data there, too. To run both: "+
			"DATA_DIR=/some/other/folder %s make run", err, freePorts)
	}
	return pg, err
}
