// SPDX-License-Identifier: Apache-2.0

package fsm_test

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
)

type (
	mTunnel struct {
		number   uint32
		underlay netip.Addr
		since    rev
		leaving  bool
	}
	mProxied struct {
		uid   string
		ready bool
		since rev
	}
)

// applyTunnel has the rules of tunnels: no two hosts have one number, and one that was given up is nobody's before every node that
// makes tunnels has acknowledged that.
func (m *model) applyTunnel(command fsm.Command) (ok, known bool) {
	switch c := command.(type) {
	case *fsm.SetTunnels:
		return m.setTunnels(c.Settings), true
	case *fsm.PutTunnel:
		return m.putTunnel(c), true
	case *fsm.ReleaseTunnel:
		t, exists := m.tunnels[c.Host]
		if !exists || m.quarantined() {
			return false, true
		}
		if !t.leaving {
			t.leaving, t.since = true, m.now
			m.tunnels[c.Host] = t
		}
		return true, true
	case *fsm.FreeTunnel:
		t, exists := m.tunnels[c.Host]
		if !exists || !t.leaving || m.quarantined() {
			return false, true
		}
		for _, n := range m.nodes {
			if n.tunnels && older(n.acknowledged, t.since) {
				return false, true
			}
		}
		for id, h := range m.hosts { // outside the cluster they hear of nodes' tunnels and their own
			concerned := c.Host == fsm.TunnelID("outside/"+id) || !strings.HasPrefix(string(c.Host), "outside/")
			if concerned && h.tunnels && older(h.acknowledged, t.since) {
				return false, true
			}
		}
		delete(m.tunnels, c.Host)
		return true, true
	case *fsm.ReportTunnels:
		n, exists := m.nodes[c.Node]
		if m.format < 2 || !exists || n.boot == "" || n.boot != c.Boot {
			return false, true
		}
		n.tunnels = c.Tunnels
		m.nodes[c.Node] = n
		return true, true
	}
	return false, false
}

// room is for how many hosts the ranges of the drawn settings have addresses.
func room(s fsm.TunnelSettings) uint32 {
	switch {
	case !s.Range4.IsValid() && s.Range6.Bits() == 64:
		return 1 << 16
	case s.Range4.IsValid() && s.Range4.Bits() == 29 && (!s.Range6.IsValid() || s.Range6.Bits() == 64):
		return 6
	}
	return 2
}

func (m *model) setTunnels(s fsm.TunnelSettings) bool {
	if m.format < 2 {
		return false
	}
	on := s != fsm.TunnelSettings{}
	if on {
		sound := (s.Range4 == netip.Prefix{} || s.Range4.Addr() == netip.MustParseAddr("10.250.0.0") || s.Range4.String() == "192.0.2.0/24") &&
			(s.Range4.IsValid() || s.Range6.IsValid()) && s.Port != 0 && s.VNI == 7 && s.MTU != 60
		if !sound {
			return false
		}
	}
	if s == m.mesh {
		return true
	}
	if on {
		for _, ranges := range m.pools { // of 192.0.2.0/24, or of no range that is drawn
			if slices.ContainsFunc(ranges, func(r fsm.Range) bool { return s.Range4.String() == "192.0.2.0/24" && r.From.Is4() }) {
				return false
			}
		}
		if len(m.tunnels) > int(roomOf(s)) {
			return false
		}
	}
	m.mesh = s
	for _, host := range slices.Sorted(maps.Keys(m.tunnels)) {
		t := m.tunnels[host]
		if t.since = m.now; on && t.number > roomOf(s) {
			t.number = 0
			m.tunnels[host] = t
			t.number = m.nextTunnel()
		}
		m.tunnels[host] = t
	}
	return true
}

func roomOf(s fsm.TunnelSettings) uint32 {
	if s.Range4.String() == "192.0.2.0/24" {
		if s.Range6.Bits() == 126 {
			return 2
		}
		return 254
	}
	return room(s)
}

// nextTunnel goes round from the newest number that was given to one that nobody has; 0 for none.
func (m *model) nextTunnel() uint32 {
	taken := map[uint32]bool{}
	for _, t := range m.tunnels {
		taken[t.number] = true
	}
	at, all := m.given, roomOf(m.mesh)
	for range all {
		if at++; at > all {
			at = 1
		}
		if !taken[at] {
			m.given = at
			return at
		}
	}
	return 0
}

func (m *model) putTunnel(c *fsm.PutTunnel) bool {
	if m.format < 2 || c.Host == "" || m.mesh == (fsm.TunnelSettings{}) || !plain(c.Underlay) || c.Underlay.Is4() == m.mesh.Over6 ||
		m.mesh.Range4.IsValid() && m.mesh.Range4.Contains(c.Underlay) {
		return false
	}
	for host, t := range m.tunnels {
		if host != c.Host && t.underlay == c.Underlay && !t.leaving {
			return false
		}
	}
	t, exists := m.tunnels[c.Host]
	switch {
	case exists && !t.leaving && t.underlay == c.Underlay:
		return true
	case !exists:
		if m.quarantined() {
			return false
		}
		if t.number = m.nextTunnel(); t.number == 0 {
			return false
		}
	}
	t.underlay, t.leaving, t.since = c.Underlay, false, m.now
	m.tunnels[c.Host] = t
	return true
}

// reached tells whether others may send to a host by its tunnel: it acknowledged it.
func (m *model) reached(host fsm.TunnelID) bool {
	t, n := m.tunnels[host], m.nodes[fsm.NodeID(host)]
	if id, outside := strings.CutPrefix(string(host), "outside/"); outside {
		h := m.hosts[fsm.HostID(id)]
		n = mNode{tunnels: h.tunnels, acknowledged: h.acknowledged}
	}
	if t.leaving || !n.tunnels || n.acknowledged == (rev{}) || older(n.acknowledged, t.since) || m.mesh == (fsm.TunnelSettings{}) {
		return false
	}
	return true
}
