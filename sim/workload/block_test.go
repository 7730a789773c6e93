// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"fairlead.io/fairlead/sim/stage"
	"fairlead.io/fairlead/sim/workload"
)

// holders lists who asks for the addresses of the block, by name, and for which next hops.
func (b *bench) holders() map[string]string {
	out := map[string]string{}
	for _, s := range b.Kube.Services() {
		if strings.HasPrefix(s.Spec.LoadBalancerIP, "192.0.2.") {
			out[s.Spec.LoadBalancerIP] += s.Name + " " + s.Annotations["fairlead.io/nextHops"]
		}
	}
	return out
}

func TestAddressesOfTheBlockComeAndGo(t *testing.T) {
	b := newBenchOf(1, 30)
	b.Begin(0)
	b.run(t, 10*time.Second)
	if got := b.holders(); len(got) != stage.BlockSize || got["192.0.2.7"] != "block8 all" || len(b.serving("block8")) != 2 {
		t.Errorf("in the beginning: %v", got)
	}
	for _, step := range []struct{ do, during string }{{"vacate", ""}, {"let", "tenant3 "}, {"narrow", "block3 endpoints"}} {
		b.do(step.do, "place", "2", "for", "12s")
		b.run(t, 11*time.Second)
		if got := b.holders()["192.0.2.2"]; got != step.during {
			t.Errorf("%s: %q", step.do, got)
		}
		if step.do == "let" && len(b.serving("tenant3")) != 2 {
			t.Errorf("the tenant is served on %v", b.serving("tenant3"))
		}
		b.run(t, 12*time.Second)
		if got := b.holders(); got["192.0.2.2"] != "block3 all" || len(b.serving("block3")) == 0 {
			t.Errorf("%s, at its end: %v", step.do, got)
		}
	}
	b.do("vacate", "place", "2")
	b.run(t, 30*time.Second)
	if b.Kube.Get("Service", workload.Namespace, "block3") != nil {
		t.Error("not vacated for good")
	}
	b.honest(t)
}

func TestUsersChangeHowLongPrefixesAre(t *testing.T) {
	b := newBenchOf(1, 29)
	says := func() string {
		all := fmt.Sprint(b.Kube.Get("BGPAdvertisement", stage.System, "all"))
		_, rest, _ := strings.Cut(all, "aggregationLength:")
		return rest[:min(2, len(rest))]
	}
	if got := says(); got != "29" {
		t.Errorf("in the beginning: %q", got)
	}
	b.do("aggregate", "bits", "31")
	if got := says(); got != "31" {
		t.Errorf("changed: %q", got)
	}
	b.do("aggregate")
	if got := says(); got != "" {
		t.Errorf("no more: %q", got)
	}
	if _, local := b.Kube.Get("Service", workload.Namespace, "block1").(*corev1.Service); local {
		t.Error("Services come before anybody began")
	}
}
