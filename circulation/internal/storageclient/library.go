package storageclient

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation/internal/checkin"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas/convert"
	"checkoutlock/schemas/fault"
)

// The collections that check-outs read (FOLIO's paths and keys).
var (
	users           = collection{path: "/users", key: "users"}
	groups          = collection{path: "/groups", key: "usergroups"}
	items           = collection{path: "/item-storage/items", key: "items"}
	holdings        = collection{path: "/holdings-storage/holdings", key: "holdingsRecords"}
	instances       = collection{path: "/instance-storage/instances", key: "instances"}
	locations       = collection{path: "/locations", key: "locations"}
	materialTypes   = collection{path: "/material-types", key: "mtypes"}
	libraryUnits    = collection{path: "/location-units/libraries", key: "loclibs"}
	servicePoints   = collection{path: "/service-points", key: "servicepoints"}
	loanPolicies    = collection{path: "/loan-policy-storage/loan-policies", key: "loanPolicies"}
	requestPolicies = collection{path: "/request-policy-storage/request-policies", key: "requestPolicies"}
	noticePolicies  = collection{path: "/patron-notice-policy-storage/patron-notice-policies", key: "patronNoticePolicies"}
	overduePolicies = collection{path: "/overdue-fines-policies", key: "overdueFinePolicies"}
	lostPolicies    = collection{path: "/lost-item-fees-policies", key: "lostItemFeePolicies"}
	schedules       = collection{path: "/fixed-due-date-schedule-storage/fixed-due-date-schedules", key: "fixedDueDateSchedules"}
	loans           = collection{path: "/loan-storage/loans", key: "loans"}
	proxies         = collection{path: "/proxiesfor", key: "proxiesFor"}
)

// UserByBarcode returns a patron. Fault: NotFound.
func (c *Client) UserByBarcode(ctx context.Context, barcode string) (library.User, error) {
	return findRecord[library.User](ctx, c, users, equals("barcode", barcode))
}

// User returns a patron. Fault: NotFound.
func (c *Client) User(ctx context.Context, id string) (library.User, error) {
	return readRecord[library.User](ctx, c, users, id)
}

// Item implements requests.Library.
func (c *Client) Item(ctx context.Context, id string) (library.Item, error) {
	return readRecord[library.Item](ctx, c, items, id)
}

// Holdings implements requests.Library.
func (c *Client) Holdings(ctx context.Context, id string) (library.Holdings, error) {
	return readRecord[library.Holdings](ctx, c, holdings, id)
}

// Instance implements requests.Library.
func (c *Client) Instance(ctx context.Context, id string) (library.Instance, error) {
	return readRecord[library.Instance](ctx, c, instances, id)
}

// Location implements library.Records.
func (c *Client) Location(ctx context.Context, id string) (library.Location, error) {
	return keepRecord(ctx, c, locations, id, parseRecord[library.Location])
}

// ServicePoint implements related.Records.
func (c *Client) ServicePoint(ctx context.Context, id string) (library.ServicePoint, error) {
	return keepRecord(ctx, c, servicePoints, id, parseRecord[library.ServicePoint])
}

// FindServicePoint returns the id of the service point with an id or a code. Fault: NotFound.
func (c *Client) FindServicePoint(ctx context.Context, idOrCode string) (string, error) {
	if uuid.Validate(idOrCode) == nil {
		_, err := c.ServicePoint(ctx, idOrCode)
		return idOrCode, err
	}
	found, err := findRecord[library.Named](ctx, c, servicePoints, equals("code", idOrCode))
	return found.ID, err
}

// PickupPoint implements requests.Library. It reads the service point without the cache.
func (c *Client) PickupPoint(ctx context.Context, id string) (library.ServicePoint, error) {
	return readRecord[library.ServicePoint](ctx, c, servicePoints, id)
}

// Group implements library.Records.
func (c *Client) Group(ctx context.Context, id string) (library.Group, error) {
	return keepRecord(ctx, c, groups, id, parseRecord[library.Group])
}

