package storageclient

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"checkoutlock/schemas"
)

const (
	historyPath = "/check-out-history-storage/check-outs"
	figuresPath = "/check-out-history-storage/figures"
)

// Report implements reporter.Storage.
func (c *Client) Report(ctx context.Context, report schemas.CheckOutReport) error {
	_, err := c.do(ctx, send("reporting finished check-outs", http.MethodPost, historyPath, report, http.StatusNoContent))
	return err
}

// PastCheckOuts implements admin.Storage.
func (c *Client) PastCheckOuts(ctx context.Context, f schemas.HistoryFilter) (schemas.PastCheckOuts, error) {
	query := pageQuery(f.Offset, f.Limit)
	for name, value := range map[string]string{
		"userBarcode": f.UserBarcode, "itemBarcode": f.ItemBarcode, "servicePointId": f.ServicePointID,
		"outcome": f.Outcome, "from": f.From, "until": f.Until,
	} {
		setUnlessEmpty(query, name, value)
	}
	r := get("listing past check-outs", historyPath, query)
	return call(ctx, c, r, "checkOuts", func(page schemas.PastCheckOuts) bool { return page.CheckOuts != nil })
}

// Figures implements admin.Storage.
func (c *Client) Figures(ctx context.Context, minutes int) (schemas.Figures, error) {
	r := get("reading the figures of check-outs", figuresPath, url.Values{"minutes": {strconv.Itoa(minutes)}})
	return call(ctx, c, r, "minutes", func(figures schemas.Figures) bool { return len(figures.Minutes) > 0 })
}
