package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation-storage/internal/httpapi"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/circulation-storage/internal/tenantjob"
	"checkoutlock/schemas/okapi"
)

// platform writes down what the tenant API asks for, and fails at one of them.
type platform struct {
	done   []string
	failAt string
	busy   chan struct{} // an installation waits until it is closed; nil does not wait
}

func (p *platform) note(what string) error {
	p.done = append(p.done, what)
	if what == p.failAt {
		return errors.New("password=secret in SELECT 1")
	}
	return nil
}

// jobStore installs a platform instead of a schema.
type jobStore struct {
	tenantjob.Store
	p *platform
}

// Install implements tenantjob.Store.
func (s jobStore) Install(ctx context.Context, _ tenantjob.Lease) error { return s.p.install(ctx) }

func (p *platform) install(ctx context.Context) error {
	if p.busy != nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.busy:
		}
	}
	return p.load(ctx, "install")
}

func (p *platform) Purge(_ context.Context, id okapi.Tenant) error {
	return p.note("purge " + id.String())
}

// loadWanted is the work of a job after the installation.
func (p *platform) loadWanted(ctx context.Context, a tenantjob.Attributes) error {
	for _, step := range []struct{ key, what string }{{"loadReference", "reference"}, {"loadSample", "sample"}} {
		if a.Wants(step.key) {
			if err := p.load(ctx, step.what); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *platform) load(ctx context.Context, what string) error {
	id, err := okapi.TenantFrom(ctx)
	if err != nil {
		return err
	}
	return p.note(what + " " + id.String())
}

// tenantAPI is the tenant API of a platform, for a tenant that is not installed.
type tenantAPI struct {
	api
	id okapi.Tenant
}

// newTenantAPI returns an API whose POST waits for patience. The jobs are those of db.
func newTenantAPI(t *testing.T, db *postgres.DB, p *platform, patience time.Duration) tenantAPI {
	t.Helper()
	id := pgtest.Tenant(t)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	jobs := tenantjob.New(jobStore{postgres.NewTenantJobStore(db), p}, p.loadWanted, time.Minute, log)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		jobs.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-stopped
		if err := db.Purge(context.WithoutCancel(t.Context()), id); err != nil {
			t.Error(err)
		}
	})
	return tenantAPI{newAPI(t, httpapi.TenantRoutes(p, jobs, patience, time.Minute)), id}
}

func (a tenantAPI) send(method, path, body string) *httptest.ResponseRecorder {
	return a.call(method, path, body, map[string]string{okapi.TenantHeader: a.id.String()})
}

