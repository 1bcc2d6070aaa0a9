package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/tenantjob"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// TenantJobStore implements tenantjob.Store on the table tenant_job. Begin makes the table, because
// the migrations are part of a job.
type TenantJobStore struct{ db *DB }

// NewTenantJobStore returns the jobs of all tenants in db.
func NewTenantJobStore(db *DB) *TenantJobStore { return &TenantJobStore{db: db} }

// jobLapsed is when no process has the lease on a running job. A date far ahead means that the clock
// was set back.
const jobLapsed = `ended_date IS NULL AND lease_until NOT BETWEEN clock_timestamp() AND clock_timestamp() + interval '1 minute'`

const (
	createJobsSQL = `
CREATE SCHEMA IF NOT EXISTS {schema};
CREATE TABLE IF NOT EXISTS {schema}.tenant_job (
    id          uuid        NOT NULL CONSTRAINT tenant_job_pkey PRIMARY KEY,
    attributes  jsonb       NOT NULL,
    worker      uuid        NOT NULL,
    lease_until timestamptz NOT NULL,
    ended_date  timestamptz,
    fault       text        NOT NULL DEFAULT '',
    error       text        NOT NULL DEFAULT ''
);
DELETE FROM {schema}.tenant_job WHERE ended_date NOT BETWEEN now() - interval '1 day' AND now() + interval '1 day'`

	endOtherJobSQL = `
UPDATE {schema}.tenant_job SET ended_date = clock_timestamp(), fault = '` + string(fault.Unavailable) + `',
       error = 'The process that worked on it ended, and other work was asked for'
 WHERE ` + jobLapsed + ` AND attributes <> $1::jsonb`

	takeJobSQL = `
UPDATE {schema}.tenant_job SET worker = $1::uuid, lease_until = clock_timestamp() + $2::interval
 WHERE ` + jobLapsed + ` AND `
	takeSameJobSQL = takeJobSQL + `attributes = $3::jsonb RETURNING id`
	takeThisJobSQL = takeJobSQL + `id = $3::uuid`

	runningJobSQL = `SELECT id, attributes = $1::jsonb FROM {schema}.tenant_job WHERE ended_date IS NULL`

	addJobSQL = `
INSERT INTO {schema}.tenant_job (id, attributes, worker, lease_until)
VALUES ($1::uuid, $2::jsonb, $3::uuid, clock_timestamp() + $4::interval)`

	renewJobSQL = `
UPDATE {schema}.tenant_job SET lease_until = clock_timestamp() + $3::interval
 WHERE id = $1::uuid AND worker = $2::uuid AND ended_date IS NULL`

	endJobSQL = `
UPDATE {schema}.tenant_job SET ended_date = clock_timestamp(), fault = $3::text, error = $4::text
 WHERE id = $1::uuid AND worker = $2::uuid AND ended_date IS NULL`

	readJobSQL   = `SELECT attributes, ended_date IS NOT NULL, fault, error FROM {schema}.tenant_job WHERE id = $1::uuid`
	deleteJobSQL = `DELETE FROM {schema}.tenant_job WHERE id = $1::uuid`
)

