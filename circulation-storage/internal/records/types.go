package records

import "checkoutlock/schemas/fault"

// Names that more than one entry of the table of types needs.
const (
	holdingsTable   = "holdings_record"
	itemHoldingsKey = "item_holdings_record_id_fkey"
)

// Types returns the table of types, each after those it refers to: records that
// are created in this order find what they name.
func Types() []Type {
	return []Type{
		Usergroup(), User(), MaterialType(), LoanType(), ServicePoint(), Institution(), Campus(), Library(), Location(),
		Instance(), Holdings(), Item(), FixedDueDateSchedule(), LoanPolicy(), RequestPolicy(), CirculationSetting(), SettingsEntry(),
		ProxyFor(), ManualBlock(), Loan(), Request(), PatronActionSession(),
	}
}

// Usergroup is a patron group (mod-users).
func Usergroup() Type {
	return Type{
		Name: "group", Path: "/groups", Collection: "usergroups", Table: "usergroup", Schema: "usergroup",
		Permission: "usergroups",
		Indexes:    index(fields{Text: {"group", "desc", "source"}, Number: {"expirationOffsetInDays"}}),
		Unique:     []Unique{{Constraint: "usergroup_group_key", Fields: []string{"group"}}},
	}
}

// User is a patron or a member of staff (mod-users).
func User() Type {
	return Type{
		Name: "user", Path: "/users", Collection: "users", Table: "users", Schema: "user",
		Permission: "users",
		Indexes: index(fields{
			Text: {
				"username", "barcode", "externalSystemId", "type", "tags.tagList", "departments",
				"personal.lastName", "personal.firstName", "personal.middleName", "personal.preferredFirstName", "personal.email",
				"personal.phone", "personal.mobilePhone",
			},
			Boolean: {"active"},
			Time:    {"enrollmentDate", "expirationDate", "createdDate", "updatedDate", "personal.dateOfBirth"},
		}, columns{"patronGroup": "patron_group"}),
		Unique: []Unique{
			{Constraint: "users_username_key", Fields: []string{"username"}},
			{Constraint: "users_barcode_key", Fields: []string{"barcode"}},
			{Constraint: "users_external_system_id_key", Fields: []string{"externalSystemId"}},
		},
		References: []Reference{{Constraint: "users_patron_group_fkey", Field: "patronGroup", To: "usergroup"}},
	}
}

// MaterialType is what an item is made of: book, DVD, … (mod-inventory-storage).
func MaterialType() Type {
	return Type{
		Name: "material type", Path: "/material-types", Collection: "mtypes", Table: "material_type", Schema: "material-type",
		Permission: "inventory-storage.material-types",
		Indexes:    index(fields{Text: {"name", "source"}}),
		Unique:     []Unique{{Constraint: "material_type_name_key", Fields: []string{"name"}}},
	}
}

// LoanType is how an item may be lent (mod-inventory-storage).
func LoanType() Type {
	return Type{
		Name: "loan type", Path: "/loan-types", Collection: "loantypes", Table: "loan_type", Schema: "loan-type",
		Permission: "inventory-storage.loan-types",
		Indexes:    index(fields{Text: {"name", "source"}}),
		Unique:     []Unique{{Constraint: "loan_type_name_key", Fields: []string{"name"}}},
	}
}

// ServicePoint is a desk or a machine (mod-inventory-storage).
func ServicePoint() Type {
	return Type{
		Name: "service point", Path: "/service-points", Collection: "servicepoints", Table: "service_point", Schema: "service-point",
		Permission: "inventory-storage.service-points",
		Indexes: index(fields{
			Text: {"name", "code", "discoveryDisplayName", "description"}, Boolean: {"pickupLocation", "ecsRequestRouting"},
			Number: {"shelvingLagTime"},
		}),
		Unique: []Unique{
			{Constraint: "service_point_name_key", Fields: []string{"name"}},
			{Constraint: "service_point_code_key", Fields: []string{"code"}},
		},
	}
}

