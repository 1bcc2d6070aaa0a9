package database

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	pgxuuid "github.com/vgarvardt/pgx-google-uuid/v5"

	"checkoutlock/config/resolver"
)

// Bounds of a connection that the URL does not set. Without them, a server that is
// frozen or cut off fills the pools with connections that wait.
const (
	connectTimeout = 2 * time.Second // for each host of the URL
	pingAfter      = time.Second     // a connection that was idle for longer is checked
	pingTimeout    = time.Second     // for this check
	// resetPause is the least time between two resets of the pools, so that the
	// failures of one outage reset them once.
	resetPause = 500 * time.Millisecond
)

// idleTimeout ends a session that is idle in a transaction and has set no bound of its
// own.
const idleTimeout = time.Minute

// statementMargin is how much longer than its caller waits the server may run a
// statement. The caller cancels it earlier, unless this process is frozen.
const statementMargin = time.Second

// The room of a connection for prepared statements, unless the URL sets another: few at first, most once
// one has needed more, see plans.renew. pgx takes 40 bytes for each statement that fits, used or not. Each
// tenant has statements of its own, some tens for check-outs and check-ins. What does not fit is parsed and
// planned again each time: with 512, a check-out of one of 60 tenants costs PostgreSQL four times as much.
const (
	fewPrepared  = 512 // pgx's default
	mostPrepared = 2048
)

// statementCache finds the URL's own room, in both forms of a URL that pgx reads.
var statementCache = regexp.MustCompile(`statement_cache_capacity\s*=`)

// Statements that wait for each other have to see what the others did, so the sessions do
// not take another isolation level from the server.
const (
	isolationSetting = "default_transaction_isolation"
	readCommitted    = "read committed"
)

// sessionParameters returns what a session gets at its start, beside what the URL says. PgBouncer
// refuses such parameters, so connections through it have none: transactions have bounds of
// their own, and CheckServer refuses another isolation level.
//
// The bounds are PostgreSQL's own, and end a session whose client froze or vanished. 0 sets
// none. What the URL says wins over them.
func sessionParameters(statement time.Duration, url map[string]string) map[string]string {
	parameters := map[string]string{}
	if statement > 0 {
		parameters = sessionBounds(statement+statementMargin, idleTimeout)
	}
	maps.Copy(parameters, url)
	parameters[isolationSetting] = readCommitted
	return parameters
}

// sessionBounds returns bounds of a session: of each statement, where 0 is none, and between two
// statements of a transaction.
func sessionBounds(statement, idle time.Duration) map[string]string {
	return map[string]string{
		"statement_timeout":                   milliseconds(statement),
		"idle_in_transaction_session_timeout": milliseconds(idle),
		"tcp_keepalives_idle":                 "10",
		"tcp_keepalives_interval":             "5",
		"tcp_keepalives_count":                "3",
		"tcp_user_timeout":                    "20000",
	}
}

// milliseconds writes a duration as a time-out setting of PostgreSQL.
func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// poolConfig returns the configuration of one pool of the given size. statement bounds
// every statement that has no bound of its own; 0 sets none. Connections renew their plans
// by p.
func (db *DB) poolConfig(base *pgxpool.Config, size int32, statement time.Duration, p *plans) *pgxpool.Config {
	pc := base.Copy()
	pc.MaxConns = max(1, size)
	pc.MinConns = min(pc.MinConns, pc.MaxConns)
	pc.MinIdleConns = min(pc.MinIdleConns, pc.MaxConns)
	pc.PingTimeout = cmp.Or(pc.PingTimeout, pingTimeout)
	pc.ShouldPing = db.checkIdle(pc.PingTimeout)
	pc.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		registerTypes(conn.TypeMap())
		return nil
	}
	cc := pc.ConnConfig
	pc.PrepareConn = p.renew
	boundConnect(cc)
	cc.LookupFunc = db.servers.lookUp(cc.LookupFunc)
	if !mayBePooled(cc) {
		cc.RuntimeParams = sessionParameters(statement, cc.RuntimeParams)
	}
	cc.OnNotice = noteUnconfirmed
	closeFatal := cc.OnPgError
	cc.OnPgError = func(c *pgconn.PgConn, e *pgconn.PgError) bool { return !db.noteError(e) && closeFatal(c, e) }
	return pc
}

