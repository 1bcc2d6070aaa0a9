package storageclient

import (
	"context"
	"errors"
	"fmt"
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
	_, err := c.do(ctx, request{
		method: http.MethodPost, route: historyPath, path: historyPath, want: http.StatusNoContent, body: report,
	})
	if err != nil {
		return fmt.Errorf("telling the history of check-outs: %w", err)
	}
	return nil
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
	var page schemas.PastCheckOuts
	r := get(historyPath, query)
	body, err := c.do(ctx, r)
	if err != nil {
		return page, fmt.Errorf("listing past check-outs: %w", err)
	}
	if err := decode(r, body, &page); err != nil {
		return page, err
	}
	if page.CheckOuts == nil {
		return page, unreadable(r, errors.New("it has no checkOuts"))
	}
	return page, nil
}

// Figures implements admin.Storage.
func (c *Client) Figures(ctx context.Context, minutes int) (schemas.Figures, error) {
	var figures schemas.Figures
	r := get(figuresPath, url.Values{"minutes": {strconv.Itoa(minutes)}})
	body, err := c.do(ctx, r)
	if err != nil {
		return figures, fmt.Errorf("asking for the figures of check-outs: %w", err)
	}
	if err := decode(r, body, &figures); err != nil {
		return figures, err
	}
	if len(figures.Minutes) == 0 {
		return figures, unreadable(r, errors.New("it has no minutes"))
	}
	return figures, nil
}
