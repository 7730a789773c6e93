// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

const asn = 65000

var (
	prefixes = []string{"203.0.113.1/32", "203.0.113.2/32", "2001:db8:e1::1/128"}
	hops4    = []string{"198.51.100.1", "198.51.100.2", "192.0.2.1"} // two with equal last octets
	hops6    = []string{"2001:db8::1", "2001:db8::2"}
	switches = []string{"192.0.2.101", "192.0.2.102", "2001:db8::101"}
)

func genPath() *rapid.Generator[Path] {
	return rapid.Custom(func(t *rapid.T) Path {
		p := Path{Prefix: netip.MustParsePrefix(rapid.SampledFrom(prefixes).Draw(t, "prefix"))}
		hops := hops4
		if p.Prefix.Addr().Is6() {
			hops = hops6
		}
		p.NextHop = netip.MustParseAddr(rapid.SampledFrom(hops).Draw(t, "next hop"))
		p.MED = rapid.SampledFrom([]uint32{0, 0, 5}).Draw(t, "med")
		p.Communities = rapid.SampledFrom([][]Community{nil, {1}, {1, 2}, {2, 1}}).Draw(t, "communities")
		return p
	})
}

func genPeer() *rapid.Generator[Peer] {
	return rapid.Custom(func(t *rapid.T) Peer {
		return Peer{
			Name:         rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"),
			Address:      netip.MustParseAddr(rapid.SampledFrom(switches).Draw(t, "switch")),
			RemoteASN:    rapid.SampledFrom([]uint32{asn, 65001}).Draw(t, "asn"),
			ConnectRetry: rapid.SampledFrom([]time.Duration{0, time.Second, 5 * time.Second}).Draw(t, "retry"),
			HoldTime:     rapid.SampledFrom([]time.Duration{0, 9 * time.Second}).Draw(t, "hold"),
			Password:     rapid.SampledFrom([]Secret{"", "x"}).Draw(t, "password"),
			Demoted:      rapid.Bool().Draw(t, "demoted"),
		}
	})
}

func genDesired() *rapid.Generator[Desired] {
	return rapid.Custom(func(t *rapid.T) Desired {
		paths := rapid.SliceOfNDistinct(genPath(), 0, 6, func(p Path) string { return p.String() })
		peers := rapid.SliceOfNDistinct(genPeer(), 0, 3, func(p Peer) netip.Addr { return p.Address })
		return Desired{Paths: NewPaths(paths.Draw(t, "paths")...), Peers: peers.Draw(t, "peers"), Demoted: rapid.Bool().Draw(t, "demoted")}
	})
}

// table is a speaker as simple as can be. It checks what a switch would suffer from while steps are done.
type table struct {
	t        *rapid.T
	paths    map[pathKey]Path
	peers    map[netip.Addr]Peer
	demoted  map[netip.Addr]bool
	bounced  []netip.Addr
	complete bool // what is desired of paths is there
}

func newTable(t *rapid.T) *table {
	return &table{t: t, paths: map[pathKey]Path{}, peers: map[netip.Addr]Peer{}, demoted: map[netip.Addr]bool{}}
}

func (s *table) observed() Observed {
	var o Observed
	for _, p := range s.paths {
		o.Paths = append(o.Paths, p)
	}
	for _, p := range s.peers {
		p.Name, p.Demoted = "", false
		o.Peers = append(o.Peers, p)
	}
	for a := range s.demoted {
		o.Demoted = append(o.Demoted, a)
	}
	return o
}

func (s *table) hops() map[netip.Prefix]map[netip.Addr]bool {
	out := map[netip.Prefix]map[netip.Addr]bool{}
	for _, p := range s.paths {
		if out[p.Prefix] == nil {
			out[p.Prefix] = map[netip.Addr]bool{}
		}
		out[p.Prefix][p.NextHop] = true
	}
	return out
}

func (s *table) do(step Step) {
	switch step.Action {
	case SetDemoted:
		s.demoted = map[netip.Addr]bool{}
		for _, a := range step.Demoted {
			s.demoted[a] = true
		}
	case AddPath:
		s.paths[step.Path.key()] = step.Path
	case RemovePath:
		if _, ok := s.paths[step.Path.key()]; !ok {
			s.t.Fatalf("%s removed, and is not there", step.Path)
		}
		delete(s.paths, step.Path.key())
	case AddPeer:
		if _, ok := s.peers[step.Peer.Address]; ok {
			s.t.Fatalf("peer %s added twice", step.Peer.Address)
		}
		if !s.complete {
			s.t.Fatalf("peer %s opened onto a table that is still loading", step.Peer.Address)
		}
		s.peers[step.Peer.Address] = *step.Peer
	case TunePeer, RestartPeer:
		if _, ok := s.peers[step.Peer.Address]; !ok {
			s.t.Fatalf("peer %s changed, and is not there", step.Peer.Address)
		}
		s.peers[step.Peer.Address] = *step.Peer
		if step.Action == RestartPeer {
			s.bounced = append(s.bounced, step.Peer.Address)
		}
	case RemovePeer:
		delete(s.peers, step.Peer.Address)
		s.bounced = append(s.bounced, step.Peer.Address)
	}
}

