// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// routedScene is a Service on one node, planned and at rest.
func routedScene(t *testing.T) *scene {
	t.Helper()
	s := newScene(t)
	for _, line := range []string{"node n1 192.0.2.1", "node n2 192.0.2.2", "service web ip=203.0.113.10", "endpoints web n1/10.0.0.1"} {
		s.line(line)
	}
	s.group.settle(s.input())
	return s
}

// K13: an endpoint that stands in two slices, each with ports of its own, is one that answers on the ports of both, as long as it takes
// connections by both: a slice that says that it is gone adds nothing.
func TestPlanMergesAnEndpointThatStandsInTwoSlices(t *testing.T) {
	s := routedScene(t)
	other := *s.world.EndpointSlices[0]
	other.Name, other.Ports = "web-other", []world.EndpointPort{{Name: "p443", Protocol: world.TCP, Port: 8443}}
	other.Endpoints = slices.Clone(other.Endpoints)
	for _, gone := range []bool{false, true} {
		other.Endpoints[0].Ready, other.Endpoints[0].Serving, other.Endpoints[0].Terminating = !gone, !gone, gone
		for range 2 { // whichever slice comes first
			s.world.EndpointSlices = []*world.EndpointSlice{s.world.EndpointSlices[0], &other}
			s.group.settle(s.input())
			web, _ := fsm.Get[*fsm.Service](s.group.state.Read(), fsm.TableServices, "default/web")
			if want := map[bool]int{false: 2, true: 1}[gone]; len(web.Endpoints) != 1 || len(web.Endpoints[0].Ports()) != want {
				t.Fatalf("gone %t: endpoints %+v, want one with %d ports", gone, web.Endpoints, want)
			}
			if e := web.Endpoints[0]; !e.Ready || !e.Serving || e.Terminating {
				t.Fatalf("endpoint %+v, want it ready", e)
			}
			other.Name, s.world.EndpointSlices[0].Name = s.world.EndpointSlices[0].Name, other.Name
		}
	}
}

// Whoever left the group may have open sessions still: its marks count until no switch can hold its paths.
func TestPlanForgetsServersOnlyOnceTheyAreExcused(t *testing.T) {
	s := routedScene(t)
	for _, m := range []string{"m1", "m2", "m3"} {
		s.report(t, "announced", m, s.group.state.Read())
	}
	in := s.input()
	in.Servers, in.Excused = []fsm.ServerID{"m1"}, []fsm.ServerID{"m2"}
	if lines := s.group.settle(in); !slices.Equal(lines, []string{"RemoveMember m2"}) {
		t.Errorf("planned %v, want only m2 to be forgotten", lines)
	}
	in.Servers, in.Excused = nil, []fsm.ServerID{"m3"}
	if lines := s.group.settle(in); len(lines) > 0 {
		t.Errorf("planned %v without knowing the configuration", lines)
	}
}

// Up to where a source was acted on is committed with what was done, and never alone.
func TestPlanObservesAViewOnlyBesideOtherCommands(t *testing.T) {
	s := routedScene(t)
	at := func(version uint64) []fsm.Proposal {
		in := s.input()
		for i := range in.Views[0].World.Kinds {
			in.Views[0].World.Kinds[i].Version = version
		}
		in.Record = s.group.state.Read()
		return all(Plan(in))
	}
	if proposals := at(7); len(proposals) > 0 {
		t.Errorf("%d proposals for a version alone, the first %T", len(proposals), proposals[0].Command)
	}
	s.line("node n3 192.0.2.3")
	proposals := at(7)
	if len(proposals) != 2 {
		t.Fatalf("%d proposals, want two", len(proposals))
	}
	if o, ok := proposals[0].Command.(*fsm.ObserveView); !ok || len(o.Versions) != len(world.Kinds()) || o.Versions[0].Version != 7 {
		t.Errorf("first %+v, want up to where the source was acted on", proposals[0].Command)
	}
}

