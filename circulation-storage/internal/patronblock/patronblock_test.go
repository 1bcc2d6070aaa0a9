package patronblock_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"checkoutlock/circulation-storage/internal/patronblock"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
)

const hour, day = 60, 24 * 60

// loans counts one loan for each number of overdue minutes; -1 is an hour overdue and lost.
func loans(recalled bool, overdue ...int) []schemas.OpenLoans {
	var list []schemas.OpenLoans
	for _, minutes := range overdue {
		o := schemas.OpenLoans{OverdueMinutes: minutes, Recalled: recalled && minutes > 0, Count: 1}
		if minutes < 0 {
			o.OverdueMinutes, o.Lost = hour, true
		}
		list = append(list, o)
	}
	return list
}

// describeBlocks returns what the document blocks, by its first letters.
func describeBlocks(t *testing.T, doc json.RawMessage) string {
	t.Helper()
	if doc == nil {
		return ""
	}
	var d struct {
		AutomatedPatronBlocks []struct {
			PatronBlockConditionID                       string
			BlockBorrowing, BlockRenewals, BlockRequests bool
			Message                                      string
		}
	}
	if err := json.Unmarshal(doc, &d); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, b := range d.AutomatedPatronBlocks {
		actions := ""
		for _, a := range []struct {
			blocks bool
			name   string
		}{{b.BlockBorrowing, "borrowing "}, {b.BlockRenewals, "renewals "}, {b.BlockRequests, "requests "}} {
			if a.blocks {
				actions += a.name
			}
		}
		all = append(all, fmt.Sprintf("%s: %s", b.Message, strings.TrimSpace(actions)))
	}
	return strings.Join(all, "; ")
}

func TestAddBlocks_JudgesEachConditionAsFOLIO(t *testing.T) {
	t.Parallel()
	const all = "M: borrowing renewals requests"
	for _, tt := range []struct {
		name      string
		condition string
		value     float64
		loans     []schemas.OpenLoans
		want      string
	}{
		{name: "fewer than the limit", condition: records.ItemsChargedOut, value: 3, loans: loans(false, 0, 0)},
		{
			name: "as many as the limit", condition: records.ItemsChargedOut, value: 3, loans: loans(false, 0, 5, -1),
			want: "M: borrowing",
		},
		{
			name: "more than the limit", condition: records.ItemsChargedOut, value: 3, loans: loans(false, 0, 0, 0, 0),
			want: all,
		},
		{name: "no loan allowed", condition: records.ItemsChargedOut, value: 0, want: "M: borrowing"},
		{name: "as many overdue", condition: records.OverdueItems, value: 2, loans: loans(false, 1, 1, 0)},
		{name: "more overdue", condition: records.OverdueItems, value: 2, loans: loans(false, 1, 1, 1), want: all},
		{name: "none overdue allowed", condition: records.OverdueItems, value: 0, loans: loans(false, 1), want: all},
		{name: "recalls, not recalled", condition: records.OverdueRecalls, value: 0, loans: loans(false, 1)},
		{name: "recalls, not overdue", condition: records.OverdueRecalls, value: 0, loans: loans(true, 0)},
		{name: "recalls, more", condition: records.OverdueRecalls, value: 1, loans: loans(true, 1, 2), want: all},
		{name: "two days, to the minute", condition: records.DaysOfOverdueRecall, value: 2, loans: loans(true, 2*day)},
		{
			name: "the third day has begun", condition: records.DaysOfOverdueRecall, value: 2, loans: loans(true, 2*day+1),
			want: all,
		},
		{name: "the third day, not recalled", condition: records.DaysOfOverdueRecall, value: 2, loans: loans(false, 2*day+1)},
		{name: "as many lost", condition: records.LostItems, value: 1, loans: loans(false, -1, 5)},
		{name: "more lost", condition: records.LostItems, value: 1, loans: loans(false, -1, -1), want: all},
		{name: "fees are not known", condition: records.OutstandingFeesFines, value: 0, loans: loans(true, 9*day, -1)},
	} {
		limit := patronblock.GroupLimit{
			ConditionID: tt.condition, Value: tt.value, Message: "M", BlockBorrowing: true, BlockRenewals: true,
			BlockRequests: true,
		}
		doc, err := patronblock.AddBlocks(nil, []patronblock.GroupLimit{limit}, tt.loans)
		if got := describeBlocks(t, doc); err != nil || got != tt.want {
			t.Errorf("%s: got %q %v, want %q", tt.name, got, err, tt.want)
		}
		// What is refused here must be refused in the commit.
		borrowing := patronblock.ListBorrowingLimits([]patronblock.GroupLimit{limit})
		refused := len(borrowing) == 1 && borrowing[0].Limit.Count(tt.loans) >= borrowing[0].Limit.Max
		if refused != strings.Contains(tt.want, "borrowing") {
			t.Errorf("%s: the commit refuses: %t, want the same as the block %q", tt.name, refused, tt.want)
		}
	}
}

func TestAddBlocks_BlocksOnlyWhatTheConditionBlocks(t *testing.T) {
	t.Parallel()
	limits := []patronblock.GroupLimit{
		{ConditionID: records.ItemsChargedOut, Value: 1, Message: "loans", BlockRequests: true},
		{ConditionID: records.OverdueItems, Value: 0, Message: "overdue", BlockBorrowing: true},
		{ConditionID: records.LostItems, Value: 0, Message: "lost"},
	}
	stored := json.RawMessage(`{"automatedPatronBlocks":[{"message":"fees","blockBorrowing":true,"ours":[1]}],"ours":2}`)
	doc, err := patronblock.AddBlocks(stored, limits, loans(false, 0, -1))
	if got := describeBlocks(t, doc); err != nil || got != "fees: borrowing; loans: requests; overdue: borrowing" {
		t.Errorf("got %q, %v", got, err)
	}
	if !strings.Contains(string(doc), `"ours":[1]`) || !strings.Contains(string(doc), `"ours":2`) {
		t.Errorf("got %s, want the stored document's other properties in it", doc)
	}
	if same, err := patronblock.AddBlocks(stored, limits, nil); err != nil || string(same) != string(stored) {
		t.Errorf("got %s, %v, want the stored document", same, err)
	}
	want := []schemas.BlockLimit{{Limit: schemas.LoanLimit{Max: 1, OverdueMinutes: 1}, Message: "overdue"}}
	if got := patronblock.ListBorrowingLimits(limits); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