// However a speaker got where it is, and wherever the steps were broken off before: the plan leads to what is desired,
// no next hop that stays is ever missing, nobody is seen at full rank who is demoted before and after, and only those
// sessions are touched that must be.
func TestPropertyPlanLeadsToDesiredWithoutGap(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		s := newTable(t)
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			d := genDesired().Draw(t, "desired")
			walk(t, s, d, rapid.IntRange(0, 30).Draw(t, "break off after"))
			walk(t, s, d, -1)
			checkReached(t, s, d)
		}
	})
}

// walk does up to n steps of the plan towards d, all if n is negative.
func walk(t *rapid.T, s *table, d Desired, n int) {
	steps, err := Plan(asn, d, s.observed())
	if err != nil {
		t.Fatal(err)
	}
	want, _ := d.Normal(asn)
	stay, prefixesBefore := s.hops(), s.hops()
	target := newTable(t)
	for p := range want.Paths.All() {
		target.paths[p.key()] = p
	}
	for p, hops := range stay {
		for h := range hops {
			if !target.hops()[p][h] {
				delete(hops, h)
			}
		}
	}
	before := map[netip.Addr]Peer{}
	demotedBefore := map[netip.Addr]bool{}
	for a, p := range s.peers {
		before[a] = p
		demotedBefore[a] = s.demoted[a]
	}
	for i, step := range steps {
		if i == n {
			return
		}
		s.complete = reflect.DeepEqual(s.hops(), target.hops())
		s.bounced = nil
		s.do(step)
		for p, hops := range stay {
			for h := range hops {
				if !s.hops()[p][h] {
					t.Fatalf("step %d (%s) left %s without %s", i, step.Action, p, h)
				}
			}
		}
		for p := range prefixesBefore {
			if len(target.hops()[p]) > 0 && len(s.hops()[p]) == 0 {
				t.Fatalf("step %d (%s) left nothing to %s", i, step.Action, p)
			}
		}
		for _, p := range want.Peers {
			if demotedBefore[p.Address] && !s.demoted[p.Address] && !reflect.DeepEqual(s.paths, target.paths) {
				t.Fatalf("step %d (%s) gave stale paths their rank at %s", i, step.Action, p.Address)
			}
			if old, ok := before[p.Address]; ok && demotedBefore[p.Address] && p.Demoted && !s.demoted[p.Address] {
				t.Fatalf("step %d (%s) showed %s our paths at full rank", i, step.Action, old.Address)
			}
		}
		for _, a := range s.bounced {
			i := indexPeer(want.Peers, a)
			if i >= 0 && sessionText(want.Peers[i]) == sessionText(before[a]) {
				t.Fatalf("the session with %s was touched for nothing", a)
			}
		}
	}
}

// sessionText spells out what the two sides of a session agree on, without using the code under test.
func sessionText(p Peer) string {
	p.Name, p.Demoted, p.ConnectRetry = "", false, 0
	return fmt.Sprintf("%+v%s", p, string(p.Password))
}

func checkReached(t *rapid.T, s *table, d Desired) {
	want := map[string]bool{}
	for p := range d.Paths.All() {
		c := slices.Clone(p.Communities)
		slices.Sort(c)
		want[fmt.Sprint(p.Prefix, p.NextHop, p.MED, c)] = true
	}
	got := map[string]bool{}
	for _, p := range s.paths {
		got[fmt.Sprint(p.Prefix, p.NextHop, p.MED, p.Communities)] = true
	}
	if !reflect.DeepEqual(got, want) || len(s.paths) != d.Paths.Len() {
		t.Fatalf("paths are %v, want %v", got, want)
	}
	if len(s.peers) != len(d.Peers) {
		t.Fatalf("peers are %v, want %v", s.peers, d.Peers)
	}
	for _, p := range d.Peers {
		have, ok := s.peers[p.Address]
		if !ok || have.RemoteASN != p.RemoteASN || have.Password != p.Password {
			t.Fatalf("peer %s is %+v, want %+v", p.Address, have, p)
		}
		if s.demoted[p.Address] != (p.Demoted || d.Demoted) {
			t.Fatalf("peer %s demoted: %t", p.Address, s.demoted[p.Address])
		}
	}
	if steps, err := Plan(asn, d, s.observed()); len(steps) > 0 || err != nil {
		t.Fatalf("nothing is to be done, and the plan is %v, %v", steps, err)
	}
}

