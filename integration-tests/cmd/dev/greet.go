package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"checkoutlock/integration-tests/stack"
)

// The demo library's patron and service point in the greeting.
const (
	patronBarcode  = "P-1001"
	servicePointID = "bbc823fa-06e7-42c6-87b5-605a5da22f15"
)

// printGreeting prints the services' addresses and commands to paste. The check-out names an
// available item, because earlier runs may have lent some.
func printGreeting(ctx context.Context, out io.Writer, pair *stack.Stack, st stack.Client, s settings) error {
	circulation := pair.Circulations[0]
	fmt.Fprintf(out, "\nThe pair is up for tenant %s. Ctrl-C stops everything.\n\n", s.Tenant)
	fmt.Fprintf(out, "  staff pages          %s/staff/%s/\n  circulation          %[1]s\n  circulation-storage  %[3]s\n", circulation, s.Tenant, st.Base)
	if s.Sample == "none" {
		fmt.Fprintf(out, "\nThere is no demo library (SAMPLE=none). See the lock settings with\n\n  curl -H 'X-Okapi-Tenant: %s' %s/circulation/check-out-lock-settings\n\n", s.Tenant, circulation)
		return nil
	}
	barcode, err := findAvailable(ctx, st)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, `
Lend an item, look at the patron's loans and at the locks, take the item back:

  curl -i -H 'X-Okapi-Tenant: %[1]s' -H 'Content-Type: application/json' %[2]s/circulation/check-out-by-barcode \
    -d '{"itemBarcode":"%[4]s","userBarcode":"%[5]s","servicePointId":"%[6]s"}'

  curl -H 'X-Okapi-Tenant: %[1]s' '%[2]s/circulation/loans?limit=5'

  curl -H 'X-Okapi-Tenant: %[1]s' %[3]s/check-out-lock-storage

  curl -i -H 'X-Okapi-Tenant: %[1]s' -H 'Content-Type: application/json' \
    -H 'X-Okapi-User-Id: 9ad09b01-7429-455f-9f64-e3897027db61' %[2]s/circulation/check-in-by-barcode \
    -d '{"itemBarcode":"%[4]s","servicePointId":"%[6]s","checkInDate":"'$(date -u +%%Y-%%m-%%dT%%H:%%M:%%SZ)'"}'

`, s.Tenant, circulation, st.Base, barcode, patronBarcode, servicePointID)
	return nil
}

// findAvailable returns the barcode of an available book, or the first book's if there is
// none. Books have the highest limit, so the patron can borrow many.
func findAvailable(ctx context.Context, st stack.Client) (string, error) {
	query := url.QueryEscape(`barcode=="B-*" and status.name=="Available" sortBy barcode`)
	a, err := st.Must(ctx, http.MethodGet, "/item-storage/items?limit=1&query="+query, nil)
	if err != nil {
		return "", fmt.Errorf("finding an item to lend: %w", err)
	}
	var list struct {
		Items []struct{ Barcode string }
	}
	if err := a.JSON(&list); err != nil {
		return "", err
	}
	if len(list.Items) == 0 {
		return "B-1001", nil
	}
	return list.Items[0].Barcode, nil
}
