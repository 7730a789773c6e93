// SPDX-License-Identifier: Apache-2.0

// Package apiserver knows at which addresses the API server answers: the one that the configuration names, and those that
// the Service default/kubernetes leads to.
//
// It promises that the configured one counts from the start, that others count within half a minute, and that what was read
// goes on counting while the server is away. It dials nobody but the server. Start reading at Addresses.Has.
package apiserver

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/k8s/client"
)

const (
	fresh      = 30 * time.Second // how long what was read counts without a look
	readWithin = 2 * time.Second
)

// Edge is what Addresses asks. Both are required.
type Edge struct {
	// Slices lists the EndpointSlices of the Service default/kubernetes.
	Slices func(ctx context.Context) ([]discoveryv1.EndpointSlice, error)
	// Lookup gives the addresses of a name, as net.Resolver.LookupNetIP does.
	Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// EdgeOf asks the API server itself, and this machine's resolver.
func EdgeOf(api *client.API) Edge {
	return Edge{
		Slices: func(ctx context.Context) ([]discoveryv1.EndpointSlice, error) {
			list, err := api.Client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{
				LabelSelector: discoveryv1.LabelServiceName + "=kubernetes",
			})
			if err != nil {
				return nil, err
			}
			return list.Items, nil
		},
		Lookup: net.DefaultResolver.LookupNetIP,
	}
}

// Addresses are those at which an API server answers. Its methods may be called from any goroutine.
type Addresses struct {
	edge Edge
	host string // of the configuration: a name, or an address
	now  func() time.Time

	mu    sync.Mutex
	look  time.Time
	named []netip.Addr // of host
	read  []netip.Addr // of the Service
}

// New makes Addresses of the server that a client's configuration names (rest.Config.Host), by a clock.
func New(server string, edge Edge, now func() time.Time) *Addresses {
	a := &Addresses{edge: edge, host: hostOf(server), now: now}
	if address, err := netip.ParseAddr(a.host); err == nil {
		a.named = []netip.Addr{address}
	}
	return a
}

// hostOf is the host of a URL, or of host:port.
func hostOf(server string) string {
	if u, err := url.Parse(server); err == nil && u.Hostname() != "" {
		return u.Hostname()
	}
	if host, _, err := net.SplitHostPort(server); err == nil {
		return host
	}
	return server
}

// Has tells whether the API server answers at an address, as far as is known. It asks once in half a minute, and within
// the time that ctx has.
func (a *Addresses) Has(ctx context.Context, address netip.Addr) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := a.now(); !now.Before(a.look) {
		a.refresh(ctx)
		a.look = now.Add(fresh)
	}
	for _, list := range [][]netip.Addr{a.named, a.read} {
		for _, has := range list {
			if has.Unmap().WithZone("") == address.Unmap().WithZone("") {
				return true
			}
		}
	}
	return false
}

// refresh reads what can be read; of what cannot, the former answer counts.
func (a *Addresses) refresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	if _, err := netip.ParseAddr(a.host); err != nil && a.host != "" {
		if found, err := a.edge.Lookup(ctx, "ip", a.host); err == nil {
			a.named = found
		}
	}
	slices, err := a.edge.Slices(ctx)
	if err != nil {
		return
	}
	a.read = nil
	for _, s := range slices {
		for _, e := range s.Endpoints {
			for _, text := range e.Addresses {
				if found, err := netip.ParseAddr(text); err == nil {
					a.read = append(a.read, found)
				}
			}
		}
	}
}
