package storageclient

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
)

// checkOuts are the loans of commits (our path).
var checkOuts = collection{path: "/loan-storage/check-outs", settles: true}

// CheckOut implements checkout.Committer.
func (c *Client) CheckOut(ctx context.Context, commit schemas.CheckOut) (schemas.CheckOutResult, error) {
	r := send("committing the check-out", http.MethodPost, checkOuts.path, commit, http.StatusCreated).settling()
	return call(ctx, c, r, "loan", func(result schemas.CheckOutResult) bool { return len(result.Loan) > 0 })
}

// SettleCheckOut implements checkout.Committer.
func (c *Client) SettleCheckOut(ctx context.Context, loanID string) (schemas.SettledCheckOut, error) {
	r := changeRecord("settling the check-out", http.MethodPost, checkOuts.path, loanID, nil).settling()
	r.path, r.route, r.want = r.path+"/settlement", r.route+"/settlement", http.StatusOK
	return call(ctx, c, r, "loan", func(settled schemas.SettledCheckOut) bool { return settled.GivenUp || len(settled.Loan) > 0 })
}

// Snapshot implements library.Records. Its answer confirms the reference records that the client
// keeps, unless one has changed.
func (c *Client) Snapshot(ctx context.Context, subjects schemas.CheckOutSubjects) (library.Facts, error) {
	r := send("reading the facts of a check-out", http.MethodPost, "/loan-storage/check-out-facts", subjects, http.StatusOK)
	began := c.cache.Now()
	facts, err := call(ctx, c, r, "onLoan", func(facts library.Facts) bool { return facts.OnLoan != nil })
	if err == nil {
		c.noteVersion(ctx, facts.ReferenceVersion, began)
	}
	return facts, err
}

// CommittedLoan implements checkout.Committer.
func (c *Client) CommittedLoan(ctx context.Context, id string) (json.RawMessage, error) {
	loan, err := readRecord[json.RawMessage](ctx, c, checkOuts, id)
	if err != nil {
		return nil, fmt.Errorf("reading the loan of a check-out: %w", err)
	}
	return loan, nil
}

// CheckIn implements checkin.Returner.
func (c *Client) CheckIn(ctx context.Context, commit schemas.CheckIn) (schemas.CheckInResult, error) {
	r := send("committing the check-in", http.MethodPost, "/loan-storage/check-ins", commit, http.StatusOK)
	return call(ctx, c, r, "item", func(result schemas.CheckInResult) bool { return len(result.Item) > 0 })
}

// Renew implements renewal.Renewer.
func (c *Client) Renew(ctx context.Context, renewal schemas.Renewal) (json.RawMessage, error) {
	r := send("committing the renewal", http.MethodPost, "/loan-storage/renewals", renewal, http.StatusOK)
	result, err := call(ctx, c, r, "loan", func(result schemas.RenewalResult) bool { return len(result.Loan) > 0 })
	return result.Loan, err
}

// ChangeLoan implements loans.Changer.
func (c *Client) ChangeLoan(ctx context.Context, loanID string, change schemas.LoanChange) error {
	return c.changeLoan(ctx, loanID, "/changes", change)
}

// ReplaceLoan implements loans.Changer.
func (c *Client) ReplaceLoan(ctx context.Context, loanID string, replacement schemas.LoanReplacement) error {
	return c.changeLoan(ctx, loanID, "/replacements", replacement)
}

func (c *Client) changeLoan(ctx context.Context, loanID, path string, body any) error {
	r := changeRecord("changing a loan", http.MethodPost, loans.path, loanID, body)
	r.path, r.route = r.path+path, r.route+path
	return c.run(ctx, r)
}

// CreateLoan implements loans.Changer.
func (c *Client) CreateLoan(ctx context.Context, loan json.RawMessage) (json.RawMessage, error) {
	return c.do(ctx, send("storing a loan", http.MethodPost, loans.path, loan, http.StatusCreated))
}

// DeleteLoan implements httpapi.Storage.
func (c *Client) DeleteLoan(ctx context.Context, id string) error {
	return c.run(ctx, changeRecord("deleting a loan", http.MethodDelete, loans.path, id, nil))
}

// DeleteLoans implements httpapi.Storage.
func (c *Client) DeleteLoans(ctx context.Context, query string) error {
	return c.run(ctx, deleteMatching("deleting loans", loans.path, url.Values{"query": {query}}))
}

// anonymizedAtOnce is how many loans of a user one call anonymizes: FOLIO's number.
const anonymizedAtOnce = 5000

// AnonymizeLoansOf implements httpapi.Storage. Storage leaves loans that are open by then.
func (c *Client) AnonymizeLoansOf(ctx context.Context, userID string) ([]string, error) {
	ids, err := c.listClosedLoans(ctx, equals("userId", userID), anonymizedAtOnce)
	if err != nil {
		return nil, err
	}
	return ids, c.AnonymizeLoans(ctx, ids)
}

// ClosedLoans implements anonymization.Loans.
func (c *Client) ClosedLoans(ctx context.Context, returnedBefore time.Time, limit int) ([]string, error) {
	clause := `userId=""`
	if !returnedBefore.IsZero() {
		clause += ` and systemReturnDate<"` + library.Instant{Time: returnedBefore}.Text() + `" sortBy systemReturnDate`
	}
	return c.listClosedLoans(ctx, clause, limit)
}

func (c *Client) listClosedLoans(ctx context.Context, clause string, limit int) ([]string, error) {
	return fetchIDs(ctx, c, loans, equals("status.name", "Closed")+" and "+clause, limit)
}

// AnonymizeLoans implements anonymization.Loans.
func (c *Client) AnonymizeLoans(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	return c.run(ctx, send("anonymizing loans", http.MethodPost, "/anonymize-storage-loans", map[string]any{"loanIds": ids}, http.StatusOK))
}

// ProxyRelations implements loans.Library.
func (c *Client) ProxyRelations(ctx context.Context, userID, proxyID string) ([]library.ProxyRelation, error) {
	return listRecords[library.ProxyRelation](ctx, c, proxies, equals("userId", userID)+" and "+equals("proxyUserId", proxyID), batch)
}

// Loan implements httpapi.Storage.
func (c *Client) Loan(ctx context.Context, id string) (json.RawMessage, error) {
	return readRecord[json.RawMessage](ctx, c, loans, id)
}

// Loans implements httpapi.Storage.
func (c *Client) Loans(ctx context.Context, query string, offset, limit int) ([]json.RawMessage, int, error) {
	return listPage[json.RawMessage](ctx, c, loans, query, offset, limit)
}

// OpenLoan implements renewal.Renewer.
func (c *Client) OpenLoan(ctx context.Context, itemID string) (json.RawMessage, error) {
	loan, err := findRecord[json.RawMessage](ctx, c, loans, equals("status.name", "Open")+" and "+equals("itemId", itemID))
	if err != nil {
		return nil, fmt.Errorf("finding the item's open loan: %w", err)
	}
	return loan, nil
}

// OpenLoans implements related.Records. An item has one open loan at most.
func (c *Client) OpenLoans(ctx context.Context, itemIDs []string) ([]library.OpenLoan, error) {
	return listByIndex[library.OpenLoan](ctx, c, loans, equals("status.name", "Open")+" and itemId", itemIDs)
}
