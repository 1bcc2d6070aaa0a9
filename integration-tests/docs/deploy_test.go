package docs_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The manifests are decoded by a module of its own, because Kubernetes requires other versions of
// libraries.
func TestManifests_AreOfKubernetesTypes(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", "-v", ".")
	cmd.Dir, cmd.Env = filepath.Join(root, "integration-tests", "manifests"), append(os.Environ(), "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "--- PASS: TestManifests/") != 3 {
		t.Errorf("%v\n%s", err, out)
	}
}

// rightsOf matches what systemd-analyze says of all rights of a unit, 0 to 10.
var rightsOf = regexp.MustCompile(`Overall exposure level for \S+: (\d+)\.\d`)

func TestUnits_AreValidAndHardened(t *testing.T) {
	t.Parallel()
	units := findFiles(t, ".service")
	if len(units) != 3 {
		t.Fatalf("got the units %q, want one for each service", units)
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skipf("there is no systemd-analyze to test with: %v", err)
	}
	for _, unit := range units {
		// verify wants that the program exists, and any program will do.
		service := strings.TrimSuffix(path.Base(unit), ".service")
		text := strings.Replace(read(t, unit), "/usr/local/bin/"+service+" serve", "/bin/true", 1)
		copied := filepath.Join(t.TempDir(), path.Base(unit))
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(copied+".d", 0o700); err != nil {
			t.Fatal(err)
		}
		dropIn := read(t, path.Dir(unit)+"/staff-password.conf")
		if err := os.WriteFile(filepath.Join(copied+".d", "staff-password.conf"), []byte(dropIn), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", copied).CombinedOutput()
		if err != nil || len(out) > 0 || !strings.Contains(text, "ExecStart=/bin/true\n") {
			t.Errorf("%s: %v\n%s", unit, err, out)
		}
		security := exec.CommandContext(t.Context(), analyze, "security", "--offline=true", "--no-pager", copied)
		out, err = security.CombinedOutput()
		if m := rightsOf.FindSubmatch(out); err != nil || m == nil || string(m[1]) > "1" || len(m[1]) > 1 {
			t.Errorf("%s has more rights than it needs: %v\n%s", unit, err, out)
		}
	}
}

// A setting in an example of a deployment exists.
func TestDeployments_UseSettingsThatExist(t *testing.T) {
	t.Parallel()
	settings := read(t, "docs/settings.md")
	used := regexp.MustCompile(`(?m)name: ([A-Z][A-Z_]+), value:|^Environment=([A-Z_]+)=`)
	for _, file := range slices.Concat(findFiles(t, ".service"), findFiles(t, ".conf"), findFiles(t, ".yaml")) {
		for _, m := range used.FindAllStringSubmatch(read(t, file), -1) {
			if name := m[1] + m[2]; !strings.Contains(settings, "`"+name+"`") {
				t.Errorf("%s sets %s, which docs/settings.md lacks", file, name)
			}
		}
	}
}

func TestDockerfiles_DescribeTheirImages(t *testing.T) {
	t.Parallel()
	_, flags, _ := strings.Cut(read(t, "Makefile"), "\nTAGS := ")
	flags, _, _ = strings.Cut(flags, "\n")
	for _, file := range findFiles(t, "Dockerfile") {
		text, service := read(t, file), path.Dir(file)
		for _, want := range []string{
			`org.opencontainers.image.title="` + service + `"`, "org.opencontainers.image.description=",
			`org.opencontainers.image.version="$VERSION"`, `org.opencontainers.image.revision="$REVISION"`,
			"\nUSER 65532:65532\n", "\nARG CA_CERTIFICATE=\n", "\nARG GOPROXY\n", `CMD ["/` + service + `", "-healthcheck"]`,
			"go build -trimpath " + flags + " ",
		} {
			if strings.Count(text, want) != 1 {
				t.Errorf("%s has not one %q", file, want)
			}
		}
	}
}

func TestMoveTenant_NamesWhatIsAway(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ away, psql, socat, want string }{
		{
			away: "the old cluster", psql: `case "$*" in *"-d old"*) echo refused >&2; exit 2 ;; *) echo nothing ;; esac`,
			socat: "echo south", want: "refused\n",
		},
		{
			away: "HAProxy", psql: "exit 2", socat: "echo no socket >&2; exit 1",
			want: "no socket\nmove-tenant: HAProxy does not answer at UNIX-CONNECT:none\n",
		},
	} {
		t.Run(tt.away, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "map"), "diku north\n")
			write(t, filepath.Join(dir, "bin", "psql"), "#!/bin/sh\n"+tt.psql+"\n")
			write(t, filepath.Join(dir, "bin", "socat"), "#!/bin/sh\n"+tt.socat+"\n")
			cmd := exec.CommandContext(t.Context(), filepath.Join(root, "deploy", "move-tenant"), "diku", "south")
			cmd.Env = append(os.Environ(), "PATH="+dir+"/bin:"+os.Getenv("PATH"), "FROM_URL=old", "TO_URL=new",
				"MAP="+dir+"/map", "HAPROXY=UNIX-CONNECT:none")
			if out, err := cmd.CombinedOutput(); err == nil || string(out) != tt.want {
				t.Errorf("%v, %q, want a failure that says %q alone", err, out, tt.want)
			}
		})
	}
}
