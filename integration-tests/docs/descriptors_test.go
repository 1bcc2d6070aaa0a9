package docs_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	storage "checkoutlock/circulation-storage/app"
	circulation "checkoutlock/circulation/app"
	"checkoutlock/config/command"
	locks "checkoutlock/resource-locks/app"
	"checkoutlock/web/describe"
)

var update = flag.Bool("update", false, "write the generated documents")

// descriptors are the services' module descriptors, by file.
func descriptors(t *testing.T) map[string]describe.Descriptor {
	t.Helper()
	all := map[string]describe.Descriptor{}
	for name, module := range map[string]describe.Module{
		"circulation": circulation.Module(), "circulation-storage": storage.Module(), "resource-locks": locks.Module(),
	} {
		d, err := module.Descriptor()
		if err != nil {
			t.Fatal(err)
		}
		all[name] = d
	}
	return all
}

// compareFile fails the test if a generated document is not the checked-in one, or writes it.
func compareFile(t *testing.T, file string, want []byte) {
	t.Helper()
	path := filepath.Join(root, file)
	if *update {
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is out of date (%v): go test ./integration-tests/docs -update", file, err)
	}
}

func TestDescriptors_AreTheCheckedInFiles(t *testing.T) {
	t.Parallel()
	for name, d := range descriptors(t) {
		var file bytes.Buffer
		if err := command.PrintJSON(&file, func() (describe.Descriptor, error) { return d, nil }); err != nil {
			t.Fatal(err)
		}
		compareFile(t, "docs/descriptors/"+name+".json", file.Bytes())
	}
}

var pathParameter = regexp.MustCompile(`\{\w+\}`)

// The names of interfaces and permissions are FOLIO's. What FOLIO does not have is in an
// interface of our own.
func TestDescriptors_HaveNamesOfFOLIO(t *testing.T) {
	t.Parallel()
	folio := map[string]string{} // "METHOD path interface" to the permission
	paths := map[string]bool{}   // "METHOD path" that FOLIO has
	for line := range strings.Lines(read(t, "integration-tests/docs/testdata/folio-routes.tsv")) {
		if cells := strings.Split(strings.TrimSpace(line), "\t"); len(cells) == 4 {
			folio[strings.Join(cells[:3], " ")] = strings.Trim(cells[3], "-")
			paths[cells[0]+" "+cells[1]] = true
		}
	}
	compared := 0
	for name, d := range descriptors(t) {
		for _, p := range d.Provides {
			isOwn := strings.Contains(p.ID, "checkoutlock") || name == "resource-locks"
			for _, h := range p.Handlers {
				route := h.Methods[0] + " " + pathParameter.ReplaceAllString(h.Path, "{}")
				permission, known := folio[route+" "+p.ID+" "+p.Version]
				switch {
				case isOwn && paths[route]:
					t.Errorf("%s: FOLIO has %s, but it is in %s", name, route, p.ID)
				case isOwn:
				case !known:
					t.Errorf("%s: FOLIO does not have %s in %s %s", name, route, p.ID, p.Version)
				case strings.Join(h.Required, ",") != permission:
					t.Errorf("%s: %s requires %q, in FOLIO %q", name, route, h.Required, permission)
				default:
					compared++
				}
			}
		}
	}
	if compared < 150 {
		t.Errorf("compared %d routes, want at least 150", compared)
	}
}

// What circulation calls is what storage provides, so a gateway lets the two talk.
func TestDescriptors_OfThePairFitTogether(t *testing.T) {
	t.Parallel()
	all := descriptors(t)
	var interfaces, permissions []string
	for _, p := range all["circulation-storage"].Provides {
		interfaces = append(interfaces, p.ID+" "+p.Version)
		for _, h := range p.Handlers {
			permissions = append(permissions, h.Required...)
		}
	}
	for _, r := range all["circulation"].Requires {
		if !slices.Contains(interfaces, r.ID+" "+r.Version) {
			t.Errorf("storage does not provide %s %s", r.ID, r.Version)
		}
	}
	definedBy := map[string]string{}
	for name, d := range all {
		for _, p := range d.PermissionSets {
			if other := definedBy[p.Name]; other != "" {
				t.Errorf("%s and %s define %s", name, other, p.Name)
			}
			definedBy[p.Name] = name
			for _, sub := range p.Sub {
				if definedBy[sub] != name && (!slices.Contains(permissions, sub) || p.Visible == nil) {
					t.Errorf("%s: %s has %s, which it does not define", name, p.Name, sub)
				}
			}
		}
		for _, p := range d.Provides {
			for _, h := range p.Handlers {
				for _, permission := range slices.Concat(h.Required, h.Module) {
					if definedBy[permission] != name {
						t.Errorf("%s does not define %s of %s", name, permission, h.Path)
					}
				}
				for _, permission := range h.Desired {
					if definedBy[permission] != name && !slices.Contains(permissions, permission) {
						t.Errorf("nothing defines %s, which %s of %s desires", permission, h.Path, name)
					}
				}
			}
		}
	}
}

// withoutList is the example of -without in docs/folio.md.
var withoutList = regexp.MustCompile(`(?m)^  -without (\S+)$`)

// With the list of docs/folio.md, storage provides what mod-circulation-storage does, so that a
// tenant's other modules of FOLIO provide the rest.
func TestStorageDescriptor_LeavesOutInterfacesOfOtherModules(t *testing.T) {
	t.Parallel()
	list := withoutList.FindStringSubmatch(read(t, "docs/folio.md"))
	if list == nil {
		t.Fatal("docs/folio.md has no list of -without")
	}
	d, err := storage.Module().Descriptor(strings.Split(list[1], ",")...)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range d.Provides {
		got = append(got, p.ID)
	}
	want := strings.Fields(`_tenant _timer actual-cost-record-storage anonymize-storage-loans
		cancellation-reason-storage check-in-storage checkout-lock-storage circulation-rules-storage
		circulation-settings-storage circulation-storage-checkoutlock fixed-due-date-schedules-storage
		loan-policy-storage loan-storage patron-action-session-storage patron-notice-policy-storage
		print-events-storage request-policy-storage request-preference-storage request-storage
		request-storage-batch scheduled-notice-storage staff-slips-storage tlr-feature-toggle-job-storage`)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the interfaces are %v, want %v", got, want)
	}
	for _, name := range []string{
		"users.item.get", "patron-pin.post", "patron-blocks.patron-block-limits.item.get", "manualblocks.item.get",
		"overdue-fines-policies.item.get", "lost-item-fees-policies.item.get",
	} {
		if slices.ContainsFunc(d.PermissionSets, func(p describe.Permission) bool { return p.Name == name }) {
			t.Errorf("it defines %s, a permission of another module", name)
		}
	}
	if _, err := storage.Module().Descriptor("user"); err == nil || !strings.Contains(err.Error(), `no interface "user"`) {
		t.Errorf("an unknown interface: %v", err)
	}
}
