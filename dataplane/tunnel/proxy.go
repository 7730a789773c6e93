// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"fmt"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/api/desired"
)

// Services are what a host's proxy ports lead to, as package nat serves it at the host's own tunnel addresses: a port to ready pods of
// this host; else, in the moment in which clients still come here, to ready ones elsewhere; else to those that run. None for a host
// without a tunnel.
func Services(s desired.State, host string) (out []*desired.Service) {
	own := s.OwnTunnel(host)
	if own == nil {
		return nil
	}
	taken := map[desired.Port]bool{} // two policies may lead one port to the same pods
	for _, p := range s.Proxies() {
		service := serviceOf(p, host, own.Addresses)
		service.Frontends = slices.DeleteFunc(service.Frontends, func(f desired.Frontend) bool {
			was := taken[f.Port]
			taken[f.Port] = true
			return was
		})
		if len(service.Frontends) > 0 {
			out = append(out, service)
		}
	}
	return out
}

// serviceOf has a frontend for each proxy port, and endpoints for the pods that are to be had there.
func serviceOf(p *desired.Proxy, host string, addresses []netip.Addr) *desired.Service {
	service := &desired.Service{Name: p.Name, Addresses: addresses}
	type target struct {
		pod  desired.ProxiedPod
		port uint16
	}
	targets := map[desired.Port][]target{}
	for _, pod := range p.Pods {
		for _, port := range pod.Ports {
			targets[port.Port] = append(targets[port.Port], target{pod, port.Target})
		}
	}
	ports := make([]desired.Port, 0, len(targets))
	for port := range targets {
		ports = append(ports, port)
	}
	slices.SortFunc(ports, func(a, b desired.Port) int {
		return (int(a.Protocol)<<16 | int(a.Number)) - (int(b.Protocol)<<16 | int(b.Number))
	})
	rank := func(t target) int {
		switch local := t.pod.Node == host; {
		case local && t.pod.Ready:
			return 0
		case t.pod.Ready:
			return 1
		case local:
			return 2
		}
		return 3
	}
	for _, port := range ports {
		name := fmt.Sprintf("%d-%d", port.Protocol, port.Number)
		service.Frontends = append(service.Frontends, desired.Frontend{Name: name, Port: port})
		best := map[bool]int{} // of each family, by whether it is IPv6
		for _, t := range targets[port] {
			six := t.pod.Address.Is6()
			if now, there := best[six]; !there || rank(t) < now {
				best[six] = rank(t)
			}
		}
		for _, t := range targets[port] {
			if rank(t) != best[t.pod.Address.Is6()] {
				continue
			}
			service.Endpoints = append(service.Endpoints, desired.Endpoint{
				Address: t.pod.Address, Node: t.pod.Node, Ready: true, Serving: true,
				Ports: []desired.EndpointPort{{Name: name, Port: desired.Port{Protocol: port.Protocol, Number: t.port}}},
			})
		}
	}
	return service
}
