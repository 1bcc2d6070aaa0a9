package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// measureSustained keeps up lock cycles at 64 clients and compares the end with the beginning.
func measureSustained(ctx context.Context, b *bench) (err error) {
	storage, _, err := startStorageWithTenant(ctx, b, b.builds[0])
	if err != nil {
		return err
	}
	circulation, err := b.builds[0].startCirculation(ctx, storage.url)
	if err != nil {
		return errors.Join(err, storage.stop())
	}
	defer func() { err = errors.Join(err, circulation.stop(), storage.stop()) }()
	atStart, err := storage.memory()
	if err != nil {
		return err
	}
	const clients, parts = 64, 4
	client, users := newLockClient(storage.url, clients), newIDs(clients)
	rows := [][]string{{"lock cycles at 64 clients", "per second", "p50", "p99", "memory of storage"}}
	var rates []float64
	for part := range parts {
		f, err := drive(ctx, clients, b.sustained/parts, func(ctx context.Context, i, _ int) error { return client.cycle(ctx, users[i]) })
		if err != nil {
			return err
		}
		memory, err := storage.memory()
		if err != nil {
			return err
		}
		rates = append(rates, f.perSecond)
		rows = append(rows, []string{
			fmt.Sprintf("%s to %s", b.sustained/parts*time.Duration(part), b.sustained/parts*time.Duration(part+1)),
			fmt.Sprintf("%.0f", f.perSecond), formatMillis(f.percentile(0.5)), formatMillis(f.percentile(0.99)), memory.String(),
		})
	}
	b.report.table(rows)
	memory, err := circulation.memory()
	if err != nil {
		return err
	}
	b.report.note("The last part has %s of the first one's rate. Memory at the start: storage %s, circulation %s. Ready after: storage %s, circulation %s.",
		formatRatio(rates[parts-1], rates[0]), atStart, memory, formatMillis(storage.started), formatMillis(circulation.started))
	return nil
}

func formatMegabytes(bytes int) string { return fmt.Sprintf("%d MB", bytes>>20) }
