package sip2

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"checkoutlock/circulation/internal/sip2/wire"
	"checkoutlock/schemas"
	"checkoutlock/schemas/convert"
)

// retries is how often a machine sends a message again.
const retries = 3

// longestTimeout is the longest patience that 98 can tell, in tenths of a second.
const longestTimeout = 998

// describeService answers 99 with 98. Before the login it shows nothing of the library.
func (c *connection) describeService(ctx context.Context, r wire.Request) wire.Answer {
	online := c.isReady(ctx)
	status := r.Fixed(wire.Status)
	c.activity.attend(c.key(), map[string]string{"1": schemas.OutOfPaper, "2": schemas.ShuttingDown}[status])
	if status == "1" || status == "2" {
		c.Log.WarnContext(ctx, "a machine needs attention", "terminal", c.login, "out_of_paper", status == "1", "shutting_down", status == "2")
	}
	flags := []bool{
		online, c.serves(wire.CheckIn), c.serves(wire.CheckOut), c.serves(wire.Renew) && c.terminal.Renews(),
		false, c.terminal.NoBlock == "lend" && c.serves(wire.CheckOut),
	}
	tenths := min(int(c.patience(c.terminal)/(100*time.Millisecond)), longestTimeout)
	c.printWidth, _ = strconv.Atoi(strings.TrimSpace(r.Fixed(wire.PrintWidth))) // 0 for none
	a := wire.NewAnswer("98", joinFlags(flags), wire.Count(tenths, 3), wire.Count(retries, 3), wire.FormatDate(c.now()), "2.00")
	a.Add("AO", r.Institution(c.terminal.Institution))
	a.AddFilled("AM", c.terminal.LibraryName)
	a.Add("BX", c.listServed())
	a.Add("AN", c.terminal.Name)
	return a
}

// isReady asks whether check-outs would succeed, for at most a part of the machine's patience.
func (c *connection) isReady(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout/2)
	defer cancel()
	err := c.Ready(ctx)
	if err != nil {
		c.Log.InfoContext(ctx, "a machine sees the service as off-line", "terminal", c.login, "err", fmt.Sprint(err))
	}
	return err == nil && !c.isStopping()
}

// listServed returns 16 letters, in the order of SIP2: which messages the machine may send, and get more
// than a refusal.
func (c *connection) listServed() string {
	codes := []string{
		wire.PatronStatus, wire.CheckOut, wire.CheckIn, wire.BlockPatron, wire.MachineStatus, wire.Resend, wire.Login, wire.PatronInformation,
		wire.EndSession, wire.FeePaid, wire.ItemInformation, wire.ItemStatusUpdate, wire.EnablePatron, wire.Hold, wire.Renew, wire.RenewAll,
	}
	return joinFlags(convert.All(codes, c.serves))
}

// serves reports whether the signed-in machine gets more than a refusal for the request.
func (c *connection) serves(code string) bool {
	switch code {
	case wire.MachineStatus, wire.Resend, wire.Login:
		return true
	case wire.BlockPatron, wire.FeePaid, wire.ItemStatusUpdate, wire.EnablePatron, wire.Hold:
		return false
	case wire.Renew, wire.RenewAll:
		if !c.terminal.Renews() {
			return false
		}
	}
	_, served := c.Handlers[code]
	return served && c.login != "" && c.terminal.Allows(code)
}

func joinFlags(flags []bool) string {
	var b strings.Builder
	for _, flag := range flags {
		b.WriteString(wire.YN(flag))
	}
	return b.String()
}
