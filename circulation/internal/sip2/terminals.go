package sip2

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alexedwards/argon2id"
	"github.com/google/uuid"
	"golang.org/x/crypto/bcrypt"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/config"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
	"checkoutlock/schemas/okapi"
)

// Terminals finds self-check machines. The tenant comes with the context.
type Terminals interface {
	// Terminal returns the machine that signs in with the login. Fault: NotFound.
	Terminal(ctx context.Context, login string) (library.Terminal, error)
	// VerifyTerminal is Terminal with its password. Fault: LoginRefused.
	VerifyTerminal(ctx context.Context, login, password string) (library.Terminal, error)
}

// maxHashMemory bounds the memory that the check of one password takes, in KiB.
const maxHashMemory = 32 << 10

// mappedBits are the bits of IPv6 before an address of IPv4, as in ::ffff:10.1.2.3.
const mappedBits = 96

// filedTerminal is a terminal of a file.
type filedTerminal struct {
	library.Terminal
	Tenant string `json:"tenant"`
	// PasswordHash is of bcrypt or argon2id.
	PasswordHash string `json:"passwordHash"`
}

// terminalKey names a terminal. Logins are equal without regard to case.
type terminalKey struct{ tenant, login string }

func newTerminalKey(tenant, login string) terminalKey {
	return terminalKey{tenant: tenant, login: strings.ToLower(login)}
}

// splitLogin takes a login such as desk-1@diku apart. Without a tenant it has that of the settings.
func (s Settings) splitLogin(login string) (string, okapi.Tenant, error) {
	name, tenantID := login, s.Tenant
	if at := strings.LastIndexByte(login, '@'); at >= 0 {
		name, tenantID = login[:at], login[at+1:]
	}
	tenant, err := okapi.ParseTenant(tenantID)
	if err == nil && name == "" {
		err = errors.New("no login")
	}
	return name, tenant, err //nolint:wrapcheck // the callers say only that it is wrong
}

// terminalFile has the terminals of a file, in front of others.
type terminalFile struct {
	terminals map[terminalKey]filedTerminal
	others    Terminals
}

