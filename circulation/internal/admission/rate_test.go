package admission_test

import (
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation/internal/admission"
)

// crowd is a line whose check-outs keep their places for a fixed time. The clock is that of
// synctest.
type crowd struct {
	*admission.Line
	t     *testing.T
	takes time.Duration

	mu      sync.Mutex
	wg      sync.WaitGroup
	results map[admission.Result]int
	longest map[admission.Result]time.Duration
}

func newCrowd(t *testing.T, places int, takes time.Duration) *crowd {
	t.Helper()
	c := &crowd{t: t, takes: takes, results: map[admission.Result]int{}, longest: map[admission.Result]time.Duration{}}
	c.Line = admission.New(admission.Options{
		Places: places, Wait: wait,
		Entered: func(r admission.Result, took time.Duration) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.results[r]++
			c.longest[r] = max(c.longest[r], took)
		},
	})
	t.Cleanup(c.wg.Wait)
	return c
}

// come starts n check-outs at once.
func (c *crowd) come(n int, patronOf func(i int) string) {
	ctx, takes := inTenant(c.t, "diku"), c.takes
	for i := range n {
		c.wg.Go(func() {
			leave, err := c.Enter(ctx, patronOf(i))
			if err == nil {
				<-time.After(takes)
				leave()
			}
		})
	}
	synctest.Wait()
}

func each(i int) string { return strconv.Itoa(i) }

func one(int) string { return "one" }

// keepBusy has check-outs of many patrons in line for d.
func (c *crowd) keepBusy(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); <-time.After(c.takes) {
		if _, waiting := c.Counts(); waiting < 10 {
			c.come(10, func(i int) string { return "busy-" + strconv.Itoa(i) })
		}
	}
}

// want expects so many results since the last call.
func (c *crowd) want(t *testing.T, results map[admission.Result]int) {
	t.Helper()
	got := c.takeResults()
	for _, r := range append(admission.Refusals(), admission.Admitted) {
		if got[r] != results[r] {
			t.Errorf("%d are %s, want %d", got[r], r, results[r])
		}
	}
}

// takeResults returns how many check-outs had each result since its last call.
func (c *crowd) takeResults() map[admission.Result]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.results
	c.results = map[admission.Result]int{}
	return taken
}

func wantRoom(t *testing.T, l *admission.Line, least, most int) {
	t.Helper()
	if n := l.Room(); n < least || n > most {
		t.Errorf("there is room for %d, want %d to %d", n, least, most)
	}
}

func TestLine_AdmitsWhatItServesInTime(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(t *testing.T){
		"a start assumes 100 ms for a check-out": func(t *testing.T) {
			c := newCrowd(t, 2, 90*time.Millisecond)
			wantRoom(t, c.Line, 60, 60)
			c.come(70, each)
			c.want(t, map[admission.Result]int{admission.Admitted: 2, admission.LineFull: 70 - 2 - 60})
			c.wg.Wait()
			c.want(t, map[admission.Result]int{admission.Admitted: 60})
		},
		"the rate of the last seconds decides": func(t *testing.T) {
			c := newCrowd(t, 4, 20*time.Millisecond) // 200 in a second
			c.keepBusy(10 * time.Second)
			wantRoom(t, c.Line, 580, 610)
			c.takes = 200 * time.Millisecond // 20 in a second
			c.keepBusy(10 * time.Second)
			wantRoom(t, c.Line, 55, 70)
		},
		"a burst is served or refused at once": func(t *testing.T) {
			c := newCrowd(t, 4, 20*time.Millisecond)
			c.keepBusy(10 * time.Second)
			c.wg.Wait()
			c.want(t, map[admission.Result]int{admission.Admitted: c.results[admission.Admitted]})
			c.come(5000, each)
			c.wg.Wait()
			served, refused := c.results[admission.Admitted], c.results[admission.LineFull]
			if served < 570 || served+refused != 5000 || c.longest[admission.LineFull] != 0 ||
				c.longest[admission.Admitted] > wait {
				t.Errorf("%d were served after up to %s, and %d refused after up to %s, want 5,000 in all, 570 or more of them "+
					"served in time",
					served, c.longest[admission.Admitted], refused, c.longest[admission.LineFull])
			}
		},
		"without progress, those in line end with their wait, and as many as places may follow": func(t *testing.T) {
			c := newCrowd(t, 4, 20*time.Millisecond)
			c.keepBusy(10 * time.Second)
			c.wg.Wait()
			c.takeResults()
			c.takes = time.Minute
			c.come(104, each)
			<-time.After(wait)
			synctest.Wait()
			c.want(t, map[admission.Result]int{admission.Admitted: 4, admission.WaitOver: 100})
			<-time.After(10 * time.Second)
			wantRoom(t, c.Line, 4, 4)
			c.come(6, func(i int) string { return "late " + each(i) })
			c.want(t, map[admission.Result]int{admission.LineFull: 2})
			<-time.After(wait + time.Millisecond)
			c.come(4, each)
			c.want(t, map[admission.Result]int{admission.WaitOver: 4})
		},
		"an idle minute forgets a low rate": func(t *testing.T) {
			c := newCrowd(t, 4, 2*time.Second)
			c.keepBusy(10 * time.Second)
			c.wg.Wait()
			if n := c.Room(); n > 60 {
				t.Errorf("there is room for %d while a check-out takes 2 s, want less", n)
			}
			<-time.After(time.Minute)
			wantRoom(t, c.Line, 119, 120)
		},
		"idle places say nothing": func(t *testing.T) {
			c := newCrowd(t, 4, 20*time.Millisecond)
			for range 100 { // ten in a second, one at a time
				c.come(1, one)
				<-time.After(100 * time.Millisecond)
			}
			wantRoom(t, c.Line, 119, 120)
		},
		"the bound of memory": func(t *testing.T) {
			c := newCrowd(t, 1000, time.Second)
			c.come(11_500, each)
			c.want(t, map[admission.Result]int{admission.Admitted: 1000, admission.LineFull: 500})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, f)
		})
	}
}

