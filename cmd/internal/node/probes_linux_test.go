// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/probes"
	"fairlead.io/fairlead/cmd/internal/node"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// host is a server that can be stopped and started, at an address of its own and a port that all have.
type host struct {
	t        *testing.T
	at       netip.AddrPort
	listener net.Listener
}

// hosts are servers at 127.0.0.2 and following addresses, on one port.
func hosts(t *testing.T, n int) []*host {
	t.Helper()
	all := []*host{}
	port := uint16(0)
	for i := range n {
		h := &host{t: t, at: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, byte(2 + i)}), port)}
		h.start()
		h.at = netip.MustParseAddrPort(h.listener.Addr().String())
		port = h.at.Port()
		t.Cleanup(h.stop)
		all = append(all, h)
	}
	return all
}

func (h *host) start() {
	h.t.Helper()
	l, err := net.Listen("tcp", h.at.String())
	if err != nil {
		h.t.Fatal(err)
	}
	h.listener = l
	word := h.at.Addr().String()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, word) // who left hears nothing
			_ = c.Close()
		}
	}()
}

func (h *host) stop() { _ = h.listener.Close() }

// listing is a policy that sends a place to these servers, probed as often as may be.
func listing(at netip.AddrPort, servers ...*host) fsm.Policy {
	r := fsm.Policy{
		ID: "BalancingPolicy/db", UID: "u", EveryNode: true, Mode: "address",
		Captures: []fsm.Capture{{Address: at.Addr(), Port: fsm.Port{Protocol: fsm.TCP, Number: at.Port()}, Target: servers[0].at.Port()}},
		Probe:    fsm.Probe{Type: "TCP", Interval: 50 * time.Millisecond, Timeout: 20 * time.Second, Healthy: 1, Unhealthy: 2},
	}
	for _, s := range servers {
		r.Backends = append(r.Backends, fsm.PolicyBackend{Address: s.at.Addr(), Ready: true})
	}
	return r
}

// enough connections for a look. Backends are drawn by chance, and one that is listed twice is drawn twice as often: the rarest one of these tests,
// a third of the draws, stays unheard by (2/3)^60, once in 37 billion looks. One that should be heard no more hides more rarely still.
const enough = 60

// dials is what so many connections to a place hear, each word once. The test's own process has to be in the cgroup.
func (l *sockLab) dials(at netip.AddrPort) string {
	l.t.Helper()
	said := map[string]bool{}
	for range enough {
		c, err := net.DialTimeout("tcp", at.String(), 5*time.Second)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return "nobody" // nothing is resolved there yet
		}
		if err != nil {
			said["refused"] = true
			continue
		}
		word, _ := io.ReadAll(c) // who was stopped meanwhile says nothing
		_ = c.Close()
		said[string(word)] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(said)), " ")
}

func (l *sockLab) soon(at netip.AddrPort, want string) {
	l.t.Helper()
	testkit.Until(l.t, want, func() bool { return l.dials(at) == want })
}

// Balancing §14, §24 row 9: a policy's listed addresses are probed; new connections leave one that does not answer alone, use all of
// them where none does, and come back.
// Rule: balancing §14.
func TestListedAddressesOfTheRecordAreProbed(t *testing.T) {
	l := newSockLab(t)
	l.enter()
	vip, servers := netip.MustParseAddrPort("192.0.2.1:80"), hosts(t, 2)
	l.group.Apply(t, &fsm.PutPolicy{Policy: listing(vip, servers...)})
	agent := start(t, l.config)
	l.soon(vip, "127.0.0.2 127.0.0.3")
	servers[0].stop()
	l.soon(vip, "127.0.0.3")
	for range 3 {
		if got := l.dials(vip); got != "127.0.0.3" {
			t.Errorf("with one server down connections get to %s", got)
		}
	}
	servers[1].stop()
	servers[0].start() // which is bad until a probe has found it, as is the other one
	l.soon(vip, "127.0.0.2")
	servers[1].start()
	l.soon(vip, "127.0.0.2 127.0.0.3")
	if err := agent.stop(); err != nil {
		t.Fatal(err)
	}
}

