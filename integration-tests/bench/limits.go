package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"checkoutlock/integration-tests/stack"
)

const (
	patronLimit = 15 // of the library in this part
	atOnce      = 20 // check-outs of one patron
	onLoan      = 4  // of that patron before
)

// measureLimits measures refusals at the limit, and patrons who ask for more than they may have.
func measureLimits(ctx context.Context, b *bench) (err error) {
	desks := make([]*desk, len(b.builds))
	defer func() {
		for _, d := range desks {
			if d != nil {
				err = errors.Join(err, d.stop())
			}
		}
	}()
	lent, refused, longest := map[*desk][]deskFigures{}, map[*desk][]deskFigures{}, map[*desk][]time.Duration{}
	for i, build := range b.builds {
		if desks[i], err = startDesk(ctx, b, build, patronLimit, detours{}); err != nil {
			return err
		}
		if err = desks[i].turn(ctx, true); err != nil {
			return err
		}
	}
	for range b.repetitions {
		for _, d := range desks {
			f, err := d.drive(ctx, 8)
			if err != nil {
				return err
			}
			lent[d] = append(lent[d], f)
			if f, err = d.driveRefusals(ctx, 8); err != nil {
				return err
			}
			refused[d] = append(refused[d], f)
			for range 5 {
				took, err := d.lendAtOnce(ctx)
				if err != nil {
					return err
				}
				longest[d] = append(longest[d], took)
			}
		}
	}
	b.report.note("The limit is %d. Refusals are of patrons who have as many, at 8 clients. %d at once are of one patron with %d on loan; each time the limit was kept exactly.",
		patronLimit, atOnce, onLoan)
	rows := [][]string{{"what", "a refusal, CPU us, services / PostgreSQL", "of a check-out", "20 at once, the longest"}}
	for _, d := range desks {
		rows = append(rows, []string{
			d.build.name, formatCPU(refused[d]), formatRatios(refused[d], lent[d], readCPU),
			formatMillis(median(longest[d], func(t time.Duration) time.Duration { return t })),
		})
	}
	b.report.table(rows)
	return nil
}

// driveRefusals asks for items for patrons who are at their limit.
func (d *desk) driveRefusals(ctx context.Context, clients int) (deskFigures, error) {
	first, err := d.shelf.addCopies(ctx, clients*(patronLimit+1))
	if err != nil {
		return deskFigures{}, err
	}
	for client := range clients {
		for i := range patronLimit {
			if err := d.lend(ctx, first+client*patronLimit+i, first+client); err != nil {
				return deskFigures{}, err
			}
		}
	}
	return d.measure(func() (figures, error) {
		return drive(ctx, clients, d.bench.slice, func(ctx context.Context, client, _ int) error {
			a, err := d.machine.Do(ctx, http.MethodPost, "/circulation/check-out-by-barcode", stack.CheckOut{
				ItemBarcode: "i" + strconv.Itoa(first+clients*patronLimit+client), UserBarcode: "p" + strconv.Itoa(first+client),
				ServicePointID: d.shelf.ServicePointID,
			})
			if err == nil && a.Status != http.StatusUnprocessableEntity {
				err = fmt.Errorf("a check-out above the limit was answered %d %s", a.Status, a.Body)
			}
			return err
		})
	})
}

// lendAtOnce sends more check-outs of one patron than the limit allows, and returns how long the
// longest took.
func (d *desk) lendAtOnce(ctx context.Context) (time.Duration, error) {
	first, err := d.shelf.addCopies(ctx, onLoan+atOnce)
	if err != nil {
		return 0, err
	}
	for i := range onLoan {
		if err := d.lend(ctx, first+i, first); err != nil {
			return 0, err
		}
	}
	burst := make([]stack.CheckOut, atOnce)
	for i := range burst {
		burst[i] = stack.CheckOut{
			ItemBarcode: "i" + strconv.Itoa(first+onLoan+i), UserBarcode: "p" + strconv.Itoa(first), ServicePointID: d.shelf.ServicePointID,
		}
	}
	lent, longest := 0, time.Duration(0)
	for _, o := range stack.SendBurst(ctx, []stack.Client{d.machine}, burst) {
		if o.Lent() {
			lent++
		}
		longest = max(longest, o.Took)
	}
	if lent != patronLimit-onLoan {
		return 0, fmt.Errorf("%d of %d check-outs were lent to a patron who may have %d more", lent, atOnce, patronLimit-onLoan)
	}
	return longest, nil
}
