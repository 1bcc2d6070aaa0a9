package database

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/config"
)

// Settings are the settings of a service for its database.
type Settings struct {
	// URL is a PostgreSQL connection URL. Through PgBouncer in transaction mode it needs
	// default_query_exec_mode=exec.
	URL string `env:"DATABASE_URL" secret:""`
	// MigrateURL is a direct connection for migrations, which need a session of their own. It is
	// for a URL that leads through a connection pooler. Empty means URL.
	MigrateURL string `env:"MIGRATE_DATABASE_URL" secret:""`
	// MaxConns is the greatest number of open connections, at least 2. 0 takes the URL's
	// pool_max_conns, else the default of pgx.
	MaxConns int32 `env:"DATABASE_MAX_CONNS" envDefault:"20"`
	// Wait is how long a service waits at the start for a writable database. 0 does not
	// wait.
	Wait time.Duration `env:"DATABASE_WAIT" envDefault:"60s"`
	// Traced adds each statement to the trace of its request.
	Traced bool
	// StatementTimeout bounds each statement on the server, for callers that froze or vanished. The
	// service sets it to the time-out of a request. 0 sets no bound.
	StatementTimeout time.Duration
}

// Validate checks the addresses and the ranges. No message repeats an address, because it
// holds a password.
func (s Settings) Validate() error {
	var noURL error
	switch {
	case s.URL == "":
		noURL = refuseURL("DATABASE_URL", "is empty")
	case strings.Contains(s.URL, "pool_max_conns"): // MaxConns would override it
		noURL = errors.New("DATABASE_URL has pool_max_conns, which counts nothing: set DATABASE_MAX_CONNS in its place")
	}
	return errors.Join(noURL,
		checkURL("DATABASE_URL", s.URL), checkURL("MIGRATE_DATABASE_URL", s.MigrateURL),
		config.CheckRange("DATABASE_MAX_CONNS", s.MaxConns, 2, 500),
		config.CheckRange("DATABASE_WAIT", s.Wait, 0, 10*time.Minute, "0s to 10m"))
}

// checkURL checks an address that may be empty.
func checkURL(variable, url string) error {
	if url == "" {
		return nil
	}
	_, err := pgxpool.ParseConfig(url)
	if file, ok := errors.AsType[*fs.PathError](err); ok { // such as that of sslrootcert
		return fmt.Errorf("%s names a file that cannot be read: %w", variable, file)
	}
	if err != nil { // its text may hold the password
		return refuseURL(variable, "cannot be read")
	}
	return nil
}

func refuseURL(variable, why string) error {
	return fmt.Errorf("%s %s, allowed: a PostgreSQL connection URL such as postgres://user:password@host:5432/name", variable, why)
}