func TestTenantRoutes(t *testing.T) {
	t.Parallel()
	db, _ := pgtest.New(t)
	tests := map[string]struct {
		body   string
		failAt string
		status int
		done   []string
	}{
		"install": {body: `{"module_to":"mod-x-1.0.0"}`, failAt: "", status: 204, done: []string{"install diku"}},
		"upgrade": {
			body: `{"module_to":"mod-x-1.1.0","module_from":"mod-x-1.0.0"}`, failAt: "", status: 204,
			done: []string{"install diku"},
		},
		"upgrade of a library that may have deleted records": {
			body: `{"module_to":"mod-x-1.1.0","module_from":"mod-x-1.0.0","parameters":[{"key":"loadReference",` +
				`"value":"true"}]}`,
			failAt: "", status: 204, done: []string{"install diku"},
		},
		"with records": {
			body: `{"module_to":"mod-x-1.0.0","parameters":[{"key":"loadSample","value":"true"},{"key":"loadReference",` +
				`"value":"true"}]}`, failAt: "",
			status: 204,
			done:   []string{"install diku", "reference diku", "sample diku"},
		},
		"without records": {
			body:   `{"module_to":"m","parameters":[{"key":"loadSample","value":"false"},{"key":"other","value":"true"}]}`,
			failAt: "", status: 204, done: []string{"install diku"},
		},
		"a parameter twice": {
			body:   `{"module_to":"m","parameters":[{"key":"loadSample","value":"false"},{"key":"loadSample","value":"true"}]}`,
			failAt: "", status: 204, done: []string{"install diku", "sample diku"},
		},
		"disable": {body: `{"module_from":"mod-x-1.0.0"}`, failAt: "", status: 204, done: nil},
		"purge": {
			body: `{"module_from":"mod-x-1.0.0","purge":true}`, failAt: "", status: 204, done: []string{"purge diku"},
		},
		"purge alone": {body: `{"purge":true}`, failAt: "", status: 204, done: []string{"purge diku"}},

		"install and purge at once": {body: `{"module_to":"mod-x-1.0.0","purge":true}`, failAt: "", status: 422, done: nil},
		"nothing asked for":         {body: `{}`, failAt: "", status: 422, done: nil},
		"null":                      {body: `null`, failAt: "", status: 422, done: nil},
		"purge is no boolean":       {body: `{"purge":"yes"}`, failAt: "", status: 400, done: nil},
		"parameters are no list": {
			body: `{"module_to":"m","parameters":{"loadSample":"true"}}`, failAt: "", status: 400, done: nil,
		},
		"no object": {body: `[]`, failAt: "", status: 400, done: nil},
		"no JSON":   {body: `{"module_to":`, failAt: "", status: 400, done: nil},
		"no body":   {body: ``, failAt: "", status: 400, done: nil},
		"install fails": {
			body: `{"module_to":"m","parameters":[{"key":"loadSample","value":"true"}]}`, failAt: "install diku", status: 500,
			done: []string{"install diku"},
		},
		"reference fails": {
			body: `{"module_to":"m","parameters":[{"key":"loadReference","value":"true"},` +
				`{"key":"loadSample","value":"true"}]}`,
			failAt: "reference diku", status: 500, done: []string{"install diku", "reference diku"},
		},
		"sample fails": {
			body: `{"module_to":"m","parameters":[{"key":"loadSample","value":"true"}]}`, failAt: "sample diku", status: 500,
			done: []string{"install diku", "sample diku"},
		},
		"purge fails": {body: `{"purge":true}`, failAt: "purge diku", status: 500, done: []string{"purge diku"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &platform{}
			a := newTenantAPI(t, db, p, time.Minute)
			for i, step := range tt.done {
				tt.done[i] = strings.ReplaceAll(step, "diku", a.id.String())
			}
			p.failAt = strings.ReplaceAll(tt.failAt, "diku", a.id.String())
			got := a.send(http.MethodPost, "/_/tenant", tt.body)
			if got.Code != tt.status || !slices.Equal(p.done, tt.done) {
				t.Errorf("got %d %s after %q, want %d after %q", got.Code, got.Body, p.done, tt.status, tt.done)
			}
			if strings.Contains(got.Body.String(), "secret") {
				t.Errorf("the answer shows the cause: %s", got.Body)
			}
		})
	}
}

func TestTenantRoutes_RequireATenant(t *testing.T) {
	t.Parallel()
	db, _ := pgtest.New(t)
	const job = "/_/tenant/0bab56e5-1ab6-4ac2-afdf-8b2df0434378"
	for _, name := range []string{"", "Diku", "di ku", `d"; DROP SCHEMA x`, strings.Repeat("d", 32)} {
		p := &platform{}
		a := newTenantAPI(t, db, p, time.Minute)
		for method, path := range map[string]string{
			http.MethodPost: "/_/tenant", http.MethodGet: job, http.MethodDelete: job,
		} {
			got := a.call(method, path, `{"module_to":"m"}`, map[string]string{okapi.TenantHeader: name})
			if got.Code != http.StatusBadRequest || len(p.done) > 0 {
				t.Errorf("%s of tenant %q: got %d after %q, want 400 and nothing done", method, name, got.Code, p.done)
			}
		}
	}
}

