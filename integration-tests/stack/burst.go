package stack

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"
)

// CheckOut is the body of a check-out as a machine sends it.
type CheckOut struct {
	ItemBarcode    string `json:"itemBarcode"`
	UserBarcode    string `json:"userBarcode"`
	ServicePointID string `json:"servicePointId"`
}

// Outcome is the answer to one check-out of a burst.
type Outcome struct {
	Answer
	Err  error // the network's
	Took time.Duration
	// Code is the first error's code, else its message; empty if the item was lent.
	Code string
}

// Lent reports whether the item was lent.
func (o Outcome) Lent() bool { return o.Err == nil && o.Status == http.StatusCreated }

// SendBurst sends all check-outs at once and waits for all answers. The i-th goes to
// instance i modulo their number.
func SendBurst(ctx context.Context, instances []Client, checkOuts []CheckOut) []Outcome {
	outcomes := make([]Outcome, len(checkOuts))
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i, body := range checkOuts {
		wg.Go(func() {
			<-start
			began := time.Now()
			o := &outcomes[i]
			o.Answer, o.Err = instances[i%len(instances)].Do(ctx, http.MethodPost, "/circulation/check-out-by-barcode", body)
			o.Took = time.Since(began)
			o.Code = readReason(o.Answer)
		})
	}
	close(start)
	wg.Wait()
	return outcomes
}

// readReason returns the Code of an Outcome.
func readReason(a Answer) string {
	if a.Status == http.StatusCreated {
		return ""
	}
	var list struct {
		Errors []struct{ Code, Message string }
	}
	if err := a.JSON(&list); err != nil || len(list.Errors) == 0 {
		return string(a.Body)
	}
	if list.Errors[0].Code != "" {
		return list.Errors[0].Code
	}
	return list.Errors[0].Message
}

// Summary has the numbers of a burst.
type Summary struct {
	Lent    int
	Refused map[string]int // by code
	Failed  int            // 5xx answers and lost connections
	Longest time.Duration
}

// Summarize counts the outcomes.
func Summarize(outcomes []Outcome) Summary {
	s := Summary{Refused: map[string]int{}}
	for _, o := range outcomes {
		switch {
		case o.Err != nil || o.Status >= http.StatusInternalServerError:
			s.Failed++
		case o.Lent():
			s.Lent++
		default:
			s.Refused[o.Code]++
		}
		s.Longest = max(s.Longest, o.Took)
	}
	return s
}

// Reasons returns the sorted codes of the refusals.
func (s Summary) Reasons() []string {
	var all []string
	for code := range s.Refused {
		all = append(all, code)
	}
	slices.Sort(all)
	return all
}
