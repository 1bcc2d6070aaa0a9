package ha_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// network is a bridge in a namespace of its own, to which machines are plugged. This process has the
// address 254. All of it ends with its namespaces.
type network struct {
	hub    *machine
	prefix string // of all addresses
}

// machine is a namespace of processes and of the network. Its first process is a shell that ends with
// the standard input, and so with this process. Then the kernel ends all others.
type machine struct {
	name    string
	address string
	pid     int // of the shell, as seen from here
	shell   *exec.Cmd
	input   io.WriteCloser
	output  *buffer
}

// startNetwork starts the hub, which runs a command for each line that it reads.
func startNetwork(t *testing.T, commands map[string]string) *network {
	t.Helper()
	n := &network{prefix: fmt.Sprintf("10.213.%d.", os.Getpid()%250)}
	n.hub = startMachine(t, "hub", n.prefix+"1", commands)
	outer := fmt.Sprintf("ha%d", os.Getpid())
	n.hub.run(t, "ip", "link", "add", "br0", "type", "bridge")
	n.hub.run(t, "ip", "address", "add", n.hub.address+"/24", "dev", "br0")
	n.hub.run(t, "ip", "link", "set", "br0", "up")
	command(t, "ip", "link", "add", outer, "type", "veth", "peer", "name", "outer", "netns", strconv.Itoa(n.hub.pid))
	command(t, "ip", "address", "add", n.prefix+"254/24", "dev", outer)
	command(t, "ip", "link", "set", outer, "up")
	n.hub.run(t, "ip", "link", "set", "outer", "master", "br0", "up")
	return n
}

// plug starts a machine and connects it to the bridge.
func (n *network) plug(t *testing.T, name string, number int, commands map[string]string) *machine {
	t.Helper()
	m := startMachine(t, name, n.prefix+strconv.Itoa(number), commands)
	n.hub.run(t, "ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", strconv.Itoa(m.pid))
	m.run(t, "ip", "address", "add", m.address+"/24", "dev", "eth0")
	m.run(t, "ip", "link", "set", "eth0", "up")
	n.hub.run(t, "ip", "link", "set", name, "master", "br0", "up")
	return m
}

// pull pulls or plugs the cable of a machine.
func (n *network) pull(t *testing.T, m *machine, out bool) {
	t.Helper()
	n.hub.run(t, "ip", "link", "set", m.name, map[bool]string{true: "down", false: "up"}[out])
}

// startMachine starts a machine without a network. Each command runs when tell gets its name.
func startMachine(t *testing.T, name, address string, commands map[string]string) *machine {
	t.Helper()
	var script strings.Builder
	script.WriteString("ip link set lo up; echo ready; while read -r line; do case $line in\n")
	for word, text := range commands {
		fmt.Fprintf(&script, "%s) %s & ;;\n", word, text)
	}
	script.WriteString("esac; done")
	m := &machine{name: name, address: address, output: &buffer{}}
	// dash would leave zombies, and Patroni waits for those.
	m.shell = exec.Command("unshare", "--net", "--pid", "--fork", "--mount-proc", "--kill-child", "/bin/bash", "-c",
		script.String())
	m.shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	m.shell.Stderr = m.output
	out, err := m.shell.StdoutPipe()
	if err == nil {
		m.input, err = m.shell.StdinPipe()
	}
	if err == nil {
		err = m.shell.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	t.Cleanup(func() {
		_ = m.input.Close()
		_ = m.shell.Process.Kill() // unshare ends its child with itself
		<-read
		_ = m.shell.Wait() // killed
		if t.Failed() {
			t.Logf("%s wrote:\n%s", m.name, m.output.tail())
		}
	})
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil || line != "ready\n" {
		close(read)
		t.Fatalf("%s is not ready: %q %v\n%s", name, line, err, m.output.tail())
	}
	go func() {
		defer close(read)
		_, _ = io.Copy(m.output, lines) // it ends with the machine
	}()
	children, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", m.shell.Process.Pid))
	if err == nil {
		m.pid, err = strconv.Atoi(strings.TrimSpace(string(children)))
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// begin runs one of the machine's commands.
func (m *machine) begin(t *testing.T, word string) {
	t.Helper()
	if _, err := io.WriteString(m.input, word+"\n"); err != nil {
		t.Fatal(err)
	}
}

// run runs a command in the machine's network.
func (m *machine) run(t *testing.T, args ...string) {
	t.Helper()
	command(t, "nsenter", append([]string{"--target", strconv.Itoa(m.pid), "--net"}, args...)...)
}

// send sends a signal to the machine's processes of that name, to all but the shell if it is "".
func (m *machine) send(t *testing.T, s syscall.Signal, name string) {
	t.Helper()
	own, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", m.pid))
	if err != nil {
		t.Fatal(err)
	}
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	for _, folder := range all {
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil || pid == m.pid {
			continue
		}
		space, err := os.Readlink(folder + "/ns/pid")
		comm, cerr := os.ReadFile(folder + "/comm")
		if err != nil || cerr != nil || space != own || name != "" && strings.TrimSpace(string(comm)) != name {
			continue // others, and those that have ended
		}
		if syscall.Kill(pid, s) == nil {
			sent++
		}
	}
	if sent == 0 {
		t.Fatalf("%s has no process %q", m.name, name)
	}
}

// command runs a program to its end.
func command(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// buffer keeps what a machine's processes write.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// tail returns the last lines.
func (b *buffer) tail() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := b.text.String()
	return text[max(0, len(text)-4000):]
}
