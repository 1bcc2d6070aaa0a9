// Package doctor judges what an operator has to know of a database and its tenants. It reads
// nothing itself.
package doctor

import (
	"encoding/json"
	"fmt"
	"time"

	"checkoutlock/circulation-storage/internal/readiness"
	"checkoutlock/schemas"
)

// Level says how bad a finding is.
type Level string

// The levels.
const (
	OK      Level = "ok"
	Warning Level = "warning"
	Broken  Level = "broken"
)

// Finding is the result of one check.
type Finding struct {
	Check  string `json:"check"`
	Level  Level  `json:"level"`
	Text   string `json:"text"`
	Advice string `json:"advice,omitempty"` // what to do; empty for OK
}

// Settings are those of this host.
type Settings struct {
	Connections   int  // DATABASE_MAX_CONNS
	ExecMode      bool // default_query_exec_mode=exec
	MigrateDirect bool // MIGRATE_DATABASE_URL is set
	// Patience is how long machines wait for an answer.
	Patience time.Duration
	History  time.Duration // HISTORY_RETENTION
	Sweep    time.Duration // LOCK_SWEEP_INTERVAL
}

// Server is the state of the PostgreSQL server.
type Server struct {
	Version         string
	VersionNumber   int
	Unsafe          string // settings that are off and lose loans in a crash
	Standbys        string // synchronous_standby_names
	Commits         string // synchronous_commit
	Confirming      int    // synchronous standbys that are there
	Hidden          int    // standbys whose state this user may not see
	Connections     int    // that may be open
	OpenConnections int
	Pooled          bool // a pooler such as PgBouncer is in between
	// Ahead is how far its clock is ahead of this host's, and Uncertain how exact that is.
	Ahead, Uncertain time.Duration
}

// Tenant is the state of one tenant.
type Tenant struct {
	Schema      readiness.Schema
	Entry       json.RawMessage // FOLIO's settings entry; nil for none
	Announced   bool            // the environment of an instance turns the lock on
	OverLimit   int             // patrons
	Unfenced    int             // loans of the last day, and not older than the history, that no check-out of it made
	Unswept     int             // locks that are outdated for more than an hour
	Events      int             // that wait
	OldestEvent time.Duration
	Refused     int // events that the reader refused
}

const (
	leastVersion  = 140000
	maxClockDelta = 2 * time.Second
	maxEventAge   = time.Minute
)

// Examine returns the finding for each check of the server.
func (s Server) Examine(own Settings) []Finding {
	return []Finding{
		judge("PostgreSQL", "version "+s.Version, problem(s.VersionNumber < leastVersion, Broken, "version "+s.Version+" is too old", "upgrade to 14 or newer")),
		judge("settings", "a crash of PostgreSQL loses no loan",
			problem(s.Unsafe != "", Broken, "a crash of PostgreSQL loses loans: "+s.Unsafe, "turn these settings on")),
		judge("standby", fmt.Sprintf("%d synchronous standbys confirm commits", s.Confirming),
			problem(s.Standbys == "", Warning, "no synchronous standby: a failover may lose loans", "set synchronous_standby_names, or synchronous_mode of Patroni (docs/scale.md)"),
			problem(s.Commits == "local", Warning, "commits do not wait for the standby", "set synchronous_commit to on"),
			problem(s.Hidden > 0, Warning, "this user may not see the standbys", "GRANT pg_monitor to the user of DATABASE_URL"),
			problem(s.Confirming == 0, Broken, "commits wait for a synchronous standby that is not there", "start the standby, or take it out of synchronous_standby_names")),
		judge("clock", fmt.Sprintf("this machine and the database differ by %s", s.Ahead.Abs().Round(time.Millisecond)),
			problem(s.Ahead.Abs()-s.Uncertain > maxClockDelta, Warning, fmt.Sprintf("the database's clock is %s ahead", s.Ahead.Round(time.Millisecond)),
				"let both machines take the time of a server (NTP); locks are safe, due dates are not")),
		judge("connections", fmt.Sprintf("%d of %d are open, and this storage opens %d at most", s.OpenConnections, s.Connections, own.Connections),
			problem(own.Connections > s.Connections, Broken, fmt.Sprintf("DATABASE_MAX_CONNS is %d, and the server allows %d", own.Connections, s.Connections),
				"lower DATABASE_MAX_CONNS, or raise max_connections"),
			problem(s.OpenConnections*10 > s.Connections*9, Warning, fmt.Sprintf("%d of %d connections are open", s.OpenConnections, s.Connections),
				"raise max_connections, or lower DATABASE_MAX_CONNS of the storages")),
		s.examinePooler(own),
	}
}

