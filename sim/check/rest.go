// SPDX-License-Identifier: Apache-2.0

package check

import (
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm"
)

// What endpoints that rest for failed probes mean for others' rules; which may rest, and have to, s18 judges.

// restAt tells whether all endpoints that a Service has on a node rest for failed probes, or are said to be bad: see s18 for what may be said.
func restAt(v *fsm.View, id fsm.ServiceID, node fsm.NodeID) bool {
	service, ok := fsm.Get[*fsm.Service](v, fsm.TableServices, string(id))
	if !ok {
		return false
	}
	some := false
	for _, e := range service.Endpoints {
		bad := e.Failing || badEndpoint(service, e.Address)
		if e.Node == node && (e.Ready || e.Failing) && !bad {
			return false
		}
		some = some || e.Node == node && bad
	}
	return some
}

// deafAt tells whether a node can do nothing for a Service, since all of its endpoints there rest, and it passes nothing on to others.
func deafAt(v *fsm.View, id fsm.ServiceID, node fsm.NodeID) bool {
	service, ok := fsm.Get[*fsm.Service](v, fsm.TableServices, string(id))
	return ok && service.Local && restAt(v, id, node)
}

// restDiffers tells whether other endpoints of a Service rest for failed probes (see s18): nodes hear of that before paths follow, as they do of
// endpoints that are not ready.
func restDiffers(was, is *fsm.Service) bool {
	rest := func(s *fsm.Service) (out []netip.Addr) {
		for _, e := range s.Endpoints {
			if e.Failing {
				out = append(out, e.Address)
			}
		}
		return out
	}
	return !slices.Equal(rest(was), rest(is))
}
