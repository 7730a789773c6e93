// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// Member is how to reach a first member.
type Member struct {
	Name string `yaml:"name"`
	API  string `yaml:"api"`
	Raft string `yaml:"raft"`
}

// MemberAddresses are the addresses of the first members, as far as they are given by address.
func (c *Controller) MemberAddresses() (out []netip.Addr) {
	for _, m := range c.Members {
		for _, at := range []string{m.API, m.Raft} {
			host, _, err := net.SplitHostPort(at)
			if err != nil {
				continue // Validate told
			}
			if a, err := netip.ParseAddr(host); err == nil && !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	return out
}

func (c *Controller) validateMembers(bad func(field, why string)) {
	self, seen := false, map[string]bool{}
	for i, m := range c.Members {
		field := fmt.Sprintf("members[%d]", i)
		if m.Name == "" || seen[m.Name] {
			bad(field+".name", "is missing or given twice")
		}
		seen[m.Name] = true
		self = self || m.Name == c.Name
		for what, v := range map[string]string{".api": m.API, ".raft": m.Raft} {
			if why := faultOfAddress(v, true); why != "" {
				bad(field+what, why)
			}
		}
	}
	if len(c.Members) == 0 {
		bad("members", "is empty; list the first members, this one included")
	} else if !self && c.BootstrapToken != "" {
		bad("members", fmt.Sprintf("does not list this member, %q, which has a bootstrap token", c.Name))
	}
}
