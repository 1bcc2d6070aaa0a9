package checkout

import (
	"slices"
	"strings"
	"time"

	"checkoutlock/schemas/fault"
)

// ProxyRelation lets one patron, the proxy, borrow for another, the sponsor
// (mod-users). Lock, limit and loan are the sponsor's.
type ProxyRelation struct {
	Status         string  `json:"status"`
	ExpirationDate Instant `json:"expirationDate"` // zero for never
}

func (r ProxyRelation) active(now time.Time) bool {
	return strings.EqualFold(r.Status, "Active") && (r.ExpirationDate.IsZero() || r.ExpirationDate.After(now))
}

func (p *plan) checkProxyFound() []fault.Detail {
	if p.req.ProxyUserBarcode == "" || p.proxyFound {
		return nil
	}
	return []fault.Detail{userNotFound("proxyUserBarcode", p.req.ProxyUserBarcode)}
}

func (p *plan) checkProxy(now time.Time) []fault.Detail {
	if !p.proxyFound {
		return nil
	}
	barcode := fault.Param("proxyUserBarcode", p.req.ProxyUserBarcode)
	var wrong []fault.Detail
	switch {
	case p.proxy.Active == nil:
		wrong = append(wrong, detail("", "Cannot determine if proxying user is active or not", barcode))
	case p.proxy.Inactive(now):
		wrong = append(wrong, detail("", "Cannot check out via inactive proxying user", barcode))
	}
	switch {
	case !p.userFound:
	case p.proxy.ID == p.user.ID:
		wrong = append(wrong, detail("USER_CANNOT_BE_PROXY_FOR_THEMSELVES", "User cannot be proxy for themselves",
			fault.Param("proxyUserId", p.proxy.ID)))
	case !slices.ContainsFunc(p.relations, func(r ProxyRelation) bool { return r.active(now) }):
		wrong = append(wrong, detail("", "Cannot check out item via proxy when relationship is invalid", barcode))
	}
	return wrong
}
