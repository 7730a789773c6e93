// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/sim/kube"
)

// Cluster is what manifests say of one, as far as it plays a part.
type Cluster struct {
	dir        string
	services   []*corev1.Service
	nodes      []*corev1.Node
	namespaces []*corev1.Namespace
	pods       []*corev1.Pod
	workloads  []*workload
	slices     []*discoveryv1.EndpointSlice
	configMaps []*corev1.ConfigMap

	custom []kube.Object // of fairlead.io and metallb.io
	own    bool          // some are of fairlead.io
	// What the product makes of those that are of use.
	pools          []*world.Pool
	peers          []*world.Peer
	advertisements []*world.Advertisement
	communities    []*world.Community

	unusable map[string]string // Services that the product can make nothing of, and why
	unused   []string          // kinds that play no part
	notes    []string          // for people
}

func (c *Cluster) note(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// The largest cluster.
const (
	MaxNodes    = 50
	MaxServices = 200
	maxSwitches = 16
	maxPods     = 2000
)

// wantsIPv6 tells whether any Service asks for IPv6.
func (c *Cluster) wantsIPv6() bool {
	return slices.ContainsFunc(c.services, func(s *corev1.Service) bool {
		return slices.Contains(s.Spec.IPFamilies, corev1.IPv6Protocol) || slices.ContainsFunc(append([]string{s.Spec.LoadBalancerIP}, s.Spec.ExternalIPs...), func(text string) bool {
			a, err := netip.ParseAddr(text)
			return err == nil && !a.Is4()
		})
	})
}

// isAnnounced tells whether a Service is to be reached by addresses of ours, of its own class or not.
func isAnnounced(s *corev1.Service) bool {
	switch s.Spec.Type {
	case corev1.ServiceTypeLoadBalancer:
		return true
	case corev1.ServiceTypeExternalName:
		return false
	}
	return s.Spec.ClusterIP != corev1.ClusterIPNone && len(s.Spec.ExternalIPs) > 0
}

// check refuses what nothing can be told of.
func (c *Cluster) check() error {
	announced := 0
	for _, s := range c.services {
		if isAnnounced(s) {
			announced++
		}
	}
	switch {
	case announced == 0:
		return fmt.Errorf("%s: no Service of type LoadBalancer, or with externalIPs, found among %d Services; name the folder that has those whose addresses you want to know about", c.dir, len(c.services))
	case announced > MaxServices:
		return fmt.Errorf("%s: %d Services of type LoadBalancer, or with externalIPs, of which a world takes %d; keep those you want to know about", c.dir, announced, MaxServices)
	case len(c.nodes) > MaxNodes:
		return fmt.Errorf("%s: %d Nodes, of which a world takes %d; keep some of each kind", c.dir, len(c.nodes), MaxNodes)
	}
	return nil
}
