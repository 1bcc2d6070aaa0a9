package web_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"checkoutlock/config"
	"checkoutlock/web"
)

func TestGauges_SendNoneAfterAPanic(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	d := prometheus.NewDesc("held", "Held locks.", nil, nil)
	gauges := web.Gauges{
		Descs: []*prometheus.Desc{d}, Log: config.Log{Level: "info"}.New(&lines, ""),
		Read: func(_ context.Context, set web.SetGauge) error {
			set(d, 1)
			panic("a bug")
		},
	}
	if n := testutil.CollectAndCount(gauges); n != 0 {
		t.Errorf("got %d numbers, want none", n)
	}
	for _, want := range []string{`"the gauges are not read"`, `"err":"a bug"`, `"stack":"goroutine`, "gauges_test.go"} {
		if !strings.Contains(lines.String(), want) {
			t.Errorf("the log lacks %s: %s", want, &lines)
		}
	}
}
