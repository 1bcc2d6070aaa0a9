package records

const holdingsTable = "holdings_record"

// holdingsOfItem is what the rules of items need too.
var holdingsOfItem = newReference("item", "holdingsRecordId", holdingsTable)

// Instance is a title (mod-inventory-storage).
var Instance = Type{
	Name: "instance", Path: "/instance-storage/instances", Collection: "instances", Table: "instance", Schema: "instance",
	Permission: "inventory-storage.instances", Interface: "instance-storage 11.4", Versioned: true,
	Indexes: newIndexes(fields{
		Text: {
			"hrid", "title", "indexTitle", "source", "languages", "contributors", "identifiers", "subjects", "tags.tagList",
			"statisticalCodeIds", "catalogedDate",
		},
		UUID:    {"instanceTypeId", "modeOfIssuanceId", "statusId"},
		Boolean: {"discoverySuppress", "staffSuppress", "previouslyHeld"},
	}),
	Unique: uniqueFields("instance", "hrid"),
}

// Holdings is what a library has of a title at one place (mod-inventory-storage).
var Holdings = Type{
	Name: "holdings record", Path: "/holdings-storage/holdings", Collection: "holdingsRecords", Table: holdingsTable, Schema: "holdings-record",
	Permission: "inventory-storage.holdings", Interface: "holdings-storage 8.2", Versioned: true, Upsert: true, Prepare: prepareHoldings,
	Indexes: newIndexes(fields{
		Text: {
			"hrid", "callNumber", "callNumberPrefix", "callNumberSuffix", "copyNumber", "shelvingTitle", "tags.tagList",
			"statisticalCodeIds",
		},
		UUID:    {"effectiveLocationId", "holdingsTypeId", "sourceId", "callNumberTypeId"},
		Boolean: {"discoverySuppress"},
	}, "instanceId", "permanentLocationId", "temporaryLocationId"),
	Unique: uniqueFields(holdingsTable, "hrid"),
	References: []Reference{
		newReference(holdingsTable, "instanceId", "instance"),
		newReference(holdingsTable, "permanentLocationId", "location"),
		newReference(holdingsTable, "temporaryLocationId", "location"),
	},
}

// Item is one piece that can be lent (mod-inventory-storage).
var Item = Type{
	Name: "item", Path: "/item-storage/items", Collection: "items", Table: "item", Schema: "item",
	Permission: "inventory-storage.items", Interface: "item-storage 11.2", Versioned: true, Prepare: prepareItem,
	Indexes: newIndexes(fields{
		Text: {
			"hrid", "barcode", "accessionNumber", "status.name", "itemLevelCallNumber", "effectiveCallNumberComponents.callNumber",
			"volume", "enumeration", "chronology", "copyNumber", "displaySummary", "itemIdentifier", "effectiveShelvingOrder",
			"purchaseOrderLineIdentifier", "formerIds", "statisticalCodeIds", "tags.tagList",
		},
		UUID:    {"effectiveLocationId", "inTransitDestinationServicePointId", "lastCheckIn.servicePointId", "itemDamagedStatusId"},
		Boolean: {"discoverySuppress"},
		Number:  {"order"},
		Time:    {"status.date", "lastCheckIn.dateTime"},
	}, "holdingsRecordId", "materialTypeId", "permanentLoanTypeId", "temporaryLoanTypeId", "permanentLocationId", "temporaryLocationId"),
	Unique: uniqueFields("item", "barcode", "hrid"),
	References: []Reference{
		holdingsOfItem,
		newReference("item", "materialTypeId", "material_type"),
		newReference("item", "permanentLoanTypeId", "loan_type"),
		newReference("item", "temporaryLoanTypeId", "loan_type"),
		newReference("item", "permanentLocationId", "location"),
		newReference("item", "temporaryLocationId", "location"),
	},
}
