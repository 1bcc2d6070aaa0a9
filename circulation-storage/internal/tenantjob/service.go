package tenantjob

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas/fault"
)

const (
	// leaseDuration is how long a job waits for a process that died.
	leaseDuration = 6 * time.Second
	renewInterval = leaseDuration / 3
	// callTimeout bounds what a job asks of its store beside its work.
	callTimeout = 5 * time.Second
	// Who waits for a job looks at it after firstPause, then after ever longer pauses up to mostPause.
	firstPause, mostPause = 10 * time.Millisecond, 500 * time.Millisecond
)

var errStopped = errors.New("the service stops")

// Service works on jobs. It is safe for concurrent use.
type Service struct {
	store   Store
	work    func(context.Context, Attributes) error
	timeout time.Duration
	log     *slog.Logger

	stop    chan struct{}
	stopped sync.Once
	running sync.WaitGroup

	noWaits    chan struct{}
	endedWaits sync.Once
}

// New returns a service that installs the tenant of each job and then does work, for timeout at most.
func New(store Store, work func(context.Context, Attributes) error, timeout time.Duration, log *slog.Logger) *Service {
	return &Service{
		store: store, work: work, timeout: timeout, log: log,
		stop: make(chan struct{}), noWaits: make(chan struct{}),
	}
}

// Run waits until ctx is done, cuts the jobs off and gives up their leases, so that another process
// can go on with them at once. No job may begin after ctx is done.
func (s *Service) Run(ctx context.Context) {
	<-ctx.Done()
	s.stopped.Do(func() { close(s.stop) })
	s.running.Wait()
}

// Begin begins a job for the tenant in ctx, or joins the one with these attributes that runs. It
// goes on after ctx is done. Fault: InUse while one with other attributes runs.
func (s *Service) Begin(ctx context.Context, a Attributes) (Job, error) {
	l := Lease{JobID: uuid.New(), Worker: uuid.New(), Duration: leaseDuration}
	job, leased, err := s.store.Begin(ctx, l, a)
	if err == nil && leased {
		l.JobID = job.ID
		s.start(ctx, l, a)
	}
	return job, err
}

// EndWaits ends all waits for jobs; later ones end at once. It may be called again.
func (s *Service) EndWaits() { s.endedWaits.Do(func() { close(s.noWaits) }) }

// Wait returns the job when it has ended, or as it stands after patience or at EndWaits. It takes the
// job over from a process that died. Fault: NotFound.
func (s *Service) Wait(ctx context.Context, id uuid.UUID, patience time.Duration) (Job, error) {
	end := time.Now().Add(patience)
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		job, err := s.store.Read(ctx, id)
		if err != nil || job.Ended {
			return job, err
		}
		l := Lease{JobID: id, Worker: uuid.New(), Duration: leaseDuration}
		taken, err := s.store.Take(ctx, l)
		if err != nil {
			return job, err
		}
		if taken {
			s.start(ctx, l, job.Attributes)
		}
		left := time.Until(end)
		if left <= 0 {
			return job, nil
		}
		select {
		case <-ctx.Done():
			return job, ctx.Err()
		case <-s.noWaits:
			return job, nil
		case <-time.After(min(pause, left)):
		}
	}
}

// Delete forgets a job, which ends it if it runs. Fault: NotFound.
func (s *Service) Delete(ctx context.Context, id uuid.UUID) error { return s.store.Delete(ctx, id) }

// start works on a job beside its caller.
func (s *Service) start(ctx context.Context, l Lease, a Attributes) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	s.running.Go(func() {
		defer cancel(nil)
		ended := make(chan error, 1)
		working, stop := context.WithTimeout(ctx, s.timeout)
		defer stop()
		go func() { ended <- s.workOn(working, l, a) }()
		err := s.keepLease(ctx, l, ended, cancel)
		s.finish(context.WithoutCancel(ctx), l, err)
	})
}

func (s *Service) workOn(ctx context.Context, l Lease, a Attributes) (err error) {
	defer fault.Recover(&err)
	if err := s.store.Install(ctx, l); err != nil {
		return fmt.Errorf("installing: %w", err)
	}
	return s.work(ctx, a)
}

// keepLease renews the lease until the work has ended, and returns its error. It ends the work when
// the service stops, and when the lease is lost or could not be renewed in time.
func (s *Service) keepLease(ctx context.Context, l Lease, ended <-chan error, cancel context.CancelCauseFunc) error {
	tick := time.NewTicker(renewInterval)
	defer tick.Stop()
	stop := s.stop
	for until := time.Now().Add(leaseDuration); ; {
		select {
		case err := <-ended:
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return err
		case <-stop:
			cancel(errStopped)
			stop = nil
		case <-tick.C:
			asked := time.Now()
			held, err := s.renew(ctx, l)
			switch {
			case held:
				until = asked.Add(leaseDuration)
			case err == nil, fault.Is(err, fault.UnknownTenant), asked.After(until):
				cancel(ErrLost)
			}
		}
	}
}

func (s *Service) renew(ctx context.Context, l Lease) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, renewInterval)
	defer cancel()
	return s.store.Renew(ctx, l)
}

// finish writes how the work ended, or gives the lease up.
func (s *Service) finish(ctx context.Context, l Lease, failed error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var err error
	switch code := fault.CodeOf(failed); {
	case errors.Is(failed, ErrLost):
		s.log.WarnContext(ctx, "tenant job ended", "job", l.JobID, "err", failed)
		return
	case errors.Is(failed, errStopped):
		l.Duration = 0
		_, err = s.store.Renew(ctx, l)
	case code == fault.Internal && errors.Is(failed, context.DeadlineExceeded):
		err = s.store.End(ctx, l, fault.Timeout, "The work did not end within "+s.timeout.String()+". Ask for it again: it goes on")
	case code == fault.Internal: // the cause is for operators
		err = s.store.End(ctx, l, code, "The work failed. The log of circulation-storage says why, beside job "+l.JobID.String())
	case code != "":
		err = s.store.End(ctx, l, code, fault.Text(failed))
	default:
		err = s.store.End(ctx, l, "", "")
	}
	if failed != nil && !errors.Is(failed, errStopped) {
		s.log.ErrorContext(ctx, "tenant job failed", "job", l.JobID, "err", failed)
	}
	if err != nil {
		s.log.WarnContext(ctx, "end of a tenant job not written", "job", l.JobID, "err", err)
	}
}
