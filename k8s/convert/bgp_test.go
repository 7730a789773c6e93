// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/api"
	"fairlead.io/fairlead/k8s/convert"
)

// degraded gives the one problem that a value is used with, and fails the test for any other.
func degraded(t *testing.T, field string, problems []world.Problem) world.Problem {
	t.Helper()
	if len(problems) != 1 || problems[0].Severity != world.Degraded || problems[0].Field != field || problems[0].Why == "" || problems[0].Remedy == "" {
		t.Fatalf("problems are %+v, want one that degrades %s", problems, field)
	}
	return problems[0]
}

func TestLowestLocalPreferenceIsRaisedAboveThatOfDemotedMembers(t *testing.T) {
	for asked, want := range map[uint32]uint32{0: 0, 1: 2, 2: 2, 100: 100, 1<<32 - 1: 1<<32 - 1} {
		a, problems := convert.Advertisement(&api.BGPAdvertisement{
			ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: api.BGPAdvertisementSpec{LocalPref: asked},
		})
		if a.LocalPref != want || len(problems) > 0 != (asked != want) {
			t.Errorf("%d is %d, %v", asked, a.LocalPref, problems)
		}
		if asked != want {
			if p := degraded(t, "spec.localPref", problems); !strings.Contains(p.Why, "2") {
				t.Errorf("it is told %s", p.Why)
			}
		}
	}
}

