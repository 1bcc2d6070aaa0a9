package records

// Institution is the widest unit that a location belongs to
// (mod-inventory-storage).
func Institution() Type {
	return Type{
		Name: "institution", Path: "/location-units/institutions", Collection: "locinsts", Table: "locinstitution", Schema: "locinstitution",
		Permission: "inventory-storage.location-units.institutions",
		Indexes:    index(fields{Text: {"name", "code"}, Boolean: {"isShadow"}}),
		Unique:     []Unique{{Constraint: "locinstitution_name_key", Fields: []string{"name"}}},
	}
}

// Campus is a part of an institution (mod-inventory-storage).
func Campus() Type {
	return Type{
		Name: "campus", Path: "/location-units/campuses", Collection: "loccamps", Table: "loccampus", Schema: "loccampus",
		Permission: "inventory-storage.location-units.campuses",
		Indexes:    index(fields{Text: {"name", "code"}, Boolean: {"isShadow"}}, columns{"institutionId": "institution_id"}),
		Unique:     []Unique{{Constraint: "loccampus_name_key", Fields: []string{"name"}}},
		References: []Reference{{Constraint: "loccampus_institution_id_fkey", Field: "institutionId", To: "locinstitution"}},
	}
}

// Library is a part of a campus (mod-inventory-storage).
func Library() Type {
	return Type{
		Name: "library", Path: "/location-units/libraries", Collection: "loclibs", Table: "loclibrary", Schema: "loclibrary",
		Permission: "inventory-storage.location-units.libraries",
		Indexes:    index(fields{Text: {"name", "code"}, Boolean: {"isShadow"}}, columns{"campusId": "campus_id"}),
		Unique:     []Unique{{Constraint: "loclibrary_name_key", Fields: []string{"name"}}},
		References: []Reference{{Constraint: "loclibrary_campus_id_fkey", Field: "campusId", To: "loccampus"}},
	}
}
