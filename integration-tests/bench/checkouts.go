package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// measureCheckOuts compares the pair with the plain service, and with the base.
func measureCheckOuts(ctx context.Context, b *bench) (err error) {
	if err := countCheckOuts(ctx, b); err != nil {
		return err
	}
	desks, err := startDesks(ctx, b, append([]build{b.plain()}, b.builds...))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopAll(desks...)) }()
	all, err := compareDesks(ctx, b, desks)
	if err != nil {
		return err
	}
	b.report.note("Plain is one process that writes the same rows without any promise: one SELECT, one INSERT of the lock, " +
		"one batch for the transaction. CPU is that of the services and PostgreSQL for one check-out.")
	rows := [][]string{{"clients", "lock", "what", "check-outs/s", "of base", "CPU us, services / PostgreSQL", "CPU, of plain", "p50", "p50, of plain", "p99"}}
	for _, on := range switches {
		for _, clients := range crowds {
			of := func(d *desk) []deskFigures { return all[visit{d, on, clients}] }
			plain, base := of(desks[0]), of(desks[len(desks)-1])
			for _, d := range desks {
				rows = append(rows, append([]string{strconv.Itoa(clients), formatSwitch(on), d.build.name},
					formatVisit(of(d), plain, base)...))
			}
		}
	}
	b.report.table(rows)
	for _, d := range desks[1:] {
		free := medianRatio(all[visit{d, false, 1}], all[visit{d, true, 1}], readDeskP50)
		b.report.note("The lock's share of a check-out (%s, p50 at 1 client): %.0f %%.", d.build.name, 100*(1-free))
	}
	return measureLimits(ctx, b)
}

// formatVisit writes the medians of one visit beside those of the plain service and the base.
func formatVisit(all, plain, base []deskFigures) []string {
	return []string{
		fmt.Sprintf("%.0f", median(all, readDeskRate)), formatRatios(all, base, readDeskRate),
		formatCPU(all), formatRatios(all, plain, readCPU),
		formatMillis(time.Duration(median(all, readDeskP50))), formatRatios(all, plain, readDeskP50),
		formatMillis(time.Duration(median(all, readDeskP99))),
	}
}

// formatCPU writes the median processor time of one operation.
func formatCPU(all []deskFigures) string {
	return fmt.Sprintf("%d / %d", median(all, readServices).Microseconds(), median(all, readPostgreSQL).Microseconds())
}

// startDesks starts a desk of each build.
func startDesks(ctx context.Context, b *bench, builds []build) ([]*desk, error) {
	return startEach(builds, func(build build) (*desk, error) { return startDesk(ctx, b, build, noLimit, detours{}) })
}

var (
	switches = []bool{false, true}
	crowds   = []int{1, 8, 32}
)

// visit is a part of the comparison: a number of clients at a desk, with the lock off or on.
type visit struct {
	desk    *desk
	on      bool
	clients int
}

// compareDesks repeats all visits in turn, so that they meet the machine in the same state. Those with
// the lock off and on follow each other. Another switch and another desk is the first each time.
func compareDesks(ctx context.Context, b *bench, desks []*desk) (map[visit][]deskFigures, error) {
	all := map[visit][]deskFigures{}
	for repetition := range b.repetitions {
		for _, clients := range crowds {
			for i := range switches {
				on := switches[(i+repetition)%len(switches)]
				if err := turnAll(ctx, on, desks); err != nil {
					return nil, err
				}
				for j := range desks {
					d := desks[(j+repetition)%len(desks)]
					f, err := d.drive(ctx, clients)
					if err != nil {
						return nil, fmt.Errorf("%s: %w", d.build.name, err)
					}
					v := visit{d, on, clients}
					all[v] = append(all[v], f)
				}
			}
		}
	}
	return all, nil
}

func formatSwitch(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
