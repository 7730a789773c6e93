// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/internal/private"
	"fairlead.io/fairlead/internal/testkit"
)

// ASN is the AS of the members.
const ASN = 65000

// Options say what kind of lab is wanted. The zero value is three members that steer nothing.
type Options struct {
	Members int // 3
	// Spare members come after those, are not started, and ask to be let into the group when they are.
	Spare int
	// Disk gives each member's folder a file system of its own of so many bytes; 0: none. See MainIn.
	Disk int
	// Log is the level at which members log; debug.
	Log string
	// Extra is appended to every controller.yaml.
	Extra string
	// Bird is BIRD's side; its neighbours are filled in.
	Bird birdtest.Config
	// ConfigBGP gives a config_bgp.toml in which BIRD is a neighbour; nil makes BIRD known by a manifest.
	ConfigBGP func(bird netip.AddrPort) string
	// Silent members have no AS number, and no neighbour: addresses are answered for at layer 2, or by somebody else's routes.
	Silent bool
	// Management lets every member answer the gobgp command, at its own address and port 50051.
	Management bool
	// Kubeconfig makes the members read a cluster, too.
	Kubeconfig string
	// Binary is what members run; the command of this checkout if empty.
	Binary string
	// Stopped leaves the members for the test to start.
	Stopped bool
	// Steered makes next hops wait for the acknowledgement of their nodes' agents, which are a Machine's, and gives
	// the members addresses that a Machine can reach.
	Steered bool
}

// Lab is one group with its switch.
type Lab struct {
	t         testing.TB
	o         Options
	dir       string
	bin       string
	Bird      *birdtest.Bird
	Members   []*Member
	Manifests *Manifests
	context   string
}

// New starts BIRD and the members. What runs is ended with the test; the logs of members are shown if it failed.
func New(t testing.TB, o Options) *Lab {
	t.Helper()
	requireNetns(t)
	if o.Members == 0 {
		o.Members = 3
	}
	if o.Log == "" {
		o.Log = "debug"
	}
	l := &Lab{t: t, o: o, dir: t.TempDir(), bin: Binary(t)}
	for i := range o.Members + o.Spare {
		l.give(i)
		o.Bird.Neighbors = append(o.Bird.Neighbors, birdtest.Neighbor{
			Name: fmt.Sprintf("m%d", i+1), Address: netip.MustParseAddr(l.memberAddress(i)), ASN: ASN,
		})
	}
	l.Bird = birdtest.Start(t, o.Bird)
	l.Manifests = newManifests(t, filepath.Join(l.dir, "manifests"))
	if o.ConfigBGP == nil && !o.Silent {
		l.Manifests.Peer("bird", ASN, l.Bird.ASN(), l.Bird.Address(), l.Bird.Port())
	}
	l.members(o)
	l.operator()
	t.Cleanup(l.end)
	if !o.Stopped {
		for _, m := range l.Members[:o.Members] {
			m.Start()
		}
	}
	return l
}

func (l *Lab) memberAddress(i int) string {
	if l.o.Steered {
		return fmt.Sprintf("198.51.100.%d", 11+i)
	}
	return fmt.Sprintf("127.0.0.%d", 11+i)
}

// give sees to it that this namespace has the address of a member.
func (l *Lab) give(i int) {
	if l.o.Steered {
		l.ip("addr", "replace", l.memberAddress(i)+"/32", "dev", "lo")
	}
}

func (l *Lab) members(o Options) {
	listed := func(i int) string {
		return fmt.Sprintf("- {name: m%d, api: \"%[2]s:7443\", raft: \"%[2]s:7444\"}\n", i+1, l.memberAddress(i))
	}
	var first strings.Builder
	for i := range o.Members {
		first.WriteString(listed(i))
	}
	for i := range o.Members + o.Spare {
		name, a, list := fmt.Sprintf("m%d", i+1), l.memberAddress(i), first.String()
		if i >= o.Members {
			list += listed(i)
		}
		m := &Member{
			Address: a, DataDir: l.folder(name), Config: filepath.Join(l.dir, name+".yaml"),
		}
		m.Process = &Process{Name: name, t: l.t, bin: cmp.Or(o.Binary, l.bin), args: []string{"controller", "--config", m.Config}}
		m.Files = l.Issue(pki.Member, name, a)
		text := fmt.Sprintf(`name: %s
dataDir: %s
listen: {api: "%s:7443", raft: "%s:7444", health: "%s:7480"}
tls: {ca: %s, cert: %s, key: %s}
bootstrapToken: lab
members:
%sbgp: {%s, routerID: 192.0.2.%d, localAddress: %s, restartWindow: 3s}
sources: {manifests: [%s]%s}
unsteered: %t
log: %s
%s`, name, m.DataDir, a, a, a, m.Files.CA, m.Files.Cert, m.Files.Key, list, l.bgpOf(o, a), 11+i, a, l.Manifests.Dir, kubernetesOf(o), !o.Steered, o.Log, o.Extra)
		m.configuration = text
		m.Use(cmp.Or(o.Binary, l.bin))
		l.Members = append(l.Members, m)
	}
}

