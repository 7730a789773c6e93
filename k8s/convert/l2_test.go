// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
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
