package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"checkoutlock/devpostgres"
)

// build is one revision's pair of programs.
type build struct {
	name     string // "now", "base" or "plain", or what its settings turn on
	revision string
	dir      string
	environ  []string // further settings of both services
}

// plain returns the build of the plain service for check-outs, beside which a storage of the
// current revision makes the records.
func (b *bench) plain() build { return build{name: "plain", dir: b.builds[0].dir} }

func (b build) isPlain() bool { return b.name == "plain" }

// buildServices builds the current tree and, unless base is empty, that revision.
func buildServices(ctx context.Context, dir, base string) ([]build, error) {
	revision, err := gitOutput(ctx, "describe", "--always", "--dirty")
	if err != nil {
		return nil, err
	}
	root, err := gitOutput(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	builds := []build{{name: "now", revision: revision, dir: filepath.Join(dir, "now")}}
	if err := buildTree(ctx, root, builds[0].dir); err != nil {
		return nil, err
	}
	if base == "" {
		return builds, nil
	}
	if revision, err = gitOutput(ctx, "rev-parse", "--short", base); err != nil {
		return nil, err
	}
	tree := filepath.Join(dir, "tree")
	if _, err := gitOutput(ctx, "worktree", "add", "--detach", tree, base); err != nil {
		return nil, err
	}
	older := build{name: "base", revision: revision, dir: filepath.Join(dir, "base")}
	err = buildTree(ctx, tree, older.dir)
	_, removeErr := gitOutput(context.WithoutCancel(ctx), "worktree", "remove", "--force", tree)
	return append(builds, older), errors.Join(err, removeErr)
}

// resourceLocks is the program of the service for other locks, which older revisions lack.
const resourceLocks = "resource-locks"

func buildTree(ctx context.Context, root, dir string) error {
	args := []string{
		"build", "-tags=grpcnotrace", "-o", dir + string(filepath.Separator),
		"./circulation-storage/cmd/circulation-storage", "./circulation/cmd/circulation",
	}
	if _, err := os.Stat(filepath.Join(root, resourceLocks, "cmd")); err == nil {
		args = append(args, "./resource-locks/cmd/resource-locks")
	}
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // our own programs
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", root, err, out)
	}
	return nil
}

// process is a running program that serves HTTP.
type process struct {
	cmd     *exec.Cmd
	url     string
	started time.Duration // from its start until it was ready
	output  bytes.Buffer
}

// startStorage starts a circulation-storage on the database whose URL is given.
func (b build) startStorage(ctx context.Context, databaseURL string, environ ...string) (*process, error) {
	return startProcess(ctx, filepath.Join(b.dir, "circulation-storage"), []string{"serve"}, "/admin/health/ready",
		append([]string{"DATABASE_URL=" + databaseURL, "DATABASE_MAX_CONNS=32", "LOG_LEVEL=warn"}, slices.Concat(b.environ, environ)...))
}

// startCirculation starts a circulation on a storage.
func (b build) startCirculation(ctx context.Context, storageURL string, environ ...string) (*process, error) {
	return startProcess(ctx, filepath.Join(b.dir, "circulation"), nil, "/admin/health/ready",
		append([]string{"STORAGE_URL=" + storageURL, "STAFF_AUTH=none", "LOG_LEVEL=warn", "HTTP_ADDR=127.0.0.1"}, slices.Concat(b.environ, environ)...))
}

// startYardstick starts this program as one of its own yardsticks.
func startYardstick(ctx context.Context, name string, environ ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return startProcess(ctx, self, []string{"serve", name}, "/", environ)
}

// startProcess starts a program on a free port and waits until it answers readyPath.
func startProcess(ctx context.Context, program string, args []string, readyPath string, environ []string) (*process, error) {
	port, err := devpostgres.FindFreePort(ctx)
	if err != nil {
		return nil, err
	}
	p := &process{url: "http://127.0.0.1:" + strconv.Itoa(port), cmd: newCommand(program, args, append(environ, "PORT="+strconv.Itoa(port)))}
	err = p.start(ctx, func() error {
		_, err := p.get(ctx, readyPath)
		return err
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

func newCommand(program string, args, environ []string) *exec.Cmd {
	cmd := exec.Command(program, args...) //nolint:gosec,noctx // it ends by stop, which lets it drain
	cmd.Env = append(os.Environ(), environ...)
	return cmd
}

// start runs the program and waits until check returns no error.
func (p *process) start(ctx context.Context, check func() error) error {
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	began := time.Now()
	if err := p.cmd.Start(); err != nil {
		return err
	}
	for check() != nil {
		if time.Since(began) > time.Minute || ctx.Err() != nil {
			return fmt.Errorf("%s is not ready: %w\n%s", filepath.Base(p.cmd.Path), p.stop(), p.output.String())
		}
		<-time.After(2 * time.Millisecond)
	}
	p.started = time.Since(began)
	return nil
}

// get returns the body of a successful answer.
func (p *process) get(ctx context.Context, path string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("GET %s: answered %d %s", path, resp.StatusCode, body.String())
	}
	return body.String(), nil
}

// stop asks the program to end and waits for it. A nil process is stopped.
func (p *process) stop() error {
	if p == nil {
		return nil
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	if err := p.cmd.Wait(); err != nil && p.cmd.ProcessState.ExitCode() > 0 {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(p.cmd.Path), err, p.output.String())
	}
	return nil
}

// kill ends the program at once.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil {
		return err
	}
	_ = p.cmd.Wait() // it reports the kill
	return nil
}

// stopper is a process, or something that runs some.
type stopper interface{ stop() error }

// startEach starts something of each build. After an error it stops what it has started.
func startEach[T stopper](builds []build, start func(build) (T, error)) ([]T, error) {
	var all []T
	for _, build := range builds {
		one, err := start(build)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", build.name, err), stopAll(all...))
		}
		all = append(all, one)
	}
	return all, nil
}

func stopAll[T stopper](all ...T) error {
	var errs []error
	for _, one := range all {
		errs = append(errs, one.stop())
	}
	return errors.Join(errs...)
}

// cpu returns the processor time that the process used so far.
func (p *process) cpu() (time.Duration, error) { return processorTime(p.cmd.Process.Pid, false) }

var mallocs = regexp.MustCompile(`(?m)^go_memstats_mallocs_total (\S+)$`)

// allocations returns how many objects the process allocated so far, by its metrics.
func (p *process) allocations(ctx context.Context) (float64, error) {
	body, err := p.get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	found := mallocs.FindStringSubmatch(body)
	if found == nil {
		return 0, errors.New("the metrics have no go_memstats_mallocs_total")
	}
	return strconv.ParseFloat(found[1], 64)
}

// memory is the resident memory of a process in bytes. Its code is pages of files, which processes share.
type memory struct{ all, code int }

func (m memory) String() string {
	return fmt.Sprintf("%s, %d of them code", formatMegabytes(m.all), m.code>>20)
}

// memory returns the memory of the process now.
func (p *process) memory() (m memory, err error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return m, err
	}
	for name, bytes := range map[string]*int{"VmRSS:": &m.all, "RssFile:": &m.code} {
		_, rest, _ := strings.Cut(string(raw), name)
		if _, err := fmt.Sscanf(rest, "%d kB", bytes); err != nil {
			return m, fmt.Errorf("reading %s of the process: %w", name, err)
		}
		*bytes <<= 10
	}
	return m, nil
}