// kubernetesOf is the cluster among a member's sources.
func kubernetesOf(o Options) string {
	if o.Kubeconfig == "" {
		return ""
	}
	return fmt.Sprintf(", kubernetes: {kubeconfig: %s}", o.Kubeconfig)
}

// bgpOf is how a member comes by its AS number and its neighbours.
func (l *Lab) bgpOf(o Options, address string) string {
	management := ""
	if o.Silent {
		return "port: -1"
	}
	if o.Management {
		management = fmt.Sprintf(", management: \"%s:50051\"", address)
	}
	if o.ConfigBGP == nil {
		return fmt.Sprintf("asn: %d, port: -1%s", ASN, management)
	}
	path := filepath.Join(l.dir, "config_bgp.toml")
	text := o.ConfigBGP(netip.AddrPortFrom(l.Bird.Address(), l.Bird.Port()))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
	return fmt.Sprintf("configFile: %s, listen: [%s]%s", path, address, management)
}

// Issue makes a certificate of the lab's CA.
func (l *Lab) Issue(role pki.Role, name string, hosts ...string) pki.Files {
	l.t.Helper()
	ca := filepath.Join(l.dir, "ca")
	if err := pki.Init(ca, pki.CAOptions{}); err != nil && !errors.Is(err, pki.ErrExists) {
		l.t.Fatal(err)
	}
	issued, err := pki.Issue(ca, pki.Request{Role: role, Name: name, Hosts: hosts})
	if err != nil {
		l.t.Fatal(err)
	}
	files, err := issued.Write(filepath.Join(l.dir, "certs", string(role)+"-"+name))
	if err != nil {
		l.t.Fatal(err)
	}
	return files
}

