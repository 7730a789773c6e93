// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"fairlead.io/fairlead/dataplane/bgp"
)

// unserved lists Services that were not served before the mishap, wholly or at some of their addresses, and why.
func (w *scene) unserved() []Unserved {
	out := []Unserved{}
	for _, s := range w.plan.services {
		id := s.Namespace + "/" + s.Name
		if why := w.plan.unusable[id]; why != "" {
			out = append(out, Unserved{id, why})
			continue
		}
		var silent []string
		served := false
		for _, a := range w.given(s) {
			if x := w.account.seen[place{id, a}]; x != nil && len(x.where[before].nodes) > 0 {
				served = true
			} else {
				silent = append(silent, a.String()+": "+w.why(s, a))
			}
		}
		switch {
		case !served && len(silent) == 0:
			out = append(out, Unserved{id, w.unallotted(s)})
		case len(silent) > 0:
			out = append(out, Unserved{id, strings.Join(silent, "; ")})
		}
	}
	return out
}

// given are the addresses that a Service has, those that its user typed first.
func (w *scene) given(s *corev1.Service) (out []netip.Addr) {
	texts := slices.Clone(s.Spec.ExternalIPs)
	if now, ok := w.stage.Kube.Get("Service", s.Namespace, s.Name).(*corev1.Service); ok {
		for _, in := range now.Status.LoadBalancer.Ingress {
			texts = append(texts, in.IP)
		}
	}
	for _, text := range texts {
		if a, err := netip.ParseAddr(text); err == nil && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// why says why an address was not served.
func (w *scene) why(s *corev1.Service, a netip.Addr) string {
	x := w.account.seen[place{s.Namespace + "/" + s.Name, a}]
	exchanged := slices.ContainsFunc(w.plan.cast.Switches, func(at string) bool { return w.plan.exchanges(at, a) })
	switch {
	case exchanged && !w.plan.reachable(a):
		return "the BGPAdvertisements about it name no BGP neighbour that is there; name one in spec.peers, or none for all"
	case !exchanged:
		return fmt.Sprintf("no BGP neighbour exchanges %s with members; add that family to one", bgp.FamilyOf(a))
	case x != nil && len(x.early) > 0:
		return cmp.Or(w.condition(s, a.String()), mostOften(x.early))
	}
	return cmp.Or(w.condition(s, a.String()), "no pod is ready")
}

// unallotted says why a Service has no address.
func (w *scene) unallotted(s *corev1.Service) string {
	why := w.condition(s, "")
	if class := s.Spec.LoadBalancerClass; class != nil && why == "" {
		why = fmt.Sprintf("its loadBalancerClass is %s: it is left to another controller", *class)
	}
	return cmp.Or(why, "it was given no address")
}

// condition is what members say in the status of a Service about something: the first that is not so explains the
// others.
func (w *scene) condition(s *corev1.Service, about string) string {
	now, ok := w.stage.Kube.Get("Service", s.Namespace, s.Name).(*corev1.Service)
	if !ok {
		return ""
	}
	for _, c := range now.Status.Conditions {
		if c.Status == "False" && c.Message != "" && (len(w.given(s)) < 2 || strings.Contains(c.Message, about)) {
			return strings.TrimPrefix(c.Message, about+": ")
		}
	}
	return ""
}
