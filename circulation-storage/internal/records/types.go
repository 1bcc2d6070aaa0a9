package records

// Types returns the table of types, each after the types it refers to. So records can
// be created in this order.
func Types() []Type {
	return []Type{
		Usergroup, AddressType, User, MaterialType, LoanType, ServicePoint, Institution, Campus, Library, Location,
		Instance, Holdings, Item, FixedDueDateSchedule, LoanPolicy, RequestPolicy, PatronNoticePolicy,
		OverdueFinePolicy, LostItemFeePolicy,
		CirculationSetting, SettingsEntry, StaffSlip, CancellationReason, RequestPreference,
		ProxyFor, ManualBlock, PatronBlockCondition, PatronBlockLimit, Loan, Request, PatronActionSession,
		CheckInOperation, ScheduledNotice, ActualCostRecord, TLRFeatureToggleJob, SelfCheckTerminal,
	}
}

// MaterialType is what an item is made of: book, DVD, … (mod-inventory-storage).
var MaterialType = Type{
	Name: "material type", Path: "/material-types", Collection: "mtypes", Table: "material_type", Schema: "material-type",
	Permission: "inventory-storage.material-types", Interface: "material-types 2.2",
	Indexes: newIndexes(fields{Text: {"name", "source"}}),
	Unique:  uniqueFields("material_type", "name"),
}

// LoanType is how an item may be lent (mod-inventory-storage).
var LoanType = Type{
	Name: "loan type", Path: "/loan-types", Collection: "loantypes", Table: "loan_type", Schema: "loan-type",
	Permission: "inventory-storage.loan-types", Interface: "loan-types 2.4",
	Indexes: newIndexes(fields{Text: {"name", "source"}}),
	Unique:  uniqueFields("loan_type", "name"),
}

// ServicePoint is a desk or a self-check machine (mod-inventory-storage).
var ServicePoint = Type{
	Name: "service point", Path: "/service-points", Collection: "servicepoints", Table: "service_point", Schema: "service-point",
	Permission: "inventory-storage.service-points", Interface: "service-points 3.5", Lists: []string{"staffSlips"},
	Indexes: newIndexes(fields{
		Text: {"name", "code", "discoveryDisplayName", "description"}, Boolean: {"pickupLocation", "ecsRequestRouting"},
		Number: {"shelvingLagTime"},
	}),
	Unique: uniqueFields("service_point", "name", "code"),
}

// Institution is the largest unit of locations (mod-inventory-storage).
var Institution = Type{
	Name: "institution", Path: "/location-units/institutions", Collection: "locinsts", Table: "locinstitution", Schema: "locinstitution",
	Permission: "inventory-storage.location-units.institutions", Interface: "location-units 2.1",
	Indexes: newIndexes(fields{Text: {"name", "code"}, Boolean: {"isShadow"}}),
	Unique:  uniqueFields("locinstitution", "name"),
}

// Campus is a part of an institution (mod-inventory-storage).
var Campus = Type{
	Name: "campus", Path: "/location-units/campuses", Collection: "loccamps", Table: "loccampus", Schema: "loccampus",
	Permission: "inventory-storage.location-units.campuses", Interface: "location-units 2.1",
	Indexes:    newIndexes(fields{Text: {"name", "code"}, Boolean: {"isShadow"}}, "institutionId"),
	Unique:     uniqueFields("loccampus", "name"),
	References: []Reference{newReference("loccampus", "institutionId", "locinstitution")},
}

// Library is a part of a campus (mod-inventory-storage).
var Library = Type{
	Name: "library", Path: "/location-units/libraries", Collection: "loclibs", Table: "loclibrary", Schema: "loclibrary",
	Permission: "inventory-storage.location-units.libraries", Interface: "location-units 2.1",
	Indexes:    newIndexes(fields{Text: {"name", "code"}, Boolean: {"isShadow"}}, "campusId"),
	Unique:     uniqueFields("loclibrary", "name"),
	References: []Reference{newReference("loclibrary", "campusId", "loccampus")},
}

// Location is a shelf (mod-inventory-storage). It may name missing service points, as one of FOLIO's
// sample does.
var Location = Type{
	Name: "location", Path: "/locations", Collection: "locations", Table: "location", Schema: "location",
	Permission: "inventory-storage.locations", Interface: "locations 3.2", Lists: []string{"servicePointIds"},
	Indexes: newIndexes(fields{
		Text:    {"name", "code", "description", "discoveryDisplayName", "servicePointIds"},
		UUID:    {"primaryServicePoint"},
		Boolean: {"isActive", "isShadow", "isFloatingCollection"},
	}, "institutionId", "campusId", "libraryId"),
	Unique: uniqueFields("location", "name", "code"),
	References: []Reference{
		newReference("location", "institutionId", "locinstitution"),
		newReference("location", "campusId", "loccampus"),
		newReference("location", "libraryId", "loclibrary"),
		newLinks("location", "primaryServicePoint", "service_point"),
		newLinks("location", "servicePointIds", "service_point"),
	},
}
