package ha_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// cluster is PostgreSQL on three machines under Patroni, with a synchronous standby. etcd and HAProxy
// run in the hub.
type cluster struct {
	*network
	nodes []*machine
}

const patroniSettings = `
scope: ha
name: %[1]s
restapi: {listen: '%[2]s:8008', connect_address: '%[2]s:8008'}
etcd: {host: '%[3]s:2379'}
bootstrap:
  dcs:
    ttl: 10
    loop_wait: 2
    retry_timeout: 3
    synchronous_mode: true
    postgresql:
      use_pg_rewind: true
      parameters:
        {max_connections: 60, wal_log_hints: 'on', fsync: 'off', full_page_writes: 'on',
         wal_sender_timeout: 5s, wal_retrieve_retry_interval: 500ms}
  initdb: [encoding: UTF8, locale: C]
postgresql:
  listen: '%[2]s:5432'
  connect_address: '%[2]s:5432'
  pgpass: %[4]s/pgpass
  data_dir: %[4]s/data
  bin_dir: %[5]s
  authentication: {superuser: {username: postgres}, replication: {username: postgres}, rewind: {username: postgres}}
  parameters: {unix_socket_directories: '%[4]s'}
  pg_hba: ['local all all trust', 'host all all all trust', 'host replication all all trust']
`

// startCluster starts the cluster and waits until it is healthy. It skips the test where that is not
// possible.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	binaries := checkMachine(t)
	folder := makeFolder(t)
	asPostgres := "setpriv --reuid=postgres --regid=postgres --clear-groups "
	c := &cluster{}
	hub := fmt.Sprintf("10.213.%d.1", os.Getpid()%250)
	c.network = startNetwork(t, map[string]string{
		"etcd": fmt.Sprintf("etcd --data-dir %[1]s/etcd --enable-v2 --unsafe-no-fsync --log-level error "+
			"--listen-client-urls http://%[2]s:2379 --advertise-client-urls http://%[2]s:2379 "+
			"--listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 "+
			"--initial-cluster default=http://127.0.0.1:2380", folder, hub),
		"haproxy": "haproxy -db -f " + folder + "/haproxy.cfg",
	})
	c.hub.begin(t, "etcd")
	proxy := readProxySettings(t)
	for i := range 3 {
		name := "n" + strconv.Itoa(i+1)
		own := filepath.Join(folder, name)
		settings := filepath.Join(own, "patroni.yml")
		n := c.plug(t, name, 11+i, map[string]string{"patroni": asPostgres + "patroni " + settings})
		text := fmt.Sprintf(patroniSettings, name, n.address, hub, own, binaries)
		if err := errors.Join(os.Mkdir(own, 0o700), os.WriteFile(settings, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		command(t, "chown", "-R", "postgres", own)
		if strings.Count(proxy, fmt.Sprintf(" pg%d:5432\n", i+1)) != 1 {
			t.Fatalf("docs/scale.md has not one pg%d:5432", i+1)
		}
		proxy = strings.Replace(proxy, fmt.Sprintf(" pg%d:5432", i+1), " "+n.address+":5432", 1)
		c.nodes = append(c.nodes, n)
	}
	if err := os.WriteFile(folder+"/haproxy.cfg", []byte(proxy), 0o600); err != nil {
		t.Fatal(err)
	}
	c.hub.begin(t, "haproxy")
	await(t, "etcd answers", func() bool { return c.get(t, "http://"+hub+":2379/health", nil) == nil })
	for _, n := range c.nodes {
		n.begin(t, "patroni")
	}
	c.awaitHealth(t)
	return c
}

// readProxySettings returns the settings of HAProxy that docs/scale.md has, below the defaults of a file
// of deploy, into which they may be pasted.
func readProxySettings(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/scale.md")
	shipped, serr := os.ReadFile("../../deploy/tenants.cfg")
	if err := errors.Join(err, serr); err != nil {
		t.Fatal(err)
	}
	_, below, found := strings.Cut(string(text), "\n### HAProxy before PostgreSQL\n\n```text\n")
	settings, _, ended := strings.Cut(below, "```\n")
	_, defaults, shipsDefaults := strings.Cut(string(shipped), "\ndefaults\n")
	defaults, _, _ = strings.Cut(defaults, "\nfrontend ")
	if !found || !ended || !shipsDefaults {
		t.Fatal("docs/scale.md has no settings of HAProxy, or deploy/tenants.cfg no defaults")
	}
	return "defaults\n" + defaults + settings
}

// checkMachine returns the folder of PostgreSQL's programs. It skips the test if something is missing.
func checkMachine(t *testing.T) (binaries string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces take root")
	}
	for _, program := range []string{"patroni", "etcd", "haproxy", "ip", "unshare", "nsenter", "setpriv"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s to test with, on Debian: apt-get install patroni etcd-server haproxy iproute2", program)
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if _, uerr := user.Lookup("postgres"); err != nil || uerr != nil || len(found) == 0 {
		t.Skip("there is no PostgreSQL of Debian to test with: apt-get install postgresql")
	}
	for _, module := range []string{"etcd", "patroni.ctl"} {
		if err := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", "import "+module).Run(); err != nil {
			t.Skipf("Patroni lacks the module %s, on Debian: apt-get install python3-etcd", module)
		}
	}
	bridge := strings.Fields("--net --pid --fork --mount-proc ip link add br0 type bridge")
	out, err := exec.CommandContext(t.Context(), "unshare", bridge...).CombinedOutput()
	if err != nil {
		t.Skipf("this host makes no namespaces: %v %s", err, out)
	}
	return slices.Max(found)
}

