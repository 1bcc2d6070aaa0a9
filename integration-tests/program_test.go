package integration_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
)

// programFolder has the built programs. TestMain makes and removes it.
var programFolder string

// buildPrograms build the programs of the services once.
var buildPrograms = map[string]func() (string, error){
	"circulation":         sync.OnceValues(func() (string, error) { return linkProgram("circulation") }),
	"circulation-storage": sync.OnceValues(func() (string, error) { return linkProgram("circulation-storage") }),
}

func linkProgram(service string) (string, error) {
	program := filepath.Join(programFolder, service)
	out, err := osexec.CommandContext(context.Background(), "go", "build", "-o", program,
		"../"+service+"/cmd/"+service).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", service, err, out)
	}
	return program, nil
}

// buildProgram returns the path of a service's program.
func buildProgram(t *testing.T, service string) string {
	t.Helper()
	program, err := buildPrograms[service]()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// process is a service in a process of its own.
type process struct {
	system *os.Process
	url    string
	ended  chan struct{} // closed when it has ended
}

// startProgram runs a service on a port until the test ends, and waits until it is ready.
func startProgram(t *testing.T, program string, port int, environ ...string) process {
	t.Helper()
	// The process writes into a file, because a pipe would make it wait for this process.
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := osexec.CommandContext(t.Context(), program)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Env = slices.Concat(os.Environ(), []string{"PORT=" + strconv.Itoa(port)}, environ)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := process{system: cmd.Process, url: "http://127.0.0.1:" + strconv.Itoa(port), ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		_ = cmd.Wait() // a signal ends it, so the status has no meaning
	}()
	t.Cleanup(func() { <-c.ended }) // the end of the context has stopped it
	waitUntil(t, patience, filepath.Base(program)+" is ready", func() bool {
		select {
		case <-c.ended:
			said, err := os.ReadFile(log.Name())
			t.Fatalf("%s ended: %v, %v\n%s", program, cmd.ProcessState, err, said)
		default:
		}
		a, err := newClient(c.url, "").Do(t.Context(), http.MethodGet, "/admin/health/ready", nil)
		return err == nil && a.Status == http.StatusOK
	})
	return c
}

// kill ends the process with SIGKILL. Its ports are free then.
func (c process) kill(t *testing.T) {
	t.Helper()
	if err := c.system.Kill(); err != nil {
		t.Fatal(err)
	}
	<-c.ended
}
