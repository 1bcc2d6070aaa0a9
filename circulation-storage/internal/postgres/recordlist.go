package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/cql"
	"checkoutlock/circulation-storage/internal/records"
)

// listRecordsSQL returns page and total from one snapshot. The page is joined to the
// total, so that an empty page has a total too. The id ends every order: without it, two
// pages could show the same record.
const listRecordsSQL = `
SELECT counted.total, page.jsonb
  FROM (SELECT {total} AS total) AS counted
  LEFT JOIN (SELECT jsonb, row_number() OVER () AS place
               FROM (SELECT jsonb FROM {table} WHERE {where} ORDER BY {order}id OFFSET {offset} LIMIT {limit}) AS ordered
            ) AS page ON true
 ORDER BY page.place`

const (
	countRecordsSQL    = `(SELECT count(*) FROM {table} WHERE {where})`
	countSomeSQL       = `(SELECT count(*) FROM (SELECT FROM {table} WHERE {where} LIMIT {most}) AS counted)`
	estimateRecordsSQL = `EXPLAIN (FORMAT JSON) SELECT FROM {table} WHERE {where}`
)

// List implements records.Store.
func (s *RecordStore) List(ctx context.Context, t records.Type, p records.Page, out records.Sink) error {
	q, err := writeListQuery(t, p)
	if err != nil {
		return err
	}
	statement, err := nameSchema(ctx, s.db.conns.Ordinary, q.page)
	if err != nil {
		return err
	}
	if len(q.ignored) > 0 {
		s.db.log.DebugContext(ctx, "sort keys ignored", "collection", t.Collection, "count", len(q.ignored)) // a key may be a barcode
	}
	l := &listing{out: out, long: s.long, page: p}
	l.estimate = func(ctx context.Context) (int, error) { return s.estimateTotal(ctx, q) }
	defer l.freePlace()
	var broken error // after a part was given to out, the query must not run again
	err = s.db.read(ctx, "listing "+t.Collection, func() error {
		err := l.readRows(ctx, func(ctx context.Context) pgx.Rows {
			rows, _ := s.db.conns.Ordinary.Query(ctx, statement, q.args...) // a Query error surfaces in ForEachRow
			return rows
		})
		if l.begun {
			broken = err
			return nil
		}
		return err
	})
	return toFault("listing "+t.Collection, cmp.Or(err, broken))
}

// heldBytes is how much of a page is read before any of it is given to the sink. A
// shorter page releases its connection before its client reads.
const heldBytes = 1 << 20

// listing is a page on its way from PostgreSQL to a sink. It holds at most heldBytes and
// one record. A longer page uses a connection while its client reads. So it needs one of
// the places of long pages, which leave the other connections to short reads.
type listing struct {
	out      records.Sink
	page     records.Page
	estimate func(context.Context) (int, error) // of all matches
	long     places
	total    int
	held     []json.RawMessage
	size     int
	begun    bool // out has a part of it
	place    bool // it has a place of a long page
}

// readRows gives the rows of query to the sink.
func (l *listing) readRows(ctx context.Context, query func(context.Context) pgx.Rows) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.held, l.size = nil, 0 // the query may run twice
	var doc *json.RawMessage
	_, err := pgx.ForEachRow(query(ctx), []any{&l.total, &doc}, func() error {
		if doc == nil {
			return nil
		}
		err := l.addRecord(ctx, *doc)
		if err != nil {
			cancel() // else pgx reads the remaining rows
		}
		return err
	})
	if err != nil || l.begun {
		return err
	}
	return l.giveHeld(ctx, true)
}

// addRecord holds a record, or gives it to the sink once the page has begun there.
func (l *listing) addRecord(ctx context.Context, doc json.RawMessage) error {
	if l.begun {
		return l.out.Record(doc)
	}
	l.held = append(l.held, doc)
	l.size += len(doc)
	if l.size < heldBytes {
		return nil
	}
	if err := l.takePlace(); err != nil {
		return err
	}
	return l.giveHeld(ctx, false)
}

// takePlace takes a place of a long page. A query that runs twice keeps its first one.
func (l *listing) takePlace() error {
	if l.place {
		return nil
	}
	err := l.long.take("Too many long lists are being read: try again, or ask for less with limit and offset")
	l.place = err == nil
	return err
}

// giveHeld gives the total and what is held to the sink.
func (l *listing) giveHeld(ctx context.Context, whole bool) error {
	total, err := l.countMatches(ctx, whole)
	if err != nil {
		return err
	}
	l.begun = true
	if err := l.out.Begin(total); err != nil {
		return err
	}
	for _, doc := range l.held {
		if err := l.out.Record(doc); err != nil {
			return err
		}
	}
	l.held = nil
	return nil
}

