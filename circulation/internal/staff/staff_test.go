package staff_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/checkout"
	people "checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/circulation/internal/staff"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
	"checkoutlock/web/auth"
)

var environment = settings.Environment{
	MachinePatience: 10 * time.Second, TTL: 3 * time.Second, Waits: []time.Duration{500 * time.Millisecond, time.Second},
}

// library is a hand-made Admin.
type library struct {
	staff.Admin // what no test here needs

	view        settings.View
	changes     schemas.LockChanges
	history     schemas.PastCheckOuts
	figures     schemas.Figures
	explanation checkout.Explanation
	rules       admin.RulesReview
	err         error // of what is asked
	review      admin.LimitReview
	uncounted   int
	noFigures   error
	noChanges   error
	refusal     error // of a change

	changed []settings.Change // what was changed, by which user and where
	by      okapi.Call
	where   string
	offset  int
	filter  *schemas.HistoryFilter // asked for; nil for never
	tried   *checkout.DryRunRequest
	found   admin.FoundPatrons // by each search
	none    error              // of the search for a barcode
	names   admin.Names
	counted schemas.FigureFilter
	drills  staff.Drills
	lookups []string // for patrons and names
	named   int      // names that were looked up
}

func (l *library) Environment() settings.Environment { return environment }

// Settings implements staff.Admin. A library without a view sets nothing.
func (l *library) Settings(context.Context) (settings.View, error) {
	if l.view.Version == "" {
		return following(), l.err
	}
	return l.view, l.err
}

func (l *library) ChangeSettings(ctx context.Context, change settings.Change) (settings.View, error) {
	if change.Version != l.view.Version {
		return settings.View{}, fault.New(fault.Conflict, "the settings changed")
	}
	if l.refusal != nil {
		return settings.View{}, l.refusal
	}
	id, _ := okapi.TenantFrom(ctx)
	l.changed, l.by, l.where = append(l.changed, change), okapi.FromContext(ctx), id.String()
	return l.view, nil
}

func (l *library) CountUncounted(context.Context) (int, error) { return l.uncounted, l.noFigures }

func (l *library) ReviewLimit(context.Context) (admin.LimitReview, error) {
	return l.review, l.noFigures
}

func (l *library) LockChanges(_ context.Context, _ string, offset, _ int) (schemas.LockChanges, error) {
	l.offset = offset
	return l.changes, cmp.Or(l.noChanges, l.err)
}

func (l *library) PastCheckOuts(_ context.Context, f schemas.HistoryFilter) (schemas.PastCheckOuts, error) {
	l.filter = &f
	return l.history, l.err
}

func (l *library) FindPatron(_ context.Context, text string) (admin.FoundPatrons, error) {
	l.lookups = append(l.lookups, "patron "+text)
	return l.found, nil
}

func (l *library) PatronID(ctx context.Context, barcode string) (string, error) {
	if l.Admin != nil {
		return l.Admin.PatronID(ctx, barcode)
	}
	l.lookups = append(l.lookups, "barcode "+barcode)
	return annID, l.none
}

func (l *library) NamePast(_ context.Context, list []schemas.PastCheckOut, patrons bool) admin.Names {
	l.lookups = append(l.lookups, fmt.Sprintf("names of %d, patrons %t", len(list), patrons))
	names := l.names
	if !patrons {
		names.Patrons = nil
	}
	return names
}

func (l *library) Figures(_ context.Context, f schemas.FigureFilter) (schemas.Figures, error) {
	l.counted = f
	return l.figures, l.noFigures
}

func (l *library) ListServicePoints(context.Context) ([]people.ServicePoint, error) {
	return []people.ServicePoint{{ID: heldID, Name: "Front desk"}}, nil
}

// ViewerName finds a name by a user's id; KnownViewerName knows that of who gave it.
func (l *library) ViewerName(ctx context.Context) string {
	if name, known := l.KnownViewerName(ctx); known {
		return name
	}
	l.named++
	return "Lovelace, Ada"
}

func (l *library) KnownViewerName(ctx context.Context) (string, bool) {
	info := okapi.FromContext(ctx)
	return info.UserName, info.UserName != "" || info.UserID == ""
}

func (l *library) Explain(_ context.Context, req checkout.DryRunRequest) (checkout.Explanation, error) {
	l.tried = &req
	return l.explanation, l.err
}

