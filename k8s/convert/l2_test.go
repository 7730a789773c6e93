// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/k8s/api"
	"fairlead.io/fairlead/k8s/convert"
)

// onSegment is an L2Advertisement of all pools, with a change.
func onSegment(change func(*api.L2AdvertisementSpec)) *api.L2Advertisement {
	o := &api.L2Advertisement{ObjectMeta: metav1.ObjectMeta{Name: "lan"}}
	change(&o.Spec)
	return o
}

var gold = metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}

// Whoever asks for some Services is not answered for with all.
func TestSegmentsOfSomeServicesAreRefused(t *testing.T) {
	_, problems := convert.L2Advertisement(onSegment(func(s *api.L2AdvertisementSpec) { s.ServiceSelectors = []metav1.LabelSelector{gold} }))
	if convert.Usable(problems) || len(problems) != 1 || problems[0].Field != "spec.serviceSelectors" || problems[0].Remedy == "" {
		t.Errorf("problems are %+v", problems)
	}
}

func TestPreferredNodesAreToldOf(t *testing.T) {
	_, problems := convert.L2Advertisement(onSegment(func(s *api.L2AdvertisementSpec) {
		s.PreferredNodeSelectors = []api.PreferredNodeSelector{{Weight: 100, Preference: gold}}
	}))
	degraded(t, "spec.preferredNodeSelectors", problems)
}

// Names that no interface has, and patterns, are told of with their place; the advertisement is used as it is. Those of interfaces are not.
func TestNamesThatNoInterfaceHasAreToldOf(t *testing.T) {
	for name, told := range map[string]bool{
		"eth0": false, "bond0.200": false, "br-lan": false, "enp3s0f1np1": false, "wlan_5": false, "fifteen-bytes-0": false,
		"eth*": true, "eth[01]": true, "^eth.*$": true, "": true, "..": true, "sixteen-bytes--0": true, "eth0 ": true, "eth0,eth1": false, "a/b": true, "eth0:1": true,
	} {
		a, problems := convert.L2Advertisement(onSegment(func(s *api.L2AdvertisementSpec) { s.Interfaces = []string{"lo", name} }))
		if !slices.Equal(a.Interfaces, []string{"lo", name}) {
			t.Errorf("%q: interfaces %q", name, a.Interfaces)
		}
		if told {
			degraded(t, "spec.interfaces[1]", problems)
		} else if len(problems) > 0 {
			t.Errorf("%q: %v", name, problems)
		}
	}
}
