package locket_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestPublishedClient runs the published Go client and its runners against the front. They
// are a module of their own, because they require other versions of libraries.
func TestPublishedClient(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	s := startServer(t, tlsSettings(t, a, "locket"))
	folder := t.TempDir()
	cert, key := a.issue(t, "client", time.Now().Add(time.Hour))
	files := map[string][]byte{"LOCKET_CA": a.pem, "LOCKET_CERT": cert, "LOCKET_KEY": key}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // it may download and compile
	defer cancel()
	test := exec.CommandContext(ctx, "go", "test", "-count=1", "-v", ".")
	test.Dir = "../../../integration-tests/locketclient"
	test.Env = append(os.Environ(), "GOWORK=off", "LOCKET_ADDRESS="+s.Addr())
	for name, content := range files {
		path := filepath.Join(folder, name)
		writeFile(t, path, content)
		test.Env = append(test.Env, name+"="+path)
	}
	if out, err := test.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	} else {
		t.Logf("%s", out)
	}
}
