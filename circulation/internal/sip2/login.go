package sip2

import (
	"context"
	"errors"
	"strings"
	"time"

	"checkoutlock/circulation/internal/cache"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/sip2/wire"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/schemas/pace"
	"checkoutlock/web/texts"
)

const (
	// maxWrongLogins ends a connection.
	maxWrongLogins = 3
	// longestBrake bounds the wait before a login is verified.
	longestBrake = 2 * time.Second
	// brakeAge is how long a wrong login is remembered.
	brakeAge = 5 * time.Minute
	// brakeSize bounds how many are.
	brakeSize = 4096
	// verifications bounds the logins that are verified at once: a hash takes memory, and check-outs
	// need the connections to storage.
	verifications = 2
)

// brake slows wrong logins, and wrong PINs of patrons.
type brake struct {
	wrong *cache.Cache[string, int] // by address and login, or by card
	slots chan struct{}
	turns *cache.Cache[string, chan struct{}] // by card; a message with a PIN fills the channel
}

// wait is twice as long after each further wrong one of the key.
func (b *brake) wait(key string, shortest time.Duration) time.Duration {
	n, _ := b.wrong.Peek(key)
	if n == 0 {
		return 0
	}
	return min(shortest<<min(n-1, 8), longestBrake)
}

// turnOf returns the turn of a card. All connections get the same one.
func (b *brake) turnOf(card string) chan struct{} {
	own := make(chan struct{}, 1)
	b.turns.Add(card, own, brakeAge)
	if turn, ok := b.turns.Peek(card); ok {
		return turn
	}
	return own // the cache was full, and cleared meanwhile
}

func (b *brake) note(key string) {
	n, _ := b.wrong.Peek(key)
	b.wrong.Put(key, n+1, brakeAge)
}

// signIn answers 93 with 94. A wrong login signs out, and is answered late, always after the same time.
func (c *connection) signIn(ctx context.Context, r wire.Request) wire.Answer {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, c.turn)
	defer cancel()
	t, err := c.verify(ctx, r)
	if err == nil {
		c.metrics.logins.WithLabelValues("ok").Inc()
		c.wrongLogins = 0
		return wire.NewAnswer("94", "1")
	}
	c.signOut()
	a := wire.Refusal(r, "", c.now())
	if isUnavailable(err) {
		c.metrics.logins.WithLabelValues("failed").Inc()
		c.Log.ErrorContext(ctx, "a machine's login could not be verified", "terminal", t.Login, "from", c.from, "err", err)
		a.Result = wire.Failed
		return a
	}
	c.metrics.logins.WithLabelValues("wrong").Inc()
	c.wrongLogins++
	c.Log.WarnContext(ctx, "a machine's login was refused", "from", c.from, "err", err)
	pace.Wait(c.stopping, c.wrong-time.Since(began))
	return a
}

// isUnavailable reports whether err says nothing about the login.
func isUnavailable(err error) bool {
	switch fault.CodeOf(err) {
	case fault.Unauthorized, fault.Forbidden, fault.NotFound, fault.Invalid, fault.Malformed, fault.UnknownTenant, fault.LoginRefused:
		return false
	default:
		return true
	}
}

// verify signs the machine in. A fault refuses the login, or says that it could not be verified.
func (c *connection) verify(ctx context.Context, r wire.Request) (library.Terminal, error) {
	login, tenant, err := c.Settings.splitLogin(r.Field("CN"))
	if err != nil {
		return library.Terminal{}, fault.Wrap(err, fault.LoginRefused, "The login names no library")
	}
	if r.Fixed(wire.UserAlgorithm) != "0" || r.Fixed(wire.PasswordAlgorithm) != "0" {
		return library.Terminal{}, fault.New(fault.LoginRefused, "The login is encrypted")
	}
	t, err := c.comparePassword(ctx, tenant, login, r.Field("CO"))
	place := ""
	if err == nil && t.ServicePointFromLogin {
		place, err = c.ServicePoint(okapi.WithTenant(ctx, tenant), r.Field("CP"))
	}
	if err != nil {
		return t, err
	}
	c.servicePoint = place
	c.enter(t, tenant)
	return t, nil
}

// comparePassword returns the terminal with the login and the password. Wrong ones are slowed.
func (c *connection) comparePassword(ctx context.Context, tenant okapi.Tenant, login, password string) (library.Terminal, error) {
	key := c.from.String() + " " + tenant.String() + " " + strings.ToLower(login)
	pace.Wait(c.stopping, c.brake.wait(key, c.wrong))
	leave, err := c.waitForTurn(ctx)
	if err != nil {
		return library.Terminal{}, err
	}
	defer leave()
	ctx = okapi.WithTenant(ctx, tenant)
	t, err := c.terminals.VerifyTerminal(ctx, login, password)
	if err == nil && (!t.IsEnabled() || !admits(t, c.from)) {
		err = fault.New(fault.LoginRefused, "The terminal is disabled, or may not connect from here")
	}
	switch {
	case err == nil:
		c.brake.wrong.Drop(key)
		c.password = password
	case !isUnavailable(err):
		c.brake.note(key)
		c.countWrongLogin(ctx, tenant, login)
	}
	return t, err
}

// countWrongLogin counts a wrong login at the terminal, if the library has one of this login.
func (c *connection) countWrongLogin(ctx context.Context, tenant okapi.Tenant, login string) {
	if t, err := c.terminals.Terminal(ctx, login); err == nil {
		c.activity.count(activeKey{tenant, t.Login}, schemas.TerminalCounts{WrongLogins: 1})
	}
}