// checkIdle checks a connection that was idle. It drops all connections when the server was silent twice in
// a row, because the pool would check them one after another, each for as long. Once may be load. The
// pool checks a silent connection again, which ends at once and closes it.
func (db *DB) checkIdle(timeout time.Duration) func(context.Context, pgxpool.ShouldPingParams) bool {
	return func(ctx context.Context, c pgxpool.ShouldPingParams) (silent bool) {
		if c.IdleDuration <= pingAfter {
			return false
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		silent = c.Conn.Ping(ctx) != nil
		if before := db.silent.Swap(silent); silent && before {
			db.Reset()
		}
		return silent
	}
}

// boundConnect bounds an attempt to connect, unless the URL does.
func boundConnect(cc *pgx.ConnConfig) {
	if cc.ConnectTimeout == 0 {
		cc.ConnectTimeout = connectTimeout
		cc.DialFunc = (&net.Dialer{Timeout: connectTimeout}).DialContext
		cc.LookupFunc = resolver.Default.LookupHost
	}
}

// registerTypes lets a connection send and read ids as 16 bytes, and read JSON as unmarshalJSON does.
func registerTypes(types *pgtype.Map) {
	pgxuuid.Register(types)
	types.RegisterType(&pgtype.Type{Name: "json", OID: pgtype.JSONOID, Codec: &pgtype.JSONCodec{Marshal: json.Marshal, Unmarshal: unmarshalJSON}})
	types.RegisterType(&pgtype.Type{Name: "jsonb", OID: pgtype.JSONBOID, Codec: &pgtype.JSONBCodec{Marshal: json.Marshal, Unmarshal: unmarshalJSON}})
}

// unmarshalJSON is json.Unmarshal, except that it copies into a json.RawMessage without a look at
// the text: what PostgreSQL sends is valid.
func unmarshalJSON(text []byte, v any) error {
	if raw, ok := v.(*json.RawMessage); ok {
		*raw = bytes.Clone(text)
		return nil
	}
	return json.Unmarshal(text, v)
}

// noteError drops all connections in an outage, and looks into a lack of space or memory. It
// reports whether PostgreSQL ended the session, or is a server that cannot be used.
func (db *DB) noteError(e *pgconn.PgError) (lost bool) {
	switch {
	case isOutageCode(e.Code):
		db.Reset()
		return true
	case Lack(e) != "" && db.opened.Load():
		db.lack.noteRefusal()
	}
	return false
}

// mayBePooled reports whether PgBouncer may be in between.
func mayBePooled(cc *pgx.ConnConfig) bool {
	return cc.DefaultQueryExecMode != pgx.QueryExecModeCacheStatement
}

// requirePrimary lets new sessions refuse a standby, whose answers may be old, unless the
// URL says otherwise. Behind PgBouncer a session may lead to another server with each
// transaction, so there the statements refuse it: see OnPrimary. It returns the
// target_session_attrs that are in force.
func requirePrimary(url string, cc *pgx.ConnConfig) (attrs string) {
	if cc.ValidateConnect != nil {
		if found := sessionAttrs.FindStringSubmatch(url); found != nil {
			return found[1]
		}
		return "as PGTARGETSESSIONATTRS says"
	}
	if mayBePooled(cc) {
		return "any"
	}
	cc.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	return "primary"
}

// OnPrimary is a condition of a plain read that decides. A standby ends the statement with
// an error that counts as an outage.
const OnPrimary = `(SELECT pg_current_wal_lsn() IS NOT NULL)`

// sessionAttrs finds target_session_attrs in both forms of a URL that pgx reads.
var sessionAttrs = regexp.MustCompile(`target_session_attrs\s*=\s*'?([a-z-]+)`)

// logTarget logs at start the servers of the URL. Several hosts may lead to a standby, which
// cannot write, unless attrs exclude it.
func logTarget(ctx context.Context, attrs string, cc *pgx.ConnConfig, log *slog.Logger) {
	hosts := hosts(cc)
	log.InfoContext(ctx, "PostgreSQL servers", "hosts", hosts, "database", cc.Database, "target_session_attrs", attrs)
	if len(hosts) > 1 && slices.Contains([]string{"any", "read-only", "standby", "prefer-standby"}, attrs) {
		log.WarnContext(ctx, "DATABASE_URL names several hosts without target_session_attrs=read-write: "+
			"a connection may lead to a standby, which cannot write", "hosts", hosts)
	}
}

// hosts lists the servers that the connection may lead to, each once.
func hosts(cc *pgx.ConnConfig) []string {
	list := []string{hostPort(cc.Host, cc.Port)}
	for _, f := range cc.Fallbacks {
		if h := hostPort(f.Host, f.Port); !slices.Contains(list, h) { // sslmode=prefer names each host twice
			list = append(list, h)
		}
	}
	return list
}

func hostPort(host string, port uint16) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// Reset drops all connections, because after a failover or a restart they lead to
// a server that is gone or read-only. It drops those in use when they are released. It
// does nothing within resetPause of the last reset.
func (db *DB) Reset() {
	now := time.Now().UnixNano()
	last := db.lastReset.Load()
	if !db.opened.Load() || now-last < int64(resetPause) || !db.lastReset.CompareAndSwap(last, now) {
		return
	}
	db.Ordinary.Reset()
	db.Urgent.Reset()
}

// leave drops all connections because of a COMMIT without confirmation on the host, and lets new
// ones begin with another host. After a failover that left the old primary running, those lead to
// the new one. Else they lead here again, because a standby refuses them. It returns false if
// connections lead to another host already.
func (db *DB) leave(host string) bool {
	left := db.servers.leave(host)
	if left {
		db.Reset()
	}
	return left
}

// AllowReset lets the next Reset work at once. Tests call it between two outages.
func (db *DB) AllowReset() { db.lastReset.Store(0) }

// resetAfter drops all connections after err, with which a connection was lost. It keeps them if
// the server has too many connections, because it serves those.
func (db *DB) resetAfter(err error) {
	if isOutage(err) {
		db.Reset()
	}
}

// Read runs f, which only reads. If the connection was lost, it runs f once more, on a
// fresh one.
func (db *DB) Read(ctx context.Context, f func() error) error {
	err := f()
	if !ConnectionLost(err) || ctx.Err() != nil {
		return err
	}
	db.resetAfter(err)
	return f()
}
