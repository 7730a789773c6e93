// SPDX-License-Identifier: Apache-2.0

package world

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

// Section 8, row by row.
func TestRedirectIsEffectiveWhereItsConfigSays(t *testing.T) {
	match := &Node{Labels: []KV{{"zone", "a"}}}
	other := &Node{Labels: []KV{{"zone", "b"}}}
	chosen := Selector{Labels: []KV{{"zone", "a"}}}
	for name, c := range map[string]struct {
		r                    Redirect
		onMatch, onOther, on bool
	}{
		"absent":                     {Redirect{Outside: true}, true, true, true},
		"no selector, not out":       {Redirect{}, true, true, false},
		"selector, out":              {Redirect{Nodes: chosen, Outside: true}, true, false, true},
		"selector, not out":          {Redirect{Nodes: chosen}, true, false, false},
		"withdrawn (balancing §2.1)": {Redirect{Disabled: true, Outside: true}, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := [3]bool{c.r.EffectiveOn(match), c.r.EffectiveOn(other), c.r.EffectiveOn(nil)}; got != [3]bool{c.onMatch, c.onOther, c.on} {
				t.Error(got)
			}
		})
	}
}

// Section 4: which tuples a policy captures.
func TestRedirectCapturesClusterAddressesOnPortsThatTheServiceHas(t *testing.T) {
	web := ID{"shop", "web"}
	service := &Service{Meta: Meta{ID: web}, Type: LoadBalancer,
		ClusterIPs: []netip.Addr{addr("10.96.0.7"), addr("2001:db8::7")}, ExternalIPs: []netip.Addr{addr("192.0.2.7")}, Shown: []netip.Addr{addr("192.0.2.8")},
		Ports: []ServicePort{{Name: "http", Protocol: TCP, Port: 80, NodePort: 30080}, {Name: "dns", Protocol: UDP, Port: 53}, {Name: "admin", Protocol: TCP, Port: 81}},
	}
	listed := Redirect{Service: web, Ports: []RedirectPort{{"p1", TCP, 80, 8080}, {"p2", TCP, 443, 8443}}}
	byName := Redirect{Service: web, AllPorts: true, Targets: []TargetPort{{"http", TCP, 8080}, {"other", TCP, 1}, {"any", UDP, 5353}}}
	headless := *service
	headless.Headless, headless.ClusterIPs = true, nil
	for name, c := range map[string]struct {
		r       Redirect
		service *Service
		want    []Capture
		absent  []RedirectPort
	}{
		"by number and protocol, not by name": {listed, service,
			[]Capture{{Tuple{addr("10.96.0.7"), 80, TCP}, 8080}, {Tuple{addr("2001:db8::7"), 80, TCP}, 8080}}, []RedirectPort{{"p2", TCP, 443, 8443}}},
		"all ports, by name or the only one": {byName, service, []Capture{
			{Tuple{addr("10.96.0.7"), 53, UDP}, 5353}, {Tuple{addr("10.96.0.7"), 80, TCP}, 8080},
			{Tuple{addr("2001:db8::7"), 53, UDP}, 5353}, {Tuple{addr("2001:db8::7"), 80, TCP}, 8080},
		}, []RedirectPort{{Name: "admin", Protocol: TCP, Port: 81}}},
		"no Service yet": {listed, nil, nil, listed.Ports},
		"headless":       {listed, &headless, nil, listed.Ports},
		"a virtual address": {Redirect{Address: addr("169.254.77.1"), Ports: []RedirectPort{{"", UDP, 53, 5353}, {"", TCP, 53, 5354}}}, nil,
			[]Capture{{Tuple{addr("169.254.77.1"), 53, TCP}, 5354}, {Tuple{addr("169.254.77.1"), 53, UDP}, 5353}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, absent := c.r.Captures(c.service)
			if !reflect.DeepEqual(got, c.want) || !reflect.DeepEqual(absent, c.absent) {
				t.Errorf("%+v, absent %+v", got, absent)
			}
		})
	}
}

// Section 3: at equal kind the oldest wins, then the name; the next one takes over when it goes; kinds do not meet.
func TestElectionIsWonByTheOldestThenByName(t *testing.T) {
	vip := Tuple{addr("169.254.77.1"), 80, TCP}
	other := Tuple{addr("169.254.77.1"), 443, TCP}
	claims := []Claim{
		{KindBalancingPolicy, Meta{ID: ID{Name: "b"}, Created: 7}, []Tuple{vip}},
		{KindBalancingPolicy, Meta{ID: ID{Name: "a"}, Created: 9}, []Tuple{vip, other}},
		{KindBalancingPolicy, Meta{ID: ID{Name: "c"}, Created: 7}, []Tuple{vip, vip}},
		{KindLocalRedirect, Meta{ID: ID{Name: "z"}, Created: 10}, []Tuple{vip}},
	}
	want := []Election{
		{KindBalancingPolicy, vip, "b", []string{"c", "a"}},
		{KindBalancingPolicy, other, "a", []string{}},
		{KindLocalRedirect, vip, "z", []string{}},
	}
	if got := Elect(claims); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if got := Elect(claims[1:]); got[0].Winner != "c" {
		t.Errorf("after the winner went: %+v", got)
	}
}

func TestPropertyElectionsDoNotDependOnOrder(t *testing.T) {
	tuples := []Tuple{{addr("169.254.77.1"), 80, TCP}, {addr("169.254.77.1"), 80, UDP}, {addr("2001:db8::1"), 80, TCP}}
	testkit.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), 0, 5, rapid.ID[string]).Draw(t, "names")
		var claims []Claim
		for _, name := range names {
			claims = append(claims, Claim{
				Kind:   rapid.SampledFrom([]Kind{KindBalancingPolicy, KindLocalRedirect}).Draw(t, "kind"),
				Policy: Meta{ID: ID{Name: name}, Created: rapid.Uint32Range(0, 2).Draw(t, "created")},
				Tuples: rapid.SliceOfN(rapid.SampledFrom(tuples), 0, 3).Draw(t, "tuples"),
			})
		}
		want := Elect(claims)
		if got := Elect(rapid.Permutation(claims).Draw(t, "order")); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, not %+v", got, want)
		}
		for _, e := range want {
			for _, c := range claims { // by a plainer account: nobody who claims it is older than the winner
				if c.Kind != e.Kind || !slices.Contains(c.Tuples, e.Tuple) {
					continue
				}
				winner := claims[slices.IndexFunc(claims, func(c Claim) bool { return c.Policy.Name == e.Winner })].Policy
				if c.Policy.Created < winner.Created || c.Policy.Created == winner.Created && c.Policy.Name < winner.Name {
					t.Fatalf("%s lost to %s: %+v", c.Policy.Name, e.Winner, claims)
				}
				if c.Policy.Name != e.Winner && !slices.Contains(e.Losers, c.Policy.Name) {
					t.Fatalf("nobody knows of %s: %+v", c.Policy.Name, e)
				}
			}
		}
	})
}
