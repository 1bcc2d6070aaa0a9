package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"checkoutlock/integration-tests/mutualtls"
)

// startLocketRig starts what the section compares: the published server first.
func startLocketRig(ctx context.Context, b *bench, certs *mutualtls.Files) (services []*lockService, err error) {
	original, err := startLocket(ctx, b, b.dir, certs)
	services = append(services, original)
	for _, build := range b.builds {
		if err != nil || !build.hasResourceLocks() {
			continue
		}
		var s *lockService
		s, err = startResourceLocks(ctx, b, build, certs)
		services = append(services, s)
	}
	if err != nil {
		err = errors.Join(err, stopLockServices(services))
	}
	return services, err
}

// startLocketYardsticks starts the ceiling and the plain server of renewals. On an error it
// returns those that run.
func startLocketYardsticks(ctx context.Context, b *bench, certs *mutualtls.Files) ([]*lockService, error) {
	ceiling, err := startFronts(ctx, "ceiling", certs, "")
	if err != nil {
		return nil, err
	}
	databaseURL, err := b.db.fork(ctx, "plain_locket_"+strconv.FormatInt(time.Now().UnixNano(), 36))
	if err != nil {
		return []*lockService{ceiling}, err
	}
	plain, err := startFronts(ctx, "plain", certs, databaseURL)
	return []*lockService{ceiling, plain}, err
}

// measureLocket compares renewals, grants and refusals with the published server.
func measureLocket(ctx context.Context, b *bench) (err error) {
	certs, err := mutualtls.WriteFiles(b.dir)
	if err != nil {
		return err
	}
	services, err := startLocketRig(ctx, b, certs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopLockServices(services)) }()
	yardsticks, err := startLocketYardsticks(ctx, b, certs)
	defer func() { err = errors.Join(err, stopLockServices(yardsticks)) }()
	if err != nil {
		return err
	}
	b.report.note("Calls of Lock over gRPC with mutual TLS, a connection for each client, beside the published server, Locket 1.5, on the same PostgreSQL. " +
		"*ceiling* is a gRPC server that answers and does nothing else. *plain* runs one UPDATE by pgx for each call, with a commit of its own.")
	rows := [][]string{{"renewals by clients", "what", "renewals/s", "of Locket 1.5", "p50", "p99", "CPU us client / service / PostgreSQL"}}
	for _, clients := range []int{1, 8, 64} {
		more, err := compareRenewals(ctx, b, slices.Insert(slices.Clone(services), 1, yardsticks...), certs, clients)
		if err != nil {
			return err
		}
		rows = append(rows, more...)
	}
	b.report.table(rows)
	return compareRefusals(ctx, b, services, certs)
}

func compareRenewals(ctx context.Context, b *bench, services []*lockService, certs *mutualtls.Files, clients int) ([][]string, error) {
	all := map[string][]serviceFigures{}
	for range b.repetitions {
		for _, s := range services {
			f, err := driveRenewals(ctx, b, s, certs, clients)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			all[s.name] = append(all[s.name], f)
		}
	}
	rate := func(name string) float64 {
		return median(all[name], func(f serviceFigures) float64 { return f.perSecond })
	}
	var rows [][]string
	for _, s := range services {
		rows = append(rows, []string{
			strconv.Itoa(clients), s.name, fmt.Sprintf("%.0f", rate(s.name)), formatRatio(rate(s.name), rate(services[0].name)),
			formatMillis(median(all[s.name], func(f serviceFigures) time.Duration { return f.percentile(0.5) })),
			formatMillis(median(all[s.name], func(f serviceFigures) time.Duration { return f.percentile(0.99) })),
			formatProcessorTimes(all[s.name]),
		})
	}
	return rows, nil
}

// driveRenewals lets each client renew a key of its own.
func driveRenewals(ctx context.Context, b *bench, s *lockService, certs *mutualtls.Files, n int) (serviceFigures, error) {
	clients, err := dialLockets(s.locket, certs.Client, n)
	if err != nil {
		return serviceFigures{}, err
	}
	defer closeLockets(clients)
	renew := func(ctx context.Context, client, _ int) error {
		name := "renewed-" + strconv.Itoa(client)
		return mustHold(clients[client].lock(ctx, name, name, locketTTL))
	}
	for i := range clients {
		if err := renew(ctx, i, 0); err != nil {
			return serviceFigures{}, err
		}
	}
	return driveMeasured(ctx, b, s.process, n, renew)
}

func mustHold(held bool, err error) error {
	if err == nil && !held {
		err = errors.New("a key of its own is held")
	}
	return err
}

// compareRefusals compares refusals with grants of free keys, at 8 clients. No lock ends meanwhile: the
// sweep of one service's ended locks would fall into the time of another, always the same one.
func compareRefusals(ctx context.Context, b *bench, services []*lockService, certs *mutualtls.Files) error {
	const n = 8
	const hour = 3600 // in seconds
	granted, refused := map[string][]figures{}, map[string][]figures{}
	for repetition := range b.repetitions {
		for _, s := range services {
			clients, err := dialLockets(s.locket, certs.Client, n)
			if err != nil {
				return err
			}
			g, err := drive(ctx, n, b.slice, func(ctx context.Context, client, turn int) error {
				name := fmt.Sprintf("new-%d-%d-%d", repetition, client, turn)
				return mustHold(clients[client].lock(ctx, name, name, hour))
			})
			if err != nil {
				return err
			}
			r, err := driveRefusals(ctx, b, clients)
			if err != nil {
				return err
			}
			closeLockets(clients)
			granted[s.name], refused[s.name] = append(granted[s.name], g), append(refused[s.name], r)
		}
	}
	rows := [][]string{{"8 clients", "grants/s", "of Locket 1.5", "refusals/s", "of Locket 1.5", "cost of a refusal, in grants", "refusal p50", "p99"}}
	first := services[0].name
	for _, s := range services {
		g, r := median(granted[s.name], readRate), median(refused[s.name], readRate)
		rows = append(rows, []string{
			s.name, fmt.Sprintf("%.0f", g), formatRatio(g, median(granted[first], readRate)),
			fmt.Sprintf("%.0f", r), formatRatio(r, median(refused[first], readRate)), formatRatio(g, r),
			formatMillis(median(refused[s.name], readP50)), formatMillis(median(refused[s.name], readP99)),
		})
	}
	b.report.table(rows)
	return nil
}

// driveRefusals lets the clients ask for one key of another owner.
func driveRefusals(ctx context.Context, b *bench, clients []*locketClient) (figures, error) {
	if err := mustHold(clients[0].lock(ctx, "held", "holder", 600)); err != nil {
		return figures{}, err
	}
	return drive(ctx, len(clients), b.slice, func(ctx context.Context, client, _ int) error {
		held, err := clients[client].lock(ctx, "held", "other", locketTTL)
		if held {
			err = errors.New("a held key was granted")
		}
		return err
	})
}
