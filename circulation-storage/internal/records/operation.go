package records

import "context"

// CheckInOperation is a check-in as it was done (mod-circulation-storage). It is kept until it is
// deleted.
var CheckInOperation = Type{
	Name: "check-in", Path: "/check-in-storage/check-ins", Collection: "checkIns", Table: "check_in_operation",
	Schema: "check-in-operation", Permission: "check-in-storage.check-ins", Interface: "check-in-storage 0.2",
	Indexes: newIndexes(fields{
		Text: {"itemStatusPriorToCheckIn"}, UUID: {"servicePointId", "performedByUserId", "itemLocationId"},
		Number: {"requestQueueSize"}, Time: {"occurredDateTime"},
	}, "itemId").inColumns("occurredDateTime"),
}

// ScheduledNotice is a notice to send to a patron later (mod-circulation-storage).
var ScheduledNotice = Type{
	Name: "scheduled notice", Path: "/scheduled-notice-storage/scheduled-notices", Collection: "scheduledNotices",
	Table: "scheduled_notice", Schema: "scheduled-notice", Permission: "scheduled-notice-storage.scheduled-notices", Interface: "scheduled-notice-storage 0.6",
	Indexes: newIndexes(fields{
		Text: {"triggeringEvent", "noticeConfig.timing", "noticeConfig.format"}, Boolean: {"noticeConfig.sendInRealTime"},
		UUID: {"feeFineActionId", "recipientUserId", "sessionId", "noticeConfig.templateId"}, Time: {"nextRunTime"},
	}, "loanId", "requestId").inColumns("nextRunTime"),
}

// ActualCostRecord is a lost item whose price staff still have to find out (mod-circulation-storage).
var ActualCostRecord = Type{
	Name: "actual cost record", Path: "/actual-cost-record-storage/actual-cost-records", Collection: "actualCostRecords",
	Table: "actual_cost_record", Schema: "actual-cost-record", Permission: "actual-cost-record-storage.actual-cost-records", Interface: "actual-cost-record-storage 0.9",
	Prepare: prepareActualCostRecord, Indexes: newIndexes(fields{
		Text: {
			"lossType", "status", "user.barcode", "user.firstName", "user.lastName", "user.patronGroup", "item.barcode",
			"item.materialType", "item.loanType", "item.permanentLocation", "item.effectiveLocation", "instance.title",
			"feeFine.owner", "feeFine.type", "additionalInfoForStaff", "additionalInfoForPatron",
		},
		UUID: {"user.id", "user.patronGroupId", "item.id", "instance.id", "feeFine.accountId", "feeFine.ownerId", "feeFine.typeId"},
		Time: {"lossDate", "expirationDate"}, Number: {"feeFine.billedAmount"},
	}).with("loan.id", Index{Kind: UUID, Column: "loan_id"}),
}

// prepareActualCostRecord gives a record without a status FOLIO's default.
func prepareActualCostRecord(_ context.Context, _ Reader, w Write) error {
	if w.Record["status"] == nil {
		w.Record["status"] = openStatus
	}
	return nil
}

// TLRFeatureToggleJob is a change of title level requests, after which the positions in queues are
// counted anew (mod-circulation-storage).
var TLRFeatureToggleJob = Type{
	Name: "job of title level requests", Path: "/tlr-feature-toggle-job-storage/tlr-feature-toggle-jobs",
	Collection: "tlrFeatureToggleJobs", Table: "tlr_feature_toggle_job", Schema: "tlr-feature-toggle-job",
	Permission: "tlr-feature-toggle-job-storage.tlr-feature-toggle-jobs", Interface: "tlr-feature-toggle-job-storage 0.1",
	Indexes: newIndexes(fields{Text: {"status"}, Number: {"numberOfUpdatedRequests"}}),
}
