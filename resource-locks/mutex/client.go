// Package mutex is the client of the service's mutex protocol. A lock says "in use by this
// user": it belongs to the user, not to a process, and ends by itself unless it is renewed.
package mutex

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// ErrLocked is the error of a resource that another user holds. errors.As finds a
// *LockedError with the holder.
var ErrLocked = errors.New("the resource is in use by another user")

// ErrUnavailable is the error of a service that gives no answer, or answers that it cannot
// work. The caller decides whether to go on without a lock. A change may have happened.
var ErrUnavailable = errors.New("the lock service is not available")

// LockedError is an ErrLocked with its holder.
type LockedError struct {
	Holder string // the user's id
}

// Error implements error.
func (e *LockedError) Error() string { return fmt.Sprintf("%v: %s", ErrLocked, e.Holder) }

// Is makes errors.Is find ErrLocked.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// Lock is a held lock. Its times are those of the service's database.
type Lock struct {
	UID       string
	User      string
	LockedAt  time.Time
	RenewedAt time.Time // LockedAt until the first renewal
	ExpiresAt time.Time
	// Fence grows with each new lock of a uid. If it grew at a renewal, the former lock had
	// ended, and others may have held it meanwhile.
	Fence int64
}

// Client calls the service. It is safe for concurrent use.
type Client struct {
	// URL is the address of the service, such as http://127.0.0.1:9003.
	URL string
	// User is the id of the user that the locks belong to.
	User string
	// UserHeader is the header that names the user to the service. Empty is X-User-Id.
	UserHeader string
	// HTTP is used for the calls; nil is http.DefaultClient. A call ends with its context.
	HTTP *http.Client
}

// Acquire takes the lock of a uid, or renews it if the user holds it. Errors: ErrLocked,
// ErrUnavailable.
func (c *Client) Acquire(ctx context.Context, uid string) (Lock, error) {
	return c.callForLock(ctx, http.MethodPost, uid)
}

// Renew is Acquire: it starts the time-out anew. The caller repeats it more often than the
// time-out. A lock that has ended is taken again, unless another user has it.
func (c *Client) Renew(ctx context.Context, uid string) (Lock, error) {
	return c.Acquire(ctx, uid)
}

// Release frees the lock of a uid. It is no error if the user does not hold it. Error:
// ErrUnavailable.
func (c *Client) Release(ctx context.Context, uid string) error {
	status, body, err := c.call(ctx, http.MethodDelete, uid)
	if err != nil || status == http.StatusNoContent {
		return err
	}
	return refusal(status, body)
}

// Check returns the lock of a uid of any user, and whether there is one. It changes
// nothing. Error: ErrUnavailable.
func (c *Client) Check(ctx context.Context, uid string) (Lock, bool, error) {
	lock, err := c.callForLock(ctx, http.MethodGet, uid)
	if errors.Is(err, errFree) {
		return Lock{}, false, nil
	}
	return lock, err == nil, err
}

// errFree is the answer to GET for a uid without a lock.
var errFree = errors.New("the resource is not in use")

func (c *Client) callForLock(ctx context.Context, method, uid string) (Lock, error) {
	status, body, err := c.call(ctx, method, uid)
	if err != nil {
		return Lock{}, err
	}
	if status != http.StatusOK {
		return Lock{}, refusal(status, body)
	}
	var answer struct {
		UID       string    `json:"uid"`
		UserID    userID    `json:"user_id"`
		LockedAt  time.Time `json:"locked_at"`
		RenewedAt time.Time `json:"renewed_at"`
		ExpiresAt time.Time `json:"expires_at"`
		Fence     int64     `json:"fence"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return Lock{}, fmt.Errorf("%w: the answer cannot be read: %w", ErrUnavailable, err)
	}
	if answer.UID != uid { // it is not the service's, such as a proxy's
		return Lock{}, fmt.Errorf("%w: the answer is no lock of the resource", ErrUnavailable)
	}
	return Lock{
		UID: answer.UID, User: string(answer.UserID), Fence: answer.Fence,
		LockedAt: answer.LockedAt, RenewedAt: answer.RenewedAt, ExpiresAt: answer.ExpiresAt,
	}, nil
}

// maxAnswer bounds what is read of an answer.
const maxAnswer = 64 << 10

func (c *Client) call(ctx context.Context, method, uid string) (status int, body []byte, err error) {
	if uid == "" {
		return 0, nil, errors.New("the uid is empty")
	}
	if c.User != strings.Trim(c.User, " ") || strings.ContainsFunc(c.User, func(r rune) bool { return r < ' ' || r == '\x7f' }) {
		return 0, nil, errors.New("the user has blanks at an end or control characters, which no header keeps")
	}
	address := strings.TrimSuffix(c.URL, "/") + "/api/lock/" + url.PathEscape(uid) + "/"
	r, err := http.NewRequestWithContext(ctx, method, address, http.NoBody)
	if err != nil {
		return 0, nil, fmt.Errorf("the address of the lock service cannot be used: %w", err)
	}
	if r.URL.Host == "" {
		return 0, nil, errors.New("the address of the lock service cannot be used: it names no host")
	}
	r.Header.Set(cmp.Or(c.UserHeader, "X-User-Id"), c.User)
	resp, err := cmp.Or(c.HTTP, http.DefaultClient).Do(r)
	if err != nil {
		return 0, nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer resp.Body.Close()
	if resp.Request.Method != method {
		return 0, nil, fmt.Errorf("%w: a redirect made %s of %s", ErrUnavailable, resp.Request.Method, method)
	}
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return 0, nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return resp.StatusCode, body, nil
}

// refusal converts an answer other than a success to an error. An answer that is not the
// service's, such as a proxy's, counts as an outage.
func refusal(status int, body []byte) error {
	var answer struct {
		Message string `json:"message"`
		UserID  userID `json:"user_id"`
	}
	readable := json.Unmarshal(body, &answer) == nil && answer.Message != ""
	switch {
	case status >= http.StatusInternalServerError || !readable:
		return fmt.Errorf("%w: status %d %s", ErrUnavailable, status, answer.Message)
	case status == http.StatusLocked:
		return &LockedError{Holder: string(answer.UserID)}
	case status == http.StatusNotFound && answer.Message == "Resource is not in use":
		return errFree
	}
	return fmt.Errorf("the lock service refuses the call: status %d: %s", status, answer.Message)
}

// userID is a number or a string in JSON.
type userID string

// UnmarshalJSON implements json.Unmarshaler.
func (u *userID) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*u = userID(text)
		return nil
	}
	var number json.Number
	if err := json.Unmarshal(data, &number); err != nil {
		return err
	}
	*u = userID(number)
	return nil
}
