// Package describe makes documents for programs from routes, and from nothing else.
package describe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"checkoutlock/config"
	"checkoutlock/web"
)

// Module is what a module descriptor says about a service beside its routes.
type Module struct {
	// Name begins the module's id.
	Name string
	// Title is for people.
	Title string
	// Folio is FOLIO's module whose permissions the service has, such as "circulation". It may be
	// empty.
	Folio string
	// Own is the interface of the routes that FOLIO does not have, with its version.
	Own string
	// Requires are the interfaces that the service calls, with their versions.
	Requires []string
	// Calls are the permissions that each handler needs for these calls.
	Calls []string
	// Port is the default port.
	Port int
	// Settings is a pointer to the struct of the settings.
	Settings any
	// Records are examples of records by the names of their JSON Schemas.
	Records map[string]json.RawMessage
	// ListRoutes returns the routes for documents; nothing need run.
	ListRoutes func() ([]web.Route, error)
}

// Version is that of all services, which are released together: the newest one of CHANGELOG.md.
const Version = "1.0.0"

// Descriptor is FOLIO's ModuleDescriptor.
type Descriptor struct {
	ID             string       `json:"id"`
	Name           string       `json:"name"`
	Requires       []Required   `json:"requires"`
	Provides       []Provided   `json:"provides"`
	PermissionSets []Permission `json:"permissionSets"`
	Launch         Launch       `json:"launchDescriptor"`
}

// Required is an interface that a module calls.
type Required struct {
	ID      string `json:"id"`
	Version string `json:"version"`
}

// Provided is an interface that a module has.
type Provided struct {
	ID       string    `json:"id"`
	Version  string    `json:"version"`
	Type     string    `json:"interfaceType,omitempty"` // "system" for what the gateway itself calls
	Handlers []Handler `json:"handlers"`
}

// Handler is a route as a gateway knows it.
type Handler struct {
	Methods  []string `json:"methods"`
	Path     string   `json:"pathPattern"`
	Required []string `json:"permissionsRequired,omitzero"`
	Desired  []string `json:"permissionsDesired,omitempty"`
	Module   []string `json:"modulePermissions,omitempty"`
	Unit     string   `json:"unit,omitempty"`
	Delay    string   `json:"delay,omitempty"`
}

// Permission is a permission, or a set of them.
type Permission struct {
	Name        string   `json:"permissionName"`
	DisplayName string   `json:"displayName"`
	Description string   `json:"description,omitempty"`
	Sub         []string `json:"subPermissions,omitempty"`
	Visible     *bool    `json:"visible,omitempty"`
}

// Launch says how Okapi starts a module.
type Launch struct {
	Image string           `json:"dockerImage"`
	Pull  bool             `json:"dockerPull"`
	Args  any              `json:"dockerArgs"`
	Env   []config.Default `json:"env"`
}

// Descriptor returns the module descriptor. It leaves out the interfaces without, which another module
// provides; they are named without a version. An unknown one is an error.
func (m Module) Descriptor(without ...string) (Descriptor, error) {
	routes, err := m.ListRoutes()
	if err != nil {
		return Descriptor{}, err
	}
	d := Descriptor{
		ID: m.Name + "-" + Version, Name: m.Title, Requires: []Required{}, Launch: m.launch(),
	}
	for _, name := range m.Requires {
		id, version, _ := strings.Cut(name, " ")
		d.Requires = append(d.Requires, Required{id, version})
	}
	var folio, own []string // permissions
	left := map[string]bool{}
	for _, r := range routes {
		if r.Path == OpenAPIPath {
			continue // each module has one
		}
		name := cmp.Or(r.Interface, m.Own)
		id, version, _ := strings.Cut(name, " ")
		if slices.Contains(without, id) {
			left[id] = true
			continue
		}
		i := slices.IndexFunc(d.Provides, func(p Provided) bool { return p.ID == id })
		if i < 0 {
			i = len(d.Provides)
			d.Provides = append(d.Provides, Provided{ID: id, Version: version})
			if isSystem(id) {
				d.Provides[i].Type = "system"
			}
		}
		d.Provides[i].Handlers = append(d.Provides[i].Handlers, m.handler(r))
		named := &own
		if name != m.Own { // what ours desire is a permission of another route, or of another module
			named, folio = &folio, append(folio, r.Desired...)
		}
		if r.Permission != "" {
			*named = append(*named, r.Permission)
		}
	}
	for _, id := range without {
		if !left[id] {
			return Descriptor{}, fmt.Errorf("there is no interface %q to leave out", id)
		}
	}
	slices.SortStableFunc(d.Provides, func(a, b Provided) int { return strings.Compare(a.ID, b.ID) })
	d.PermissionSets = m.permissions(folio, own)
	return d, nil
}

