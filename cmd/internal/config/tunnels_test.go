// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"net/netip"
	"strings"
	"testing"

	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/fsm"
)

// Balancing §13.2: what tunnels are made of is judged as a whole, and what is missing has a default that collides with no CNI's.
// Rule: balancing §13.
func TestSettingsOfTunnelsAreJudged(t *testing.T) {
	four, six := netip.MustParsePrefix("10.250.0.0/16"), netip.MustParsePrefix("fd00:250::/64")
	for name, c := range map[string]struct {
		tunnels config.Tunnels
		off     bool // balancingPolicies
		want    string
	}{
		"both ranges":       {config.Tunnels{Range4: four, Range6: six}, false, ""},
		"IPv6 below":        {config.Tunnels{Range4: four, Underlay: "IPv6"}, false, ""},
		"no ranges":         {config.Tunnels{}, false, "tunnels: has neither range4 nor range6"},
		"no policies":       {config.Tunnels{Range4: four}, true, "tunnels: needs balancingPolicies"},
		"the wrong family":  {config.Tunnels{Range4: six}, false, "range4 fd00:250::/64 is no range of its family"},
		"an address":        {config.Tunnels{Range4: netip.MustParsePrefix("10.250.0.1/16")}, false, "range4 10.250.0.1/16 is no range"},
		"too small":         {config.Tunnels{Range4: netip.MustParsePrefix("10.250.0.0/31")}, false, "has to have a length from 8 to 30"},
		"link-local":        {config.Tunnels{Range4: netip.MustParsePrefix("169.254.0.0/16")}, false, "addresses of another kind"},
		"a number too high": {config.Tunnels{Range4: four, VNI: 1 << 24}, false, "the VNI is 16777216"},
		"an MTU too low":    {config.Tunnels{Range4: four, MTU: 576}, false, "the MTU is 576"},
		"no family":         {config.Tunnels{Range4: four, Underlay: "ipv4"}, false, `tunnels.underlay: "ipv4" is no family`},
		"WireGuard":         {config.Tunnels{Range4: four, Encryption: "wireguard"}, false, "tunnels.encryption: wireguard is not done"},
		"another":           {config.Tunnels{Range4: four, Encryption: "ipsec"}, false, `"ipsec" is not known`},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			whole := config.Controller{BalancingPolicies: !c.off, Tunnels: &c.tunnels}
			err := whole.Validate() // of which much else is missing here
			if told := strings.Contains(err.Error(), "tunnels"); told != (c.want != "") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, not %q", err, c.want)
			}
			if s := c.tunnels.Settings(); c.want == "" && (s.Port != 7446 || s.VNI != 7446 || s.Over6 != (name == "IPv6 below")) {
				t.Errorf("settings %+v", s)
			}
		})
	}
	if s := (*config.Tunnels)(nil).Settings(); s != (fsm.TunnelSettings{}) {
		t.Errorf("without tunnels: %+v", s)
	}
}
