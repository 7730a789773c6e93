// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"context"
	"encoding/binary"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/internal/testkit"
)

// remembered counts the clients that endpoints remember.
func (l *lab) remembered() int {
	l.t.Helper()
	n := 0
	for line := range strings.Lines(l.node.Run("nft", "list", "table", "inet", TableName)) {
		n += strings.Count(line, " expires ")
	}
	return n
}

// K36, K37: a client keeps its endpoint over unrelated changes and a new agent, until the endpoint leaves or the time
// is over; each client from its last connection on.
// Rule: K36, K37.
func TestClientKeepsItsEndpoint(t *testing.T) {
	l := newLab(t)
	sticky := func(affinity time.Duration, pods ...int) *desired.Service {
		s := web(pods...)
		s.Affinity = affinity
		return s
	}
	l.apply(sticky(time.Hour, 1, 2, 3))
	pod, _ := l.must(l.client, "tcp", at(vip4, 80))
	same := func(when string) {
		t.Helper()
		for range 15 {
			if now, _ := l.must(l.client, "tcp", at(vip4, 80)); now != pod {
				t.Fatalf("%s: %s, was with %s", when, now, pod)
			}
		}
	}
	same("at once")
	other := web(1)
	other.Name, other.Addresses = "shop/other", other.Addresses[1:]
	other.Frontends = []desired.Frontend{{Name: tcp80.Name, Port: desired.Port{Protocol: 6, Number: 8081}}}
	l.apply(sticky(time.Hour, 1, 2, 3), other)
	same("after an unrelated change")
	l.nat = l.newNAT()
	l.apply(sticky(time.Hour, 1, 2, 3), other)
	same("after a new agent")

	rest := map[string][]int{"pod1": {2, 3}, "pod2": {1, 3}, "pod3": {1, 2}}[pod]
	l.apply(sticky(time.Hour, rest...), other)
	left := pod
	if pod, _ = l.must(l.client, "tcp", at(vip4, 80)); pod == left {
		t.Fatalf("%s left, and still serves", left)
	}
	l.apply(sticky(time.Hour, 1, 2, 3), other)
	same("after the first endpoint came back")

	l.apply(sticky(time.Second, 1, 2))
	testkit.Until(t, "a client is remembered", func() bool { // on a busy machine a look may take longer than that lasts
		l.must(l.client, "tcp", at(vip4, 80))
		return l.remembered() > 0
	})
	testkit.Until(t, "clients are forgotten", func() bool { return l.remembered() == 0 })
}

// K12, K18, K41: a UDP flow stays with its endpoint, and moves when that leaves; TCP stays where it is.
// Rule: K12, K18, K41.
func TestFlowsOfEndpointsThatLeft(t *testing.T) {
	l := newLab(t)
	for _, vip := range []struct {
		name     string
		udp, tcp string
	}{{"ipv4", "192.0.2.10:53", "192.0.2.10:80"}, {"ipv6", "[2001:db8::10]:53", "[2001:db8::10]:80"}} {
		t.Run(vip.name, func(t *testing.T) {
			address := vip4
			if vip.name == "ipv6" {
				address = vip6
			}
			l.apply(web(1, 2))
			flow, err := l.dial(l.client, "udp", at(address, 53), patience)
			if err != nil {
				t.Fatal(err)
			}
			defer flow.Close()
			established, err := l.dial(l.client, "tcp", at(address, 80), patience)
			if err != nil {
				t.Fatal(err)
			}
			defer established.Close()
			ask := func(c *conn) string {
				t.Helper()
				pod, _, err := c.ask()
				if err != nil {
					t.Fatal(err)
				}
				return pod
			}
			first, tcpPod := ask(flow), ask(established)
			for range 10 {
				if now := ask(flow); now != first {
					t.Fatalf("flow moved from %s to %s", first, now)
				}
			}
			stays, number := "pod2", 2
			if first == "pod2" {
				stays, number = "pod1", 1
			}
			l.apply(web(number))
			if now := ask(flow); now != stays {
				t.Errorf("flow is with %s, want %s", now, stays)
			}
			l.apply(web(3))
			if now := ask(flow); now != "pod3" {
				t.Errorf("flow is with %s, want pod3", now)
			}
			if now := ask(established); now != tcpPod {
				t.Errorf("TCP moved from %s to %s", tcpPod, now)
			}
			gone := web(3)
			gone.Frontends = gone.Frontends[:1]
			l.apply(gone)
			if _, _, err := flow.ask(); outcome(err) != "refused" {
				t.Errorf("flow of a frontend that is gone: %v", err)
			}
		})
	}
}

// load keeps opening connections until stop is called, which gives how many there were and those that failed.
func (l *lab) load() (stop func() (n int, failed []string)) {
	quit, done := make(chan struct{}), make(chan struct{})
	var n atomic.Int64
	var failed []string
	go func() {
		defer close(done)
		for {
			select {
			case <-quit:
				return
			default:
			}
			n.Add(1)
			if _, _, err := l.once(l.client, "tcp", at(vip4, 80), patience); err != nil {
				failed = append(failed, err.Error())
			}
		}
	}()
	testkit.Until(l.t, "load runs", func() bool { return n.Load() > 20 })
	return func() (int, []string) {
		close(quit)
		<-done
		return int(n.Load()), failed
	}
}

