package lockhistory

import (
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
)

// ErrLost is the error of a call that Loss has cut.
var ErrLost = errors.New("lost by the test")

// Loss is a transport that loses some requests before they are sent, and some answers.
type Loss struct {
	http.RoundTripper

	Percent int // of calls that lose the request; as many lose the answer

	mu  sync.Mutex
	rng *rand.Rand
}

// NewLoss returns a transport that loses what the seed says.
func NewLoss(seed uint64, percent int) *Loss {
	return &Loss{
		RoundTripper: &http.Transport{DisableKeepAlives: true}, Percent: percent, // an idle connection delays a stop
		rng: rand.New(rand.NewPCG(seed, 1)), //nolint:gosec // it guards nothing
	}
}

// RoundTrip implements http.RoundTripper.
func (l *Loss) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	chance := l.rng.IntN(100)
	l.mu.Unlock()
	if chance < l.Percent {
		return nil, ErrLost
	}
	answer, err := l.RoundTripper.RoundTrip(r)
	if err != nil || chance >= 2*l.Percent {
		return answer, err
	}
	_, _ = io.Copy(io.Discard, answer.Body) // its effect is there then
	_ = answer.Body.Close()
	return nil, ErrLost
}
