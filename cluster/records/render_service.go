// SPDX-License-Identifier: Apache-2.0

package records

import (
	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/fsm"
)

func (r *renderer) service(s *fsm.Service) any {
	d := records.Service{
		Name: string(s.ID), UID: s.UID, State: records.ServiceActive,
		Requested: texts(s.Requested()), ExternalIPs: texts(s.External()),
		Ports: each(s.Frontends, func(f fsm.Frontend) records.ServicePort {
			return records.ServicePort{Name: f.Name, Protocol: f.Port.Protocol.String(), Port: f.Port.Number, NodePort: f.NodePort}
		}),
		NextHopsFrom:    "endpoints",
		PublishNotReady: s.PublishNotReady, SharingKey: s.SharingKey(),
		Endpoints: each(s.Endpoints, endpoint), Advertisements: words(s.Advertisements()), Version: s.Version,
		Addresses: each(r.view.Addresses(s.ID), r.serviceAddress),
	}
	d.NodePortFamilies = []string{}
	if s.NodePortsIPv4 {
		d.NodePortFamilies = append(d.NodePortFamilies, "IPv4")
	}
	if s.NodePortsIPv6 {
		d.NodePortFamilies = append(d.NodePortFamilies, "IPv6")
	}
	d.ClusterIPs, d.ByOthers = texts(s.ClusterIPs), texts(s.ByOthers())
	d.TrafficPolicy, d.InternalTrafficPolicy = trafficPolicy(s.Local), trafficPolicy(s.InternalLocal)
	if s.AllNodes {
		d.NextHopsFrom = "all-nodes"
	}
	if s.Pending.Code != "" {
		d.State, d.Pending = records.ServicePending, &records.Pending{Code: s.Pending.Code, Text: s.Pending.Text}
	}
	if s.Deleting {
		d.State = records.ServiceDeleting
	}
	for i, e := range s.Endpoints {
		if e.Ready {
			d.ReadyEndpoints++
		}
		for _, v := range s.Verdicts() {
			if v.Address == e.Address {
				d.Endpoints[i].Verdict = &records.EndpointVerdict{Healthy: v.Healthy, Say: v.Say, Of: v.Of}
			}
		}
	}
	d.Probe = probe(s.Probe())
	return d
}

func trafficPolicy(local bool) string {
	if local {
		return "Local"
	}
	return "Cluster"
}

func endpoint(e fsm.Endpoint) records.Endpoint {
	out := records.Endpoint{
		Address: e.Address.String(), Node: string(e.Node), Ready: e.Ready, Serving: e.Serving, Terminating: e.Terminating, Failing: e.Failing,
		Ports: each(e.Ports(), func(p fsm.EndpointPort) records.EndpointPort {
			return records.EndpointPort{Name: p.Name, Protocol: p.Port.Protocol.String(), Port: p.Port.Number}
		}),
	}
	if e.Weight != 0 || e.Quiesced {
		out.Weight = &e.Weight
	}
	return out
}

func (r *renderer) serviceAddress(a *fsm.Allocation) records.ServiceAddress {
	d := records.ServiceAddress{Address: a.Address.String(), Pool: string(a.Pool()), Releasing: a.Releasing}
	route, ok := fsm.Get[*fsm.Route](r.view, fsm.TableRoutes, fsm.HostPrefix(a.Address).String())
	if !ok {
		return d
	}
	for _, h := range route.NextHops {
		switch r.view.HopState(route, h) {
		case fsm.HopWithdrawing:
		case fsm.HopAnnounced:
			d.NextHops++
			d.Announced++
		default:
			d.NextHops++
		}
	}
	return d
}

func (r *renderer) allocation(a *fsm.Allocation) any {
	return records.Allocation{
		Name: a.Key(), Address: a.Address.String(), Service: string(a.Service), Pool: string(a.Pool()),
		Ports: each(a.Ports(), portText), SharingKey: a.SharingKey(), Releasing: a.Releasing, Since: revision(a.Since),
	}
}