// Balancing §14: where a policy's probe finds nobody at all, all of its addresses are used as if there were none.
// Rule: balancing §14.
func TestFailOpenWhenAllAreBad(t *testing.T) {
	l := newSockLab(t)
	l.enter()
	vip, servers, nobody := netip.MustParseAddrPort("192.0.2.1:80"), hosts(t, 3), hosts(t, 1)
	policy := listing(vip, servers[:2]...)
	policy.Backends = append(policy.Backends, policy.Backends[1])
	policy.Probe.Unhealthy = 1
	agent := start(t, l.config)
	l.group.Apply(t, &fsm.PutPolicy{Policy: policy})
	l.soon(vip, "127.0.0.2 127.0.0.3")
	servers[1].stop()
	l.soon(vip, "127.0.0.2")
	nobody[0].stop()
	policy.Probe.Port = nobody[0].at.Port()
	servers[1].start()
	l.group.Apply(t, &fsm.PutPolicy{Policy: policy})
	l.soon(vip, "127.0.0.2 127.0.0.3")
	testkit.Until(t, "both are known to be bad", func() bool {
		_, text := ask(t, l.config, "/metrics")
		return strings.Contains(text, `fairlead_health_targets{opinion="bad"} 2`)
	})
	testkit.Until(t, "that is written down for people", func() bool {
		text, err := os.ReadFile(filepath.Join(l.config.StateDir, node.ProbesFile))
		return err == nil && strings.Count(string(text), `"opinion":"bad","why":"dial tcp`) == 2 && strings.Count(string(text), `"open":true`) == 2
	})
	for range 3 {
		if got := l.dials(vip); got != "127.0.0.2 127.0.0.3" {
			t.Errorf("though all are bad, connections get to %q only", got)
		}
	}
	if err := agent.stop(); err != nil {
		t.Fatal(err)
	}
}