// readTerminals reads the terminals of SIP2_TERMINALS. Its error names everything that is wrong.
func readTerminals(s Settings) (map[terminalKey]filedTerminal, error) {
	if s.TerminalFile == "" {
		return nil, nil
	}
	content, err := os.ReadFile(s.TerminalFile)
	if err != nil {
		return nil, fmt.Errorf("SIP2_TERMINALS cannot be read: %w", err)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(content, &list); err != nil {
		return nil, fmt.Errorf("SIP2_TERMINALS must be a list of terminals: %w", err)
	}
	terminals := map[terminalKey]filedTerminal{}
	var errs []error
	for i, record := range list {
		var t filedTerminal
		err := errors.Join(json.Unmarshal(record, &t), checkRecord(record))
		key := newTerminalKey(t.Tenant, t.Login)
		for _, problem := range append(t.validate(), err) {
			if problem == nil {
				continue
			}
			errs = append(errs, fmt.Errorf("SIP2_TERMINALS, terminal %d (%q): %w", i+1, t.Login, problem))
		}
		if _, taken := terminals[key]; taken {
			errs = append(errs, fmt.Errorf("SIP2_TERMINALS, terminal %d (%q): another one has this login", i+1, t.Login))
		}
		if t.ID == "" { // records name the acting user by a UUID
			t.ID = uuid.NewSHA1(uuid.Nil, []byte(key.tenant+"\x00"+key.login)).String()
		}
		terminals[key] = t
	}
	return terminals, errors.Join(errs...)
}

// checkRecord checks a terminal by the JSON Schema of storage.
func checkRecord(record []byte) error {
	doc, err := jsonschema.DecodeObject(record)
	if err != nil {
		return err //nolint:wrapcheck // the caller names the terminal
	}
	delete(doc, "passwordHash")
	return jsonschema.Check("self-check-terminal", doc) //nolint:wrapcheck // the caller names the terminal
}

// validate returns what is wrong besides.
func (t filedTerminal) validate() []error {
	var errs []error
	if _, err := okapi.ParseTenant(t.Tenant); err != nil {
		errs = append(errs, fmt.Errorf("tenant: %w", err))
	}
	if t.ServicePointID == "" && !t.ServicePointFromLogin {
		errs = append(errs, errors.New("servicePointId is missing, and servicePointFromLogin is not true"))
	}
	if _, err := time.LoadLocation(t.TimeZone); err != nil {
		errs = append(errs, config.OutOfRange("timeZone", t.TimeZone, "a time zone such as Europe/Berlin"))
	}
	if _, err := parseAddresses(t.Addresses); err != nil {
		errs = append(errs, err)
	}
	return append(errs, validateHash(t.PasswordHash)...)
}

// validateHash accepts no hash: that terminal cannot sign in, but SIP2_LOGINS may name it.
func validateHash(hash string) []error {
	if hash == "" {
		return nil
	}
	if _, err := bcrypt.Cost([]byte(hash)); err == nil {
		return nil
	}
	p, _, _, err := argon2id.DecodeHash(hash)
	if err != nil || p.Memory > maxHashMemory {
		return []error{fmt.Errorf("passwordHash must be one of bcrypt, or of argon2id with at most m=%d", maxHashMemory)}
	}
	return nil
}

// Terminal implements Terminals.
func (f terminalFile) Terminal(ctx context.Context, login string) (library.Terminal, error) {
	if t, filed := f.find(ctx, login); filed {
		return t.Terminal, nil
	}
	return f.others.Terminal(ctx, login) //nolint:wrapcheck // storage's fault
}

// VerifyTerminal implements Terminals.
func (f terminalFile) VerifyTerminal(ctx context.Context, login, password string) (library.Terminal, error) {
	t, filed := f.find(ctx, login)
	switch {
	case !filed:
		return f.others.VerifyTerminal(ctx, login, password) //nolint:wrapcheck // storage's fault
	case !hasPassword(t.PasswordHash, password):
		return library.Terminal{}, fault.New(fault.LoginRefused, "Wrong password")
	}
	return t.Terminal, nil
}

func (f terminalFile) find(ctx context.Context, login string) (filedTerminal, bool) {
	t, filed := f.terminals[newTerminalKey(okapi.FromContext(ctx).Tenant.String(), login)]
	return t, filed
}

func hasPassword(hash, password string) bool {
	if strings.HasPrefix(hash, "$argon2id$") {
		right, err := argon2id.ComparePasswordAndHash(password, hash)
		return err == nil && right
	}
	return bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)) == nil
}

// parseAddresses reads addresses and networks, those of IPv4 in either form. A zone is left out: each host
// names its interfaces by itself.
func parseAddresses(list []string) ([]netip.Prefix, error) {
	prefixes := make([]netip.Prefix, 0, len(list))
	for _, text := range list {
		prefix, err := netip.ParsePrefix(text)
		if addr, noAddress := netip.ParseAddr(text); noAddress == nil {
			prefix, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil {
			return nil, config.OutOfRange("addresses", text, "addresses and networks such as 10.1.0.0/16")
		}
		if addr, bits := prefix.Addr(), prefix.Bits()-mappedBits; addr.Is4In6() && bits >= 0 {
			prefix = netip.PrefixFrom(addr.Unmap(), bits)
		}
		prefixes = append(prefixes, prefix)
	}
	return prefixes, nil
}

// admits reports whether the terminal may connect from the address. An address that cannot be read
// admits none.
func admits(t library.Terminal, from netip.Addr) bool {
	prefixes, err := parseAddresses(t.Addresses)
	if err != nil {
		return false
	}
	from = from.WithZone("") // no network contains an address with a zone
	return len(t.Addresses) == 0 || slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(from) })
}