// makeFolder makes a folder, in memory if that is possible, which the user postgres may enter.
func makeFolder(t *testing.T) string {
	t.Helper()
	root := "/dev/shm"
	if _, err := os.Stat(root); err != nil {
		root = os.TempDir()
	}
	folder, err := os.MkdirTemp(root, "ha-") //nolint:usetesting // t.TempDir is neither in memory nor open to others
	if err == nil {
		err = os.Chmod(folder, 0o711)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	return folder
}

// get reads JSON, or nothing, from an address.
func (c *cluster) get(t *testing.T, address string, into any) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %d", resp.StatusCode)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// member is a node as Patroni sees it.
type member struct{ Name, Role, State string }

// awaitHealth waits for a leader, a synchronous standby and another standby.
func (c *cluster) awaitHealth(t *testing.T) {
	t.Helper()
	await(t, "the cluster is healthy", func() bool {
		roles := map[string]int{}
		for _, m := range c.members(t) {
			if m.State == "running" || m.State == "streaming" {
				roles[m.Role]++
			}
		}
		return roles["leader"] == 1 && roles["sync_standby"] == 1 && roles["replica"] == 1 && c.countStreaming(t) == 2
	})
}

func (c *cluster) members(t *testing.T) []member {
	for _, n := range c.nodes {
		var all struct{ Members []member }
		if c.get(t, "http://"+n.address+":8008/cluster", &all) == nil {
			return all.Members
		}
	}
	return nil
}

// countStreaming returns how many standbys the leader has.
func (c *cluster) countStreaming(t *testing.T) (n int) {
	leader := c.find(t, "leader")
	if leader == nil {
		return 0
	}
	if c.read(t, leader, &n, `SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'`) != nil {
		return 0
	}
	return n
}

// find returns the node with a role, nil for none.
func (c *cluster) find(t *testing.T, role string) *machine {
	for _, m := range c.members(t) {
		for _, n := range c.nodes {
			if m.Name == n.name && m.Role == role {
				return n
			}
		}
	}
	return nil
}

// read reads one row of a node's PostgreSQL.
func (c *cluster) read(t *testing.T, n *machine, into any, sql string, args ...any) error {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, urlOf(n.address))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return conn.QueryRow(ctx, sql, args...).Scan(into)
}

// switchOver asks Patroni for another leader. Its answer comes after that.
func (c *cluster) switchOver(t *testing.T, leader *machine) {
	t.Helper()
	body := strings.NewReader(`{"leader": "` + leader.name + `"}`)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+leader.address+":8008/switchover", body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("the switchover: %d %s %v", resp.StatusCode, text, err)
	}
}

func urlOf(hosts ...string) string {
	return "postgres://postgres@" + strings.Join(hosts, ":5432,") + ":5432/postgres?sslmode=disable"
}

// await waits until f is true.
func await(t *testing.T, what string, f func() bool) {
	t.Helper()
	const patience = 3 * time.Minute
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !f(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}
