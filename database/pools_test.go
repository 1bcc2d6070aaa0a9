package database_test

import (
	"fmt"
	"testing"
)

// A tenant's statements differ from those of another by the schema's name.
func TestOpen_ConnectionsKeepTheStatementsOfManyTenants(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, parameter, value string
		want                   int
	}{
		{name: "by default", parameter: "application_name", value: "test", want: 600},
		{name: "as many as the URL says", parameter: "statement_cache_capacity", value: "100", want: 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			conn, err := openWith(t, tt.parameter, tt.value, 0).Urgent.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Release()
			for i := range 600 {
				if _, err := conn.Exec(t.Context(), fmt.Sprintf("SELECT %d + $1", i), 1); err != nil {
					t.Fatal(err)
				}
			}
			var prepared int
			if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '% + $1'`).
				Scan(&prepared); err != nil {
				t.Fatal(err)
			}
			if prepared > tt.want || prepared < tt.want-1 { // one makes room for the question
				t.Errorf("%d statements are prepared, want %d", prepared, tt.want)
			}
		})
	}
}
