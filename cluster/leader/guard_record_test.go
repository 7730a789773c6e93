// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// The guard is asked about everything that the record holds because a source showed it, by the names of the source.
func TestKnownOfNamesWhatSourcesMustAnswerFor(t *testing.T) {
	g := newGroup(t)
	address := netip.MustParseAddr("192.0.2.1")
	peer := func(name string, port uint16) *fsm.PutPeer {
		return &fsm.PutPeer{Peer: fsm.Peer{Name: fsm.PeerName(name), Address: address, Port: port, ASN: 65001}}
	}
	g.must(
		&fsm.PutService{Service: fsm.Service{ID: "shop/web", UID: "u1", Endpoints: []fsm.Endpoint{{Address: netip.MustParseAddr("10.1.0.1")}}}},
		&fsm.PutService{Service: fsm.Service{ID: "shop/empty", UID: "u2"}},
		&fsm.PutService{Service: fsm.Service{ID: "shop/going", UID: "u3", Deleting: true}},
		&fsm.PutPool{Pool: fsm.Pool{Name: "public", Ranges: []fsm.Range{{From: address, To: address}}}},
		&fsm.PutAdvertisement{Advertisement: fsm.Advertisement{Name: "all"}},
		&fsm.PutL2Advertisement{Advertisement: fsm.L2Advertisement{Name: "lan"}},
		peer("switch", 179), peer(legacyPeerName(world.ID{Namespace: "kube-system", Name: configMapGoBGP}, "a"), 1790),
		&fsm.ObserveView{Source: "kubernetes", Cluster: "c1", Versions: []fsm.KindVersion{{Kind: "Service", Version: 7}}},
		&fsm.PutHold{ID: "service-1", Of: "Service", Subjects: []string{"shop/web uid=u1"}, Why: "many"},
		&fsm.ReleaseHold{ID: "service-1"},
		&fsm.AcceptRewind{Source: "kubernetes"},
	)
	known := KnownOf(g.state.Read(), "kubernetes", PartServices)
	var got []string
	for _, o := range known.Objects {
		got = append(got, strings.TrimSpace(fmt.Sprint(o.Kind, " ", o.ID, " ", o.UID)))
	}
	want := []string{"Service shop/empty u2", "Service shop/web u1", "EndpointSlice shop/web", "IPAddressPool public", "BGPAdvertisement all",
		"L2Advertisement lan", "BGPPeer switch", "ConfigMap kube-system/kube-gobgp-cfg"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if known.Cluster != "c1" || known.Versions[world.KindService] != 7 || !known.RewindAccepted {
		t.Errorf("%+v", known)
	}
	if len(known.Holds) != 1 || !known.Holds[0].Released || known.Holds[0].Kind != world.KindService {
		t.Errorf("holds %+v", known.Holds)
	}
	if other := KnownOf(g.state.Read(), "manifests", PartServices); other.Cluster != "" || len(other.Versions) != 0 {
		t.Errorf("another source is taken for this one: %+v", other)
	}
}

// What may not be acted on is not shown to the plan at all.
func TestAdmitHidesAViewThatIsNone(t *testing.T) {
	w := world.World{Cluster: "c2"}
	v := NewGuard(Limits{}).Judge(0, &w, &Known{Cluster: "c1"})
	if a := v.Admit(&w); a.World != nil || a.MayRemove != nil || a.Complete {
		t.Fatalf("%+v", a)
	}
}
