package storageclient

// Interfaces returns FOLIO's interfaces that the client calls, and storage's own, with their versions.
func Interfaces() []string {
	return []string{
		"anonymize-storage-loans 0.1", "checkout-lock-storage 0.1", "circulation-rules-storage 1.0",
		"circulation-settings-storage 1.0", "circulation-storage-checkoutlock 1.0", "feesfines 19.1", "fixed-due-date-schedules-storage 2.0",
		"holdings-storage 8.2", "instance-storage 11.4", "item-storage 11.2", "loan-policy-storage 2.4", "loan-storage 7.4", "loan-types 2.4",
		"location-units 2.1", "locations 3.2", "material-types 2.2", "patron-action-session-storage 0.3",
		"patron-notice-policy-storage 0.13", "patron-pin 1.0", "print-events-storage 1.0", "request-policy-storage 1.0", "request-storage 6.2",
		"service-points 3.5", "users 16.5",
	}
}

// Permissions returns the permissions that a gateway requires for the client's calls.
func Permissions() []string {
	all := []string{
		"anonymize-storage-loans.post",
		"checkout-lock-storage.checkout-locks.collection.get",
		"checkout-lock-storage.checkout-locks.item.delete",
		"checkout-lock-storage.checkout-locks.item.forced-release.post",
		"checkout-lock-storage.checkout-locks.item.get",
		"checkout-lock-storage.checkout-locks.item.post",
		"circulation-storage.check-ins.item.post",
		"circulation-storage.check-out-facts.post",
		"circulation-storage.check-out-figures.get",
		"circulation-storage.check-out-history.collection.get",
		"circulation-storage.check-out-history.collection.post",
		"circulation-storage.check-out-lock-changes.collection.get",
		"circulation-storage.check-out-lock-settings.environment.post",
		"circulation-storage.check-out-lock-settings.item.get",
		"circulation-storage.check-out-lock-settings.item.put",
		"circulation-storage.check-out-requests.item.post",
		"circulation-storage.check-out-requests.item.put",
		"circulation-storage.check-out-settlements.item.post",
		"circulation-storage.check-outs.item.get",
		"circulation-storage.check-outs.item.post",
		"circulation-storage.circulation-rules.get",
		"circulation-storage.circulation-rules.put",
		"circulation-storage.circulation-settings.item.delete",
		"circulation-storage.circulation-settings.item.post",
		"circulation-storage.circulation-settings.item.put",
		"circulation-storage.loan-changes.item.post",
		"circulation-storage.loan-replacements.item.post",
		"circulation-storage.loans.collection.delete",
		"circulation-storage.loans.item.delete",
		"circulation-storage.loans.item.post",
		"circulation-storage.renewals.item.post",
		"circulation-storage.request-changes.item.post",
		"circulation-storage.request-moves.item.post",
		"circulation-storage.request-placements.item.post",
		"circulation-storage.request-queue-orders.item.post",
		"circulation-storage.requests.collection.delete",
		"circulation-storage.self-check-activity.get",
		"circulation-storage.self-check-activity.post",
		"circulation-storage.self-check-terminals.collection.get",
		"circulation-storage.self-check-terminals.item.get",
		"circulation-storage.self-check-terminals.item.post",
		"circulation-storage.self-check-terminals.item.put",
		"circulation-storage.self-check-terminals.verify.post",
		"patron-action-session-storage.expired-session-patron-ids.collection.get",
		"patron-action-session-storage.patron-action-sessions.collection.get",
		"patron-action-session-storage.patron-action-sessions.item.delete",
		"patron-pin.validate",
		"print-events-storage.print-events-entry.item.post",
	}
	for _, read := range []string{
		"addresstypes", "circulation-storage.circulation-settings", "circulation-storage.fixed-due-date-schedules", "circulation-storage.loan-policies",
		"circulation-storage.loans", "circulation-storage.patron-notice-policies", "circulation-storage.request-policies",
		"circulation-storage.requests", "inventory-storage.holdings", "inventory-storage.instances", "inventory-storage.items",
		"inventory-storage.loan-types", "inventory-storage.location-units.campuses", "inventory-storage.location-units.institutions",
		"inventory-storage.location-units.libraries", "inventory-storage.locations", "inventory-storage.material-types",
		"inventory-storage.service-points", "lost-item-fees-policies", "overdue-fines-policies",
		"proxiesfor", "usergroups", "users",
	} {
		all = append(all, read+".collection.get", read+".item.get")
	}
	return all
}
