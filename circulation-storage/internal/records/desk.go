package records

import "context"

// StaffSlip is the template of a slip that a desk prints (mod-circulation-storage).
var StaffSlip = Type{
	Name: "staff slip", Path: "/staff-slips-storage/staff-slips", Collection: "staffSlips", Table: "staff_slips", Schema: "staff-slip",
	Permission: "circulation-storage.staff-slips", Interface: "staff-slips-storage 1.1", Upsert: true, Prepare: prepareStaffSlip,
	Indexes: newIndexes(fields{Text: {"name", "description"}, Boolean: {"active", "isRawHtml"}}),
	Unique:  uniqueFields("staff_slips", "name"),
}

// prepareStaffSlip makes a new slip active that does not say so, as FOLIO does.
func prepareStaffSlip(_ context.Context, _ Reader, w Write) error {
	if w.Stored == nil && w.Record["active"] == nil {
		w.Record["active"] = true
	}
	return nil
}

// CancellationReason is why a request is cancelled (mod-circulation-storage).
var CancellationReason = Type{
	Name: "cancellation reason", Path: "/cancellation-reason-storage/cancellation-reasons", Collection: "cancellationReasons",
	Table: "cancellation_reason", Schema: "cancellation-reason", Permission: "circulation-storage.cancellation-reasons", Interface: "cancellation-reason-storage 1.2",
	Indexes: newIndexes(fields{Text: {"name", "description", "publicDescription", "source"}, Boolean: {"requiresAdditionalInformation"}}),
	Unique:  uniqueFields("cancellation_reason", "name"),
}

// RequestPreference is how a user wants to get requested items (mod-circulation-storage). As in
// FOLIO, the user need not exist.
var RequestPreference = Type{
	Name: "request preference", Path: "/request-preference-storage/request-preference", Collection: "requestPreferences",
	Table: "user_request_preference", Schema: "request-preference", Permission: "circulation-storage.request-preferences", Interface: "request-preference-storage 2.0",
	Indexes: newIndexes(fields{
		Text: {"fulfillment"}, Boolean: {"holdShelf", "delivery"}, UUID: {"defaultServicePointId", "defaultDeliveryAddressTypeId"},
	}, "userId"),
	Unique: []Unique{{Constraint: "user_request_preference_user_id_key", Fields: []string{"userId"}, Message: "Request preference for specified user already exists"}},
}

// AddressType is a kind of address, such as home or work (mod-users).
var AddressType = Type{
	Name: "address type", Path: "/addresstypes", Collection: "addressTypes", Table: "addresstype", Schema: "addresstype",
	Permission: "addresstypes", Interface: "users 16.5",
	Indexes: newIndexes(fields{Text: {"addressType", "desc"}}),
	Unique:  uniqueFields("addresstype", "addressType"),
}
