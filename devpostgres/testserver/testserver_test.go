package testserver

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

func TestOpen_GivenDatabaseStartsNothing(t *testing.T) {
	t.Parallel()
	var d database
	d.open("postgres://somewhere/else")
	if d.url != "postgres://somewhere/else" || d.server != nil || d.err != nil {
		t.Errorf("got %s, %v, %v, want the given address and no server", d.url, d.server, d.err)
	}
	if err := d.stop(); err != nil {
		t.Errorf("stop: got %v, want nil", err)
	}
}

func TestWithPool(t *testing.T) {
	t.Parallel()
	const simple = "postgres://h/d?default_query_exec_mode=simple_protocol"
	for given, want := range map[string]string{
		"postgres://u:p@h:1/d":                               "postgres://u:p@h:1/d?pool_max_conns=16",
		"postgresql://h/d?sslmode=disable&pool_max_conns=90": "postgresql://h/d?pool_max_conns=16&sslmode=disable",
		"host=h user=u dbname=d default_query_exec_mode=exec": "host=h user=u dbname=d default_query_exec_mode=exec " +
			"pool_max_conns=16",
		simple: simple + "&pool_max_conns=16",
	} {
		got, err := WithPool(given)
		if err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", given, got, err, want)
		}
		if _, err := pgxpool.ParseConfig(got); err != nil {
			t.Errorf("%s: %v", got, err)
		}
	}
	if got, err := WithPool("postgres://u:secret@h:port/d"); err == nil {
		t.Errorf("no URL: got %s, want an error", got)
	}
}