// Balancing §12, §14: a socket of datagrams keeps the backend that it got until that is bad, and gets another one at once.
// Rule: balancing §14.
func TestWhatIsBadIsKeptByNobody(t *testing.T) {
	l := newSockLab(t)
	l.enter()
	vip := netip.MustParseAddrPort("192.0.2.1:80")
	servers := hosts(t, 2) // a port of UDP follows the one of TCP
	policy := listing(vip, servers...)
	policy.Captures[0].Port.Protocol = fsm.UDP
	policy.Captures = append(policy.Captures, listing(vip, servers...).Captures...)
	for _, s := range servers {
		c, err := net.ListenPacket("udp", s.at.String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		go func() {
			b := make([]byte, 10)
			for {
				_, from, err := c.ReadFrom(b)
				if err != nil {
					return
				}
				_, _ = c.WriteTo([]byte(s.at.Addr().String()), from)
			}
		}()
	}
	l.group.Apply(t, &fsm.PutPolicy{Policy: policy})
	agent := start(t, l.config)
	l.soon(vip, "127.0.0.2 127.0.0.3")
	client, err := net.ListenUDP("udp4", &net.UDPAddr{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	asks := func() string {
		t.Helper()
		b := make([]byte, 100)
		deadline := client.SetReadDeadline(time.Now().Add(testkit.Patience))
		_, err := client.WriteToUDPAddrPort([]byte("?"), vip)
		n, from, readErr := client.ReadFromUDPAddrPort(b)
		if err := errors.Join(deadline, err, readErr); err != nil || from != vip {
			t.Fatalf("an answer from %v: %v", from, err)
		}
		return string(b[:n])
	}
	kept := asks()
	for range 5 {
		if got := asks(); got != kept {
			t.Errorf("the socket got to %s, then to %s", kept, got)
		}
	}
	for _, s := range servers {
		if s.at.Addr().String() == kept {
			s.stop() // its UDP goes on answering
		}
	}
	testkit.Until(t, "the socket gets to the other one", func() bool { return asks() != kept })
	if err := agent.stop(); err != nil {
		t.Fatal(err)
	}
}

// Balancing §14, §16.3: probes of an address that a policy captures itself get to that address, not to where connections are sent.
// Rule: balancing §14.
func TestProbesAreNotRedirected(t *testing.T) {
	l := newSockLab(t)
	servers := hosts(t, 2)
	l.enter()
	servers[0].stop()
	vip := servers[0].at // captured, and a backend
	l.group.Apply(t, &fsm.PutPolicy{Policy: listing(vip, servers...)})
	agent := start(t, l.config)
	l.soon(vip, "127.0.0.3")
	for range 5 {
		if got := l.dials(vip); got != "127.0.0.3" {
			t.Errorf("connections get to %s: a probe got to another address than it was for", got)
		}
	}
	if err := agent.stop(); err != nil {
		t.Fatal(err)
	}
}

// Balancing §16.3: a policy that captures where the members are does not keep the node's agent from them.
// Rule: balancing §16.
func TestAgentsGetToTheirMembers(t *testing.T) {
	l := newSockLab(t)
	servers := hosts(t, 1)
	l.enter()
	api, vip := netip.MustParseAddrPort(l.config.Members[0]), netip.MustParseAddrPort("192.0.2.1:80")
	agent := start(t, l.config)
	l.group.Apply(t, &fsm.PutPolicy{Policy: listing(api, servers...)})
	l.soon(api, "127.0.0.2")
	if err := agent.stop(); err != nil {
		t.Fatal(err)
	}
	again := start(t, l.config) // over connections of its own
	also := listing(vip, servers...)
	also.ID = "BalancingPolicy/also"
	l.group.Apply(t, &fsm.PutPolicy{Policy: also})
	l.soon(vip, "127.0.0.2")
	if got := l.dials(api); got != "127.0.0.2" {
		t.Errorf("others get to %s where the members are", got)
	}
	if err := again.stop(); err != nil {
		t.Fatal(err)
	}
}

// Balancing §14: what the agent finds out is what the group thinks, where no other node probes; the record has it, and the agent's next
// run heeds it before it has probed itself.
// Rule: balancing §14.
func TestVerdictsAreInTheRecord(t *testing.T) {
	l := newSockLab(t)
	l.enter()
	vip, servers := netip.MustParseAddrPort("192.0.2.1:80"), hosts(t, 2)
	l.group.Apply(t, &fsm.PutNode{ID: "n1", UID: "n1"}, &fsm.PutPolicy{Policy: listing(vip, servers...)})
	l.judges()
	said := func() (out string) {
		r, _ := fsm.Get[*fsm.Policy](l.group.Read(), fsm.TablePolicies, "BalancingPolicy/db")
		for _, v := range r.Verdicts {
			out += fmt.Sprintf("%s %t %d/%d ", v.Address, v.Healthy, v.Say, v.Of)
		}
		return out
	}
	eventually := func(want string) {
		t.Helper()
		testkit.Until(t, want, func() bool { return said() == want })
	}
	agent := start(t, l.config)
	eventually("127.0.0.2 true 1/1 127.0.0.3 true 1/1 ")
	servers[0].stop()
	eventually("127.0.0.2 false 1/1 127.0.0.3 true 1/1 ")
	l.soon(vip, "127.0.0.3")
	if err := agent.stop(); err != nil {
		t.Fatal(err)
	}
	// Slower probes are another policy, of which nothing is thought: what is said of it is said below, and not found out within the test.
	slow := listing(vip, servers...)
	slow.Probe.Unhealthy = 3600
	servers[0].start()
	l.group.Apply(t, &fsm.PutPolicy{Policy: slow}, &fsm.SetPolicyHealth{ID: slow.ID, UID: slow.UID, Verdicts: []fsm.ProbeVerdict{
		{Address: servers[1].at.Addr(), Port: fsm.Port{Protocol: fsm.TCP, Number: servers[1].at.Port()}, Say: 2, Of: 3},
	}})
	servers[1].stop()
	for range 20 { // what the node said of the other probes is heard still
		if got := said(); got != "127.0.0.3 false 2/3 " {
			t.Fatalf("what was said of other probes counts: %s", got)
		}
		time.Sleep(10 * time.Millisecond)
	}
	again := start(t, l.config)
	l.soon(vip, "127.0.0.2")
	if err := again.stop(); err != nil {
		t.Fatal(err)
	}
}

// judges has a leader judge what nodes say, until the end of the test.
func (l *sockLab) judges() {
	leader := probes.New(probes.Options{
		Record: l.group, Group: committing{l.group}, Clock: wallClock{}, Log: quiet, Every: 10 * time.Millisecond,
		Heard: func() probes.Heard { return l.service.Probed(20 * time.Second) },
	})
	ctx, end := context.WithCancel(context.Background())
	var leading sync.WaitGroup
	leading.Go(func() { leader.Run(ctx, 1) })
	l.t.Cleanup(func() {
		end()
		leading.Wait()
	})
}

// committing is a group in which nobody minds.
type committing struct{ *grouptest.Group }

func (g committing) Propose(_ context.Context, proposals []fsm.Proposal) ([]fsm.Outcome, error) {
	return g.Commit(proposals...)
}

type wallClock struct{}

func (wallClock) After(d time.Duration) <-chan time.Time { return time.After(d) }
func (wallClock) Wall() time.Time                        { return time.Now() }

// enter has the test's own process be in the cgroup whose sockets are resolved, until the end of the test.
func (l *sockLab) enter() {
	l.t.Helper()
	all, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		l.t.Fatal(err)
	}
	own := ""
	for _, line := range strings.Fields(string(all)) {
		if path, v2 := strings.CutPrefix(line, "0::"); v2 {
			own = filepath.Join(filepath.Dir(l.client.Cgroup), path)
		}
	}
	move := func(to string) {
		if err := os.WriteFile(filepath.Join(to, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
			l.t.Fatal(err)
		}
	}
	move(l.client.Cgroup)
	l.t.Cleanup(func() { move(own) })
}
