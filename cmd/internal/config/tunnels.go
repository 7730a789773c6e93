// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net/netip"

	"fairlead.io/fairlead/fsm"
)

// Tunnels is how hosts reach each other's proxy ports where pods' addresses are not routable between them.
type Tunnels struct {
	// Range4 and Range6 are what hosts are given tunnel addresses of, one or both: nobody else's, of no pool and no node.
	Range4 netip.Prefix `yaml:"range4"`
	Range6 netip.Prefix `yaml:"range6"`
	// Underlay is the family of hosts' addresses that packets are sent to, whatever is in them: IPv4 or IPv6. Empty means IPv4.
	Underlay string `yaml:"underlay"`
	// Port is the UDP port of VXLAN on every host. 0 means 7446: CNIs have 4789 or 8472.
	Port uint16 `yaml:"port"`
	// VNI is the network's number. 0 means 7446.
	VNI uint32 `yaml:"vni"`
	// MTU of tunnels, in bytes. 0 is what the way between hosts leaves, on each host.
	MTU uint32 `yaml:"mtu"`
	// Encryption is none, which is the default.
	Encryption string `yaml:"encryption"`
}

const (
	defaultTunnelPort = 7446
	defaultTunnelVNI  = 7446
	underlay4         = "IPv4"
	underlay6         = "IPv6"
)

// Settings are what the record has of it; none where c is nil.
func (c *Tunnels) Settings() fsm.TunnelSettings {
	if c == nil {
		return fsm.TunnelSettings{}
	}
	return fsm.TunnelSettings{Range4: c.Range4, Range6: c.Range6, Over6: c.Underlay == underlay6, Port: c.Port, VNI: c.VNI, MTU: c.MTU}
}

func (c *Controller) validateTunnels(bad func(field, why string)) {
	t := c.Tunnels
	if t == nil {
		return
	}
	if t.Port == 0 {
		t.Port = defaultTunnelPort
	}
	if t.VNI == 0 {
		t.VNI = defaultTunnelVNI
	}
	if t.Underlay == "" {
		t.Underlay = underlay4
	}
	if !c.BalancingPolicies {
		bad("tunnels", "needs balancingPolicies: true; proxy ports of policies are all that tunnels lead to")
	}
	switch t.Encryption {
	case "", "none":
	case "wireguard":
		bad("tunnels.encryption", "wireguard is not done: many kernels that agents run on have no WireGuard, and keys would have to be in the record; "+
			"where the way between hosts is not to be trusted, encrypt it below (IPsec on UDP port "+fmt.Sprint(t.Port)+", MACsec), or leave tunnels out")
	default:
		bad("tunnels.encryption", fmt.Sprintf("%q is not known; only none is", t.Encryption))
	}
	if t.Underlay != underlay4 && t.Underlay != underlay6 {
		bad("tunnels.underlay", fmt.Sprintf("%q is no family; write %s or %s", t.Underlay, underlay4, underlay6))
	}
	if !t.Range4.IsValid() && !t.Range6.IsValid() {
		bad("tunnels", "has neither range4 nor range6; name private ranges that nobody else uses, such as 10.250.0.0/16 and fd00:250::/64")
		return
	}
	if why := t.Settings().Fault(); why != "" {
		bad("tunnels", why)
	}
}
