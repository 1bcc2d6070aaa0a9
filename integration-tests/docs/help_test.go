package docs_test

import (
	"maps"
	"regexp"
	"slices"
	"testing"

	storage "checkoutlock/circulation-storage/app"
	circulation "checkoutlock/circulation/app"
	"checkoutlock/config"
	locks "checkoutlock/resource-locks/app"
)

var (
	usageText    = regexp.MustCompile("(?s)\nconst usage = `(.*?)`")
	settingsPart = regexp.MustCompile(`(?s)\nSettings are environment variables.*`)
	variableName = regexp.MustCompile(`\b[A-Z]+(?:_[A-Z]+)+\b|\b(?:PORT|TENANTS|TZ)\b`)
)

// The help of a service names the settings that its Config has, and no others.
func TestHelp_NamesEverySetting(t *testing.T) {
	t.Parallel()
	for service, cfg := range map[string]any{
		"circulation": &circulation.Config{}, "circulation-storage": &storage.Config{}, "resource-locks": &locks.Config{},
	} {
		usage := usageText.FindStringSubmatch(read(t, service+"/cmd/"+service+"/main.go"))
		if usage == nil {
			t.Errorf("%s has no usage", service)
			continue
		}
		named := map[string]bool{}
		for _, name := range variableName.FindAllString(settingsPart.FindString(usage[1]), -1) {
			named[name] = true
		}
		got, want := slices.Sorted(maps.Keys(named)), config.Variables(cfg)
		if !slices.Equal(got, want) {
			t.Errorf("%s help names\n%q, want\n%q", service, got, want)
		}
	}
}
