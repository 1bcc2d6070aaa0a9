package library

import (
	"strings"
	"time"
)

// User is a patron (mod-users).
type User struct {
	ID             string   `json:"id"`
	Username       string   `json:"username"`
	Type           string   `json:"type"`
	Barcode        string   `json:"barcode"`
	Active         *bool    `json:"active"`
	PatronGroup    string   `json:"patronGroup"`
	ExpirationDate Instant  `json:"expirationDate"`
	Personal       Personal `json:"personal"`
}

// IsInactive reports whether the patron may neither borrow nor request. It compares the expiration
// date, as FOLIO does, because active stays true in storage when a card expires. A patron without
// the property active is inactive.
func (u User) IsInactive(now time.Time) bool {
	return u.Active == nil || !*u.Active || !u.ExpirationDate.IsZero() && u.ExpirationDate.Before(now)
}

// Personal is a patron's name with the addresses.
type Personal struct {
	FirstName          string    `json:"firstName"`
	LastName           string    `json:"lastName"`
	MiddleName         string    `json:"middleName"`
	PreferredFirstName string    `json:"preferredFirstName"`
	Addresses          []Address `json:"addresses"`
}

// Address is one of a patron's addresses, of which each has another type.
type Address struct {
	AddressTypeID string `json:"addressTypeId,omitempty"`
	AddressLine1  string `json:"addressLine1,omitempty"`
	AddressLine2  string `json:"addressLine2,omitempty"`
	City          string `json:"city,omitempty"`
	Region        string `json:"region,omitempty"`
	PostalCode    string `json:"postalCode,omitempty"`
	CountryID     string `json:"countryId,omitempty"`
}

// FindAddress returns the address of a type; false if there is none.
func (p Personal) FindAddress(typeID string) (Address, bool) {
	for _, a := range p.Addresses {
		if typeID != "" && strings.EqualFold(a.AddressTypeID, typeID) {
			return a, true
		}
	}
	return Address{}, false
}

// FullName returns the name as FOLIO's messages have it: last name first.
func (p Personal) FullName() string {
	if p.FirstName == "" {
		return p.LastName
	}
	return p.LastName + ", " + p.FirstName
}

// Group is a patron group.
type Group struct {
	ID    string `json:"id"`
	Group string `json:"group"`
	Desc  string `json:"desc,omitempty"`
}

// ManualBlock is a block that staff put on a patron (mod-feesfines).
type ManualBlock struct {
	Desc           string  `json:"desc"`          // for staff
	PatronMessage  string  `json:"patronMessage"` // what the patron may read; empty for none
	Borrowing      bool    `json:"borrowing"`
	Renewals       bool    `json:"renewals"`
	Requests       bool    `json:"requests"`
	ExpirationDate Instant `json:"expirationDate"` // zero if it does not expire
}

// IsInForce reports whether the block has not expired.
func (b ManualBlock) IsInForce(now time.Time) bool {
	return b.ExpirationDate.IsZero() || b.ExpirationDate.After(now)
}

// AutomatedBlock is a block by the library's conditions (mod-patron-blocks).
type AutomatedBlock struct {
	BlockBorrowing bool   `json:"blockBorrowing"`
	BlockRenewals  bool   `json:"blockRenewals"`
	BlockRequests  bool   `json:"blockRequests"`
	Message        string `json:"message"`
}

// AutomatedBlocks is a patron's list of them.
type AutomatedBlocks struct {
	Blocks []AutomatedBlock `json:"automatedPatronBlocks"`
}

// ProxyRelation lets one patron, the proxy, borrow for another, the sponsor (mod-users). Lock,
// limit and loan are the sponsor's.
type ProxyRelation struct {
	Status         string  `json:"status"`
	ExpirationDate Instant `json:"expirationDate"` // zero if it does not expire
}

// IsActive reports whether the proxy may borrow now.
func (r ProxyRelation) IsActive(now time.Time) bool {
	return strings.EqualFold(r.Status, "Active") && (r.ExpirationDate.IsZero() || r.ExpirationDate.After(now))
}