func TestLine_PilesOfOnePatron(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(t *testing.T){
		"a start assumes a quarter of the rate for one patron": func(t *testing.T) {
			c := newCrowd(t, 8, 40*time.Millisecond) // 25 in a second, one at a time
			c.come(70, one)
			c.want(t, map[admission.Result]int{admission.Admitted: 1, admission.PatronFull: 70 - 1 - 60})
			c.wg.Wait()
			c.want(t, map[admission.Result]int{admission.Admitted: 60})
		},
		"the rate at which the patron is served decides": func(t *testing.T) {
			c := newCrowd(t, 8, 500*time.Millisecond)
			for range 40 {
				c.come(3, one)
				<-time.After(500 * time.Millisecond)
			}
			c.takeResults()
			c.come(50, one)
			if n := c.takeResults()[admission.PatronFull]; n < 42 {
				t.Errorf("%d of 50 were refused at two in a second, want those that would wait for longer than %s", n, wait)
			}
		},
		"a pile that is served slowly takes no more": func(t *testing.T) {
			c := newCrowd(t, 8, 500*time.Millisecond)
			c.come(30, one)
			<-time.After(2600 * time.Millisecond)
			c.takeResults()
			c.come(10, one)
			c.want(t, map[admission.Result]int{admission.PatronFull: 10})
		},
		"one long check-out says nothing of a pile": func(t *testing.T) {
			c := newCrowd(t, 8, 20*time.Second)
			c.come(1, one)
			<-time.After(10 * time.Second)
			c.come(70, one)
			c.want(t, map[admission.Result]int{admission.Admitted: 1, admission.PatronFull: 10})
		},
		"others take no notice of a pile": func(t *testing.T) {
			c := newCrowd(t, 8, 40*time.Millisecond)
			c.come(61, one)
			c.takeResults()
			c.come(7, each)
			c.want(t, map[admission.Result]int{admission.Admitted: 7})
		},
		"only one turn of each pile is before another patron": func(t *testing.T) {
			c := newCrowd(t, 1, time.Second) // room for 30 patrons
			c.come(1, each)
			for patron := range 20 {
				c.come(2, func(int) string { return "pile " + strconv.Itoa(patron) })
			}
			if _, waiting := c.Counts(); waiting <= 20 {
				t.Fatalf("%d wait, want second ones too", waiting)
			}
			c.takeResults()
			c.come(10, func(i int) string { return "other " + strconv.Itoa(i) })
			c.want(t, map[admission.Result]int{})
			c.come(1, func(int) string { return "too late" })
			c.want(t, map[admission.Result]int{admission.LineFull: 1})
		},
		"a quarter of the memory": func(t *testing.T) {
			c := newCrowd(t, 1000, time.Minute)
			c.come(3000, one)
			c.want(t, map[admission.Result]int{admission.Admitted: 125, admission.PatronFull: 3000 - 125 - 2500})
			c.come(3*2625, func(i int) string { return "pile " + strconv.Itoa(i%3) })
			c.come(1, one)
			c.want(t, map[admission.Result]int{admission.Admitted: 3 * 125, admission.LineFull: 1})
			c.takes = time.Second
			c.come(500, each) // there are places for others
			c.come(1, func(int) string { return "late" })
			c.want(t, map[admission.Result]int{admission.Admitted: 500, admission.LineFull: 1})
			<-time.After(time.Second)
			c.come(1, func(int) string { return "later" })
			c.want(t, map[admission.Result]int{admission.Admitted: 1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, f)
		})
	}
}