// refuseMachine refuses a message whose AC is not the terminal's password, if the terminal has to send it;
// false if it is. What was compared is not compared again.
func (c *connection) refuseMachine(ctx context.Context, r wire.Request) (wire.Answer, bool) {
	sent := r.Field("AC")
	if !c.terminal.PasswordAlways || sent != "" && sent == c.password {
		return wire.Answer{}, false
	}
	_, err := c.comparePassword(ctx, c.tenant, c.login, sent)
	if err == nil {
		return wire.Answer{}, false
	}
	if isUnavailable(err) {
		a := c.refuse(ctx, r, texts.MachineUnavailable)
		a.Result = wire.Failed
		return a, true
	}
	c.metrics.logins.WithLabelValues("wrong").Inc()
	c.wrongLogins++
	return c.refuse(ctx, r, texts.MachineNotSignedIn), true
}

// slowGuesses handles a request. If it has a PIN, it waits before: for those of the card that are under
// way, and longer after each wrong one. If its turn does not come in time, it is refused as busy.
func (c *connection) slowGuesses(ctx context.Context, r wire.Request, handle func() wire.Answer) wire.Answer {
	if r.Field("AD") == "" {
		return handle()
	}
	key := "PIN " + c.tenant.String() + " " + strings.ToLower(r.Field("AA"))
	turn := c.brake.turnOf(key)
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return c.refuseBusy(ctx, r)
	}
	pace.Wait(c.stopping, c.brake.wait(key, c.wrong))
	a := handle()
	switch {
	case a.RightPIN == nil:
	case *a.RightPIN:
		c.brake.wrong.Drop(key)
	default:
		c.brake.note(key)
	}
	return a
}

// waitForTurn waits until few other logins are being verified. A login may take longer than the machine's
// patience: 940 would say that its password is wrong. A machine that comes again meanwhile waits anew,
// and storage remembers what it has compared.
func (c *connection) waitForTurn(ctx context.Context) (leave func(), err error) {
	select {
	case c.brake.slots <- struct{}{}:
		return func() { <-c.brake.slots }, nil
	case <-ctx.Done():
	case <-c.stopping.Done():
	}
	return nil, fault.New(fault.Timeout, "Too many logins at once")
}

// key names the terminal, if the machine is signed in.
func (c *connection) key() activeKey { return activeKey{c.tenant, c.login} }

// leave ends what the connection is for the terminal.
func (c *connection) leave() { c.activity.leave(c.key(), c) }

// enter makes the connection that of the terminal.
func (c *connection) enter(t library.Terminal, tenant okapi.Tenant) {
	t = c.complete(t)
	if t.ServicePointFromLogin && c.servicePoint != "" { // a machine that signs in unasked names none
		t.ServicePointID = c.servicePoint
	}
	if next := (activeKey{tenant, t.Login}); next != c.key() {
		c.leave()
		c.activity.arrive(next, c)
	}
	c.login, c.tenant, c.terminal = t.Login, tenant, t
}

func (c *connection) signOut() {
	if c.login != "" {
		c.loginBy = time.Now().Add(c.listener.login)
	}
	c.leave()
	c.login, c.tenant, c.terminal, c.servicePoint, c.password = "", okapi.Tenant{}, library.Terminal{}, "", ""
	c.kept = kept{}
}

// loginUnasked signs in a machine that never does so itself. Storage may be away for the moment: then
// the connection ends, and the machine comes again.
func (c *connection) loginUnasked(ctx context.Context) error {
	for _, login := range c.Settings.Unasked {
		name, tenant, err := c.Settings.splitLogin(login)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(okapi.WithTenant(ctx, tenant), refreshTimeout)
		t, err := c.terminals.Terminal(ctx, name)
		cancel()
		switch {
		case err != nil && isUnavailable(err):
			return err //nolint:wrapcheck // a fault
		case err != nil:
			c.Log.WarnContext(ctx, "SIP2_LOGINS names a terminal that does not exist", "terminal", login)
		case t.IsEnabled() && admits(t, c.from):
			c.enter(t, tenant)
			return nil
		}
	}
	return nil
}

var (
	errWrongLogins = errors.New("too many wrong logins")
	errLockedOut   = errors.New("the terminal was removed or disabled, or has to sign in anew")
)

// refresh reads the terminal anew, so that a change is in force for the next message. A terminal that
// is gone is signed out, and its connection ends after the answer. So is one whose place comes with the
// login from now on. While storage is away, the terminal stays as it was. A changed record may have
// another password.
func (c *connection) refresh(ctx context.Context) error {
	if c.login == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, min(refreshTimeout, c.answerWithin()/2))
	defer cancel()
	t, err := c.terminals.Terminal(ctx, c.login)
	placeless := t.ServicePointFromLogin && !c.terminal.ServicePointFromLogin && c.servicePoint == ""
	switch {
	case err == nil && t.IsEnabled() && admits(t, c.from) && !placeless:
		if t.ID != c.terminal.ID || t.Version != c.terminal.Version {
			c.password = ""
		}
		c.enter(t, c.tenant)
		return nil
	case err != nil && isUnavailable(err):
		c.Log.WarnContext(ctx, "a terminal could not be read again", "terminal", c.login, "err", err)
		return nil
	default:
		c.signOut()
		return errLockedOut
	}
}