// LoanPolicy implements checkout.Library.
func (c *Client) LoanPolicy(ctx context.Context, id string) (policy.LoanPolicy, error) {
	return keepRecord(ctx, c, loanPolicies, id, policy.ParseLoanPolicy)
}

// RenewalPolicy implements renewal.Renewer. It reads the policy on each call, without the cache.
func (c *Client) RenewalPolicy(ctx context.Context, id string) (policy.LoanPolicy, error) {
	return fetchRecord(ctx, c, loanPolicies, id, policy.ParseLoanPolicy)
}

// RequestPolicy implements requests.Library.
func (c *Client) RequestPolicy(ctx context.Context, id string) (policy.RequestPolicy, error) {
	return keepRecord(ctx, c, requestPolicies, id, parseRecord[policy.RequestPolicy])
}

// FixedSchedule implements library.Records.
func (c *Client) FixedSchedule(ctx context.Context, id string) (policy.FixedSchedule, error) {
	return keepRecord(ctx, c, schedules, id, policy.ParseFixedSchedule)
}

// Users returns those of the patrons that exist, in any order.
func (c *Client) Users(ctx context.Context, ids []string) ([]library.User, error) {
	return listByID[library.User](ctx, c, users, ids)
}

// Items returns those of the items that exist, in any order.
func (c *Client) Items(ctx context.Context, ids []string) ([]library.Item, error) {
	return listByID[library.Item](ctx, c, items, ids)
}

// ServicePoints implements admin.Storage.
func (c *Client) ServicePoints(ctx context.Context, ids []string) ([]library.ServicePoint, error) {
	return listByID[library.ServicePoint](ctx, c, servicePoints, ids)
}

// ListServicePoints implements admin.Storage.
func (c *Client) ListServicePoints(ctx context.Context, limit int) ([]library.ServicePoint, error) {
	return listRecords[library.ServicePoint](ctx, c, servicePoints, "cql.allRecords=1 sortBy name", limit)
}

// ItemsByBarcode implements admin.Storage.
func (c *Client) ItemsByBarcode(ctx context.Context, barcodes []string) ([]library.Item, error) {
	return listRecords[library.Item](ctx, c, items, anyOf("barcode", barcodes), len(barcodes))
}

// SearchUsers implements admin.Storage.
func (c *Client) SearchUsers(ctx context.Context, beginnings []string, limit int) ([]library.User, error) {
	clauses := convert.All(beginnings, func(b string) string { return `keywords="` + cqlEscaper.Replace(b) + `*"` })
	return listRecords[library.User](ctx, c, users, strings.Join(clauses, " and ")+" sortBy personal.lastName personal.firstName", limit)
}

// UsersNamed implements admin.Storage.
func (c *Client) UsersNamed(ctx context.Context, text string) ([]library.User, error) {
	return listRecords[library.User](ctx, c, users, equals("barcode", text)+" or "+equals("username", text), 2)
}

// HoldingsRecords returns those of the holdings that exist, in any order.
func (c *Client) HoldingsRecords(ctx context.Context, ids []string) ([]library.Holdings, error) {
	return listByID[library.Holdings](ctx, c, holdings, ids)
}

// Instances returns those of the instances that exist, in any order.
func (c *Client) Instances(ctx context.Context, ids []string) ([]library.Instance, error) {
	return listByID[library.Instance](ctx, c, instances, ids)
}

// LoanPolicyRecords implements admin.Policies.
func (c *Client) LoanPolicyRecords(ctx context.Context, ids []string) ([]policy.LoanPolicy, error) {
	found, err := listByID[json.RawMessage](ctx, c, loanPolicies, ids)
	var readable []policy.LoanPolicy
	for _, raw := range found {
		if p, err := policy.ParseLoanPolicy(raw); err == nil {
			readable = append(readable, p)
		}
	}
	return readable, err
}

// policies are the collections of the kinds.
var policies = map[policy.Kind]collection{
	policy.KindLoan: loanPolicies, policy.KindRequest: requestPolicies, policy.KindNotice: noticePolicies,
	policy.KindOverdueFine: overduePolicies, policy.KindLostItem: lostPolicies,
}

