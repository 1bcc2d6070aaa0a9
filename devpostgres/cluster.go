package devpostgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// passwordFile keeps the superuser's password inside the cluster, readable by its owner alone.
const passwordFile = "launcher.password"

// cluster is a data directory ready to be served.
type cluster struct {
	dir      string
	password string
	account  *account // who runs the server; nil means this process's own user
}

// clusterMajor returns the major version that made the cluster in dir, 0 when there is none yet. A directory that
// holds anything else is an error.
func clusterMajor(dir string) (int, error) {
	b, err := os.ReadFile(filepath.Join(dir, "PG_VERSION")) //nolint:gosec // the caller names the directory
	if err == nil {
		text := strings.TrimSpace(string(b))
		head, _, _ := strings.Cut(text, ".") // 9.6 and older
		major, err := strconv.Atoi(head)
		if err != nil {
			return 0, fmt.Errorf("%s: PG_VERSION holds no version but %q", dir, text)
		}
		return major, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("reading the data directory: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("reading the data directory: %w", err)
	}
	if len(entries) > 0 {
		return 0, fmt.Errorf("%s is no data directory of PostgreSQL and not empty: name another one", dir)
	}
	return 0, nil
}

// openCluster returns the cluster in dir and makes it first when there is none.
func openCluster(ctx context.Context, bin binaries, dir string) (cluster, error) {
	major, err := clusterMajor(dir)
	if err != nil {
		return cluster{}, err
	}
	if major == 0 {
		if err := initCluster(ctx, bin, dir); err != nil {
			return cluster{}, err
		}
	}
	// The owner runs it, also when the machine has got a better account since.
	owner, err := ownerAccount(dir)
	if err != nil {
		return cluster{}, err
	}
	b, err := os.ReadFile(filepath.Join(dir, passwordFile)) //nolint:gosec // the caller names the directory
	if errors.Is(err, fs.ErrNotExist) {
		return cluster{}, fmt.Errorf("%s holds a cluster made by somebody else (no %s): name another directory", dir, passwordFile)
	}
	if err != nil {
		return cluster{}, fmt.Errorf("reading the password: %w", err)
	}
	return cluster{dir: dir, password: string(b), account: owner}, nil
}

// initCluster makes a cluster and moves it to dir in one step. So a directory holds a whole cluster or none, and of
// two launchers that do this at once the slower one uses what the faster one made.
func initCluster(ctx context.Context, bin binaries, dir string) error {
	acc := newAccount()
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil { //nolint:gosec // the server's user must get through
		return fmt.Errorf("making the data directory: %w", err)
	}
	tmp, err := os.MkdirTemp(parent, "."+filepath.Base(dir)+".new-")
	if err != nil {
		return fmt.Errorf("making the data directory: %w", err)
	}
	defer os.RemoveAll(tmp)

	made, pw := filepath.Join(tmp, "cluster"), filepath.Join(tmp, passwordFile)
	if err := os.WriteFile(pw, []byte(rand.Text()), 0o600); err != nil {
		return fmt.Errorf("writing the password: %w", err)
	}
	if err := acc.own(tmp, pw); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, bin.initdb(), "-D", made, "-U", superuser, //nolint:gosec // the binary was found by the search
		"--auth=scram-sha-256", "--pwfile="+pw, "--locale=C", "--lc-ctype="+ctype, "--encoding=UTF8")
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", serverEnv(), serverAttr(acc)
	if out, err := cmd.CombinedOutput(); err != nil {
		text := strings.TrimSpace(string(out))
		return fmt.Errorf("initdb: %w%s\n%s", err, acc.hint(err.Error()+text), text)
	}
	if err := os.Rename(pw, filepath.Join(made, passwordFile)); err != nil {
		return fmt.Errorf("keeping the password: %w", err)
	}
	_ = os.Remove(dir) // an empty one stands in the way of the rename; any other stays
	if err := os.Rename(made, dir); err != nil {
		if major, merr := clusterMajor(dir); merr == nil && major == bin.major {
			return nil
		}
		return fmt.Errorf("moving the new cluster into place: %w", err)
	}
	return nil
}