// own is a view of settings of the library's own.
func own(enabled bool, ttl int, waits ...int) settings.View {
	return settings.View{
		Enabled:          settings.Field[bool]{Value: enabled, Source: settings.FromTenant},
		LockTTLMs:        settings.Field[int]{Value: ttl, Source: settings.FromTenant},
		RetryIntervalsMs: settings.Field[[]int]{Value: append([]int{}, waits...), Source: settings.FromTenant},
		Version:          "7", Timing: settings.Timing{LongestWaitMs: 1500},
	}
}

// following is the view of a library that sets nothing.
func following() settings.View {
	v := environment.Settings().View(nil)
	v.Version = "7"
	return v
}

// followed is the view of such a library while another instance turns the lock on.
func followed() settings.View {
	v := following()
	v.Enabled = settings.Field[bool]{Value: true, Source: settings.FromOtherInstance}
	return v
}

// visitor is a browser that keeps cookies.
type visitor struct {
	handler http.Handler
	header  http.Header
	cookies map[string]string
	logged  *bytes.Buffer
	host    string
}

// visit opens the pages without a sign-in.
func visit(t *testing.T, l *library) *visitor {
	t.Helper()
	return visitAs(t, l, auth.None, nil)
}

func visitAs(t *testing.T, l *library, mode auth.Mode, header http.Header) *visitor {
	t.Helper()
	logged := &bytes.Buffer{}
	log := slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	guard := auth.NewGuard(auth.Settings{Auth: mode, Password: "correct horse"}, nil, log)
	front, err := staff.New(staff.Options{Admin: l, Drills: l.drills, Guard: guard, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	handler := web.New(web.Options{
		Log: log, Registry: prometheus.NewRegistry(), RequestTimeout: time.Minute, BodyLimit: 10_000,
		BelievePermissions: mode == auth.Gateway,
		Ready:              func(context.Context) error { return nil },
	}, front.Routes)
	return &visitor{handler: handler, header: header, cookies: map[string]string{}, logged: logged, host: "localhost:9801"}
}

// page is an answer: its HTML, and the same as people read it.
type page struct {
	status int
	header http.Header
	raw    string
	html   string // with links from the root
	text   string
}

func (v *visitor) get(t *testing.T, path string) page {
	t.Helper()
	return v.send(t, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
}

// post sends a form as a browser does that has loaded it: with the token.
func (v *visitor) post(t *testing.T, path string, form url.Values) page {
	t.Helper()
	if len(v.cookies) == 0 {
		v.get(t, path[:strings.LastIndex(path, "/")+1])
	}
	form.Set("token", v.cookies["staff_token"])
	return v.postBare(t, path, form)
}

func (v *visitor) postBare(t *testing.T, path string, form url.Values) page {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return v.send(t, r)
}

var upToRoot = regexp.MustCompile(`="(?:\.\./)+`)

// fromRoot writes relative links of the page as paths from the root.
func fromRoot(html string) string {
	return strings.ReplaceAll(upToRoot.ReplaceAllString(html, `="/`), `="staff/`, `="/staff/`)
}

var tags = regexp.MustCompile(`(?s)<[^>]*>`)

func (v *visitor) send(t *testing.T, r *http.Request) page {
	t.Helper()
	r.Host = v.host
	for name, values := range v.header {
		r.Header[name] = values
	}
	for name, value := range v.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	w := httptest.NewRecorder()
	v.handler.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		v.cookies[c.Name] = c.Value
	}
	if to := w.Header().Get("Location"); to != "" {
		w.Header().Set("Location", fromRoot(`="` + to)[2:])
	}
	p := page{status: w.Code, header: w.Header(), raw: w.Body.String()}
	p.html = fromRoot(p.raw)
	p.text = strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(p.html, " "))), " ")
	if strings.HasPrefix(p.html, "<!DOCTYPE") {
		sound(t, p)
	}
	return p
}

// want checks a page's status and that people read these words on it.
func (p page) want(t *testing.T, status int, words ...string) {
	t.Helper()
	if p.status != status {
		t.Errorf("got status %d, want %d", p.status, status)
	}
	for _, w := range words {
		if !strings.Contains(p.text, w) {
			t.Errorf("%q is not on the page:\n%s", w, p.text)
		}
	}
}

// lacks checks that something stands nowhere in the page, not even in its source.
func (p page) lacks(t *testing.T, words ...string) {
	t.Helper()
	for _, w := range words {
		if strings.Contains(p.html, w) || strings.Contains(p.text, w) {
			t.Errorf("%q is on the page:\n%s", w, p.html)
		}
	}
}

// has checks a page's source.
func (p page) has(t *testing.T, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(p.html, part) {
			t.Errorf("%s is not in the page:\n%s", part, p.html)
		}
	}
}
