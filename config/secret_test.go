package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"checkoutlock/config"
)

type secretSettings struct {
	Log      config.Log
	Password string `env:"STAFF_PASSWORD" secret:""`
	Key      string `env:"KEY" secret:""`
	Other    string `env:"INSTANCE_NAME"`
}

func (s *secretSettings) Validate() error { return s.Log.Validate() }

func TestLoad_ReadsSecretsFromFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret, empty := filepath.Join(dir, "password"), filepath.Join(dir, "empty")
	for file, content := range map[string]string{secret: "s3cret in a file \n", empty: "\n"} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	missing := filepath.Join(dir, "missing")
	for name, tt := range map[string]struct {
		environ []string
		want    string
		refused string
	}{
		"the file's text without its line break": {
			environ: []string{"STAFF_PASSWORD_FILE=" + secret}, want: "s3cret in a file ",
		},
		"an empty variable beside a file": {
			environ: []string{"STAFF_PASSWORD=", "STAFF_PASSWORD_FILE=" + secret}, want: "s3cret in a file ",
		},
		"an empty name of a file": {
			environ: []string{"STAFF_PASSWORD=h1dden", "STAFF_PASSWORD_FILE="}, want: "h1dden",
		},
		"no secret": {environ: []string{"INSTANCE_NAME_FILE=" + secret}},
		"both": {
			environ: []string{"STAFF_PASSWORD=h1dden", "STAFF_PASSWORD_FILE=" + secret, "KEY_FILE=" + empty},
			refused: "STAFF_PASSWORD and STAFF_PASSWORD_FILE are both set, allowed: one of them\n  KEY_FILE names ",
		},
		"a missing file": {
			environ: []string{"STAFF_PASSWORD_FILE=" + missing, "KEY_FILE=" + empty},
			refused: "STAFF_PASSWORD_FILE names a file that cannot be read: open " + missing +
				": no such file or directory\n  KEY_FILE names ",
		},
		"an empty file": {
			environ: []string{"STAFF_PASSWORD_FILE=" + empty},
			refused: "STAFF_PASSWORD_FILE names " + empty + ", which is empty",
		},
		"another bad setting beside it": {
			environ: []string{"STAFF_PASSWORD_FILE=" + secret, "LOG_LEVEL=loud"},
			want:    "s3cret in a file ", refused: "LOG_LEVEL",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s secretSettings
			err := config.Load(&s, tt.environ)
			if tt.refused == "" && err != nil {
				t.Fatal(err)
			}
			if tt.refused != "" && (err == nil || !strings.Contains(err.Error(), tt.refused)) {
				t.Fatalf("got the error %v, want %q", err, tt.refused)
			}
			if err != nil && (strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "h1dden")) {
				t.Errorf("the error repeats the secret: %v", err)
			}
			if (tt.want != "" || tt.refused == "") && (s.Password != tt.want || s.Other != "") {
				t.Errorf("the password is %q and the name %q, want %q", s.Password, s.Other, tt.want)
			}
		})
	}
}

func TestSecret_FileIsASetting(t *testing.T) {
	t.Parallel()
	const want = `Settings are environment variables, described in docs/settings.md:
  INSTANCE_NAME, KEY, KEY_FILE, LOG_LEVEL, STAFF_PASSWORD, STAFF_PASSWORD_FILE.
`
	if got := config.ListSettings(&secretSettings{}); got != want {
		t.Errorf("the help says\n%s\nwant\n%s", got, want)
	}
	environ := []string{"STAFF_PASSWORD_FILE=x", "STAFF_PASWORD_FILE=x", "INSTANCE_NAME_FILE=x"}
	got := config.FindMisspelt(&secretSettings{}, environ)
	if len(got) != 1 || got[0] != (config.Misspelling{Variable: "STAFF_PASWORD_FILE", Meant: "STAFF_PASSWORD_FILE"}) {
		t.Errorf("found %v", got)
	}
}