// Location is a shelf (mod-inventory-storage). Its institution, campus, library
// and service points are not checked to exist.
func Location() Type {
	return Type{
		Name: "location", Path: "/locations", Collection: "locations", Table: "location", Schema: "location",
		Permission: "inventory-storage.locations",
		Indexes: index(fields{
			Text:    {"name", "code", "description", "discoveryDisplayName", "servicePointIds"},
			UUID:    {"institutionId", "campusId", "libraryId", "primaryServicePoint"},
			Boolean: {"isActive", "isShadow", "isFloatingCollection"},
		}),
		Unique: []Unique{
			{Constraint: "location_name_key", Fields: []string{"name"}},
			{Constraint: "location_code_key", Fields: []string{"code"}},
		},
	}
}

// LoanPolicy says for how long, and how many, items are lent
// (mod-circulation-storage).
func LoanPolicy() Type {
	return Type{
		Name: "loan policy", Path: "/loan-policy-storage/loan-policies", Collection: "loanPolicies", Table: "loan_policy", Schema: "loan-policy",
		Permission: "circulation-storage.loan-policies",
		Indexes: index(fields{
			Text: {"name", "description", "loansPolicy.profileId"}, Boolean: {"loanable", "renewable"},
			Number: {"loansPolicy.itemLimit"},
			UUID:   {"loansPolicy.fixedDueDateScheduleId", "renewalsPolicy.alternateFixedDueDateScheduleId"},
		}),
		Unique: []Unique{{Constraint: "loan_policy_name_key", Fields: []string{"name"}}},
	}
}

// Loan is a loan as it is stored, open or closed (mod-circulation-storage).
func Loan() Type {
	return Type{
		Name: "loan", Path: "/loan-storage/loans", Collection: "loans", Table: "loan", Schema: "loan",
		Permission: "circulation-storage.loans", Upsert: true, Prepare: prepareLoan,
		Indexes: index(fields{
			Text: {"status.name", "action", "actionComment", "itemStatus", "forUseAtLocation.status"},
			UUID: {
				"proxyUserId", "loanPolicyId", "checkoutServicePointId", "checkinServicePointId", "patronGroupIdAtCheckout",
				"itemEffectiveLocationIdAtCheckOut", "overdueFinePolicyId", "lostItemPolicyId",
			},
			Boolean: {"dueDateChangedByRecall", "isDcb", "agedToLostDelayedBilling.lostItemHasBeenBilled"},
			Number:  {"renewalCount", "reminders.lastFeeBilled.number"},
			Time: {
				"loanDate", "dueDate", "returnDate", "systemReturnDate", "declaredLostDate", "claimedReturnedDate",
				"agedToLostDelayedBilling.dateLostItemShouldBeBilled", "agedToLostDelayedBilling.agedToLostDate",
				"reminders.lastFeeBilled.date", "forUseAtLocation.statusDate", "forUseAtLocation.holdShelfExpirationDate",
			},
		}, columns{"userId": "user_id", "itemId": "item_id"}),
		Unique: []Unique{{
			Constraint: "loan_open_item_id_key", Fields: []string{"itemId"},
			Message: "Cannot have more than one open loan for the same item",
		}},
	}
}

// SettingsEntry is one setting of a tenant, or of one of its users
// (mod-settings, which answers 403 to a duplicate).
func SettingsEntry() Type {
	return Type{
		Name: "settings entry", Path: "/settings/entries", Collection: "items", Table: "settings_entry", Schema: "settings-entry",
		Permission: "mod-settings.entries", Prepare: prepareSettingsEntry,
		Indexes: index(fields{Text: {"scope", "key", "value"}, UUID: {"userId"}}),
		Unique: []Unique{
			{
				Constraint: "settings_entry_scope_key_user_id_key", Fields: []string{"scope", "key", "userId"}, Code: fault.Forbidden,
				Message: "There is an entry with this scope, key and userId already",
			},
			{Constraint: "settings_entry_pkey", Fields: []string{"id"}, Code: fault.Forbidden},
		},
	}
}
