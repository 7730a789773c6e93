// SPDX-License-Identifier: Apache-2.0

package member

import (
	"net/netip"
	"strings"
	"testing"

	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
)

// What listens on members for members and people is not a tenant's to call, whichever member leads.
func TestDriversAreNotCalledAtMembers(t *testing.T) {
	state := fsmtest.New(t, "g")
	fsmtest.Tell(t, state, &fsm.ReportMember{Server: "m2/1", Name: "m2", Raft: "192.0.2.12:7444", API: "[2001:db8::12]:7443", Format: fsm.NewestFormat, Run: "r"})
	m := &Member{state: state, config: config.Controller{
		Members: []config.Member{{Name: "m3", API: "192.0.2.13:7443", Raft: "m3.example:7444"}},
		Drivers: config.Drivers{Allowed: []string{"192.0.2.13:7490"}},
	}}
	r := m.driverReach()
	for to, refused := range map[string]bool{
		"192.0.2.12:80": true, "[2001:db8::12]:443": true, "192.0.2.13:7443": true, "[::ffff:192.0.2.12]:1": true,
		"192.0.2.13:7490": false, "192.0.2.14:7443": false, "10.96.0.1:443": false,
	} {
		err := r.Check(t.Context(), netip.MustParseAddrPort(to))
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "a member's own address") {
			t.Errorf("%s: %v", to, err)
		}
	}
}
