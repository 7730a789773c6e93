// SPDX-License-Identifier: Apache-2.0

package records

import (
	"fmt"
	"net/netip"

	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/fsm"
)

func (r *renderer) policy(p *fsm.Policy) any {
	d := records.Policy{
		Name: string(p.ID), UID: p.UID, Number: p.Number, EveryNode: p.EveryNode, Nodes: words(p.Nodes), Outside: p.Outside, Service: string(p.Service),
		Captures: each(p.Captures, func(c fsm.Capture) records.Capture {
			return records.Capture{Address: c.Address.String(), Protocol: c.Port.Protocol.String(), Port: c.Port.Number, Target: c.Target}
		}),
		Mode: p.Mode,
		Backends: each(p.Backends, func(b fsm.PolicyBackend) records.PolicyBackend {
			return records.PolicyBackend{Address: b.Address.String(), Node: string(b.Node), Pod: b.Pod, Ready: b.Ready}
		}),
		SpareOwn: p.SpareOwn, FallThrough: p.FallThrough, Version: p.Version, Bad: []string{},
		Verdicts: each(p.Verdicts, func(v fsm.ProbeVerdict) records.Verdict {
			return records.Verdict{
				Address: v.Address.String(), Protocol: v.Port.Protocol.String(), Port: v.Port.Number, Healthy: v.Healthy, Say: v.Say, Of: v.Of,
			}
		}),
		FailsOpen: each(p.FailsOpen(), func(c fsm.Capture) string { return placeText(c.Address, c.Port) }),
	}
	for _, v := range p.Verdicts {
		if !v.Healthy {
			d.Bad = append(d.Bad, placeText(v.Address, v.Port))
		}
	}
	if p.Created != 0 {
		created := stamp(p.Created * 1000)
		d.Created = &created
	}
	if p.Pending.Code != "" {
		d.Pending = &records.Pending{Code: p.Pending.Code, Text: p.Pending.Text}
	}
	d.Probe = probe(p.Probe)
	return d
}

// probe is nil where nothing is probed.
func probe(h fsm.Probe) *records.Probe {
	if h.Type == "" {
		return nil
	}
	return &records.Probe{
		Type: h.Type, Port: h.Port, Path: h.Path, Statuses: append([]uint32{}, h.Statuses...), IntervalMs: milliseconds(h.Interval),
		TimeoutMs: milliseconds(h.Timeout), Healthy: h.Healthy, Unhealthy: h.Unhealthy,
	}
}

func placeText(a netip.Addr, p fsm.Port) string {
	return fmt.Sprintf("%s/%s", netip.AddrPortFrom(a, p.Number), p.Protocol)
}
