package devpostgres

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// passwordFile holds the superuser's password inside the cluster. Only the owner can read it.
const passwordFile = "launcher.password"

// cluster is a data directory with a database cluster.
type cluster struct {
	dir      string
	password string
	account  *account // the server's user; nil means this process's user
}

// readMajor returns the major version of the cluster in dir, 0 if there is none yet. A directory
// with other content is an error.
func readMajor(dir string) (int, error) {
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

// openCluster returns the cluster in dir. If there is none, it copies the template, or makes one if
// template is nil.
func openCluster(ctx context.Context, bin binaries, dir string, template *cluster) (cluster, error) {
	major, err := readMajor(dir)
	if err != nil {
		return cluster{}, err
	}
	if major == 0 {
		if err := initCluster(ctx, bin, dir, template); err != nil {
			return cluster{}, err
		}
	}
	// The owner runs the server, also if a better account has been added since.
	owner, err := findOwner(dir)
	if err != nil {
		return cluster{}, err
	}
	b, err := os.ReadFile(filepath.Join(dir, passwordFile)) //nolint:gosec // the caller names the directory
	if errors.Is(err, fs.ErrNotExist) {
		return cluster{}, fmt.Errorf("%s holds a cluster of another program (no %s): name another directory", dir, passwordFile)
	}
	if err != nil {
		return cluster{}, fmt.Errorf("reading the password: %w", err)
	}
	return cluster{dir: dir, password: string(b), account: owner}, nil
}

// findTemplate returns the cluster that throw-away clusters are copies of, in the folder of
// downloads. A copy takes a tenth of the time of initdb, and has the same password and system
// identifier. It returns nil if there can be no template.
func (f *finder) findTemplate(ctx context.Context, bin binaries) *cluster {
	cache, err := f.cacheDir()
	if err != nil {
		f.log.Debug("no template for clusters", "err", err)
		return nil
	}
	options := fnv.New32a()
	_, _ = fmt.Fprint(options, initOptions, scramIterations) // never fails
	dir := filepath.Join(cache, fmt.Sprintf("cluster-%s-%08x", bin.version, options.Sum32()))
	template, err := openCluster(ctx, bin, dir, nil)
	if err != nil {
		f.log.Debug("no template for clusters", "err", err)
		return nil
	}
	return &template
}

var initOptions = []string{
	"-U", superuser, "--auth=scram-sha-256", "--locale=C", "--lc-ctype=" + ctype, "--encoding=UTF8",
}

// initCluster makes a cluster and renames it to dir, so that a directory holds a whole cluster or
// none. If another launcher is faster, initCluster uses its cluster.
func initCluster(ctx context.Context, bin binaries, dir string, template *cluster) error {
	acc := newAccount()
	if template != nil {
		acc = template.account
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil { //nolint:gosec // the server's user needs access
		return fmt.Errorf("making the data directory: %w", err)
	}
	tmp, err := os.MkdirTemp(parent, "."+filepath.Base(dir)+".new-")
	if err != nil {
		return fmt.Errorf("making the data directory: %w", err)
	}
	defer os.RemoveAll(tmp)
	if err := acc.giveFiles(tmp); err != nil {
		return err
	}
	made := filepath.Join(tmp, "cluster")
	if template != nil {
		err = runAs(ctx, acc, "cp", "-Rp", template.dir, made)
	} else {
		err = runInitdb(ctx, bin, acc, made)
	}
	if err != nil {
		return err
	}
	_ = os.Remove(dir) // an empty directory prevents the rename; others are not removed
	if err := os.Rename(made, dir); err != nil {
		if major, merr := readMajor(dir); merr == nil && major == bin.major {
			return nil
		}
		return fmt.Errorf("moving the new cluster into place: %w", err)
	}
	return nil
}

// runInitdb makes a cluster with a new password.
func runInitdb(ctx context.Context, bin binaries, acc *account, made string) error {
	password := rand.Text()
	secret, err := makeSCRAMSecret(password)
	if err != nil {
		return fmt.Errorf("making the password: %w", err)
	}
	kept, given := filepath.Join(filepath.Dir(made), passwordFile), filepath.Join(filepath.Dir(made), "secret")
	for name, text := range map[string]string{kept: password, given: secret} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return fmt.Errorf("writing the password: %w", err)
		}
	}
	if err := acc.giveFiles(kept, given); err != nil {
		return err
	}
	args := append([]string{"-D", made, "--pwfile=" + given}, initOptions...)
	if err := runAs(ctx, acc, bin.initdb(), args...); err != nil {
		return err
	}
	if err := os.Rename(kept, filepath.Join(made, passwordFile)); err != nil {
		return fmt.Errorf("keeping the password: %w", err)
	}
	return nil
}

// scramIterations is far below PostgreSQL's 4096, which slow down guesses of weak passwords. Ours
// is random. With the race detector, 4096 take 8 ms for each connection.
const scramIterations = 1

// makeSCRAMSecret returns what PostgreSQL stores of a password, and accepts in place of it:
// src/common/scram-common.c, RFC 5803.
func makeSCRAMSecret(password string) (string, error) {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // never fails
	salted, err := pbkdf2.Key(sha256.New, password, salt, scramIterations, sha256.Size)
	if err != nil {
		return "", err
	}
	sign := func(text string) []byte {
		mac := hmac.New(sha256.New, salted)
		_, _ = mac.Write([]byte(text)) // never fails
		return mac.Sum(nil)
	}
	stored := sha256.Sum256(sign("Client Key"))
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s",
		scramIterations, encode(salt), encode(stored[:]), encode(sign("Server Key"))), nil
}

// runAs runs a program to its end as the server's user.
func runAs(ctx context.Context, acc *account, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // the programs are ours
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", serverEnv(), processAttributes(acc)
	// Another server's supervise may otherwise get this thread and end it, which signals the program.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if out, err := cmd.CombinedOutput(); err != nil {
		text := strings.TrimSpace(string(out))
		return fmt.Errorf("%s: %w%s\n%s", filepath.Base(program), err, acc.explainFailure(err.Error()+text), text)
	}
	return nil
}