// ExistingPolicies implements admin.Policies.
func (c *Client) ExistingPolicies(ctx context.Context, kind policy.Kind, ids []string) ([]string, error) {
	found, err := listByID[library.Named](ctx, c, policies[kind], ids)
	return idsOf(found), err
}

// criteria are the records of the criteria of circulation rules, by letter.
var criteria = map[string]collection{
	"m": materialTypes, "t": loanTypes, "g": groups, "s": locations, "c": libraryUnits, "b": campuses, "a": institutions,
}

// NamedInRules implements admin.Storage.
func (c *Client) NamedInRules(ctx context.Context, kind string, ids []string) ([]library.Named, error) {
	from, known := criteria[kind]
	if !known && len(kind) == 1 {
		from, known = policies[policy.Kind(kind[0])]
	}
	if !known {
		return nil, nil
	}
	found, err := listByID[namedRecord](ctx, c, from, ids)
	return convert.All(found, namedRecord.named), err
}

// namedRecord is a record with a name. FOLIO calls that of a patron group its group, and that of an
// address type its address type.
type namedRecord struct {
	library.Named
	Group       string `json:"group"`
	AddressType string `json:"addressType"`
}

func (r namedRecord) named() library.Named {
	return library.Named{ID: r.ID, Name: cmp.Or(r.Group, r.AddressType, r.Name)}
}

// namedKinds are the collections of the kinds.
var namedKinds = map[library.NamedKind]collection{
	library.AddressType: addressTypes, library.Campus: campuses, library.Institution: institutions, library.LibraryUnit: libraryUnits,
	library.LoanType: loanTypes, library.LostItemPolicy: lostPolicies, library.MaterialType: materialTypes, library.OverdueFinePolicy: overduePolicies,
}

// Named implements library.Records.
func (c *Client) Named(ctx context.Context, kind library.NamedKind, id string) (library.Named, error) {
	r, err := keepRecord(ctx, c, namedKinds[kind], id, parseRecord[namedRecord])
	return r.named(), err
}

// patronActionSessions are the sessions of patrons at a desk (FOLIO's path and key).
var patronActionSessions = collection{path: "/patron-action-session-storage/patron-action-sessions", key: "patronActionSessions"}

// sessionBatch is how many sessions are read at once to be deleted.
const sessionBatch = 100

// ExpiredSessions implements checkin.SessionStore.
func (c *Client) ExpiredSessions(ctx context.Context, before time.Time, limit int) ([]checkin.EndSession, error) {
	r := get("", "/patron-action-session-storage/expired-session-patron-ids", url.Values{
		"session_inactivity_time_limit": {library.Instant{Time: before}.Text()}, "limit": {strconv.Itoa(limit)},
	})
	type answer struct {
		Expired []checkin.EndSession `json:"expiredSessions"`
	}
	found, err := call(ctx, c, r, "expiredSessions", func(a answer) bool { return a.Expired != nil })
	return found.Expired, err
}

// DeleteSessions implements checkin.SessionStore. If the time is zero, sessions that are added while
// it runs may be deleted too, or stay.
func (c *Client) DeleteSessions(ctx context.Context, e checkin.EndSession, createdBefore time.Time) error {
	query := equals("patronId", e.PatronID) + " and " + equals("actionType", e.ActionType)
	if !createdBefore.IsZero() {
		query += ` and metadata.createdDate<"` + library.Instant{Time: createdBefore}.Text() + `"`
	}
	for {
		found, err := listRecords[library.Named](ctx, c, patronActionSessions, query, sessionBatch)
		if err != nil {
			return fmt.Errorf("finding the patron's sessions: %w", err)
		}
		for _, session := range found {
			r := changeRecord("deleting a patron's session", http.MethodDelete, patronActionSessions.path, session.ID, nil)
			if _, _, err := fault.Found(c.do(ctx, r)); err != nil { // one that no longer exists is no error
				return err
			}
		}
		if len(found) < sessionBatch {
			return nil
		}
	}
}
