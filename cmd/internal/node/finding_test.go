// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/appliedstate"
	"fairlead.io/fairlead/dataplane/bgp/ndp"
	"fairlead.io/fairlead/dataplane/bgp/share"
	"fairlead.io/fairlead/internal/testkit"
)

// cables are links whose other ends a test moves.
type cables struct {
	mu      sync.Mutex
	changed func()
	ends    map[string]string // addresses, by interface
	errs    map[string]error  // in the place of ndp.ErrNobody
	running map[string]bool
}

type cable struct {
	*cables
	name string
}

func (c *cables) open(name string, changed func()) Link {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = changed
	return cable{c, name}
}

func (c *cables) plug(name, address string) {
	c.mu.Lock()
	c.ends[name] = address
	changed := c.changed
	c.mu.Unlock()
	changed()
}

func (c cable) Neighbour() (netip.Addr, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.ends[c.name]; a != "" {
		return netip.MustParseAddr(a).WithZone(c.name), nil
	}
	if err := c.errs[c.name]; err != nil {
		return netip.Addr{}, err
	}
	return netip.Addr{}, fmt.Errorf("interface %s: %w", c.name, ndp.ErrNobody)
}

func (c cable) Run(ctx context.Context) {
	c.run(true)
	<-ctx.Done()
	c.run(false)
}

func (c cable) run(is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[c.name] = is
}

