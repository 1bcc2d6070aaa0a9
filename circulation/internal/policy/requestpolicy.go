package policy

import (
	"slices"
	"strings"
)

// RequestPolicy says which types of requests are allowed, and where their items are picked up.
type RequestPolicy struct {
	ID            string              `json:"id"`
	RequestTypes  []string            `json:"requestTypes"`
	ServicePoints map[string][]string `json:"allowedServicePoints"` // by type; all for a missing one
}

// AllowsType reports whether the policy allows Hold, Recall or Page.
func (p RequestPolicy) AllowsType(requestType string) bool {
	return slices.Contains(p.RequestTypes, requestType)
}

// AllowsServicePoint reports whether requests of the type may be picked up at the service point.
func (p RequestPolicy) AllowsServicePoint(requestType, id string) bool {
	allowed, limited := p.ServicePoints[requestType]
	return !limited || slices.ContainsFunc(allowed, func(a string) bool { return strings.EqualFold(a, id) })
}
