package records

// Instance is a title (mod-inventory-storage).
func Instance() Type {
	return Type{
		Name: "instance", Path: "/instance-storage/instances", Collection: "instances", Table: "instance", Schema: "instance",
		Permission: "inventory-storage.instances", Versioned: true,
		Indexes: index(fields{
			Text: {
				"hrid", "title", "indexTitle", "source", "languages", "contributors", "identifiers", "subjects", "tags.tagList",
				"statisticalCodeIds", "catalogedDate",
			},
			UUID:    {"instanceTypeId", "modeOfIssuanceId", "statusId"},
			Boolean: {"discoverySuppress", "staffSuppress", "previouslyHeld"},
		}),
		Unique: []Unique{{Constraint: "instance_hrid_key", Fields: []string{"hrid"}}},
	}
}

// Holdings is what a library has of a title at one place (mod-inventory-storage).
func Holdings() Type {
	return Type{
		Name: "holdings record", Path: "/holdings-storage/holdings", Collection: "holdingsRecords", Table: holdingsTable, Schema: "holdings-record",
		Permission: "inventory-storage.holdings", Versioned: true, Prepare: prepareHoldings,
		Indexes: index(fields{
			Text: {
				"hrid", "callNumber", "callNumberPrefix", "callNumberSuffix", "copyNumber", "shelvingTitle", "tags.tagList",
				"statisticalCodeIds",
			},
			UUID:    {"effectiveLocationId", "holdingsTypeId", "sourceId", "callNumberTypeId"},
			Boolean: {"discoverySuppress"},
		}, columns{
			"instanceId": "instance_id", "permanentLocationId": "permanent_location_id", "temporaryLocationId": "temporary_location_id",
		}),
		Unique: []Unique{{Constraint: "holdings_record_hrid_key", Fields: []string{"hrid"}}},
		References: []Reference{
			{Constraint: "holdings_record_instance_id_fkey", Field: "instanceId", To: "instance"},
			{Constraint: "holdings_record_permanent_location_id_fkey", Field: "permanentLocationId", To: "location"},
			{Constraint: "holdings_record_temporary_location_id_fkey", Field: "temporaryLocationId", To: "location"},
		},
	}
}

// Item is one piece that can be lent (mod-inventory-storage).
func Item() Type {
	return Type{
		Name: "item", Path: "/item-storage/items", Collection: "items", Table: "item", Schema: "item",
		Permission: "inventory-storage.items", Versioned: true, Prepare: prepareItem,
		Indexes: index(fields{
			Text: {
				"hrid", "barcode", "accessionNumber", "status.name", "itemLevelCallNumber", "effectiveCallNumberComponents.callNumber",
				"volume", "enumeration", "chronology", "copyNumber", "displaySummary", "itemIdentifier", "effectiveShelvingOrder",
				"purchaseOrderLineIdentifier", "formerIds", "statisticalCodeIds", "tags.tagList",
			},
			UUID:    {"effectiveLocationId", "inTransitDestinationServicePointId", "lastCheckIn.servicePointId", "itemDamagedStatusId"},
			Boolean: {"discoverySuppress"},
			Number:  {"order"},
			Time:    {"status.date", "lastCheckIn.dateTime"},
		}, columns{
			"holdingsRecordId": "holdings_record_id", "materialTypeId": "material_type_id",
			"permanentLoanTypeId": "permanent_loan_type_id", "temporaryLoanTypeId": "temporary_loan_type_id",
			"permanentLocationId": "permanent_location_id", "temporaryLocationId": "temporary_location_id",
		}),
		Unique: []Unique{
			{Constraint: "item_barcode_key", Fields: []string{"barcode"}},
			{Constraint: "item_hrid_key", Fields: []string{"hrid"}},
		},
		References: []Reference{
			{Constraint: itemHoldingsKey, Field: "holdingsRecordId", To: holdingsTable},
			{Constraint: "item_material_type_id_fkey", Field: "materialTypeId", To: "material_type"},
			{Constraint: "item_permanent_loan_type_id_fkey", Field: "permanentLoanTypeId", To: "loan_type"},
			{Constraint: "item_temporary_loan_type_id_fkey", Field: "temporaryLoanTypeId", To: "loan_type"},
			{Constraint: "item_permanent_location_id_fkey", Field: "permanentLocationId", To: "location"},
			{Constraint: "item_temporary_location_id_fkey", Field: "temporaryLocationId", To: "location"},
		},
	}
}
