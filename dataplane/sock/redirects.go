// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"net/netip"
	"slices"

	"fairlead.io/fairlead/api/desired"
)

// RedirectRule is what clients of this host get where a policy captures (balancing §6, §7); nil where it is not effective.
func (c Config) RedirectRule(d *desired.Policy) *Rule {
	if !c.effective(d) {
		return nil
	}
	r := &Rule{ID: d.Number, Kind: Balancing, Name: d.Name, Rank: uint64(max(d.Created, 0)), SparesBackends: d.SpareOwn}
	empty := Refuse
	if d.Local() {
		r.Kind = LocalRedirect
	}
	if d.Local() || d.FallThrough {
		empty = Next
	}
	for _, capture := range d.Captures {
		used, resting := c.redirectBackends(d, capture)
		r.Fronts = append(r.Fronts, Front{
			At: []At{{capture.Address, capture.Port.Number, modeOf(d)}}, Protocol: capture.Port.Protocol, Backends: used, Resting: resting, Empty: empty,
		})
	}
	return r
}

// effective tells whether a policy is effective here (balancing §8). Local redirection is nowhere but on nodes.
func (c Config) effective(d *desired.Policy) bool {
	if c.Outside {
		return d.EffectiveOutside()
	}
	return d.EffectiveOn(c.Node)
}

// modeOf is what events call it: by its backends, or, of local redirection, by what it captures.
func modeOf(d *desired.Policy) Mode {
	switch d.Mode {
	case desired.ToPods:
		return BalancingPod
	case desired.ToHostPorts:
		return BalancingHostPort
	case desired.ToProxies:
		return BalancingNodeProxy
	case desired.ToAddresses:
		return BalancingAddress
	}
	if d.OfService {
		return LocalRedirectService
	}
	return LocalRedirectAddress
}

// redirectBackends are the backends of the family of a captured address: the ready ones, or, where none is and the redirect is not
// local, all that run. Proxy addresses that this host has no tunnel to are none. Only listed addresses count as often as they are there; those of them that fail their probes rest.
func (c Config) redirectBackends(d *desired.Policy, capture desired.Capture) (used, resting []Backend) {
	var ready, others []netip.Addr
	for _, b := range d.Backends {
		switch a := b.Address.Unmap(); {
		case a.Is4() != capture.Address.Unmap().Is4(), d.Local() && b.Node != c.Node, c.unreached(d, a):
		case b.Ready:
			ready = append(ready, a)
		default:
			others = append(others, a)
		}
	}
	if len(ready) == 0 && !d.Local() {
		ready = others
	}
	slices.SortFunc(ready, netip.Addr.Compare)
	listed := ready
	switch {
	case d.Mode != desired.ToAddresses:
		ready = slices.Compact(ready)
	case c.Usable != nil:
		ready = c.Usable(d, capture, slices.Clone(listed))
		for _, a := range listed {
			if !slices.Contains(ready, a) {
				resting = append(resting, Backend{At: netip.AddrPortFrom(a, capture.Target)})
			}
		}
	}
	for _, a := range ready {
		used = append(used, Backend{At: netip.AddrPortFrom(a, capture.Target)})
	}
	return used, resting
}
