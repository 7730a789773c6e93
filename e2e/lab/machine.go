// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/dataplane/agent/disk"
	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/internal/lifeline"
	"fairlead.io/fairlead/internal/netnstest"
)

// Machine is a node with a kernel to be reached: a network namespace with the node's address, and an agent that lives
// there but carries nothing out. A steered lab has them (Options.Steered).
//
//	lab's namespace                    node n's namespace
//	members 198.51.100.11…   nodeN ─────── eth0  192.0.2.(100+n)
type Machine struct {
	Name    string
	Address netip.Addr

	lab    *Lab
	holder *exec.Cmd // keeps the namespace
	ns     *os.File
	link   string // the lab's end; empty before there is one
	files  pki.Files
	boot   int // counted
	kernel *stiff
	stop   func()
	config string // of the agent as a process of its own; empty: the agent is in the test's
	log    string // file of that process
}

// Machine makes node n, from 1, and starts its agent. The manifest of the node is the test's to write.
func (l *Lab) Machine(n int) *Machine {
	l.t.Helper()
	m := &Machine{Name: fmt.Sprintf("n%d", n), Address: NodeAddress(n), lab: l, kernel: newStiff()}
	m.files = l.Issue(pki.Agent, m.Name)
	m.holder = exec.Command("unshare", "--net", "sleep", "infinity")
	if err := lifeline.Start(m.holder); err != nil {
		l.t.Fatalf("namespace of %s: %v", m.Name, err)
	}
	l.t.Cleanup(m.end)
	m.enter()
	m.link = fmt.Sprintf("node%d", n)
	l.ip("link", "add", m.link, "type", "veth", "peer", "name", "eth0", "netns", fmt.Sprint(m.holder.Process.Pid))
	l.ip("link", "set", m.link, "up")
	l.ip("route", "add", m.Address.String(), "dev", m.link)
	m.run("", "ip", "link", "set", "lo", "up")
	m.run("", "ip", "addr", "add", m.Address.String()+"/32", "dev", "eth0")
	m.run("", "ip", "link", "set", "eth0", "up")
	m.run("", "ip", "route", "add", "default", "dev", "eth0")
	m.StartAgent()
	return m
}

// enter opens the machine's namespace once its process has made it.
func (m *Machine) enter() {
	m.lab.t.Helper()
	path := fmt.Sprintf("/proc/%d/ns/net", m.holder.Process.Pid)
	ours, err := os.Readlink(ownNetns)
	if err != nil {
		m.lab.t.Fatal(err)
	}
	m.lab.Eventually("namespace of "+m.Name, func() error {
		if its, err := os.Readlink(path); err != nil || its == ours {
			return fmt.Errorf("it is in %s: %w", its, err)
		}
		return nil
	})
	if m.ns, err = os.Open(path); err != nil {
		m.lab.t.Fatal(err)
	}
}

func (m *Machine) end() {
	m.StopAgent()
	if m.link != "" { // a namespace is taken down some time after its last process
		m.lab.ip("link", "delete", m.link)
	}
	_ = m.holder.Process.Kill() // it may be gone with the test
	_ = m.holder.Wait()
	_ = m.ns.Close()
}

// Cable joins an interface of the machine, which it makes, to one of another namespace. Both are up, and have link-local addresses.
func (m *Machine) Cable(to *netnstest.Namespace, port, name string) {
	m.lab.t.Helper()
	to.Run("ip", "link", "add", port, "type", "veth", "peer", "name", "cable0")
	to.Run("ip", "link", "set", "cable0", "netns", fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), m.ns.Fd()))
	to.Run("ip", "link", "set", port, "up")
	m.run("", "ip", "link", "set", "cable0", "name", name)
	m.run("", "ip", "link", "set", name, "up")
}

