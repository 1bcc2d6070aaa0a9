package httpapi_test

// ids of the sample records, one per type.
const (
	groupID         = "00000000-0000-4000-8000-000000000001"
	userID          = "00000000-0000-4000-8000-000000000002"
	mtypeID         = "00000000-0000-4000-8000-000000000003"
	ltypeID         = "00000000-0000-4000-8000-000000000004"
	deskID          = "00000000-0000-4000-8000-000000000005"
	shelfID         = "00000000-0000-4000-8000-000000000006"
	titleID         = "00000000-0000-4000-8000-000000000007"
	holdingsID      = "00000000-0000-4000-8000-000000000008"
	itemID          = "00000000-0000-4000-8000-000000000009"
	policyID        = "00000000-0000-4000-8000-00000000000a"
	loanID          = "00000000-0000-4000-8000-00000000000b"
	entryID         = "00000000-0000-4000-8000-00000000000c"
	requestID       = "00000000-0000-4000-8000-00000000000d"
	sessionID       = "00000000-0000-4000-8000-00000000000e"
	proxyID         = "00000000-0000-4000-8000-00000000000f"
	blockID         = "00000000-0000-4000-8000-000000000010"
	settingID       = "00000000-0000-4000-8000-000000000011"
	instID          = "00000000-0000-4000-8000-000000000012"
	campusID        = "00000000-0000-4000-8000-000000000013"
	libraryID       = "00000000-0000-4000-8000-000000000014"
	scheduleID      = "00000000-0000-4000-8000-000000000015"
	requestPolicyID = "00000000-0000-4000-8000-000000000016"
	noticePolicyID  = "00000000-0000-4000-8000-000000000017"
	conditionID     = "3d7c52dc-c732-4223-8bf8-e5917801386f"
	blockLimitID    = "00000000-0000-4000-8000-000000000018"
	slipID          = "00000000-0000-4000-8000-000000000019"
	reasonID        = "00000000-0000-4000-8000-00000000001a"
	preferenceID    = "00000000-0000-4000-8000-00000000001b"
	addressTypeID   = "00000000-0000-4000-8000-00000000001c"
	overdueID       = "00000000-0000-4000-8000-00000000001d"
	lostItemID      = "00000000-0000-4000-8000-00000000001e"
	checkInID       = "00000000-0000-4000-8000-00000000001f"
	noticeID        = "00000000-0000-4000-8000-000000000020"
	actualCostID    = "00000000-0000-4000-8000-000000000021"
	jobID           = "00000000-0000-4000-8000-000000000022"
	terminalID      = "00000000-0000-4000-8000-000000000023"
)

