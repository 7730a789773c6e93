// SPDX-License-Identifier: Apache-2.0

package health

import (
	"net/netip"
	"slices"
	"time"

	"fairlead.io/fairlead/api/desired"
)

// service is one whose endpoints are probed (K50). What this host thinks of them is for the group to judge, and does nothing here.
type service struct {
	of     desired.Source
	checks []Check // places without a port
}

func (s service) same(o service) bool { return s.of == o.of }

// probed are the Services whose endpoints this host probes.
func (c *Checker) probed(services []desired.Source) (out []service) {
	if c.o.Outside {
		return nil
	}
	had := map[desired.Source]service{}
	for _, s := range c.services {
		had[s.of] = s
	}
	for _, s := range services {
		if as, is := had[s]; is {
			out = append(out, as)
			continue
		}
		if asks := s.Service(); known(asks.Probe.Type) {
			if checks := ChecksOf(asks); len(checks) > 0 {
				out = append(out, service{s, checks})
			}
		}
	}
	return out
}

// ChecksOf says what is probed for a Service, in order of its endpoints: those that are ready, or would be if they answered. An endpoint is bad
// once none of its ports answers that the probe is about: the one that the probe names, else those of UDP if it is by datagrams, else those of TCP.
func ChecksOf(s *desired.Service) (out []Check) {
	for _, e := range s.Endpoints {
		if !e.Ready && !e.Failing {
			continue
		}
		check := Check{Place: Place{Address: e.Address.Unmap()}}
		for _, port := range probedPorts(s.Probe, e.Ports) {
			check.By = append(check.By, target(s.Probe, s.Probe.Type, netip.AddrPortFrom(check.Address, port)))
		}
		if len(check.By) > 0 {
			out = append(out, check)
		}
	}
	slices.SortStableFunc(out, func(a, b Check) int { return a.Place.compare(b.Place) })
	return slices.CompactFunc(out, func(a, b Check) bool { return a.Place == b.Place })
}

// probedPorts are the ports of an endpoint that decide about it, in order, each once; 0 where none is asked.
func probedPorts(p desired.Probe, all []desired.EndpointPort) (out []uint16) {
	if p.Type == desired.ProbeICMP {
		return []uint16{0}
	}
	if p.Port != 0 {
		return []uint16{p.Port}
	}
	protocol := uint8(tcp)
	if p.Type == desired.ProbeUDP {
		protocol = udp
	}
	for _, port := range all {
		if port.Port.Protocol == protocol {
			out = append(out, port.Port.Number)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// statesOfServices lists what is thought of endpoints, Services in the order in which they came.
func (c *Checker) statesOfServices(now time.Time) (out []State) {
	for _, s := range c.services {
		for _, check := range s.checks {
			o, why := c.book.OfPlace(check)
			state := State{Policy: serviceName(s.of), Address: check.Address.String(), By: []string{}, Opinion: o.String(), Why: why, At: now}
			for _, t := range check.By {
				state.By = append(state.By, t.String())
			}
			out = append(out, state)
		}
	}
	return out
}

// serviceName tells a Service from policies.
func serviceName(s desired.Source) string { return "Service/" + s.Name() }
