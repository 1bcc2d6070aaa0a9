package admin

// Permissions are what the gateway must have granted for each part, as for FOLIO's
// endpoints. The pages and the API ask for the same ones.
const (
	MaySeeSettings    = "circulation.check-out-lock-settings.item.get"
	MayChangeSettings = "circulation.check-out-lock-settings.item.put"
	MaySeeChanges     = "circulation.check-out-lock-changes.collection.get"
	MaySeeLocks       = "circulation.check-out-locks.collection.get"
	MayReleaseLocks   = "circulation.check-out-locks.item.release.post"
	MaySeeCheckOuts   = "circulation.check-out-history.collection.get"
	MaySeeFigures     = "circulation.check-out-figures.get"
	MayExplain        = "circulation.check-out-explanation.post"
)