// Every proposal says who asks, why and when.
func TestPlanSaysWhoAndWhy(t *testing.T) {
	s := newScene(t)
	for _, line := range []string{"node n1 192.0.2.1", "pool p 203.0.113.1-203.0.113.2", "service web", "endpoints web n1/10.0.0.1"} {
		s.line(line)
	}
	in := s.input()
	in.Record = s.group.state.Read()
	for _, p := range all(Plan(in)) {
		if p.Actor == "" || p.Reason == "" || p.AtUnixMilli != in.Now.UnixMilli() {
			t.Errorf("%T: actor %q, reason %q, at %d", p.Command, p.Actor, p.Reason, p.AtUnixMilli)
		}
	}
}

// Who may not share because of a namespace is told what to do about it.
func TestPlanNamesConsentAcrossNamespaces(t *testing.T) {
	s := newScene(t)
	s.line("pool p 203.0.113.1-203.0.113.2")
	s.line("service a request=203.0.113.1 share=default/k port=80 created=1")
	s.line("service b request=203.0.113.1 share=shop/k port=443 created=2")
	s.world.Services[1].Namespace = "shop"
	if lines := strings.Join(s.group.settle(s.input()), "\n"); !strings.Contains(lines, "of another namespace (both have to name both namespaces in fairlead.io/sharing-cross-namespace") {
		t.Error(lines)
	}
}

// What a manifest leaves out is not left to chance: a restart time alone would be plain graceful restart to members.
func TestPeersAreRecordedWithWhatTheirRestartMeans(t *testing.T) {
	for _, c := range []struct {
		r              world.Restart
		none           bool
		restart, stale time.Duration
	}{
		{r: world.Restart{Mode: world.RestartLongLived}},
		{r: world.Restart{Mode: world.RestartLongLived, StaleTime: time.Hour}, stale: time.Hour},
		{r: world.Restart{Mode: world.RestartLongLived, Time: 9 * time.Second}, restart: 9 * time.Second, stale: 10 * time.Minute},
		{r: world.Restart{Mode: world.RestartPlain}, restart: 2 * time.Minute},
		{r: world.Restart{Mode: world.RestartPlain, Time: 9 * time.Second}, restart: 9 * time.Second},
		{r: world.Restart{Mode: world.RestartNone}, none: true},
	} {
		p, why := peerOf(&world.Peer{Meta: world.Meta{ID: world.ID{Name: "p"}}, Address: netip.MustParseAddr("2001:db8::1"), ASN: 1, OneFamily: true, Restart: c.r})
		if why != "" || p.NoRestart != c.none || p.RestartTime != c.restart || p.StaleTime != c.stale || p.IPv4 || !p.IPv6 {
			t.Errorf("%+v is %+v %s", c, p, why)
		}
	}
}