func (c *cables) runs() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, is := range c.running {
		if is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// cabled is the BGP side of a node with links, after an earlier run announced to peers.
func cabled(t interface {
	Fatal(...any)
	Helper()
}, folder string, log *slog.Logger, before ...bgp.Peer) (*speaking, *cables) {
	t.Helper()
	links := &cables{ends: map[string]string{}, errs: map[string]error{}, running: map[string]bool{}}
	c := config.Agent{Node: "n1", StateDir: folder, BGP: &config.NodeBGP{ASN: 64512, LocalAddress: netip.MustParseAddr("2001:db8::1")}}
	if len(before) > 0 {
		if err := appliedstate.In(folder, "node n1").Save(bgp.Routes{Revision: bgp.Revision{Epoch: 1, Index: 3}, Peers: before}); err != nil {
			t.Fatal(err)
		}
	}
	e := Edges{Link: links.open, Speaker: func(config.Agent, *slog.Logger) (Announcing, error) { return mute{sessions: map[string]string{}}, nil }}
	s, err := openSpeaking(c, e, func() time.Duration { return 0 }, log, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return s, links
}

func toldOf(t interface{ Fatal(...any) }, s *speaking, interfaces ...string) {
	m := share.Share{Revision: bgp.Revision{Epoch: 1, Index: 7}}
	for _, name := range interfaces {
		m.Unnumbered = append(m.Unnumbered, share.UnnumberedPeer{Peer: bgp.Peer{Name: "at-" + name, RemoteASN: 65001}, Interface: name})
	}
	if err := s.Tell(m.Message()); err != nil {
		t.Fatal(err)
	}
}

func addressesOf(s *speaking) (out []string) {
	for _, p := range s.Routes().Peers {
		out = append(out, p.Name+" "+p.Address.String())
	}
	slices.Sort(out)
	return out
}

// A peer by interface comes with its neighbour, and goes with it to another address; until then its state says what is missing. Links
// are open while they are needed.
func TestPeerByInterfaceFollowsItsNeighbour(t *testing.T) {
	s, links := cabled(t, t.TempDir(), slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.links.run(ctx) }()
	toldOf(t, s, "eth1", "eth2")
	testkit.Until(t, "links", func() bool { return slices.Equal(links.runs(), []string{"eth1", "eth2"}) })
	s.look(t.Context())
	if states, _ := s.Sessions(); !strings.Contains(states["at-eth1"], "eth1: no router advertises itself; have the switch") || len(addressesOf(s)) > 0 {
		t.Errorf("sessions are %q, peers %q", states, addressesOf(s))
	}
	links.plug("eth1", "fe80::1")
	if have := addressesOf(s); !slices.Equal(have, []string{"at-eth1 fe80::1%eth1"}) || s.Routes().Peers[0].LocalAddress.IsValid() {
		t.Errorf("peers are %q", have)
	}
	links.plug("eth1", "fe80::9")
	if have := addressesOf(s); !slices.Equal(have, []string{"at-eth1 fe80::9%eth1"}) {
		t.Errorf("peers are %q", have)
	}
	toldOf(t, s, "eth2")
	testkit.Until(t, "one link", func() bool { return slices.Equal(links.runs(), []string{"eth2"}) })
	if have := addressesOf(s); len(have) > 0 {
		t.Errorf("peers are %q", have)
	}
	stop()
	if err := <-ended; err != context.Canceled || len(links.runs()) > 0 {
		t.Errorf("%v, and %q run on", err, links.runs())
	}
}

// After a restart a neighbour is who it was, until another one is there: the session goes on at once, and withdrawals wait for what
// the switch may keep. Its link is open before any member tells.
func TestNeighboursAreRememberedOverARestart(t *testing.T) {
	s, links := cabled(t, t.TempDir(), slog.New(slog.DiscardHandler),
		bgp.Peer{Name: "old name", Address: netip.MustParseAddr("fe80::1%eth1"), RemoteASN: 65001},
		bgp.Peer{Name: "tor", Address: netip.MustParseAddr("192.0.2.1"), RemoteASN: 65001})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { _ = s.links.run(ctx) }()
	testkit.Until(t, "the link", func() bool { return slices.Equal(links.runs(), []string{"eth1"}) })
	s.signAgain() // before anybody told
	toldOf(t, s, "eth1", "eth2")
	if have := addressesOf(s); !slices.Equal(have, []string{"at-eth1 fe80::1%eth1"}) {
		t.Errorf("peers are %q", have)
	}
	links.plug("eth1", "fe80::2")
	if have := addressesOf(s); !slices.Equal(have, []string{"at-eth1 fe80::2%eth1"}) {
		t.Errorf("peers are %q", have)
	}
}

// However neighbours come, go, move and double, no two peers have one address, a peer has the address that was last heard behind its
// interface and is nobody else's, who had it first keeps it, and whoever has none says why.
func TestPropertyPeersByInterfaceHaveAddressesOfTheirOwn(t *testing.T) {
	folder := t.TempDir()
	testkit.Check(t, func(t *rapid.T) {
		s, links := cabled(t, folder, slog.New(slog.DiscardHandler))
		names := []string{"eth1", "eth2", "eth3"}
		toldOf(t, s, names...)
		for range rapid.IntRange(1, 20).Draw(t, "moves") {
			before := map[string]string{}
			for _, p := range s.Routes().Peers {
				before[p.Address.Zone()] = p.Address.WithZone("").String()
			}
			name := rapid.SampledFrom(names).Draw(t, "interface")
			links.plug(name, rapid.SampledFrom([]string{"fe80::1", "fe80::2", "fe80::3"}).Draw(t, "neighbour"))
			if rapid.IntRange(0, 4).Draw(t, "again") == 0 {
				toldOf(t, s, names...)
			}
			s.look(context.Background())
			states, _ := s.Sessions()
			has := map[string]string{} // interface, by address
			for _, p := range s.Routes().Peers {
				a, zone := p.Address.WithZone("").String(), p.Address.Zone()
				if has[a] != "" || links.ends[zone] != a || p.Name != "at-"+zone {
					t.Fatalf("%s is behind %s, where %s is, and behind %s", a, zone, links.ends[zone], has[a])
				}
				has[a] = zone
			}
			for zone, a := range links.ends {
				if has[a] == "" {
					t.Fatalf("%s behind %s is nobody's", a, zone)
				}
				if before[zone] == a && has[a] != zone {
					t.Fatalf("%s behind %s is taken by %s", a, zone, has[a])
				}
				if left := strings.Contains(states["at-"+zone], "the link-local address "+a); left == (has[a] == zone) {
					t.Fatalf("%s behind %s, which is behind %s: %q", a, zone, has[a], states["at-"+zone])
				}
			}
		}
	})
}

// What is in the way is logged once, with what to do, after the switch had time to answer; again if it is something else.
func TestAgentSaysOnceWhyNobodyIsFound(t *testing.T) {
	var text bytes.Buffer
	s, links := cabled(t, t.TempDir(), slog.New(slog.NewTextHandler(&text, nil)), bgp.Peer{Address: netip.MustParseAddr("fe80::1%eth1"), RemoteASN: 65001})
	links.errs["eth1"] = fmt.Errorf("interface eth1: open ICMPv6 socket: %w", fs.ErrPermission)
	toldOf(t, s, "eth1", "eth2")
	s.sayUnfound()
	if text.Len() > 0 {
		t.Errorf("it says at once: %s", text.String())
	}
	later := func() string {
		text.Reset()
		for i := range s.unfound {
			s.unfound[i].since = s.unfound[i].since.Add(-saidAfter)
		}
		s.sayUnfound()
		s.signAgain()
		s.sayUnfound()
		return text.String()
	}
	if log := later(); strings.Count(log, "\n") != 2 || !strings.Contains(log, "goes on with the neighbour known last") || !strings.Contains(log, "CAP_NET_RAW") ||
		!strings.Contains(log, "left out") || !strings.Contains(log, "interface=eth2") {
		t.Errorf("it says %s", log)
	}
	if log := later(); log != "" {
		t.Errorf("it says again: %s", log)
	}
	links.errs["eth2"] = fmt.Errorf("interface eth2: %w", ndp.ErrSeveral)
	s.signAgain()
	if log := later(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "spec.peerAddress") {
		t.Errorf("it says %s", log)
	}
}
