// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/k8s/api/balancing/v1beta1"
	"fairlead.io/fairlead/k8s/client"
)

// Shelf reads what is stored of policies and what they are judged by. They are few, and seldom written, so that the API
// server is asked each time: no watch can be behind it then.
type Shelf struct {
	balancing client.Collection[v1beta1.BalancingPolicy, v1beta1.BalancingPolicyList, *v1beta1.BalancingPolicy, *v1beta1.BalancingPolicyList]
	local     client.Collection[v1beta1.LocalRedirectPolicy, v1beta1.LocalRedirectPolicyList, *v1beta1.LocalRedirectPolicy, *v1beta1.LocalRedirectPolicyList]
	nodes     client.Nodes
	slices    client.EndpointSlices
}

// NewShelf makes the ways to what is read. Errors: the API's configuration.
func NewShelf(api *client.API) (*Shelf, error) {
	group, err := api.CustomGroup(v1beta1.GroupVersion(), v1beta1.Kinds()...)
	if err != nil {
		return nil, err
	}
	return &Shelf{
		balancing: client.CollectionOf[v1beta1.BalancingPolicy, v1beta1.BalancingPolicyList](group, "balancingpolicies", ""),
		local:     client.CollectionOf[v1beta1.LocalRedirectPolicy, v1beta1.LocalRedirectPolicyList](group, "localredirectpolicies", ""),
		nodes:     api.Client.CoreV1().Nodes(),
		slices:    api.Client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault),
	}, nil
}

// Look reads what is stored now (Handler.Look). What cannot be read is in Stored.Err, also definitions that are not installed.
func (s *Shelf) Look(ctx context.Context) *Stored {
	out := &Stored{}
	balancing, err := s.balancing.List(ctx, metav1.ListOptions{})
	if err != nil {
		return &Stored{Err: fmt.Errorf("list BalancingPolicies: %w", err)}
	}
	local, err := s.local.List(ctx, metav1.ListOptions{})
	if err != nil {
		return &Stored{Err: fmt.Errorf("list LocalRedirectPolicies: %w", err)}
	}
	nodes, err := s.nodes.List(ctx, metav1.ListOptions{ResourceVersion: "0"}) // they only matter to warnings and proxy addresses
	if err != nil {
		return &Stored{Err: fmt.Errorf("list Nodes: %w", err)}
	}
	of, err := s.slices.List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=kubernetes"})
	if err != nil {
		return &Stored{Err: fmt.Errorf("list EndpointSlices of API servers: %w", err)}
	}
	out.Balancing, out.LocalRedirects, out.Nodes = balancing.Items, local.Items, nodes.Items
	for i := range of.Items {
		out.APIServers = append(out.APIServers, listening(&of.Items[i])...)
	}
	return out
}

// listening are the addresses and TCP ports of a slice.
func listening(s *discoveryv1.EndpointSlice) (out []netip.AddrPort) {
	for _, e := range s.Endpoints {
		for _, text := range e.Addresses {
			address, err := netip.ParseAddr(text)
			if err != nil {
				continue
			}
			for _, p := range s.Ports {
				if p.Port != nil && (p.Protocol == nil || *p.Protocol == corev1.ProtocolTCP) {
					out = append(out, netip.AddrPortFrom(address, uint16(*p.Port)))
				}
			}
		}
	}
	return out
}
