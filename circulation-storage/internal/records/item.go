package records

import (
	"cmp"
	"context"
	"maps"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// prepareItem computes what an item takes from its holdings record, and the date of its
// status.
func prepareItem(ctx context.Context, r Reader, w Write) error {
	item := w.Record
	holdings, err := r.Read(ctx, holdingsTable, item.Text("holdingsRecordId"))
	if fault.Is(err, fault.NotFound) {
		return holdingsOfItem.Dangling(Type{Table: "item"}, item.Text("holdingsRecordId"))
	}
	if err != nil {
		return err
	}
	DeriveItem(item, holdings)
	StampStatus(w)
	return nil
}

// prepareHoldings computes the location of items that have none of their own.
func prepareHoldings(_ context.Context, _ Reader, w Write) error {
	w.Record.Set("effectiveLocationId", effectiveLocation(w.Record))
	return nil
}

// DeriveItem replaces the item's computed fields (mod-inventory-storage,
// EffectiveValuesService). effectiveLocationId is the item's temporary location, else
// its permanent one, else the temporary, else the permanent one of the holdings record.
// Each part of effectiveCallNumberComponents is the item's own, else that of the
// holdings record.
func DeriveItem(item, holdings Record) {
	item.Set("effectiveLocationId", cmp.Or(effectiveLocation(item), effectiveLocation(holdings)))

	parts := Record{}
	for _, part := range []struct{ name, ofItem, ofHoldings string }{
		{"callNumber", "itemLevelCallNumber", "callNumber"},
		{"prefix", "itemLevelCallNumberPrefix", "callNumberPrefix"},
		{"suffix", "itemLevelCallNumberSuffix", "callNumberSuffix"},
		{"typeId", "itemLevelCallNumberTypeId", "callNumberTypeId"},
	} {
		parts.Set(part.name, cmp.Or(item.Text(part.ofItem), holdings.Text(part.ofHoldings)))
	}
	item["effectiveCallNumberComponents"] = map[string]any(parts)
}

func effectiveLocation(r Record) string {
	return cmp.Or(r.Text("temporaryLocationId"), r.Text("permanentLocationId"))
}

// StampStatus sets an item's status.date to the time of the write that gave the item its
// status.name. The client's date is ignored.
func StampStatus(w Write) {
	status := maps.Clone(w.Record.Object("status"))
	if status == nil {
		return // the schema requires a status
	}
	date := w.Stored.Text("status.date")
	if date == "" || w.Stored.Text("status.name") != status.Text("name") {
		date = w.Now.UTC().Format(schemas.FolioTime)
	}
	status["date"] = date
	w.Record["status"] = map[string]any(status)
}
