package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas/fault"
)

// Limits of a claim.
const (
	MaxResources = 1000  // of one claim
	MaxSegments  = 64    // of one path
	MaxPathBytes = 4096  // of one path, with its separators
	MaxPrefixes  = 4096  // of all paths; see CountPrefixes
	maxClaimSize = 65536 // bytes of all paths
)

// Resource is a path in a tree of names, and how it is taken. An empty Path is the whole
// namespace. Segments are compared whole and exactly; an empty one is an ordinary name.
type Resource struct {
	Path  []string
	Write bool // otherwise read
}

// Claim asks for several resources at once: all or none.
//
// Two paths are related if one begins with the other. Two claims conflict if they have
// related resources of which at least one is a write. A claim waits exactly for the
// earlier claims of its namespace, waiting or held, that it conflicts with.
type Claim struct {
	// ID is chosen by the caller, so that it can withdraw a claim whose answer was lost.
	ID        uuid.UUID
	Namespace string
	Resources []Resource
	// Instance is the process that serves the claim's connection. The claim lives as long
	// as its instance's lease, unless Abandon sets an earlier end.
	Instance uuid.UUID
	// Abandon is how long a held claim stays after its connection has ended.
	Abandon time.Duration
	// Owner names the connection, for operators.
	Owner string
}

// Place is where a claim stands.
type Place struct {
	Number int64 // in its namespace, from 1, one more for each claim
	Held   bool  // otherwise it waits
}

// ClaimInfo is a claim for operators.
type ClaimInfo struct {
	Claim
	Place
	QueuedAt time.Time
	HeldAt   time.Time // zero while it waits
	// EndsAt is set once the connection has ended, or by a grant after the end of the lease.
	EndsAt time.Time
	// WaitsFor is the number of one claim that it waits for, 0 if it is held.
	WaitsFor int64
}

// NamespaceStats counts what a namespace has.
type NamespaceStats struct {
	LastNumber       int64 // 0 before the first claim
	Waiting, Held    int   // claims
	WaitingResources int
	HeldResources    int
	Paths            int // distinct paths of all claims
}

// ClaimState is a claim as its instance compares it with its connections.
type ClaimState struct {
	ID        uuid.UUID
	Namespace string
	Held      bool
}

// ClaimStore keeps claims. Admission is serial for each namespace. Its clock alone
// judges leases and ends. Faults are those of LockStore; a grant is durable before it is
// answered. enginetest.RunClaimStore is this contract as tests.
//
// Four methods return the claims that they granted, of all instances, because the ones
// before are gone. The caller wakes those that are its own. The grants of other
// instances are new grants of theirs. A call may grant only some of those that wait no
// longer, because none takes long. Calls of Settle, by any instance, grant the others.
type ClaimStore interface {
	// StartLease begins the lease of a new instance.
	StartLease(ctx context.Context, instance uuid.UUID, length time.Duration) error

	// KeepLease extends the lease by length. Fault: NotFound if it has ended: the claims of
	// the instance are void, or will be after their Abandon.
	KeepLease(ctx context.Context, instance uuid.UUID, length time.Duration) error

	// EndLease ends the lease now, when the instance stops. Its held claims stay for
	// their Abandon, and its waiting ones leave.
	EndLease(ctx context.Context, instance uuid.UUID) error

	// OpenNamespace notes that a client has connected to the namespace. A repeat changes
	// nothing.
	OpenNamespace(ctx context.Context, namespace string) error

	// Enqueue stores a claim, and grants it at once if it waits for none. A repeat with
	// the same ID returns the place of the first. Fault: Unavailable if the lease of the
	// claim's instance has ended.
	Enqueue(ctx context.Context, c Claim) (Place, error)

	// Withdraw deletes a claim, held or waiting. An unknown one is no error. caller is the
	// calling instance.
	Withdraw(ctx context.Context, caller uuid.UUID, namespace string, id uuid.UUID) (granted []uuid.UUID, err error)

	// Disconnect notes that the claim's connection has ended. A waiting claim, and one
	// without Abandon, is deleted; a held one ends after its Abandon, which began with the end
	// of the lease if that was earlier. A repeat changes nothing. An unknown one is no error.
	Disconnect(ctx context.Context, caller uuid.UUID, namespace string, id uuid.UUID) (granted []uuid.UUID, err error)

	// Settle deletes claims that have ended, of all namespaces, and returns them with their
	// former owners. It grants what earlier calls have left, and may leave work to the next
	// call again. When there is nothing to do, it costs as much as there are held claims of
	// dead processes. After an error it returns what it did.
	Settle(ctx context.Context, caller uuid.UUID) (granted []uuid.UUID, ended []ClaimInfo, err error)

	// ForceWithdraw is Withdraw by staff. It keeps the note in the same transaction, in
	// the list of LockStore.Releases.
	// Fault: NotFound.
	ForceWithdraw(ctx context.Context, caller uuid.UUID, namespace string, id uuid.UUID, n Note) (granted []uuid.UUID, err error)

	// NewGrants returns the claims of the instance that other instances granted, until
	// NoteGrants names them.
	NewGrants(ctx context.Context, instance uuid.UUID) ([]uuid.UUID, error)

	// NoteGrants ends that. It returns which of the claims are held by a connection. After it their grants
	// are durable, also those by others, and the instance may wake them.
	NoteGrants(ctx context.Context, ids []uuid.UUID) (held []uuid.UUID, err error)

	// ClaimsOf fills page with the claims of an instance whose connection has not ended, in
	// the order of their ids, from the first above after. It returns the filled part.
	ClaimsOf(ctx context.Context, instance, after uuid.UUID, page []ClaimState) ([]ClaimState, error)

	// Stats counts the claims of a namespace. Fault: NotFound if no client has connected to
	// it, or if it was forgotten since.
	Stats(ctx context.Context, namespace string) (NamespaceStats, error)

	// ListClaims returns claims of a namespace, "" for all, at most limit. They are ordered
	// by namespace and number. Each has at least the resources that FormatResources shows.
	ListClaims(ctx context.Context, namespace string, limit int) ([]ClaimInfo, error)
}

