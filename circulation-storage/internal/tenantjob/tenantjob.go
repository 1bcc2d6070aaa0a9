// Package tenantjob installs and upgrades tenants, in jobs that outlast the call that asks for them.
//
// A tenant has one running job at most. One process works on it, by a lease that it renews. A lease
// that is not renewed equals no lease, and the next process that is asked for the job takes it over.
// So the work must do no harm when it runs twice. Only the store's clock judges leases.
package tenantjob

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas/fault"
)

// Attributes say what is wanted, as FOLIO's _tenant 2.0 has them.
type Attributes struct {
	ModuleTo   string      `json:"module_to,omitempty"`
	ModuleFrom string      `json:"module_from,omitempty"`
	Purge      bool        `json:"purge,omitempty"`
	Parameters []Parameter `json:"parameters,omitempty"`
}

// Parameter is an option of an installation.
type Parameter struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Wants reports whether the parameter key is "true". An upgrade wants no records, because the library may have
// deleted some of them.
func (a Attributes) Wants(key string) bool {
	return a.ModuleFrom == "" && slices.Contains(a.Parameters, Parameter{Key: key, Value: "true"})
}

// Job is an installation or an upgrade.
type Job struct {
	ID         uuid.UUID
	Attributes Attributes
	Ended      bool
	Fault      fault.Code // why it failed; "" if it did not
	Error      string     // the same in words
}

// Err returns why the job failed, nil if it did not.
func (j Job) Err() error {
	if j.Fault == "" {
		return nil
	}
	return fault.New(j.Fault, "%s", j.Error)
}

// ErrLost ends the work of a worker that has no lease.
var ErrLost = errors.New("the job was deleted, or another process has taken it over")

// Lease is a worker's right to a job, for Duration unless it is renewed.
type Lease struct {
	JobID, Worker uuid.UUID // the worker's id is new for each lease
	Duration      time.Duration
}

// Store keeps the jobs of the tenant in ctx, which need not be installed. A job that ended is kept
// for a day.
type Store interface {
	// Begin leases a job with the attributes: a new one under the lease's id, or a running one whose
	// lease is over. If a job with these attributes runs under another lease, it returns that one and
	// false. A running job with other attributes is ended as failed if its lease is over. Fault: InUse
	// if it is not.
	Begin(ctx context.Context, l Lease, a Attributes) (Job, bool, error)
	// Install creates what the tenant lacks, unless the worker has lost the lease. Installing again is an
	// upgrade. The error is ErrLost then.
	Install(ctx context.Context, l Lease) error
	// Take leases the job if it runs and its lease is over. It returns whether it did.
	Take(ctx context.Context, l Lease) (bool, error)
	// Renew returns whether the worker still has the lease. A Duration of 0 gives it up.
	Renew(ctx context.Context, l Lease) (bool, error)
	// End ends the job, unless the worker has lost the lease. An empty code is success.
	End(ctx context.Context, l Lease, code fault.Code, text string) error
	// Read returns a job. Fault: NotFound.
	Read(ctx context.Context, id uuid.UUID) (Job, error)
	// Delete forgets a job. The work on it ends when its lease cannot be renewed. Fault: NotFound.
	Delete(ctx context.Context, id uuid.UUID) error
}