func lasting(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

// As with MetalLB, a keepalive time alone is a third of the hold time.
func TestHoldTimeFollowsKeepaliveTimeAlone(t *testing.T) {
	for keepalive, want := range map[time.Duration]time.Duration{
		0: 0, time.Second: 3 * time.Second, time.Minute: 3 * time.Minute, 21845 * time.Second: 65535 * time.Second,
		21846 * time.Second: 65535 * time.Second, 65535 * time.Second: 65535 * time.Second,
	} {
		p, problems := convert.Peer(neighbour(func(p *api.BGPPeer) { p.Spec.KeepaliveTime = lasting(keepalive) }))
		if p.HoldTime != want || p.KeepaliveTime != keepalive || len(problems) > 0 {
			t.Errorf("keepalive time %s: hold time %s, %v", keepalive, p.HoldTime, problems)
		}
	}
}

// Sessions end when the neighbour is silent, which a hold time of zero asks not to.
func TestHoldTimeOfZeroIsTheDefault(t *testing.T) {
	zero := func(p *api.BGPPeer) { p.Spec.HoldTime = lasting(0) }
	p, problems := convert.Peer(neighbour(zero))
	if degraded(t, "spec.holdTime", problems); p.HoldTime != 0 {
		t.Errorf("hold time %s", p.HoldTime)
	}
	_, problems = convert.Peer(neighbour(func(p *api.BGPPeer) { zero(p); p.Spec.KeepaliveTime = lasting(time.Minute) }))
	if convert.Usable(problems) {
		t.Error("a keepalive time longer than a hold time of zero is used")
	}
}

func TestPasswordsThatCannotSignAreRefused(t *testing.T) {
	for bytes, fits := range map[int]bool{80: true, 81: false} {
		_, problems := convert.Peer(neighbour(func(p *api.BGPPeer) { p.Spec.Password = strings.Repeat("x", bytes) }))
		if convert.Usable(problems) != fits || !fits && problems[0].Field != "spec.password" {
			t.Errorf("%d bytes: %v", bytes, problems)
		}
	}
}

func TestMoreCommunitiesThanFitAreRefused(t *testing.T) {
	for n, fit := range map[int]bool{128: true, 129: false} {
		o := &api.BGPAdvertisement{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		for i := range n {
			o.Spec.Communities = append(o.Spec.Communities, fmt.Sprintf("65000:%d", i))
		}
		if a, problems := convert.Advertisement(o); (a.Fault == "") != fit {
			t.Errorf("%d communities: %v", n, problems)
		}
	}
}

// Were an advertisement with a mistake left out, its addresses would go to every peer, and without communities. So what it is about is kept,
// with its fault, and an object without a name alone is left out.
func TestAnAdvertisementWithAMistakeIsKeptWithItsFault(t *testing.T) {
	number := func(n int32) *int32 { return &n }
	for name, mistake := range map[string]func(*api.BGPAdvertisement){
		"spec.communities[0]":            func(o *api.BGPAdvertisement) { o.Spec.Communities = []string{"65000:70000"} },
		"spec.aggregationLength":         func(o *api.BGPAdvertisement) { o.Spec.AggregationLength = number(33) },
		"spec.aggregationLengthV6":       func(o *api.BGPAdvertisement) { o.Spec.AggregationLengthV6 = number(-1) },
		"spec.weights":                   func(o *api.BGPAdvertisement) { o.Spec.Weights = "pods" },
		"spec.nodeSelectors[0]":          func(o *api.BGPAdvertisement) { o.Spec.NodeSelectors = mistaken },
		"spec.ipAddressPoolSelectors[0]": func(o *api.BGPAdvertisement) { o.Spec.IPAddressPoolSelectors = mistaken },
		"spec.serviceSelectors[0]":       func(o *api.BGPAdvertisement) { o.Spec.ServiceSelectors = mistaken },
		"metadata.annotations":           func(o *api.BGPAdvertisement) { o.Annotations = map[string]string{convert.AnnotationMED: "low"} },
	} {
		o := &api.BGPAdvertisement{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		o.Spec.IPAddressPools, o.Spec.Peers = []string{"p"}, []string{"inside"}
		mistake(o)
		a, problems := convert.Advertisement(o)
		if !convert.Usable(problems) || !strings.HasPrefix(a.Fault, name) || !slices.Equal(a.Pools, o.Spec.IPAddressPools) {
			t.Errorf("%s: of %v the fault is %q, pools %v", name, problems, a.Fault, a.Pools)
		}
	}
	nameless := &api.BGPAdvertisement{}
	if _, problems := convert.Advertisement(nameless); convert.Usable(problems) {
		t.Error("one without a name is used")
	}
}

var mistaken = []metav1.LabelSelector{{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Inn", Values: []string{"gold"}}}}}

// Some networks have their routers at link-local IPv4 addresses (169.254.255.1), which need no interface to be dialled.
func TestNeighboursAreWhereTheyCanBeDialled(t *testing.T) {
	for address, dialled := range map[string]bool{
		"192.0.2.1": true, "169.254.255.1": true, "127.0.0.1": true, "::1": true, "2001:db8::1": true,
		"fe80::1": false, "0.0.0.0": false, "::": false, "224.0.0.5": false, "ff02::5": false, "255.255.255.255": false, "::ffff:255.255.255.255": false,
	} {
		p, problems := convert.Peer(neighbour(func(p *api.BGPPeer) { p.Spec.PeerAddress, p.Spec.EBGPMultiHop = address, true }))
		if convert.Usable(problems) != dialled || p.Address.IsValid() != dialled {
			t.Errorf("%s: %s, %v", address, p.Address, problems)
		}
	}
}

// What a speaker has of its own is asked for where it is its own: the file is named.
func TestWhatSpeakersHaveOfTheirOwnIsToldOf(t *testing.T) {
	for field, ask := range map[string]func(*api.BGPPeerSpec){
		"sourceAddress": func(p *api.BGPPeerSpec) { p.SourceAddress = "192.0.2.9" },
		"routerID":      func(p *api.BGPPeerSpec) { p.RouterID = "192.0.2.9" },
	} {
		for mode, file := range map[string]string{"group": "controller.yaml", "node": "agent.yaml"} {
			_, problems := convert.Peer(neighbour(func(p *api.BGPPeer) { p.Spec.Mode = mode; ask(&p.Spec) }))
			key := map[string]string{"sourceAddress": "bgp.localAddress", "routerID": "bgp.routerID"}[field]
			if p := degraded(t, "spec."+field, problems); !strings.Contains(p.Remedy, key) || !strings.Contains(p.Remedy, file) {
				t.Errorf("%s, mode %s: the remedy is %s", field, mode, p.Remedy)
			}
		}
	}
}

// As with FRR's local-as no-prepend replace-as, which MetalLB writes: the session, and the paths on it, have this AS number of ours alone.
func TestLocalASNIsThatOfTheSession(t *testing.T) {
	p, problems := convert.Peer(neighbour(func(p *api.BGPPeer) { p.Spec.LocalASN = 65010 }))
	if p.OwnASN != 65010 || len(problems) > 0 {
		t.Errorf("AS number %d, %v", p.OwnASN, problems)
	}
	_, problems = convert.Peer(neighbour(func(p *api.BGPPeer) { p.Spec.LocalASN, p.Spec.EBGPMultiHop = p.Spec.PeerASN, true }))
	if convert.Usable(problems) {
		t.Error("multihop within one AS is used")
	}
}