func (s Server) examinePooler(own Settings) Finding {
	if !s.Pooled {
		return judge("PgBouncer", "connections lead to PostgreSQL itself")
	}
	return judge("PgBouncer", "a pooler is in between, and the settings fit its transaction mode",
		problem(!own.ExecMode, Broken, "a pooler is in between, and statements are prepared", "add default_query_exec_mode=exec to DATABASE_URL"),
		problem(!own.MigrateDirect, Warning, "a pooler is in between, and migrations need a session", "set MIGRATE_DATABASE_URL past the pooler"))
}

// Examine returns the finding for each check of the tenant. One that is not served has one finding.
func (t Tenant) Examine(own Settings) []Finding {
	name := func(check string) string { return t.Schema.Tenant.String() + ": " + check }
	if text := t.Schema.Problem(); text != "" {
		return []Finding{{Check: name("migrations"), Level: Broken, Text: text, Advice: "run the command that the text names"}}
	}
	set, err := schemas.ParseLockSettingsEntry(t.Entry)
	return []Finding{
		judge(name("migrations"), fmt.Sprintf("migration %d, as this build needs", t.Schema.Version)),
		t.examineFeature(name("feature"), set, err),
		examineWaits(name("patience"), set.Waits, own.Patience),
		judge(name("limits"), "no patron has a loan of the last hour beyond its limit",
			problem(t.OverLimit > 0, Broken, fmt.Sprintf("%d patrons have loans beyond their limit", t.OverLimit), "see PatronsOverLimit in docs/operations.md")),
		judge(name("fence"), "all loans of the last day are of check-outs",
			problem(t.Unfenced > 0, Warning, fmt.Sprintf("%d loans of the last day are of no check-out of the history", t.Unfenced), "see UnfencedLoans in docs/operations.md")),
		judge(name("sweep"), "old rows are deleted",
			problem(t.Unswept > 0, Warning, fmt.Sprintf("%d locks are outdated for more than an hour", t.Unswept), "start a storage; the line \"not swept\" of its log says why it fails")),
		judge(name("outbox"), fmt.Sprintf("%d events wait", t.Events),
			problem(t.OldestEvent > maxEventAge, Warning, fmt.Sprintf("%d events wait, the oldest one for %s", t.Events, t.OldestEvent.Round(time.Second)),
				"see EventsNotDelivered in docs/operations.md"),
			problem(t.Refused > 0, Warning, fmt.Sprintf("the reader refused %d events", t.Refused), "see docs/events.md")),
	}
}

// examineFeature judges the tenant's own settings, or why they cannot be used.
func (t Tenant) examineFeature(check string, set schemas.LockSettings, err error) Finding {
	text := "the environment of circulation decides"
	switch {
	case err != nil:
		return judge(check, "", problem(true, Broken, err.Error(), "store them anew on the staff page \"On / off\""))
	case set.Enabled != nil && *set.Enabled:
		text = "the lock is on"
	case set.Enabled != nil:
		text = "the lock is off, so machines at once may exceed a limit"
	case t.Announced:
		text = "the lock is on by the environment of an instance"
	}
	return judge(check, text)
}

func examineWaits(check string, waits []time.Duration, patience time.Duration) Finding {
	if waits == nil {
		return judge(check, "the environment of circulation decides how long a check-out waits")
	}
	var longest time.Duration
	for _, wait := range waits {
		longest += wait
	}
	return judge(check, fmt.Sprintf("a check-out waits %s at most, and machines %s", longest, patience),
		problem(longest > patience, Warning, fmt.Sprintf("a check-out may wait %s, and machines give up after %s", longest, patience),
			"set shorter waits on the staff page \"Timing\", or make the machines wait longer"))
}

// problem returns a finding if it is there.
func problem(there bool, level Level, text, advice string) *Finding {
	if !there {
		return nil
	}
	return &Finding{Level: level, Text: text, Advice: advice}
}

// judge returns the first problem, or that all is well.
func judge(check, well string, problems ...*Finding) Finding {
	for _, p := range problems {
		if p != nil {
			p.Check = check
			return *p
		}
	}
	return Finding{Check: check, Level: OK, Text: well}
}