func (l *Lab) operator() {
	files := l.Issue(pki.Operator, "tester")
	var servers []string
	for i := range l.Members {
		servers = append(servers, fmt.Sprintf("%q", l.memberAddress(i)+":7443"))
	}
	l.context = filepath.Join(l.dir, "context.yaml")
	text := fmt.Sprintf("servers: [%s]\nca: %s\ncert: %s\nkey: %s\n", strings.Join(servers, ", "), files.CA, files.Cert, files.Key)
	if err := os.WriteFile(l.context, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// commandPatience is how long a command may take, some of which wait for two minutes themselves.
const commandPatience = testkit.Patience + time.Minute

// CLI runs a command of an operator.
func (l *Lab) CLI(args ...string) (stdout, stderr string, code int) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, l.bin, append([]string{"--context", l.context}, args...)...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		l.t.Fatalf("fairlead %s: %v", strings.Join(args, " "), err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// Status is part of what `raft status -o json` prints.
type Status struct {
	Group   string         `json:"group"`
	Epoch   uint64         `json:"epoch"`
	Leader  string         `json:"leader"`
	Members []MemberStatus `json:"members"`
}

// MemberStatus is one member in it.
type MemberStatus struct {
	Name     string `json:"name"`
	ServerID string `json:"serverId"`
	Suffrage string `json:"suffrage"`
	Healthy  bool   `json:"healthy"`
	Applied  uint64 `json:"applied"`
	Digest   string `json:"digest"`
}

// Status asks the group how it is, and whether it answered.
func (l *Lab) Status() (Status, bool) {
	l.t.Helper()
	var s Status
	out, _, code := l.CLI("raft", "status", "-o", "json")
	if code != 0 {
		return s, false
	}
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		l.t.Fatalf("raft status: %v in %s", err, out)
	}
	return s, true
}

// Leader waits until the group has a leader, and gives its member.
func (l *Lab) Leader() *Member {
	l.t.Helper()
	var leader *Member
	l.Eventually("a leader", func() error {
		s, ok := l.Status()
		for _, m := range l.Members {
			if ok && m.Name == s.Leader && m.Runs() {
				leader = m
				return nil
			}
		}
		return fmt.Errorf("leader %q", s.Leader)
	})
	return leader
}

// Member gives a member by name.
func (l *Lab) Member(name string) *Member {
	for _, m := range l.Members {
		if m.Name == name {
			return m
		}
	}
	l.t.Fatalf("no member %s", name)
	return nil
}

// Others are the members but one.
func (l *Lab) Others(than *Member) []*Member {
	var out []*Member
	for _, m := range l.Members {
		if m != than {
			out = append(out, m)
		}
	}
	return out
}

// Eventually is testkit.Eventually for the lab's test.
func (l *Lab) Eventually(what string, look func() error) {
	l.t.Helper()
	testkit.Eventually(l.t, what, look)
}

// EventuallyWithin is Eventually with a limit: that of a promise, or of a benchmark that takes long.
func (l *Lab) EventuallyWithin(what string, limit time.Duration, look func() error) {
	l.t.Helper()
	testkit.EventuallyWithin(l.t, what, limit, look)
}

func (l *Lab) end() {
	for _, m := range l.Members {
		if m.Runs() {
			m.Kill()
		}
		l.tell(m.Process)
	}
	l.checkPrivate()
}

// checkPrivate fails the test for whatever members and agents wrote that other users of the machine could read.
func (l *Lab) checkPrivate() {
	folders, _ := filepath.Glob(filepath.Join(l.dir, "agent-*")) // the pattern is right
	for _, m := range l.Members {
		folders = append(folders, m.DataDir)
	}
	for _, folder := range folders {
		if strings.HasSuffix(folder, ".yaml") {
			continue
		}
		_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error { // a folder may never have been made
			if err == nil && private.Wide(d) {
				l.t.Errorf("%s is open to other users: keep it from them (internal/private)", path)
			}
			return nil
		})
	}
}

// tell shows what a process logged last if the test failed.
func (l *Lab) tell(p *Process) {
	if l.t.Failed() {
		log := p.Log()
		l.t.Logf("log of %s:\n%s", p.Name, log[max(0, len(log)-12_000):])
	}
}

// Updates counts the UPDATE messages that the switch has received from all members, in their present sessions.
func (l *Lab) Updates() int {
	l.t.Helper()
	return l.UpdatesAt(l.Bird)
}

// UpdatesAt counts those that a switch has received from whoever peers with it, in their present sessions.
func (l *Lab) UpdatesAt(b *birdtest.Bird) int {
	l.t.Helper()
	total := 0
	for _, line := range strings.Split(b.Command("show protocols all"), "\n") {
		fields := strings.Fields(line)
		if len(fields) > 2 && fields[0] == "Import" && (fields[1] == "updates:" || fields[1] == "withdraws:") {
			n, err := strconv.Atoi(fields[2])
			if err != nil {
				l.t.Fatalf("count of %q: %v", line, err)
			}
			total += n
		}
	}
	return total
}

// Switch starts another switch, at an address that machines can reach, to which nodes speak themselves: those of a steered lab.
func (l *Lab) Switch(c birdtest.Config, nodes ...int) *birdtest.Bird {
	l.t.Helper()
	c.Address = l.SwitchAddress()
	for _, n := range nodes {
		c.Neighbors = append(c.Neighbors, birdtest.Neighbor{Name: fmt.Sprintf("n%d", n), Address: NodeAddress(n), ASN: ASN})
	}
	return birdtest.Start(l.t, c)
}

// SwitchAddress is the address of such a switch, which this namespace has from now on.
func (l *Lab) SwitchAddress() netip.Addr {
	l.t.Helper()
	a := netip.MustParseAddr("198.51.100.254")
	l.AddAddress(a)
	return a
}

// AddAddress gives this namespace an address that machines can reach.
func (l *Lab) AddAddress(a netip.Addr) {
	l.t.Helper()
	l.ip("addr", "replace", a.String()+"/32", "dev", "lo")
}

// NeverMissing watches prefixes at the switch until the returned function is called, which fails the test if one of
// them had no next hop at any look.
func (l *Lab) NeverMissing(prefixes ...netip.Prefix) (stop func()) {
	l.t.Helper()
	var stops []func() []birdtest.Seen
	for _, p := range prefixes {
		stops = append(stops, l.Bird.Watch(p))
	}
	return func() {
		l.t.Helper()
		for i, s := range stops {
			seen := s()
			if n, total := birdtest.Gaps(seen); n > 0 {
				l.t.Errorf("%s was missing at the switch %d times, for %s in all: %v", prefixes[i], n, total, seen)
			}
		}
	}
}

// Agreed waits until all members of the configuration answer with one record.
func (l *Lab) Agreed() {
	l.t.Helper()
	l.Eventually("agreement", func() error {
		s, ok := l.Status()
		if !ok || s.Leader == "" {
			return errors.New("no leader")
		}
		for _, m := range s.Members {
			if m.Applied != s.Members[0].Applied || m.Digest != s.Members[0].Digest {
				return fmt.Errorf("%s is at %d, %s at %d", m.Name, m.Applied, s.Members[0].Name, s.Members[0].Applied)
			}
		}
		return nil
	})
}