// isSystem reports whether a gateway calls the routes of the interface by itself.
func isSystem(id string) bool { return strings.HasPrefix(id, "_") }

func (m Module) handler(r web.Route) Handler {
	h := Handler{Methods: []string{r.Method}, Path: Path(r.Path), Desired: r.Desired}
	if !isSystem(r.Interface) {
		h.Required = []string{}
	}
	if r.Permission != "" {
		h.Required = []string{r.Permission}
	}
	if len(m.Calls) > 0 && !strings.HasPrefix(r.Interface, "_tenant") {
		h.Module = []string{m.callsSet()}
	}
	if r.Every > 0 {
		h.Unit, h.Delay = "minute", strconv.Itoa(int(r.Every/time.Minute))
	}
	return h
}

// callsSet is the set of the permissions that handlers need for their own calls.
func (m Module) callsSet() string { return "modperms." + m.Name + ".calls" }

func (m Module) permissions(folio, own []string) []Permission {
	slices.Sort(folio)
	folio = slices.Compact(folio)
	own = slices.DeleteFunc(own, func(p string) bool { return slices.Contains(folio, p) })
	slices.Sort(own)
	own = slices.Compact(own)
	var sets []Permission
	for _, name := range folio {
		sets = append(sets, Permission{Name: name, DisplayName: displayName(name)})
	}
	for _, name := range own {
		sets = append(sets, Permission{Name: name, DisplayName: displayName(name), Description: "FOLIO does not have this permission."})
	}
	if m.Folio != "" && len(folio) > 0 {
		sets = append(sets, Permission{Name: m.Folio + ".all", DisplayName: m.Folio + ": all permissions that FOLIO has", Sub: folio})
	}
	id, _, _ := strings.Cut(m.Own, " ")
	if len(own) > 0 {
		sets = append(sets, Permission{
			Name: id + ".all", DisplayName: id + ": all permissions", Sub: own,
			Description: "FOLIO does not have these permissions.",
		})
	}
	if len(m.Calls) > 0 {
		sets = append(sets, Permission{
			Name: m.callsSet(), DisplayName: m.Title + ": its own calls", Sub: m.Calls, Visible: new(false),
		})
	}
	return sets
}

// displayName makes a permission readable.
func displayName(permission string) string {
	return strings.NewReplacer(".", ": ", "-", " ").Replace(permission)
}

// launch names a variable only if it has a default: an empty value would count as set.
func (m Module) launch() Launch {
	const memory = 512 << 20
	return Launch{Image: m.Name, Env: config.ListDefaults(m.Settings), Args: map[string]any{"HostConfig": map[string]any{
		"Memory":       memory,
		"PortBindings": map[string]any{strconv.Itoa(m.Port) + "/tcp": []map[string]string{{"HostPort": "%p"}}},
	}}}
}

// Path returns a route's path with its parameters in braces, as OpenAPI and Okapi write them.
func Path(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		switch {
		case strings.HasPrefix(part, ":"):
			parts[i] = "{" + part[1:] + "}"
		case part == "*":
			parts[i] = "{file}"
		}
	}
	return strings.Join(parts, "/")
}
