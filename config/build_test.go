package config

import (
	"runtime/debug"
	"testing"
)

func TestReadBuild(t *testing.T) {
	t.Parallel()
	const hash = "4b067afa1c3d0f0e9a8b7c6d5e4f3a2b1c0d9e8f"
	stamped := []debug.BuildSetting{
		{Key: "vcs.revision", Value: hash},
		{Key: "vcs.time", Value: "2026-11-23T15:25:29Z"},
		{Key: "vcs.modified", Value: "false"},
	}
	modified := append(stamped[:2:2], debug.BuildSetting{Key: "vcs.modified", Value: "true"})
	for name, tt := range map[string]struct {
		module            string // the main module's version
		settings          []debug.BuildSetting
		version, revision string // of the linker
		want              string
	}{
		"nothing is known":           {want: "devel"},
		"a test":                     {module: "(devel)", want: "devel"},
		"a build of a working copy":  {module: "(devel)", settings: stamped, want: "devel (4b067afa1c3d)"},
		"with changes":               {module: "(devel)", settings: modified, want: "devel (4b067afa1c3d, modified)"},
		"a release":                  {module: "(devel)", settings: stamped, version: "v1.0.0", want: "1.0.0 (4b067afa1c3d)"},
		"a module that go installed": {module: "v1.2.0", want: "1.2.0"},
		"an image":                   {module: "(devel)", version: "1.0.0", revision: hash, want: "1.0.0 (4b067afa1c3d)"},
		"a short revision":           {revision: "4b067afa", want: "devel (4b067afa)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			info := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: tt.module}, Settings: tt.settings}
			b := readBuild(info, tt.version, tt.revision)
			if b.String() != tt.want || b.Go != "go1.26.8" || (b.Time == "") != (tt.settings == nil) {
				t.Errorf("got %s, %+v, want %s", b, b, tt.want)
			}
		})
	}
}
