package integration_test

import (
	"net/http"
	"testing"
)

func TestCheckIn_AnswersForTheDesk(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 3)
	branch := p.addBranch(t)
	itemID, _, instanceID, book := p.addDescribedItem(t)
	_, annCard := p.addPatron(t)
	ben, benCard := p.addPatron(t)
	p.lendAs(t, book, annCard, nil)
	placed := readObject(t, p.placeRequest(t, itemID, ben, "Hold", record{
		"instanceId": instanceID, "pickupServicePointId": branch,
	}), http.StatusCreated)
	checkParts(t, "new request", placed, record{
		"pickupServicePoint.name": "Branch", "pickupServicePoint.code": "branch",
		"pickupServicePoint.discoveryDisplayName": "Branch",
		"pickupServicePoint.pickupLocation":       true, "item.status": "Checked out", "item.location.name": "Main",
		"item.callNumber":   "PR6066",
		"requester.barcode": benCard,
	})
	if group, _ := placed["requester"].(record)["patronGroup"].(record); group["group"] == nil {
		t.Errorf("the requester has the group %v, want its name", group)
	}
	if loan, _ := placed["loan"].(record); loan["dueDate"] == nil {
		t.Errorf("the request has the loan %v, want its due date", loan)
	}

	sent := readObject(t, p.checkInItem(t, book, p.ServicePointID), http.StatusOK)
	checkParts(t, "sent to the branch", sent, record{
		"staffSlipContext.item.title": "Interesting Times", "staffSlipContext.item.status": "In transit",
		"staffSlipContext.item.fromServicePoint": "Desk", "staffSlipContext.item.toServicePoint": "Branch",
		"staffSlipContext.request.requestID": placed["id"], "staffSlipContext.request.servicePointPickup": "Branch",
		"staffSlipContext.requester.barcode": benCard, "staffSlipContext.item.effectiveLocationSpecific": "Main",
		"staffSlipContext.item.effectiveLocationPrimaryServicePointName": "Desk",
		"loan.checkinServicePoint.name":                                  "Desk", "loan.checkoutServicePoint.name": "Desk",
	})
	for _, key := range []string{"checkinServicePoint", "checkoutServicePoint"} {
		if place, _ := sent["loan"].(record)[key].(record); place["code"] == nil || place["code"] == "" {
			t.Errorf("the loan has the %s %v, want its code", key, place)
		}
	}
	waits := readObject(t, p.checkInItem(t, book, branch), http.StatusOK)
	checkParts(t, "on the shelf", waits, record{
		"staffSlipContext.item.status": "Awaiting pickup", "staffSlipContext.item.toServicePoint": nil,
		"staffSlipContext.request.servicePointPickup": "Branch",
	})
	if until := waits["staffSlipContext"].(record)["request"].(record)["holdShelfExpirationDate"]; until == nil {
		t.Error("the slip lacks the end of the hold shelf")
	}
	queue := readObject(t, callEndpoint(t, p.machines[0], http.MethodGet,
		`/circulation/requests?query=(itemId==`+itemID+
			`%20and%20(status==%22Open%20-%20Awaiting%20pickup%22%20or%20status==%22Open%20-%20Awaiting%20delivery%22))`, nil),
		http.StatusOK)
	found, _ := queue["requests"].([]any)
	if len(found) != 1 {
		t.Fatalf("got the requests %v, want Ben's", queue)
	}
	checkParts(t, "read by the desk", found[0].(record), record{
		"pickupServicePoint.name": "Branch", "item.status": "Awaiting pickup", "loan": nil,
	})
}