// MaxFormat is how many bytes FormatResources shows.
const MaxFormat = 1000

// FormatResources returns resources as text for operators, such as "write /a/b, read /c". It cuts
// a longer text off.
func FormatResources(resources []Resource) string {
	var text strings.Builder
	for i, r := range resources {
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString(map[bool]string{false: "read /", true: "write /"}[r.Write])
		text.WriteString(strings.Join(r.Path, "/"))
		if text.Len() > MaxFormat {
			return strings.ToValidUTF8(text.String()[:MaxFormat], "") + " ..."
		}
	}
	return text.String()
}

// CountPrefixes returns how many paths the paths begin with, each with itself and the root: a
// path of three segments counts 4. A store looks at each of them to find conflicts.
func CountPrefixes(resources []Resource) int {
	n := 0
	for _, r := range resources {
		n += len(r.Path) + 1
	}
	return n
}

// checkClaim refuses what no store keeps. Fault: Invalid.
func checkClaim(c Claim) error {
	if err := checkText("the namespace", c.Namespace, MaxNamespace); err != nil {
		return err
	}
	if len(c.Resources) == 0 || len(c.Resources) > MaxResources {
		return fault.New(fault.Invalid, "a claim has %d resources, allowed: 1 to %d", len(c.Resources), MaxResources)
	}
	if n := CountPrefixes(c.Resources); n > MaxPrefixes {
		return fault.New(fault.Invalid, "the paths of a claim begin with %d paths in all, allowed: %d", n, MaxPrefixes)
	}
	size := 0
	for i, r := range c.Resources {
		if len(r.Path) > MaxSegments {
			return fault.New(fault.Invalid, "the path of resource %d has %d segments, allowed: %d", i, len(r.Path), MaxSegments)
		}
		length := 0
		for _, segment := range r.Path {
			if err := checkText(fmt.Sprintf("a segment of resource %d", i), segment, MaxPathBytes); err != nil {
				return err
			}
			length += len(segment) + 1
		}
		if length > MaxPathBytes {
			return fault.New(fault.Invalid, "the path of resource %d has %d bytes with its separators, allowed: %d", i, length, MaxPathBytes)
		}
		size += length
	}
	if size > maxClaimSize {
		return fault.New(fault.Invalid, "the paths of a claim have %d bytes, allowed: %d", size, maxClaimSize)
	}
	return nil
}