// K20, K43: endpoints come and go under load, and no new connection is lost.
// Rule: K20.
func TestEndpointChangesLoseNoConnection(t *testing.T) {
	l := newLab(t)
	l.apply(web(1))
	stop := l.load()
	for i := range 100 {
		s := web([][]int{{1, 2, 3}, {2, 3}, {3}, {1, 3}, {1}}[i%5]...)
		s.Frontends = s.Frontends[:1] // without UDP, whose flows would be looked for each time
		l.apply(s)
	}
	if n, failed := stop(); len(failed) > 0 {
		t.Errorf("%d of %d failed: %v", len(failed), n, failed[:1])
	}
}

// K48: a table that nobody tends goes on; who comes anew adopts it, and changes only what differs.
// Rule: K48.
func TestNewAgentAdoptsWithoutAGap(t *testing.T) {
	l := newLab(t)
	s := web(1, 2)
	s.SourceRanges = prefixes("203.0.113.0/24", "2001:db8::/32")
	s.Affinity = time.Hour
	l.apply(s)
	stop := l.load()
	before := l.node.Run("nft", "-a", "list", "table", "inet", TableName)
	l.nat = l.newNAT()
	l.apply(s)
	handles := func(of string) string { // without the clients' times
		var out []string
		for line := range strings.Lines(of) {
			if strings.Contains(line, "handle") {
				out = append(out, line)
			}
		}
		return strings.Join(out, "")
	}
	if after := l.node.Run("nft", "-a", "list", "table", "inet", TableName); handles(after) != handles(before) {
		t.Errorf("adopting changed\n%s\nto\n%s", before, after)
	}
	for range 10 {
		l.nat = l.newNAT()
		l.apply(web(1))
		l.nat = l.newNAT()
		l.apply(s)
	}
	if n, failed := stop(); len(failed) > 0 {
		t.Errorf("%d of %d failed: %v", len(failed), n, failed[:1])
	}
}

// An agent that starts finds a map that nobody wants any more, whose verdicts name chains that go, too.
func TestNewAgentDropsWhatNobodyWantsAnyMore(t *testing.T) {
	l := newLab(t)
	s := web(1, 2)
	s.Affinity, s.Endpoints[0].Weight, s.Endpoints[1].Weight = time.Hour, 2, 2
	l.apply(s)
	l.nat = l.newNAT()
	l.apply(web(1, 2))
	l.want("after the change", l.client, "tcp", at(vip4, 80), "served")
}

// A table of another layout, such as another release's, is replaced in one transaction. The kernel changes from one
// generation of rules to the next between two packets for whoever begins to walk them, but not for a packet that is on
// its way through them just then: that one finds the old rules and none of their elements.
func TestTableOfAnotherLayoutIsReplacedUnderLoad(t *testing.T) {
	l := newLab(t)
	l.apply(web(1, 2))
	stop := l.load()
	replaced := 0
	for i := range 10 {
		other := l.nat.planner.Ruleset()
		s := other.Sets["local4"]
		s.Key = []Type{Address4, PortNumber}
		other.Sets["local4"] = s
		other.Elements["local4"] = nil
		chain := other.Chains["leave4"]
		chain.Rules, chain.Tags = chain.Rules[:1], chain.Tags[:1]
		other.Chains["leave4"] = chain
		if i%2 == 0 { // another release may have entered earlier
			entry := other.Chains[chainPrerouting]
			entry.Priority--
			other.Chains[chainPrerouting] = entry
		}
		for _, replace := range []func(){
			func() {
				if err := l.nat.edge.Replace(context.Background(), other, true); err != nil {
					t.Fatal(err)
				}
			},
			func() { l.nat = l.newNAT(); l.apply(web(1, 2)) },
		} {
			before := l.generation()
			replace()
			if n := l.generation() - before; n != 1 {
				t.Fatalf("table was replaced in %d transactions", n)
			}
			replaced++
		}
		want := l.nat.planner.Ruleset()
		if have, _, err := l.nat.edge.Read(context.Background(), want); err != nil || !Compatible(have, want) || !Diff(have, want).Empty() {
			t.Fatalf("table is not as planned: %v", err)
		}
	}
	// The load has one packet on its way at a time.
	if n, failed := stop(); len(failed) > replaced {
		t.Errorf("%d of %d failed: %v", len(failed), n, failed[:1])
	}
}

// generation is the number of the kernel's generation of rules: each transaction begins one.
func (l *lab) generation() uint32 {
	l.t.Helper()
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, &netlink.Config{NetNS: l.node.FD()})
	if err != nil {
		l.t.Fatal(err)
	}
	defer conn.Close()
	answers, err := conn.Execute(netlink.Message{
		Header: netlink.Header{Type: unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETGEN, Flags: netlink.Request},
		Data:   make([]byte, 4), // nfgenmsg of any family
	})
	if err != nil || len(answers) == 0 {
		l.t.Fatalf("ask for the generation: %d answers, %v", len(answers), err)
	}
	attributes, err := netlink.NewAttributeDecoder(answers[0].Data[4:])
	if err != nil {
		l.t.Fatal(err)
	}
	attributes.ByteOrder = binary.BigEndian
	for attributes.Next() {
		if attributes.Type() == unix.NFTA_GEN_ID {
			return attributes.Uint32()
		}
	}
	l.t.Fatalf("no generation in the answer: %v", attributes.Err())
	return 0
}