// Run runs a command on the machine, and gives what it says.
func (m *Machine) Run(program string, args ...string) string {
	m.lab.t.Helper()
	out, err := exec.Command("nsenter", append([]string{fmt.Sprintf("--net=/proc/%d/ns/net", m.holder.Process.Pid), program}, args...)...).CombinedOutput()
	if err != nil {
		m.lab.t.Fatalf("%s: %s %s: %v: %s", m.Name, program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// run runs a command on the machine.
func (m *Machine) run(stdin string, args ...string) {
	m.lab.t.Helper()
	cmd := exec.Command("nsenter", append([]string{fmt.Sprintf("--net=/proc/%d/ns/net", m.holder.Process.Pid)}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		m.lab.t.Fatalf("%s: %s: %v: %s", m.Name, strings.Join(args, " "), err, out)
	}
}

// RemoveRoute and AddRoute cut the machine off from an address, and end that.
func (m *Machine) RemoveRoute(a netip.Addr) {
	m.run("", "ip", "route", "add", "unreachable", a.String())
}

func (m *Machine) AddRoute(a netip.Addr) { m.run("", "ip", "route", "del", "unreachable", a.String()) }

// Fail makes the machine as good as dead: from now on no packet enters or leaves it.
func (m *Machine) Fail() {
	m.lab.t.Helper()
	m.run(`table inet dead {
	chain in { type filter hook input priority -300; policy drop; }
	chain out { type filter hook output priority -300; policy drop; }
}`, "nft", "-f", "-")
}

// Recover ends a Fail.
func (m *Machine) Recover() {
	m.lab.t.Helper()
	m.run("", "nft", "delete", "table", "inet", "dead")
}

// Reboot has the machine come back from a Fail as one that was off: with another boot id.
func (m *Machine) Reboot() {
	m.lab.t.Helper()
	m.StopAgent()
	m.boot++
	m.Recover()
	m.StartAgent()
}

// StopAgent ends the agent as kill -9 does: it says nothing to anybody.
func (m *Machine) StopAgent() {
	if m.stop != nil {
		m.stop()
		m.stop = nil
	}
}

// Speak has the machine run the real agent from now on, in its namespace, with a speaker of its own; lines are added to its
// agent.yaml.
func (m *Machine) Speak(lines string) {
	m.lab.t.Helper()
	m.StopAgent()
	var members []string
	for _, member := range m.lab.Members {
		members = append(members, fmt.Sprintf("%q", member.Address+":7443"))
	}
	dir := filepath.Join(m.lab.dir, "process-"+m.Name)
	m.config, m.log = dir+".yaml", dir+".log"
	text := fmt.Sprintf("node: %s\nstateDir: %s\nmembers: [%s]\ntls: {ca: %s, cert: %s, key: %s}\nsteer: false\nhealth: \"\"\nlog: debug\n%s\n",
		m.Name, dir, strings.Join(members, ", "), m.files.CA, m.files.Cert, m.files.Key, lines)
	if err := os.WriteFile(m.config, []byte(text), 0o600); err != nil {
		m.lab.t.Fatal(err)
	}
	m.StartAgent()
}

// Password puts one into the folder that bgp.passwordDir of the machine's agent names, or takes it away if it is empty.
func (m *Machine) Password(from, password string) {
	m.lab.t.Helper()
	path := filepath.Join(m.PasswordDir(), from)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if password == "" {
		err = os.Remove(path)
	} else if err == nil {
		err = os.WriteFile(path, []byte(password), 0o600)
	}
	if err != nil {
		m.lab.t.Fatal(err)
	}
}

// PasswordDir is the folder of passwords on the machine.
func (m *Machine) PasswordDir() string { return filepath.Join(m.lab.dir, "passwords-"+m.Name) }

// Log is what the agent that Speak runs has logged.
func (m *Machine) Log() string {
	m.lab.t.Helper()
	text, err := os.ReadFile(m.log)
	if err != nil {
		m.lab.t.Fatal(err)
	}
	return string(text)
}

// Bird runs BIRD on the machine, beside its agent. Its neighbours may be elsewhere.
func (m *Machine) Bird(c birdtest.Config) *birdtest.Bird {
	m.lab.t.Helper()
	c.Within = []string{"nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", m.holder.Process.Pid)}
	return birdtest.Start(m.lab.t, c)
}

// startProcess runs the agent as a process of its own, in the machine's namespace.
func (m *Machine) startProcess() {
	m.lab.t.Helper()
	log, err := os.OpenFile(m.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		m.lab.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command("nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", m.holder.Process.Pid),
		"sh", "-c", `umask 0; exec "$0" "$@"`, m.lab.bin, "agent", "--config", m.config)
	cmd.Stdout, cmd.Stderr = log, log
	if err := lifeline.Start(cmd); err != nil {
		m.lab.t.Fatalf("agent of %s: %v", m.Name, err)
	}
	m.stop = func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
		if data, err := os.ReadFile(m.log); err == nil && m.lab.t.Failed() {
			m.lab.t.Logf("log of the agent of %s:\n%s", m.Name, data[max(0, len(data)-12_000):])
		}
	}
}

// StartAgent runs the agent.
func (m *Machine) StartAgent() {
	m.lab.t.Helper()
	if m.config != "" {
		m.startProcess()
		return
	}
	log := slog.New(slog.DiscardHandler)
	source, err := pki.OpenSource(m.files, log)
	if err != nil {
		m.lab.t.Fatal(err)
	}
	store, err := disk.Open(filepath.Join(m.lab.dir, "agent-"+m.Name), "desired.state")
	if err != nil {
		m.lab.t.Fatal(err)
	}
	endpoint := &pki.Endpoint{Source: source, OrNewer: true}
	var seeds []string
	for _, member := range m.lab.Members {
		seeds = append(seeds, member.Address+":7443")
	}
	a, err := agent.New(agent.Options{
		Node: m.Name, Boot: fmt.Sprintf("boot-%d", m.boot), Seeds: seeds, Store: store, Applier: m.kernel, Log: log,
		Connect: func(address string) agent.Conn {
			client := admin.NewClient(admin.ClientOptions{Endpoint: endpoint, Servers: []string{address}, Dial: m.dial})
			return agentConn{client.Agent, client}
		},
	})
	if err != nil {
		m.lab.t.Fatal(err)
	}
	endpoint.Self = pki.Naming(a.Membership)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = a.Run(ctx) // ctx's error: only the test ends it
	}()
	m.stop = func() {
		cancel()
		<-done
	}
}

type agentConn struct {
	fairleadv1connect.AgentServiceClient
	client *admin.Client
}

func (c agentConn) Close() { c.client.Close() }

// ownNetns is the namespace of the calling thread.
const ownNetns = "/proc/thread-self/ns/net"

// dial connects from the machine's namespace. The thread comes back from there, or is used for nothing else.
func (m *Machine) dial(ctx context.Context, network, address string) (net.Conn, error) {
	runtime.LockOSThread()
	home, err := os.Open(ownNetns)
	if err != nil {
		return nil, err
	}
	defer home.Close()
	if err := unix.Setns(int(m.ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("enter the namespace of %s: %w", m.Name, err)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) == nil {
		runtime.UnlockOSThread()
	}
	return conn, err
}

// ip configures the lab's own namespace.
func (l *Lab) ip(args ...string) {
	l.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		l.t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}