// countMatches returns the number of all matches, once at least a part of the page is
// held. It estimates the number only where it was not counted and the page does not show
// it: a page that is not full is the last one.
func (l *listing) countMatches(ctx context.Context, whole bool) (int, error) {
	if l.page.Total != records.TotalEstimated || l.total <= records.MaxCounted {
		return l.total, nil
	}
	seen := l.page.Offset + len(l.held)
	if whole && len(l.held) > 0 && len(l.held) < l.page.Limit {
		return seen, nil
	}
	estimated, err := l.estimate(ctx)
	switch estimated = max(l.total, estimated); {
	case len(l.held) > 0:
		estimated = max(estimated, seen)
	case l.page.Limit > 0: // nothing is left at the page's offset
		estimated = min(estimated, seen)
	}
	return estimated, err
}

// freePlace gives up the place of a long page, if it has one.
func (l *listing) freePlace() {
	if l.place {
		l.long.free()
	}
}

// listQuery is the SQL of a list: the page with its total, and the estimate of the total.
type listQuery struct {
	page, estimate string
	args           []any // of the page; the estimate has the first ones
	estimateArgs   int
	ignored        []string // see cql.Selection
}

// writeListQuery writes the statements for a page, with the mark for the schema.
func writeListQuery(t records.Type, p records.Page) (listQuery, error) {
	sel, err := cql.Parse(t.Indexes, p.Query)
	if err != nil {
		return listQuery{}, err
	}
	if t.NewestFirst && sel.Order == "" {
		sel.Order = `{schema}.record_time(jsonb->>'createdDate') DESC, `
	}
	selecting := len(sel.Args)
	total := countRecordsSQL
	switch p.Total {
	case records.TotalEstimated:
		total = strings.ReplaceAll(countSomeSQL, "{most}", strconv.Itoa(records.MaxCounted+1))
	case records.TotalNone:
		total = "0::bigint"
	case records.TotalExact:
	}
	page := strings.NewReplacer("{total}", total, "{order}", sel.Order,
		"{offset}", sel.Bind(p.Offset, "bigint"), "{limit}", sel.Bind(p.Limit, "bigint")).Replace(listRecordsSQL)
	return listQuery{
		page:     nameTable(strings.ReplaceAll(page, "{where}", sel.Where), t.Table),
		estimate: nameTable(strings.ReplaceAll(estimateRecordsSQL, "{where}", sel.Where), t.Table),
		args:     sel.Args, estimateArgs: selecting, ignored: sel.Ignored,
	}, nil
}

// estimateTotal returns how many records PostgreSQL expects to match. The page may use the only
// connection for records meanwhile.
func (s *RecordStore) estimateTotal(ctx context.Context, q listQuery) (int, error) {
	on := s.db.conns.Ordinary
	if on.Stat().MaxConns() == 1 {
		on = s.db.conns.Urgent
	}
	var plans []struct {
		Plan struct {
			Rows float64 `json:"Plan Rows"`
		}
	}
	err := scanRow(ctx, on, q.estimate, q.args[:q.estimateArgs], &plans)
	if err != nil || len(plans) == 0 {
		return 0, err
	}
	return int(plans[0].Plan.Rows), nil
}

// expiredSessionsSQL reads records from the oldest on, and takes each that is the last of its session.
// So it ends at the limit, however many records there are.
const expiredSessionsSQL = `
SELECT s.patron_id::text, s.jsonb->>'actionType'
  FROM {schema}.patron_action_session s
 WHERE {schema}.record_time(s.jsonb#>>'{metadata,createdDate}') < $2::timestamptz AND $1::text IN ('', s.jsonb->>'actionType')
   AND NOT EXISTS (SELECT FROM {schema}.patron_action_session later
                    WHERE later.patron_id = s.patron_id AND later.jsonb->>'actionType' = s.jsonb->>'actionType'
                      AND ({schema}.record_time(later.jsonb#>>'{metadata,createdDate}'), later.id)
                        > ({schema}.record_time(s.jsonb#>>'{metadata,createdDate}'), s.id))
 ORDER BY {schema}.record_time(s.jsonb#>>'{metadata,createdDate}'), 1, 2
 LIMIT $3::integer`

// ExpiredSessions implements records.Store.
func (s *RecordStore) ExpiredSessions(ctx context.Context, actionType string, before time.Time, limit int) ([]records.Session, error) {
	return readRows(ctx, s.db, "finding expired sessions", expiredSessionsSQL, []any{actionType, before, limit}, pgx.RowToStructByPos[records.Session])
}