// samples are one record of each type, by its path: known fields and unknown
// ones, nulls, text and numbers that are easily spoilt.
func samples() map[string]string {
	return map[string]string{
		"/groups": `{"id":"` + groupID +
			`","group":"Kinder & Jugend <\"x\">","desc":"","expirationOffsetInDays":365,"source":null,"ours":{"a":[1,null,` +
			`{"b":null,"c":2}]}}`,
		"/users": `{"id":"` + userID + `","username":"jane","barcode":"00123","active":true,"patronGroup":"` + groupID + `",
			"personal":{"lastName":"Þórsdóttir 🐇","firstName":"line\nbreak\ttab",
			"addresses":[{"countryId":"IS","primaryAddress":true,"addressTypeId":"` + addressTypeID + `"}]},
			"expirationDate":"2027-01-31T00:00:00.000+0000","customFields":{"shoeSize":43.50,
			"huge":123456789012345678901234567890,"small":1.5e-7},"type":"patron"}`,
		"/material-types": `{"id":"` + mtypeID + `","name":"book","source":"folio"}`,
		"/loan-types":     `{"id":"` + ltypeID + `","name":"can circulate"}`,
		"/service-points": `{"id":"` + deskID +
			`","name":"Desk","code":"d1","discoveryDisplayName":"The desk","pickupLocation":true,` +
			`"holdShelfExpiryPeriod":{"duration":3,"intervalId":"Weeks"}}`,
		"/locations": `{"id":"` + shelfID + `","name":"Main","code":"m","isActive":true,"institutionId":"` + instID +
			`","campusId":"` + campusID + `",
			"libraryId":"` + libraryID + `","primaryServicePoint":"` + deskID + `","servicePointIds":["` + deskID + `"]}`,
		"/instance-storage/instances": `{"id":"` + titleID +
			`","title":"Watership Down","source":"FOLIO","instanceTypeId":"` + deskID +
			`","hrid":"in1","contributors":[{"name":"Adams, Richard","primary":true}]}`,
		"/holdings-storage/holdings": `{"id":"` + holdingsID + `","instanceId":"` + titleID + `","permanentLocationId":"` +
			shelfID + `","sourceId":"` + deskID + `","callNumber":"PR6051"}`,
		"/item-storage/items": `{"id":"` + itemID + `","holdingsRecordId":"` + holdingsID + `","materialTypeId":"` + mtypeID +
			`","permanentLoanTypeId":"` + ltypeID + `",
			"barcode":"b\\\"1","status":{"name":"Available"},"volume":"1","notes":[{"note":"torn","staffOnly":false}]}`,
		"/loan-policy-storage/loan-policies": `{"id":"` + policyID + `","name":"three","loanable":true,"renewable":false,
			"loansPolicy":{"profileId":"Rolling","period":{"duration":14,"intervalId":"Days"},"itemLimit":3}}`,
		"/loan-storage/loans": `{"id":"` + loanID + `","itemId":"` + itemID + `","userId":"` + userID +
			`","loanDate":"2026-08-22T10:11:12.345+02:00","action":"checkedout","status":{"name":"Open"}}`,
		"/settings/entries": `{"id":"` + entryID + `","scope":"ui","key":"colours","value":["red",{"x":0}]}`,
		"/staff-slips-storage/staff-slips": `{"id":"` + slipID +
			`","name":"Hold","active":true,"isRawHtml":false,"template":"<p>{{item.title}} &amp; \"more\"</p>"}`,
		"/cancellation-reason-storage/cancellation-reasons": `{"id":"` + reasonID +
			`","name":"Lost","description":"It is gone","publicDescription":"Gone",
			"requiresAdditionalInformation":true,"source":"User"}`,
		"/request-preference-storage/request-preference": `{"id":"` + preferenceID + `","userId":"` + userID +
			`","holdShelf":true,"delivery":true,
			"defaultServicePointId":"` + deskID + `","defaultDeliveryAddressTypeId":"` + addressTypeID +
			`","fulfillment":"Delivery"}`,
		"/addresstypes": `{"id":"` + addressTypeID + `","addressType":"Home","desc":"Where the patron lives"}`,
		"/proxiesfor": `{"id":"` + proxyID + `","userId":"` + userID + `","proxyUserId":"` + groupID +
			`","status":"Active","requestForSponsor":"Yes",
			"notificationsTo":"Sponsor","accrueTo":"Sponsor","expirationDate":"2039-01-31T00:00:00.000+0000"}`,
		"/manualblocks": `{"id":"` + blockID + `","userId":"` + userID +
			`","type":"Manual","desc":"Owes a book","borrowing":true,"renewals":false,"requests":true}`,
		"/patron-block-conditions": `{"id":"` + conditionID +
			`","name":"Maximum number of items charged out","valueType":"Integer",
			"blockBorrowing":true,"blockRenewals":false,"blockRequests":false,"message":"Too many"}`,
		"/patron-block-limits": `{"id":"` + blockLimitID + `","patronGroupId":"` + groupID +
			`","conditionId":"` + conditionID + `","value":5}`,
		"/circulation-settings-storage/circulation-settings": `{"id":"` + settingID +
			`","name":"generalTlr","value":{"titleLevelRequestsFeatureEnabled":false}}`,
		"/location-units/institutions": `{"id":"` + instID + `","name":"Universität","code":"U"}`,
		"/location-units/campuses":     `{"id":"` + campusID + `","name":"City","code":"C","institutionId":"` + instID + `"}`,
		"/location-units/libraries":    `{"id":"` + libraryID + `","name":"Main","code":"M","campusId":"` + campusID + `"}`,
		"/fixed-due-date-schedule-storage/fixed-due-date-schedules": `{"id":"` + scheduleID +
			`","name":"Terms","description":"of a year","schedules":[
			{"from":"2026-07-01T00:00:00.000Z","to":"2026-12-31T23:59:59Z","due":"2027-01-15T00:00:00.000+0100"},
			{"from":"2026-01-01","to":"2026-06-30","due":"2026-06-30"}]}`,
		"/request-policy-storage/request-policies": `{"id":"` + requestPolicyID +
			`","name":"Hold only","requestTypes":["Hold"],"allowedServicePoints":{"Hold":["` + deskID + `"]}}`,
		"/patron-notice-policy-storage/patron-notice-policies": `{"id":"` + noticePolicyID +
			`","name":"Courtesy","active":true,"loanNotices":[
			{"name":"due","templateId":"` + deskID +
			`","format":"Email","realTime":false,"sendOptions":{"sendHow":"Before","sendWhen":"Due date"}}]}`,
		"/overdue-fines-policies": `{"id":"` + overdueID + `","name":"A day each",
			"overdueFine":{"quantity":0.50,"intervalId":"day"},"countClosed":false,"maxOverdueFine":10.00,
			"reminderFeesPolicy":{"reminderSchedule":[{"interval":1,"timeUnitId":"week"}]}}`,
		"/lost-item-fees-policies": `{"id":"` + lostItemID + `","name":"By price","lostItemProcessingFee":2.5,
			"itemAgedLostOverdue":{"duration":1,"intervalId":"Years"},"chargeAmountItem":{"chargeType":"actualCost"}}`,
		"/request-storage/requests": `{"id":"` + requestID + `","itemId":"` + itemID + `","instanceId":"` + titleID +
			`","holdingsRecordId":"` + holdingsID + `",
			"requesterId":"` + userID + `","requestType":"Hold","requestLevel":"Item",
			"requestDate":"2026-08-22T10:11:12.345+02:00","position":1,
			"fulfillmentPreference":"Hold Shelf","pickupServicePointId":"` + deskID +
			`","status":"Open - Not yet filled","item":{"barcode":"b1"},
			"instance":{"title":"Moby Dick","identifiers":[{"identifierTypeId":"8261054f-be78-422d-bd51-4ed9f33c3422",
			"value":"978-0-14-243724-7"}]},
			"searchIndex":{"callNumberComponents":{"prefix":"Big","callNumber":"PS 2384","suffix":"c.2"},
			"pickupServicePointName":"Desk"},
			"cancellationReasonId":"` + reasonID + `","deliveryAddressTypeId":"` + addressTypeID + `"}`,
		"/patron-action-session-storage/patron-action-sessions": `{"id":"` + sessionID + `","patronId":"` + userID +
			`","loanId":"` + loanID + `","actionType":"Check-out"}`,
		"/check-in-storage/check-ins": `{"id":"` + checkInID + `","occurredDateTime":"2026-08-22T10:11:12.345+02:00",
			"itemId":"` + itemID + `","itemStatusPriorToCheckIn":"Checked out","requestQueueSize":0,
			"itemLocationId":"` + shelfID + `","servicePointId":"` + deskID + `","performedByUserId":"` + actingUser + `"}`,
		"/scheduled-notice-storage/scheduled-notices": `{"id":"` + noticeID + `","loanId":"` + loanID +
			`","recipientUserId":"` + userID + `","nextRunTime":"2026-08-22T10:11:12.345Z","triggeringEvent":"Due date",
			"noticeConfig":{"timing":"After","recurringPeriod":{"duration":1,"intervalId":"Days"},"templateId":"` + deskID +
			`","format":"Email","sendInRealTime":true}}`,
		"/actual-cost-record-storage/actual-cost-records": `{"id":"` + actualCostID + `","lossType":"Declared lost",
			"lossDate":"2026-08-22T10:11:12.345Z","status":"Billed","user":{"id":"` + userID + `","lastName":"Þórsdóttir"},
			"loan":{"id":"` + loanID + `"},
			"item":{"id":"` + itemID + `","materialTypeId":"` + mtypeID + `","materialType":"book",
			"loanTypeId":"` + ltypeID + `","loanType":"can circulate","holdingsRecordId":"` + holdingsID + `"},
			"instance":{"id":"` + titleID + `","title":"Watership Down"},
			"feeFine":{"ownerId":"` + deskID + `","owner":"Desk","typeId":"` + deskID + `","type":"Lost","billedAmount":12.50}}`,
		"/tlr-feature-toggle-job-storage/tlr-feature-toggle-jobs": `{"id":"` + jobID +
			`","status":"failed","numberOfUpdatedRequests":0,"errors":["no setting"]}`,
		"/self-check-terminals": `{"id":"` + terminalID + `","login":"desk-1","name":"Desk 1","servicePointId":"` + deskID +
			`","timeZone":"Europe/Berlin","bins":[{"alert":"01","bin":"2"}],"addresses":["10.1.0.0/16"]}`,
	}
}
