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
	r := send(http.MethodPost, historyPath, report, http.StatusNoContent)
	r.doing = "reporting finished check-outs"
	_, err := c.do(ctx, r)
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
	r := get(historyPath, query)
	r.doing = "listing past check-outs"
	return call(ctx, c, r, "checkOuts", func(page schemas.PastCheckOuts) bool { return page.CheckOuts != nil })
}

// Figures implements admin.Storage.
func (c *Client) Figures(ctx context.Context, minutes int) (schemas.Figures, error) {
	r := get(figuresPath, url.Values{"minutes": {strconv.Itoa(minutes)}})
	r.doing = "reading the figures of check-outs"
	return call(ctx, c, r, "minutes", func(figures schemas.Figures) bool { return len(figures.Minutes) > 0 })
}
