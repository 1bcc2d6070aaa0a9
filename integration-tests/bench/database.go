package main

import (
	"context"
	"errors"
	"net/url"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/devpostgres"
)

// database is the PostgreSQL that everything runs on: a private one, durable as in
// production.
type database struct {
	server *devpostgres.Server
	pool   *pgxpool.Pool // the benchmark's own connections
	pid    int           // of the server's parent process
}

func startDatabase(ctx context.Context) (_ *database, err error) {
	server, err := devpostgres.Start(ctx, devpostgres.Options{
		BinDir:   os.Getenv("PG_BIN"),
		OnDisk:   true,
		Settings: map[string]string{"max_connections": "400", "max_wal_size": "4GB", "min_wal_size": "1GB", "checkpoint_timeout": "30min", "jit": "off"},
	})
	if err != nil {
		return nil, err
	}
	d := &database{server: server}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.stop())
		}
	}()
	if d.pool, err = pgxpool.New(ctx, server.URL()); err != nil {
		return nil, err
	}
	if err := d.makeLogFiles(ctx); err != nil {
		return nil, err
	}
	var backend int
	if err := d.pool.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&backend); err != nil {
		return nil, err
	}
	fields, err := readStat(backend)
	if err != nil {
		return nil, err
	}
	d.pid, err = strconv.Atoi(fields[statParent])
	return d, err
}

// makeLogFiles makes files of the write-ahead log, which the measurements reuse as those of a
// server that has run for a while. A new server makes each file when a commit needs it, and
// all commits wait for that, for about 50 ms.
func (d *database) makeLogFiles(ctx context.Context) error {
	const files = 60 // min_wal_size keeps them
	for range files {
		if _, err := d.pool.Exec(ctx, "SELECT pg_logical_emit_message(false, '', ''), pg_switch_wal()"); err != nil {
			return err
		}
	}
	_, err := d.pool.Exec(ctx, "CHECKPOINT")
	syscall.Sync() // the kernel would write the files while the first measurements run
	return err
}

func (d *database) stop() error {
	if d.pool != nil {
		d.pool.Close()
	}
	return d.server.Stop()
}

// cpu returns the processor time that PostgreSQL used so far, all processes together.
func (d *database) cpu() (time.Duration, error) { return treeProcessorTime(d.pid) }

// fork makes an empty database of that name and returns its URL.
func (d *database) fork(ctx context.Context, name string) (string, error) {
	if _, err := d.pool.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); err != nil {
		return "", err
	}
	u, err := url.Parse(d.server.URL())
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	return u.String(), nil
}
