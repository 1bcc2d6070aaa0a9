package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"
)

const lockPath = "/check-out-lock-storage"

// serveYardstick serves the yardstick called name on the port in PORT until it is killed.
func serveYardstick(name string, getenv func(string) string) error {
	var handler http.Handler
	switch name {
	case "ceiling":
		handler = newCeiling()
	case "plain":
		plain, err := newPlain(context.Background(), getenv("DATABASE_URL"))
		if err != nil {
			return err
		}
		handler = plain
	case "plain-check-outs":
		plain, err := newPlainCheckOuts(context.Background(), getenv("DATABASE_URL"), getenv("TENANT_SCHEMA"))
		if err != nil {
			return err
		}
		handler = plain
	case "fronts":
		return serveFronts(context.Background(), getenv)
	default:
		return fmt.Errorf("there is no yardstick %q, allowed are ceiling, plain, plain-check-outs and fronts", name)
	}
	server := &http.Server{Addr: "127.0.0.1:" + getenv("PORT"), Handler: handler, ReadHeaderTimeout: time.Minute}
	return server.ListenAndServe()
}

// newCeiling answers POST and DELETE of the lock's paths and does nothing else: no
// service on net/http is faster.
func newCeiling() http.Handler {
	answer := []byte(`{"id":"` + uuid.NewString() + `"}`)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the answer shows a broken connection
		switch r.Method {
		case http.MethodPost:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write(answer)
		case http.MethodDelete:
			w.WriteHeader(http.StatusNoContent)
		}
	})
}

// plain is the least service that works: FOLIO's three statements, one after the other.
type plain struct{ pool *pgxpool.Pool }

const plainTable = `CREATE TABLE IF NOT EXISTS plain_lock (
	id uuid PRIMARY KEY DEFAULT gen_random_uuid(), user_id uuid NOT NULL UNIQUE, creation_date timestamptz NOT NULL DEFAULT clock_timestamp())`

// openPool returns connections with that synchronous_commit, and creates a table.
func openPool(ctx context.Context, databaseURL string, size int32, synchronousCommit, table string) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = size
	cfg.ConnConfig.RuntimeParams["synchronous_commit"] = synchronousCommit
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	_, err = pool.Exec(ctx, table)
	return pool, err
}

func newPlain(ctx context.Context, databaseURL string) (http.Handler, error) {
	pool, err := openPool(ctx, databaseURL, 32, "off", plainTable) // as the pair's locks
	if err != nil {
		return nil, err
	}
	e := echo.New()
	p := plain{pool}
	e.GET("/", func(c echo.Context) error { return c.NoContent(http.StatusOK) })
	e.POST(lockPath, p.acquire)
	e.DELETE(lockPath+"/:id", p.release)
	return e, nil
}

func (p plain) acquire(c echo.Context) error {
	var body struct {
		UserID string `json:"userId"`
		TTLMs  int    `json:"ttlMs"`
	}
	if err := json.NewDecoder(c.Request().Body).Decode(&body); err != nil {
		return echo.NewHTTPError(http.StatusBadRequest, err.Error())
	}
	ctx := c.Request().Context()
	_, err := p.pool.Exec(ctx, `DELETE FROM plain_lock WHERE user_id = $1 AND creation_date < clock_timestamp() - $2 * interval '1 ms'`, body.UserID, body.TTLMs)
	if err != nil {
		return err
	}
	var lock struct {
		ID           string    `json:"id"`
		UserID       string    `json:"userId"`
		CreationDate time.Time `json:"creationDate"`
	}
	lock.UserID = body.UserID
	err = p.pool.QueryRow(ctx, `INSERT INTO plain_lock (user_id) VALUES ($1) RETURNING id, creation_date`, body.UserID).Scan(&lock.ID, &lock.CreationDate)
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && pg.Code == "23505" {
		return echo.NewHTTPError(http.StatusServiceUnavailable, "held")
	}
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, lock)
}

func (p plain) release(c echo.Context) error {
	if _, err := p.pool.Exec(c.Request().Context(), `DELETE FROM plain_lock WHERE id = $1`, c.Param("id")); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// floor sends the two statements of a lock cycle by pgx, without any service.
type floor struct{ pool *pgxpool.Pool }

func newFloor(ctx context.Context, databaseURL string) (*floor, error) {
	pool, err := openPool(ctx, databaseURL, 64, "off", plainTable)
	return &floor{pool}, err
}

func (f *floor) cycle(ctx context.Context, user string) error {
	var id string
	err := f.pool.QueryRow(ctx, `INSERT INTO plain_lock (user_id) VALUES ($1) ON CONFLICT DO NOTHING RETURNING id`, user).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return errors.New("the lock of a patron of its own is held")
	}
	if err != nil {
		return err
	}
	_, err = f.pool.Exec(ctx, `DELETE FROM plain_lock WHERE id = $1`, id)
	return err
}