// Next hops are nodes that some advertisement about the address chooses. What is chosen changes no route that it is not about,
// and nothing is withdrawn before another node may be announced.
func TestPlanHasAdvertisementsChooseNextHops(t *testing.T) {
	s := routedScene(t)
	s.line("endpoints other n1/10.0.0.3 n2/10.0.0.4")
	s.line("pool p 203.0.113.64-203.0.113.65")
	s.line("service other request=203.0.113.64")
	s.group.settle(s.input())
	s.world.Pools[0].Labels = []world.KV{{Key: "tier", Value: "front"}}
	for i, zone := range []string{"a", "b"} {
		s.world.Nodes[i].Labels = []world.KV{{Key: "zone", Value: zone}}
	}
	s.line("advertisement ad")
	ad := s.world.Advertisements[0]
	choose := func(key, value string) []world.Selector {
		return []world.Selector{{Requirements: []world.Requirement{{Key: key, Operator: world.In, Values: []string{value}}}}}
	}
	ad.PoolSelectors, ad.NodeSelectors, ad.MED = choose("tier", "front"), choose("zone", "a"), 7
	ad.Communities = []string{"large:65000:1:2", "no-export"}
	if lines := s.group.settle(s.input()); !slices.Equal(lines, []string{"PutAdvertisement ad communities=[ffffff01]", "SetRoute 203.0.113.64/32 via n1=192.0.2.1", "FinishWithdrawal 203.0.113.64/32 via n2 excused=[]"}) {
		t.Errorf("planned %q", lines)
	}
	have, _ := fsm.Get[*fsm.Advertisement](s.group.state.Read(), fsm.TableAdvertisements, "ad")
	if !slices.Equal(have.Pools, []fsm.PoolName{"p"}) || !slices.Equal(have.Terms.Nodes, []fsm.NodeID{"n1"}) || have.Terms.MED != 7 ||
		!slices.Equal(have.Terms.LargeCommunities, []fsm.LargeCommunity{{Global: 65000, Local1: 1, Local2: 2}}) {
		t.Errorf("recorded %+v", have)
	}
	pools := s.world.Pools
	s.world.Pools, s.kept["pool p"] = nil, true
	if lines := s.group.settle(s.input()); len(lines) != 0 {
		t.Errorf("planned %q for a pool that is absent without evidence", lines)
	}
	s.world.Pools, s.kept["pool p"] = pools, false
	ad.PoolSelectors = choose("tier", "back")
	if lines := s.group.settle(s.input()); len(lines) == 0 || lines[0] != "DeleteAdvertisement ad" {
		t.Errorf("planned %q for an advertisement that is about no address", lines)
	}
}

// Where no agent steers, nobody acknowledges anything: an address in the place of another one waits for being routed alone.
func TestPlanReplacesAnAddressThatNoAgentCarriesOut(t *testing.T) {
	s := newScene(t)
	settings := s.group.state.Read().Group().Settings
	settings.Unsteered = true
	s.group.must(&fsm.PutSettings{Settings: settings})
	for _, line := range []string{"node n1 192.0.2.1", "service web ip=203.0.113.10", "endpoints web n1/10.0.0.1"} {
		s.line(line)
	}
	s.group.settle(s.input())
	s.line("service web ip=203.0.113.11")
	lines := s.group.settle(s.input())
	made, broken := slices.Index(lines, "SetRoute 203.0.113.11/32 via n1=192.0.2.1"), slices.Index(lines, "SetRoute 203.0.113.10/32 via")
	if made < 0 || broken < made {
		t.Errorf("planned %q, want the new route first", lines)
	}
}

// A pool that labels chose is removed while a Service has an address of it: that is announced as before, and not as if no advertisement were
// about it, to every peer and by every node.
func TestAddressesOfAPoolThatIsGoneAreAnnouncedAsBefore(t *testing.T) {
	s := newScene(t)
	s.group.t = t
	s.line("pool lan 203.0.113.1-203.0.113.9")
	s.line("advertisement few")
	s.line("service web")
	s.world.Pools[0].Labels = []world.KV{{Key: "tier", Value: "front"}}
	s.world.Advertisements[0].PoolSelectors = []world.Selector{{Labels: []world.KV{{Key: "tier", Value: "front"}}}}
	pools := func() (out []fsm.PoolName) {
		s.group.settle(s.input())
		for _, ad := range fsm.List[*fsm.Advertisement](s.group.state.Read(), fsm.TableAdvertisements) {
			out = append(out, ad.Pools...)
		}
		return out
	}
	if got := pools(); !slices.Equal(got, []fsm.PoolName{"lan"}) {
		t.Fatal(got)
	}
	s.remove("pool", "lan")
	if got := pools(); !slices.Equal(got, []fsm.PoolName{"lan"}) {
		t.Errorf("while web has an address of it: %v", got)
	}
	s.remove("service", "web")
	pools()
	if got := pools(); len(got) > 0 {
		t.Errorf("after web is gone: %v", got)
	}
}