// answeredJob is a job as _tenant 2.0 answers it.
type answeredJob struct {
	ID         string
	Tenant     string
	Attributes tenantjob.Attributes `json:"tenantAttributes"`
	Complete   bool
	Error      string
}

func readAnsweredJob(t *testing.T, w *httptest.ResponseRecorder) answeredJob {
	t.Helper()
	var job answeredJob
	if err := json.Unmarshal(w.Body.Bytes(), &job); err != nil {
		t.Fatalf("%v: %d %s", err, w.Code, w.Body)
	}
	return job
}

func TestTenantRoutes_AnswerAJobThatTakesLonger(t *testing.T) {
	t.Parallel()
	db, _ := pgtest.New(t)
	const body = `{"module_to":"m-1.0.0","parameters":[{"key":"loadSample","value":"true"}]}`
	for name, tt := range map[string]struct {
		failAt string // "%s" is the tenant
		error  string
	}{
		"one that succeeds": {failAt: "", error: ""},
		"one that fails":    {failAt: "sample %s", error: "The work failed. The log"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &platform{busy: make(chan struct{})}
			a := newTenantAPI(t, db, p, 0)
			p.failAt = strings.ReplaceAll(tt.failAt, "%s", a.id.String())
			posted := a.send(http.MethodPost, "/_/tenant", body)
			job := readAnsweredJob(t, posted)
			where := posted.Header().Get("Location")
			if posted.Code != http.StatusCreated || where != "/_/tenant/"+job.ID || job.Complete ||
				job.Tenant != a.id.String() || !job.Attributes.Wants("loadSample") {
				t.Fatalf("got %d %s at %q, want 201 with the job and its place", posted.Code, posted.Body, where)
			}
			if again := a.send(http.MethodPost, "/_/tenant", body); again.Header().Get("Location") != where {
				t.Errorf("a repeat: got %d at %q, want the same job", again.Code, again.Header().Get("Location"))
			}
			wantStatus(t, "other work", a.send(http.MethodPost, "/_/tenant", `{"module_to":"m-2.0.0"}`), http.StatusConflict)
			if got := readAnsweredJob(t, a.send(http.MethodGet, where, "")); got.Complete {
				t.Errorf("got %+v, want it running", got)
			}
			close(p.busy)
			got := readAnsweredJob(t, a.send(http.MethodGet, where+"?wait=10000", ""))
			if !got.Complete || !strings.HasPrefix(got.Error, tt.error) || (got.Error == "") != (tt.error == "") {
				t.Errorf("got %+v, want it complete with the error %q", got, tt.error)
			}
			wantStatus(t, "delete", a.send(http.MethodDelete, where, ""), http.StatusNoContent)
			wantStatus(t, "read what was deleted", a.send(http.MethodGet, where, ""), http.StatusNotFound)
			wantStatus(t, "delete again", a.send(http.MethodDelete, where, ""), http.StatusNotFound)
		})
	}
}

func TestTenantRoutes_RefuseBadJobs(t *testing.T) {
	t.Parallel()
	db, _ := pgtest.New(t)
	a := newTenantAPI(t, db, &platform{}, time.Minute)
	const id = "0bab56e5-1ab6-4ac2-afdf-8b2df0434378"
	for _, tt := range []struct {
		method, path string
		status       int
	}{
		{method: http.MethodGet, path: id, status: http.StatusNotFound},
		{method: http.MethodDelete, path: id, status: http.StatusNotFound},
		{method: http.MethodGet, path: "job", status: http.StatusNotFound},
		{method: http.MethodGet, path: id + "?wait=-1", status: http.StatusUnprocessableEntity},
		{method: http.MethodGet, path: id + "?wait=10001", status: http.StatusUnprocessableEntity},
		{method: http.MethodGet, path: id + "?wait=soon", status: http.StatusUnprocessableEntity},
	} {
		wantStatus(t, tt.method+" "+tt.path, a.send(tt.method, "/_/tenant/"+tt.path, ""), tt.status)
	}
}
