package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"checkoutlock/circulation-storage/internal/httpapi"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
)

func newPatronBlockAPI(t *testing.T) recordAPI {
	t.Helper()
	db, id := pgtest.New(t)
	return recordAPI{newAPI(t, httpapi.PatronBlockRoutes(postgres.NewRecordStore(db, func() {}))), id}
}

const blocksPath = "/automated-patron-blocks/" + userID

// wantNoBlocks fails the test unless the patron with that id has an empty list.
func (a recordAPI) wantNoBlocks(t *testing.T, id string) {
	t.Helper()
	got := a.must(t, http.MethodGet, "/automated-patron-blocks/"+id, "", http.StatusOK).Body.String()
	if want := `{"automatedPatronBlocks":[]}`; strings.TrimSpace(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestPatronBlockRoutes_KeepBlocks(t *testing.T) {
	t.Parallel()
	a := newPatronBlockAPI(t)
	a.wantNoBlocks(t, userID)
	for _, doc := range []string{
		`{"automatedPatronBlocks":[{"patronBlockConditionId":"` + groupID +
			`","blockBorrowing":true,"blockRenewals":false,"blockRequests":true,
			"message":"Maximum number of items charged out","ours":[1]},{"message":"Ärger","blockBorrowing":null}]}`,
		`{"automatedPatronBlocks":[]}`,
	} {
		a.must(t, http.MethodPut, blocksPath, doc, http.StatusNoContent)
		got := a.must(t, http.MethodGet, "/automated-patron-blocks/"+strings.ToUpper(userID), "", http.StatusOK).Body.String()
		wantWhole(t, doc, got)
		if strings.Contains(got, "null") {
			t.Errorf("got %s, want no null", got)
		}
	}
	a.wantNoBlocks(t, groupID)
}

func TestPatronBlockRoutes_RefuseBadBlocks(t *testing.T) {
	t.Parallel()
	a := newPatronBlockAPI(t)
	for name, tt := range map[string]struct {
		target, body string
		status       int
		want         string
	}{
		"no list": {target: blocksPath, body: `{}`, status: 422, want: "automatedPatronBlocks is required"},
		"no message": {
			target: blocksPath, body: `{"automatedPatronBlocks":[{"blockBorrowing":true}]}`, status: 422,
			want: "automatedPatronBlocks[0].message is required",
		},
		"a text for yes": {
			target: blocksPath, body: `{"automatedPatronBlocks":[{"message":"m","blockBorrowing":"yes"}]}`, status: 422,
			want: "automatedPatronBlocks[0].blockBorrowing must be of type boolean",
		},
		"a list alone": {target: blocksPath, body: `[]`, status: 422, want: "must be of type object"},
		"no JSON":      {target: blocksPath, body: `{`, status: 400, want: ""},
		"no id": {
			target: "/automated-patron-blocks/jane", body: `{"automatedPatronBlocks":[]}`, status: 400, want: "is no UUID",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantRefusal(t, a.do(http.MethodPut, tt.target, tt.body), tt.status, tt.want)
			a.wantNoBlocks(t, userID)
		})
	}
}
