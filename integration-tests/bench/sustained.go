package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const sustainedClients, sustainedParts = 64, 4

// loadedStorage is a build's storage under sustained load, and what was measured on it.
type loadedStorage struct {
	build   build
	storage *process
	client  *lockClient
	atStart memory
	parts   []sustainedPart
}

type sustainedPart struct {
	figures
	memory memory // of storage, at the end
}

// measureSustained keeps up lock cycles at 64 clients and compares the end with the beginning. The
// builds run in turn for each part.
func measureSustained(ctx context.Context, b *bench) (err error) {
	all, err := startEach(b.builds, func(build build) (*loadedStorage, error) { return startLoadedStorage(ctx, b, build) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopAll(all...)) }()
	users := newIDs(sustainedClients)
	for n := range sustainedParts {
		for i := range all {
			s := all[(i+n)%len(all)] // another one is the first each time
			if err := s.drive(ctx, b.sustained/sustainedParts, users); err != nil {
				return fmt.Errorf("%s: %w", s.build.name, err)
			}
		}
	}
	b.report.table(formatSustained(all, b.sustained/sustainedParts))
	for _, s := range all {
		if err := s.noteStart(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", s.build.name, err)
		}
	}
	return nil
}

func startLoadedStorage(ctx context.Context, b *bench, build build) (*loadedStorage, error) {
	storage, _, err := startStorageWithTenant(ctx, b, build)
	if err != nil {
		return nil, err
	}
	atStart, err := storage.memory()
	if err != nil {
		return nil, errors.Join(err, storage.stop())
	}
	return &loadedStorage{build: build, storage: storage, client: newLockClient(storage.url, sustainedClients), atStart: atStart}, nil
}

func (s *loadedStorage) stop() error { return s.storage.stop() }

// drive keeps up lock cycles for length and notes their figures.
func (s *loadedStorage) drive(ctx context.Context, length time.Duration, users []string) error {
	f, err := drive(ctx, sustainedClients, length, func(ctx context.Context, i, _ int) error { return s.client.cycle(ctx, users[i]) })
	if err != nil {
		return err
	}
	memory, err := s.storage.memory()
	if err != nil {
		return err
	}
	s.parts = append(s.parts, sustainedPart{figures: f, memory: memory})
	return nil
}

func formatSustained(all []*loadedStorage, length time.Duration) [][]string {
	rows := [][]string{{fmt.Sprintf("lock cycles at %d clients", sustainedClients), "build", "per second", "of base", "p50", "p99", "memory of storage"}}
	base := all[len(all)-1]
	for n := range sustainedParts {
		for _, s := range all {
			part := s.parts[n]
			rows = append(rows, []string{
				fmt.Sprintf("%s to %s", length*time.Duration(n), length*time.Duration(n+1)), s.build.name,
				fmt.Sprintf("%.0f", part.perSecond), formatRatio(part.perSecond, base.parts[n].perSecond),
				formatMillis(part.percentile(0.5)), formatMillis(part.percentile(0.99)), part.memory.String(),
			})
		}
	}
	return rows
}

// noteStart reports the first and the last part, and what both services take at their start.
func (s *loadedStorage) noteStart(ctx context.Context, b *bench) error {
	circulation, err := s.build.startCirculation(ctx, s.storage.url)
	if err != nil {
		return err
	}
	memory, err := circulation.memory()
	if err := errors.Join(err, circulation.stop()); err != nil {
		return err
	}
	b.report.note("%s: the last part has %s of the first one's rate. Memory at the start: storage %s, circulation %s. Ready after: storage %s, circulation %s.",
		s.build.name, formatRatio(s.parts[sustainedParts-1].perSecond, s.parts[0].perSecond),
		s.atStart, memory, formatMillis(s.storage.started), formatMillis(circulation.started))
	return nil
}

func formatMegabytes(bytes int) string { return fmt.Sprintf("%d MB", bytes>>20) }