// Begin implements tenantjob.Store. The advisory lock of those who create or drop the schema makes
// callers take turns.
func (s *TenantJobStore) Begin(ctx context.Context, l tenantjob.Lease, a tenantjob.Attributes) (job tenantjob.Job, leased bool, err error) {
	id, err := okapi.TenantFrom(ctx)
	if err != nil {
		return job, false, err
	}
	text, err := json.Marshal(a)
	if err != nil {
		return job, false, fmt.Errorf("writing the attributes of a job: %w", err)
	}
	wanted := string(text)
	err = s.db.runTx(ctx, s.db.conns.Ordinary, longTx, "beginning a tenant job", func(tx pgx.Tx) error {
		job, leased = tenantjob.Job{ID: l.JobID, Attributes: a}, true
		if err := s.db.schemaOf(id).Lock(ctx, tx); err != nil {
			return err
		}
		if _, err := runStatement(ctx, tx, createJobsSQL); err != nil {
			return err
		}
		if _, err := runStatement(ctx, tx, endOtherJobSQL, wanted); err != nil {
			return err
		}
		err := scanRow(ctx, tx, takeSameJobSQL, []any{l.Worker, l.Duration, wanted}, &job.ID)
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		var same bool
		err = scanRow(ctx, tx, runningJobSQL, []any{wanted}, &job.ID, &same)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			_, err = runStatement(ctx, tx, addJobSQL, l.JobID, wanted, l.Worker, l.Duration)
			return err
		case err == nil && !same:
			return fault.New(fault.InUse, "Job %[1]s does other work on the tenant: wait for GET /_/tenant/%[1]s, or end it with DELETE /_/tenant/%[1]s", job.ID)
		}
		leased = false
		return err
	})
	return job, leased, err
}

// Install implements tenantjob.Store. It renews the lease under the lock that a purge takes, in the
// transaction that would create the schema. A purge drops the job, so no late worker makes the schema anew.
func (s *TenantJobStore) Install(ctx context.Context, l tenantjob.Lease) error {
	id, err := okapi.TenantFrom(ctx)
	if err != nil {
		return err
	}
	schema := s.db.schemaOf(id)
	schema.Admit = func(ctx context.Context, tx pgx.Tx) error {
		n, err := runStatement(ctx, tx, renewJobSQL, l.JobID, l.Worker, l.Duration)
		err = toFault("renewing the lease on a tenant job", err)
		if err == nil && n == 0 || fault.Is(err, fault.UnknownTenant) {
			return tenantjob.ErrLost
		}
		return err
	}
	return schema.Up(ctx)
}

// Take implements tenantjob.Store.
func (s *TenantJobStore) Take(ctx context.Context, l tenantjob.Lease) (bool, error) {
	n, err := s.db.exec(ctx, s.db.conns.Ordinary, "taking a tenant job over", takeThisJobSQL, l.Worker, l.Duration, l.JobID)
	return n > 0, err
}

// Renew implements tenantjob.Store.
func (s *TenantJobStore) Renew(ctx context.Context, l tenantjob.Lease) (bool, error) {
	n, err := s.db.exec(ctx, s.db.conns.Ordinary, "renewing the lease on a tenant job", renewJobSQL, l.JobID, l.Worker, l.Duration)
	return n > 0, err
}

// End implements tenantjob.Store.
func (s *TenantJobStore) End(ctx context.Context, l tenantjob.Lease, code fault.Code, text string) error {
	_, err := s.db.exec(ctx, s.db.conns.Ordinary, "ending a tenant job", endJobSQL, l.JobID, l.Worker, string(code), text)
	return err
}

// Read implements tenantjob.Store.
func (s *TenantJobStore) Read(ctx context.Context, id uuid.UUID) (tenantjob.Job, error) {
	job := tenantjob.Job{ID: id}
	err := s.db.readRow(ctx, s.db.conns.Ordinary, "reading a tenant job", readJobSQL, []any{id}, &job.Attributes, &job.Ended, &job.Fault, &job.Error)
	if errors.Is(err, pgx.ErrNoRows) || fault.Is(err, fault.UnknownTenant) {
		return job, noJob(id)
	}
	return job, err
}

// Delete implements tenantjob.Store.
func (s *TenantJobStore) Delete(ctx context.Context, id uuid.UUID) error {
	n, err := s.db.exec(ctx, s.db.conns.Ordinary, "deleting a tenant job", deleteJobSQL, id)
	if err == nil && n == 0 || fault.Is(err, fault.UnknownTenant) {
		return noJob(id)
	}
	return err
}

func noJob(id uuid.UUID) error {
	return fault.New(fault.NotFound, "There is no job %s of this tenant", id)
}
