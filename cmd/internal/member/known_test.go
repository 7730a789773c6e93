// SPDX-License-Identifier: Apache-2.0

package member

import (
	"fmt"
	"net/netip"
	"testing"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// Sources ask by name and namespace for what the record has from Kubernetes, and for nothing that they would ask for in vain.
func TestKnownIsWhatCanBeAskedFor(t *testing.T) {
	state := fsm.New()
	apply := applyTo(t, state)
	address := netip.MustParseAddr("192.0.2.1")
	from := fsm.ObjectRef{Namespace: "metallb-system", UID: "u"}
	apply(&fsm.InitGroup{Group: "g", Format: fsm.NewestFormat},
		&fsm.PutService{Service: fsm.Service{ID: "shop/web", UID: "u", Version: 3}}, &fsm.PutService{Service: fsm.Service{ID: "shop/going", UID: "u", Version: 3, Deleting: true}},
		&fsm.PutNode{ID: "n1", UID: "u", Version: 4}, &fsm.PutNode{ID: "of-a-file"},
		&fsm.PutPool{Pool: fsm.Pool{Name: "public", Ranges: []fsm.Range{{From: address, To: address}}, Version: 5, Object: from}},
		&fsm.PutPeer{Peer: fsm.Peer{Name: "switch", Address: address, ASN: 65001, Version: 6, Object: from}},
		&fsm.PutPeer{Peer: fsm.Peer{Name: "of-an-older-release", Address: address, Port: 1790, ASN: 65001, Version: 6}},
		&fsm.PutPeer{Peer: fsm.Peer{Name: "kube-system/kube-gobgp-cfg#a", Address: address, Port: 1791, ASN: 65001, Version: 9, Object: fsm.ObjectRef{Namespace: "kube-system", UID: "u"}}},
		&fsm.PutNodeConfig{Config: fsm.NodeConfig{Version: 10, Object: fsm.ObjectRef{Namespace: "kube-system", UID: "u"}}},
		&fsm.PutAdvertisement{Advertisement: fsm.Advertisement{Name: "all", Version: 7, Object: from}},
		&fsm.PutL2Advertisement{Advertisement: fsm.L2Advertisement{Name: "lan", Version: 8, Object: from}},
		&fsm.PutPolicy{Policy: fsm.Policy{ID: "BalancingPolicy/db", UID: "u", Version: 11}},
		&fsm.PutPolicy{Policy: fsm.Policy{ID: "LocalRedirectPolicy/dns", UID: "u", Version: 12}}, &fsm.PutPolicy{Policy: fsm.Policy{ID: "LocalRedirectPolicy/of-a-folder"}},
		&fsm.PutL2Advertisement{Advertisement: fsm.L2Advertisement{Name: "of-a-folder", Object: fsm.ObjectRef{Namespace: "metallb-system"}}},
		&fsm.PutDriver{Driver: fsm.Driver{Name: "shop/f5", UID: "d1", URL: "http://f5.example"}},
		&fsm.PutLoadBalancer{ID: "LoadBalancer/shop/lb/l1", Driver: "shop/f5", Info: []fsm.KV{{Key: "id", Value: "1"}}},
		&fsm.PutBinding{ID: "shop/b1", Balancer: "LoadBalancer/shop/lb/l1", Owner: "BackendGroup/shop/web/g1", Address: "10.0.0.1:80", Backend: fsm.Backend{Kind: "Pod", Name: "web-1", UID: "p1", Port: 80, Protocol: "TCP"}},
		&fsm.PutBinding{ID: "shop/b2", Balancer: "LoadBalancer/shop/lb/l1", Owner: "Bind/shop/one/o1", Address: "10.0.0.2:80", Backend: fsm.Backend{Kind: "Pod", Name: "web-2", UID: "p2", Port: 80, Protocol: "TCP"}})
	for kind, want := range map[world.Kind]string{
		world.KindService: "[{shop/web u 3}]", world.KindNode: "[{n1 u 4}]", world.KindPool: "[{metallb-system/public u 5}]",
		world.KindPeer: "[{metallb-system/switch u 6}]", world.KindAdvertisement: "[{metallb-system/all u 7}]",
		world.KindL2Advert: "[{metallb-system/lan u 8}]", world.KindEndpointSlice: "[]",
		world.KindDriver: "[{shop/f5 d1 0}]", world.KindLoadBalancer: "[{shop/lb l1 0}]", world.KindBackendGroup: "[{shop/web g1 0}]", world.KindBind: "[{shop/one o1 0}]",
		world.KindBalancingPolicy: "[{db u 11}]", world.KindLocalRedirect: "[{dns u 12}]",
		world.KindConfigMap: "[{kube-system/kube-gobgp-cfg u 9} {kube-system/kube-iprule-cfg u 10}]",
	} {
		if got := fmt.Sprint(known(state.Read(), kind)); got != want {
			t.Errorf("%s: %s, want %s", kind, got, want)
		}
	}
}
