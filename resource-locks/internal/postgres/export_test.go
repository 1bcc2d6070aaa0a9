package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/database"
	"checkoutlock/resource-locks/internal/engine"
)

// SendRenewals sends one group of renewals. It returns those that the group renewed, by
// their places.
func (s *LockStore) SendRenewals(ctx context.Context, asked []engine.Acquire) (map[int]engine.Lock, error) {
	return s.renewals.sendGroup(ctx, asked)
}

// SendRefusals sends one group of callers that were refused lately. It returns the locks that
// refuse them, by the callers' places.
func (s *LockStore) SendRefusals(ctx context.Context, asked []engine.Acquire) (map[int]engine.Lock, error) {
	return s.refusals.sendGroup(ctx, asked)
}

func (g *acquireGroups) sendGroup(ctx context.Context, asked []engine.Acquire) (map[int]engine.Lock, error) {
	group := make([]*acquireMember, len(asked))
	for i, a := range asked {
		group[i] = database.NewMember[engine.Acquire, engine.Result](a)
	}
	err := g.db.write(ctx, g.db.urgent, "sending a group", func(ctx context.Context, conn *pgxpool.Conn) error {
		return g.send(ctx, conn, group)
	})
	answered := map[int]engine.Lock{}
	for i, m := range group {
		if m.Err == nil {
			answered[i] = m.Answer.Lock
		}
	}
	return answered, err
}

// WaitingRenewals returns how many callers wait for the group that is under way, -1 if none
// is.
func (s *LockStore) WaitingRenewals() int {
	return s.renewals.groups.Waiting(struct{}{})
}

// HoldConnection takes a connection for locks from the pool until release.
func (db *DB) HoldConnection(t *testing.T) (release func()) {
	t.Helper()
	conn, err := db.conns.Urgent.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return conn.Release
}

// UnreservedAreBusy reports whether a caller that holds no lock has to wait for a connection.
func (s *LockStore) UnreservedAreBusy() bool { return s.db.unreserved.areBusy() }

// CallsIn returns how many calls for a namespace run or wait, -1 if the store keeps nothing of it.
func (s *ClaimStore) CallsIn(namespace string) int {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	if p := s.calls.places[namespace]; p != nil {
		return p.calls
	}
	return -1
}

// NewClaimStoreInSteps is NewClaimStore, where one transaction removes and places one claim.
// The rest of each call is done in further transactions before it returns.
func NewClaimStoreInSteps(db *DB) engine.ClaimStore { return &claimSteps{newClaimStore(db, 1)} }

// claimSteps completes each call of a ClaimStore.
type claimSteps struct{ *ClaimStore }

// complete places what a call in the namespace has left. It adds to what the call granted.
func (s *claimSteps) complete(
	ctx context.Context, caller uuid.UUID, namespace string, granted []uuid.UUID, err error,
) ([]uuid.UUID, error) {
	for err == nil {
		var due map[string]*dueWork
		if due, err = s.listDue(ctx); err != nil || due[namespace] == nil || !due[namespace].left {
			break
		}
		var m moved
		m, err = s.settleNamespace(ctx, caller, namespace, &dueWork{left: true})
		granted = append(granted, m.granted...)
	}
	return granted, err
}

func (s *claimSteps) Withdraw(
	ctx context.Context, caller uuid.UUID, namespace string, id uuid.UUID,
) ([]uuid.UUID, error) {
	granted, err := s.ClaimStore.Withdraw(ctx, caller, namespace, id)
	return s.complete(ctx, caller, namespace, granted, err)
}

func (s *claimSteps) Disconnect(
	ctx context.Context, caller uuid.UUID, namespace string, id uuid.UUID,
) ([]uuid.UUID, error) {
	granted, err := s.ClaimStore.Disconnect(ctx, caller, namespace, id)
	return s.complete(ctx, caller, namespace, granted, err)
}

func (s *claimSteps) ForceWithdraw(
	ctx context.Context, caller uuid.UUID, namespace string, id uuid.UUID, n engine.Note,
) ([]uuid.UUID, error) {
	granted, err := s.ClaimStore.ForceWithdraw(ctx, caller, namespace, id, n)
	return s.complete(ctx, caller, namespace, granted, err)
}

// Settle settles until nothing is due.
func (s *claimSteps) Settle(
	ctx context.Context, caller uuid.UUID,
) (granted []uuid.UUID, ended []engine.ClaimInfo, err error) {
	for {
		due, err := s.listDue(ctx)
		if err != nil || len(due) == 0 {
			return granted, ended, err
		}
		g, e, err := s.ClaimStore.Settle(ctx, caller)
		granted, ended = append(granted, g...), append(ended, e...)
		if err != nil {
			return granted, ended, err
		}
	}
}

// Statements returns the statements that look for conflicts, with a number of parameters.
func (s *ClaimStore) Statements() map[string]int {
	name := func(statement string) string { return database.NameSchema(s.db.schema, statement) }
	return map[string]int{
		name(storeClaimSQL): 10, name(s.removeSQL): 3, name(s.removeWaitingSQL): 3, name(s.removeEndedSQL): 3,
		name(s.removeForcedSQL): 6, name(s.placeLeftSQL): 2,
	}
}

// LockNamespace is the first statement of their batches.
const LockNamespace = lockNamespaceSQL

// Searches returns the statements that look among all claims and have settings for their plans, with
// a number of parameters.
func (s *ClaimStore) Searches() map[string]int {
	return map[string]int{
		database.NameSchema(s.db.schema, findDueSQL): 0, database.NameSchema(s.db.schema, claimsOfSQL): 3,
	}
}

// ClaimBounds goes before findDueSQL. What goes before claimsOfSQL sets the same for its plan.
var ClaimBounds = claimBounds

// NewGrantsSearch returns the statement that looks for new grants. It has no such settings, because
// it runs every 25 ms.
func (s *ClaimStore) NewGrantsSearch() map[string]int {
	return map[string]int{database.NameSchema(s.db.schema, newGrantsSQL): 1}
}

// SweepNamespacesInPages is SweepNamespaces, where a statement looks at so many namespaces.
func (s *ClaimStore) SweepNamespacesInPages(ctx context.Context, unused time.Duration, page int) (int, error) {
	return s.sweepNamespaces(ctx, unused, page)
}
