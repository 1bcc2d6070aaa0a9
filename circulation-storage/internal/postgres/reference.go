package postgres

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/database"
)

// Foreign keys enforce all references between records. A write locks the records that it names
// against DELETE, and a DELETE looks for records that name what it deletes. So of a DELETE and a
// write that names the record at the same time, one is refused. Address types have a trigger: of a
// DELETE and a write at the same time both may succeed, as users and requests may name missing ones.

// violation keeps PostgreSQL's error beside the fault that explains it.
type violation struct{ fault, cause error }

func (v violation) Error() string   { return v.fault.Error() }
func (v violation) Unwrap() []error { return []error{v.fault, v.cause} }

// explain returns err with the fault that explains it, or err alone without one.
func explain(err, fault error) error {
	if fault == nil {
		return err
	}
	return violation{fault: fault, cause: err}
}

// findBroken returns the reference that err violates, and the type that has it.
func findBroken(err error) (t records.Type, ref records.Reference, ok bool) {
	_, constraint := database.SQLState(err)
	return records.FindReference(constraint)
}

// explainDangling explains a write that names a missing record; other errors pass.
func explainDangling(err error) error {
	t, ref, ok := findBroken(err)
	if !ok {
		return err
	}
	id, _ := referencedIDs(err)
	return explain(err, ref.Dangling(t, id))
}

// findReferrerSQL finds any record that names another one. An order would read all of them.
const findReferrerSQL = `SELECT {source}::text FROM {table} WHERE {target} = $1::uuid LIMIT 1`

// explainNamed explains a DELETE of a record that others name, with one of those; other errors
// pass. It reads that one after the failed transaction.
func (s *RecordStore) explainNamed(ctx context.Context, err error) error {
	t, ref, ok := findBroken(err)
	if !ok {
		return err
	}
	table, source, target := t.Table, "id", t.Indexes[ref.Field].Column
	if ref.Links != "" {
		table, source, target = ref.Links, "source_id", "target_id"
	}
	id, by := referencedIDs(err)
	if id != unnamedID && by == "" {
		statement := strings.NewReplacer("{source}", source, "{target}", target).Replace(findReferrerSQL)
		failed := s.db.readRow(ctx, s.db.conns.Ordinary, "finding what names a record", nameTable(statement, table), []any{id}, &by)
		if failed = explainNoRow(failed, nil); failed != nil {
			return failed
		}
	}
	return explain(err, ref.StillNamed(t, by, id))
}

var idPattern = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// unnamedID stands for an id that PostgreSQL does not name.
const unnamedID = "*"

// referencedIDs returns the id that a foreign key is about, and that of a record that names it if a
// trigger found one. They stand in the detail, whose words PostgreSQL translates.
func referencedIDs(err error) (id, by string) {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return unnamedID, ""
	}
	switch ids := idPattern.FindAllString(pg.Detail, 2); len(ids) {
	case 0:
		return unnamedID, ""
	case 1:
		return ids[0], ""
	default:
		return ids[0], ids[1]
	}
}
