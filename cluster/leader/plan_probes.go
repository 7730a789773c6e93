// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"net/netip"

	"fairlead.io/fairlead/cluster/leader/policies"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// leaveOut takes the endpoints of a Service that fail, by what most nodes that probe them say, for not ready (K50): so everybody treats
// them, who chooses next hops as who translates, and connections that they have go on. Where that would leave nobody ready in a family
// all of it stays as if nothing were probed.
func (p *planner) leaveOut(endpoints []fsm.Endpoint, have *fsm.Service, w *world.Service) {
	for i := range endpoints { // one that is kept is as the record has it
		if e := &endpoints[i]; e.Failing {
			e.Ready, e.Failing = true, false
		}
	}
	if p.format < formatTranslation || have == nil || have.UID != w.UID || !policies.ProbeOf(w.Choice().Probes).Equal(have.Probe()) {
		return
	}
	bad := map[netip.Addr]bool{}
	for _, v := range have.VerdictsFor(&fsm.Service{UID: w.UID, Rare: have.Rare, Endpoints: endpoints}) {
		bad[v.Address] = !v.Healthy
	}
	if len(bad) == 0 {
		return
	}
	answers := map[bool]bool{} // by whether the family is IPv4
	for _, e := range endpoints {
		if e.Ready && !e.Quiesced && !bad[e.Address] {
			answers[e.Address.Is4()] = true
		}
	}
	for i := range endpoints {
		if e := &endpoints[i]; e.Ready && bad[e.Address] && answers[e.Address.Is4()] {
			e.Ready, e.Failing = false, true
		}
	}
}
