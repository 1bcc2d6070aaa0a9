package loanview

import (
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
)

// Place is a service point as FOLIO describes it within a loan or a request.
type Place struct {
	ID                   string              `json:"id,omitempty"`
	Name                 string              `json:"name"`
	Code                 string              `json:"code,omitempty"`
	DiscoveryDisplayName string              `json:"discoveryDisplayName,omitempty"`
	Description          string              `json:"description,omitempty"`
	ShelvingLagTime      *policy.WholeNumber `json:"shelvingLagTime,omitempty"`
	PickupLocation       bool                `json:"pickupLocation"`
}

// DescribePlace returns the service point; nil for none.
func DescribePlace(p library.ServicePoint) *Place {
	if p.ID == "" {
		return nil
	}
	return &Place{
		ID: p.ID, Name: p.Name, Code: p.Code, DiscoveryDisplayName: p.DiscoveryDisplayName, Description: p.Description,
		ShelvingLagTime: p.ShelvingLagTime, PickupLocation: p.PickupLocation,
	}
}