func TestInvalidPartsAreLeftOutAndNothingElse(t *testing.T) {
	good := Path{Prefix: netip.MustParsePrefix("203.0.113.1/32"), NextHop: netip.MustParseAddr("198.51.100.1")}
	bad := good
	bad.NextHop = netip.MustParseAddr("2001:db8::1")
	peer := Peer{Name: "tor1", Address: netip.MustParseAddr("192.0.2.101"), RemoteASN: 65001}
	steps, err := Plan(asn, Desired{Paths: NewPaths(good), Peers: []Peer{peer}}, Observed{})
	if err != nil || len(steps) != 2 {
		t.Fatalf("%v, %v", steps, err)
	}
	broken := peer
	broken.HoldTime = time.Second
	observed := Observed{Peers: []Peer{peer.Normal(asn)}}
	steps, err = Plan(asn, Desired{Paths: NewPaths(bad, good), Peers: []Peer{broken}}, observed)
	if !errors.Is(err, ErrInvalid) || len(steps) != 1 || steps[0].Action != AddPath || !steps[0].Path.Equal(AssignPathIDs([]Path{good})[0]) {
		t.Errorf("steps %v, error %v", steps, err)
	}
	const want = "path 203.0.113.1/32 via 2001:db8::1: invalid: next hop of another address family\n" +
		"peer tor1 (192.0.2.101): invalid: hold time 1s: must be from 3s to 18h12m15s"
	if err.Error() != want {
		t.Errorf("error is\n%v\nwant\n%s", err, want)
	}
}

func TestFaultsAreNamed(t *testing.T) {
	path := func(change func(*Path)) Desired {
		p := Path{Prefix: netip.MustParsePrefix("203.0.113.1/32"), NextHop: netip.MustParseAddr("198.51.100.1")}
		change(&p)
		return Desired{Paths: NewPaths(p)}
	}
	peer := func(change func(*Peer)) Desired {
		p := Peer{Name: "tor1", Address: netip.MustParseAddr("192.0.2.101"), RemoteASN: 65001}
		change(&p)
		return Desired{Peers: []Peer{p}}
	}
	for want, d := range map[string]Desired{
		"no prefix":                   path(func(p *Path) { p.Prefix = netip.Prefix{} }),
		"write 203.0.113.0/24":        path(func(p *Path) { p.Prefix = netip.MustParsePrefix("203.0.113.1/24") }),
		"no next hop":                 path(func(p *Path) { p.NextHop = netip.Addr{} }),
		"no unicast address":          path(func(p *Path) { p.NextHop = netip.MustParseAddr("0.0.0.0") }),
		"MED 1000000000: must be":     path(func(p *Path) { p.MED = DemotionMED }),
		"local preference 1: must be": path(func(p *Path) { p.LocalPref = 1 }),
		"129 communities: at most":    path(func(p *Path) { p.Communities = make([]Community, 129); number(p.Communities) }),
		"unknown origin":              path(func(p *Path) { p.Origin = 3 }),
		"given twice": {Paths: NewPaths(
			slices.Concat(slices.Collect(path(func(*Path) {}).Paths.All()), slices.Collect(path(func(p *Path) { p.MED = 1 }).Paths.All()))...,
		)},
		"no address":                 peer(func(p *Peer) { p.Address = netip.Addr{} }),
		"no AS number":               peer(func(p *Peer) { p.RemoteASN = 0 }),
		"of another address family":  peer(func(p *Peer) { p.LocalAddress = netip.MustParseAddr("2001:db8::1") }),
		"local address equals":       peer(func(p *Peer) { p.LocalAddress = p.Address }),
		"multihop set for a peer":    peer(func(p *Peer) { p.RemoteASN, p.EBGPMultihop = asn, 2 }),
		"keepalive 31s: must be":     peer(func(p *Peer) { p.Keepalive = 31 * time.Second }),
		"restart time 1.5s: must be": peer(func(p *Peer) { p.Restart.RestartTime = 1500 * time.Millisecond }),
		"stale time":                 peer(func(p *Peer) { p.Restart.StaleTime = 1 << 24 * time.Second }),
		"password of 81 bytes":       peer(func(p *Peer) { p.Password = Secret(make([]byte, 81)) }),
		"address is that of peer tor1": {Peers: []Peer{
			peer(func(*Peer) {}).Peers[0], peer(func(p *Peer) { p.Name = "tor2" }).Peers[0],
		}},
	} {
		t.Run(want, func(t *testing.T) {
			_, err := d.Normal(asn)
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func number(c []Community) {
	for i := range c {
		c[i] = Community(i)
	}
}

func TestOverfullNamesPrefixesThatPeersDoNotSeeWhole(t *testing.T) {
	d := Desired{Peers: []Peer{{Address: netip.MustParseAddr("192.0.2.101"), RemoteASN: 65001, SendMax: 2}}}
	for _, h := range hops4 {
		d.Paths = NewPaths(append(slices.Collect(d.Paths.All()), Path{Prefix: netip.MustParsePrefix(prefixes[0]), NextHop: netip.MustParseAddr(h)})...)
	}
	d.Paths = NewPaths(append(slices.Collect(d.Paths.All()), Path{Prefix: netip.MustParsePrefix(prefixes[1]), NextHop: netip.MustParseAddr(hops4[0])})...)
	if got := d.Overfull(); !reflect.DeepEqual(got, map[netip.Prefix]int{netip.MustParsePrefix(prefixes[0]): 3}) {
		t.Errorf("overfull: %v", got)
	}
	d.Peers[0].SendMax = 0 // the default
	if got := d.Overfull(); len(got) > 0 {
		t.Errorf("overfull: %v", got)
	}
}
