package admin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/related"
	"checkoutlock/schemas"
)

// Directory finds records by what people type or scan.
type Directory interface {
	// UsersNamed returns the users with this barcode or username, without regard to case; two at most.
	UsersNamed(ctx context.Context, text string) ([]library.User, error)
	// SearchUsers returns at most limit users by name. Of each of them, a word begins with each of the
	// beginnings, of which there is at least one.
	SearchUsers(ctx context.Context, beginnings []string, limit int) ([]library.User, error)
	// ItemsByBarcode returns those of the items that exist. It takes 1 to schemas.MaxHistoryPage barcodes.
	ItemsByBarcode(ctx context.Context, barcodes []string) ([]library.Item, error)
	HoldingsRecords(ctx context.Context, ids []string) ([]library.Holdings, error)
	Instances(ctx context.Context, ids []string) ([]library.Instance, error)
	ServicePoints(ctx context.Context, ids []string) ([]library.ServicePoint, error)
	// ListServicePoints returns at most limit service points, by name.
	ListServicePoints(ctx context.Context, limit int) ([]library.ServicePoint, error)
}

const (
	// maxSuggestions bounds the patrons that a search suggests.
	maxSuggestions = 6
	// maxSearchWords bounds the words that a search for patrons uses.
	maxSearchWords = 4
	// shortBeginning is the length to which a second search cuts words, because the first may have a typing error.
	shortBeginning = 3
	// maxServicePoints bounds the service points to choose from.
	maxServicePoints = 300
	// namesTimeout bounds the lookup of names for a page, which is shown without them otherwise.
	namesTimeout = 3 * time.Second
)

// FoundPatrons is what a search for a patron found.
type FoundPatrons struct {
	// Patron is the one that was meant; nil if there is none, or not only one.
	Patron *library.User
	// Near are others that may have been meant, by name.
	Near []library.User
}

// FindPatron finds a patron by barcode, username or parts of the name. A barcode counts more than a
// username. It makes three calls at most, and one for a barcode or username.
func (s *Service) FindPatron(ctx context.Context, text string) (FoundPatrons, error) {
	words := strings.Fields(text)
	if library.KeepBarcode(text) == "" || len(words) == 0 {
		return FoundPatrons{}, nil
	}
	named, err := s.storage.UsersNamed(ctx, text)
	if err != nil {
		return FoundPatrons{}, fmt.Errorf("finding the patron: %w", err)
	}
	for i := range named {
		if len(named) == 1 || strings.EqualFold(named[i].Barcode, text) {
			return FoundPatrons{Patron: &named[i]}, nil
		}
	}
	words = words[:min(len(words), maxSearchWords)]
	near, err := s.storage.SearchUsers(ctx, words, maxSuggestions)
	if err != nil {
		return FoundPatrons{}, fmt.Errorf("searching for patrons: %w", err)
	}
	if len(near) == 1 {
		return FoundPatrons{Patron: &near[0]}, nil
	}
	if len(near) == 0 {
		for i, w := range words {
			words[i] = string([]rune(w)[:min(len([]rune(w)), shortBeginning)])
		}
		if near, err = s.storage.SearchUsers(ctx, words, maxSuggestions); err != nil {
			return FoundPatrons{}, fmt.Errorf("searching for patrons: %w", err)
		}
	}
	return FoundPatrons{Near: near}, nil
}

// Names are what people call the records of past check-outs. A record that does not exist is missing.
type Names struct {
	Titles        map[string]string // by the item's barcode in lower case
	ServicePoints map[string]string // by id
	Patrons       map[string]string // by id
}

// NamePast names the records that past check-outs refer to, patrons only if asked for. It makes one
// call for each kind of record. If some cannot be read, it logs that and returns the names of the others.
func (s *Service) NamePast(ctx context.Context, list []schemas.PastCheckOut, patrons bool) Names {
	ctx, cancel := context.WithTimeout(ctx, namesTimeout)
	defer cancel()
	n := Names{ServicePoints: map[string]string{}, Patrons: map[string]string{}}
	calls, cctx := library.NewCalls(ctx)
	read := func(what string, find func() error) {
		calls.Go(func() error {
			if err := find(); err != nil {
				s.log.WarnContext(cctx, "page shown without names", "of", what, "err", err)
			}
			return nil
		})
	}
	read("items", func() (err error) {
		n.Titles, err = s.findTitles(cctx, list)
		return err
	})
	if ids := related.IDs(list, func(e schemas.PastCheckOut) string { return e.ServicePointID }); len(ids) > 0 {
		read("service points", func() error {
			found, err := s.storage.ServicePoints(cctx, ids)
			for _, p := range found {
				n.ServicePoints[p.ID] = p.Name
			}
			return err
		})
	}
	if ids := related.IDs(list, func(e schemas.PastCheckOut) string { return e.UserID }); patrons && len(ids) > 0 {
		read("patrons", func() error {
			found, err := s.storage.Users(cctx, ids)
			for _, u := range found {
				n.Patrons[u.ID] = u.Personal.FullName()
			}
			return err
		})
	}
	if err := calls.Wait(); err != nil { // a panic
		s.log.ErrorContext(ctx, "page shown without names", "err", err)
	}
	return n
}

// ListServicePoints returns the service points to choose from, by name: maxServicePoints at most.
func (s *Service) ListServicePoints(ctx context.Context) ([]library.ServicePoint, error) {
	return s.storage.ListServicePoints(ctx, maxServicePoints)
}

// findTitles returns the titles of the items, by barcode in lower case.
func (s *Service) findTitles(ctx context.Context, list []schemas.PastCheckOut) (map[string]string, error) {
	barcodes := related.IDs(list, func(e schemas.PastCheckOut) string { return library.KeepBarcode(e.ItemBarcode) })
	if len(barcodes) == 0 {
		return nil, nil
	}
	items, err := s.storage.ItemsByBarcode(ctx, barcodes)
	if err != nil {
		return nil, err
	}
	holdings, err := s.storage.HoldingsRecords(ctx, related.IDs(items, func(i library.Item) string { return i.HoldingsRecordID }))
	if err != nil {
		return nil, err
	}
	instanceOf := map[string]string{}
	for _, h := range holdings {
		instanceOf[h.ID] = h.InstanceID
	}
	instances, err := s.storage.Instances(ctx, related.IDs(holdings, func(h library.Holdings) string { return h.InstanceID }))
	if err != nil {
		return nil, err
	}
	titleOf := map[string]string{}
	for _, i := range instances {
		titleOf[i.ID] = i.Title
	}
	titles := map[string]string{}
	for _, i := range items {
		titles[strings.ToLower(i.Barcode)] = titleOf[strings.ToLower(instanceOf[strings.ToLower(i.HoldingsRecordID)])]
	}
	return titles, nil
}
