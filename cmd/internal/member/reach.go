// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"net"
	"net/netip"
	"time"

	"fairlead.io/fairlead/dataplane/driver"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/apiserver"
)

// driverReach says at which addresses this member calls drivers. Whoever leads answers alike: what is refused as a member's own
// is refused by the others, too.
func (m *Member) driverReach() driver.Reach {
	r := driver.Reach{Allowed: m.config.Drivers.Places()}
	var servers *apiserver.Addresses
	if m.kube != nil {
		servers = apiserver.New(m.kube.Config.Host, apiserver.EdgeOf(m.kube), time.Now)
	}
	r.Whose = func(ctx context.Context, a netip.Addr) string {
		own, err := driver.OwnAddress(a)
		switch {
		case err != nil:
			m.log.Warn("addresses of drivers not compared with this machine's", "err", err)
		case own:
			return "this machine's own"
		}
		if m.membersAt(a) {
			return "a member's own"
		}
		if servers != nil && servers.Has(ctx, a) {
			return "the API server's"
		}
		return ""
	}
	return r
}

// membersAt tells whether members are dialled at an address.
func (m *Member) membersAt(a netip.Addr) bool {
	at := func(hostport string) bool {
		host, _, err := net.SplitHostPort(hostport)
		if err != nil {
			return false
		}
		is, err := netip.ParseAddr(host)
		return err == nil && is.Unmap().WithZone("") == a
	}
	for _, known := range fsm.List[*fsm.Member](m.state.Read(), fsm.TableMembers) {
		if at(known.API) || at(known.Raft) {
			return true
		}
	}
	for _, c := range m.config.Members {
		if at(c.API) || at(c.Raft) {
			return true
		}
	}
	return false
}
