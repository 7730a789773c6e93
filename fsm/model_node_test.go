// SPDX-License-Identifier: Apache-2.0

package fsm_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
)

type mNode struct {
	mObject
	eligible     bool
	zone         string
	leaving      bool
	others       []netip.Addr
	liveness     fsm.Liveness
	boot         fsm.BootID
	acknowledged rev
	failed       []netip.Prefix
	tunnels      bool
	addresses    []netip.Addr
	number       uint32
	carries      bool // policies
	speaks       bool // its own speaker may have told a switch something
	announced    rev
	withdrawn    rev
	excused      rev // the newest withdrawal that did not wait for it
	away         fsm.Absence
	sessions     fsm.Sessions // that count as open
}

// applyNode has the rules of nodes: what a boot acknowledged is void after the next one (S9).
func (m *model) applyNode(command fsm.Command) (ok, known bool) {
	switch c := command.(type) {
	case *fsm.PutNode:
		n, exists := m.nodes[c.ID]
		if c.ID == "" || exists && n.uid == c.UID && c.Version < n.version {
			return false, true
		}
		n.mObject, n.eligible, n.zone, n.leaving = mObject{c.UID, c.Version}, c.Eligible, c.Zone, c.Leaving
		n.addresses = c.Addresses
		n.others = c.Others
		m.nodes[c.ID] = n
		return true, true
	case *fsm.DeleteNode:
		if _, exists := m.nodes[c.ID]; !exists || m.isHop(c.ID) || m.quarantined() {
			return false, true
		}
		delete(m.nodes, c.ID)
		delete(m.drains, mDrain{"node", string(c.ID)})
		maps.DeleteFunc(m.moves, func(_ fsm.ServiceID, to mMove) bool { return to.node == c.ID })
		return true, true
	case *fsm.RegisterBoot:
		n, exists := m.nodes[c.Node]
		if !exists || c.Boot == "" {
			return false, true
		}
		if n.boot != c.Boot {
			n.boot, n.acknowledged, n.failed, n.away = c.Boot, rev{}, nil, fsm.Absence{}
		}
		m.nodes[c.Node] = n
		return true, true
	case *fsm.Acknowledge:
		all := true
		for _, mark := range c.Marks {
			all = m.acknowledge(mark) && all
		}
		return all, true
	case *fsm.ReportSpeakers:
		all := m.format >= 2
		for _, mark := range c.Marks {
			all = m.speaker(mark) && all
		}
		return all, true
	case *fsm.SetLiveness:
		n, exists := m.nodes[c.Node]
		if !exists || c.Liveness > fsm.NodeDown || n.boot != c.Boot {
			return false, true
		}
		if n.liveness = c.Liveness; n.liveness == fsm.NodeUp {
			n.away = fsm.Absence{}
		}
		m.nodes[c.Node] = n
		return true, true
	}
	return false, false
}

func (m *model) isHop(n fsm.NodeID) bool {
	for _, hops := range m.routes {
		for spec := range hops {
			if spec.Node == n {
				return true
			}
		}
	}
	return false
}

func (m *model) acknowledge(mark fsm.AppliedMark) bool {
	n, exists := m.nodes[mark.Node]
	if !exists || n.boot == "" || n.boot != mark.Boot || older(mark.Upto, n.acknowledged) || older(m.now, mark.Upto) {
		return false
	}
	n.acknowledged, n.failed = mark.Upto, mark.Failed
	m.nodes[mark.Node] = n
	return true
}

// speaker takes in what a node says of its own BGP side.
func (m *model) speaker(mark fsm.SpeakerMark) bool {
	n, exists := m.nodes[mark.Node]
	if m.format < 2 || !exists || n.boot == "" || n.boot != mark.Boot || older(m.now, mark.Announced) || older(m.now, mark.Withdrawn) ||
		!slices.IsSortedFunc(mark.Sessions.Open, func(a, b fsm.Reach) int { return strings.Compare(string(a.Peer), string(b.Peer)) }) {
		return false
	}
	n.speaks, n.away = mark.Speaks, fsm.Absence{}
	if mark.Sessions.Told {
		n.sessions = mark.Sessions
	}
	if older(n.announced, mark.Announced) {
		n.announced = mark.Announced
	}
	if older(n.withdrawn, mark.Withdrawn) {
		n.withdrawn = mark.Withdrawn
	}
	m.nodes[mark.Node] = n
	return true
}

// announced is S9: a hop may be on the wire once the boot that its node runs has its rules, and until it is
// withdrawn; where somebody else makes the rules, at once.
func (m *model) announced(p netip.Prefix, spec fsm.HopSpec) bool {
	h, n := m.routes[p][spec], m.nodes[spec.Node]
	ready := n.boot != "" && n.acknowledged != rev{} && !older(n.acknowledged, h.since) && !slices.Contains(n.failed, p)
	return !h.withdrawing && (ready || m.settings.Unsteered)
}

// applyConfig has the rules of what administrators write.
func (m *model) applyConfig(command fsm.Command) (ok, known bool) {
	switch c := command.(type) {
	case *fsm.PutPool:
		return m.putPool(&c.Pool), true
	case *fsm.DeletePool:
		return drop(m.pools, c.Name), true
	case *fsm.PutPeer:
		return m.putPeer(&c.Peer), true
	case *fsm.DeletePeer:
		return drop(m.peers, c.Name), true
	case *fsm.PutAdvertisement:
		ok := c.Advertisement.Name != "" && (m.format >= 2 || c.Advertisement.Terms.IsZero() && c.Advertisement.Object == (fsm.ObjectRef{})) &&
			c.Advertisement.Terms.AggregateV4 < 32 && c.Advertisement.Terms.AggregateV6 < 128
		if ok {
			m.adverts[c.Advertisement.Name] = true
		}
		return ok, true
	case *fsm.DeleteAdvertisement:
		return drop(m.adverts, c.Name), true
	case *fsm.PutL2Advertisement:
		a := &c.Advertisement
		ok := m.format >= 2 && a.Name != ""
		for _, kept := range a.Kept {
			ok = ok && slices.Contains(a.Pools, kept)
		}
		if ok {
			m.l2[a.Name] = fmt.Sprint(a.Pools)
		}
		return ok, true
	case *fsm.DeleteL2Advertisement:
		return drop(m.l2, c.Name), true
	case *fsm.PutNodeConfig:
		in, out := c.Config.InTable, c.Config.OutTable
		if in == 0 {
			in = 101
		}
		if out == 0 {
			out = 102
		}
		ok := in != out && (m.format >= 2 || c.Config.Object == (fsm.ObjectRef{}))
		if ok {
			m.configs[c.Config.Name] = true
		}
		return ok, true
	case *fsm.DeleteNodeConfig:
		return drop(m.configs, c.Name), true
	}
	return false, false
}

// putPool: no address lies in two pools.
func (m *model) putPool(p *fsm.Pool) bool {
	if p.Name == "" || len(p.Ranges) == 0 || m.format < 2 && p.Object != (fsm.ObjectRef{}) {
		return false
	}
	for _, r := range p.Ranges {
		if !plain(r.From) || !plain(r.To) || r.From.BitLen() != r.To.BitLen() || r.To.Less(r.From) {
			return false
		}
		for name, ranges := range m.pools {
			for _, o := range ranges {
				if name != p.Name && o.From.BitLen() == r.From.BitLen() && !r.To.Less(o.From) && !o.To.Less(r.From) {
					return false
				}
			}
		}
	}
	m.pools[p.Name] = p.Ranges
	return true
}

// putPeer: no two names for one neighbour.
func (m *model) putPeer(p *fsm.Peer) bool {
	at := netip.AddrPortFrom(p.Address, p.Port)
	if p.Port == 0 {
		at = netip.AddrPortFrom(p.Address, 179)
	}
	if p.Name == "" || p.ASN == 0 || m.format < 2 && (p.Options != (fsm.PeerOptions{}) || p.Nodes.Speak || p.Object != (fsm.ObjectRef{})) {
		return false
	}
	links := map[string]bool{}
	if p.Interface != "" {
		if m.format < 2 || p.Address.IsValid() || !p.Nodes.Speak || p.PasswordFrom != "" || p.MultihopTTL != 0 {
			return false
		}
		links = linksOf(p)
	} else if !p.Address.IsValid() {
		return false
	}
	for name, other := range m.peers {
		if name == p.Name {
			continue
		}
		if p.Interface == "" && other == at {
			return false
		}
		for link := range m.links[name] {
			if links[link] {
				return false
			}
		}
	}
	m.peers[p.Name], m.links[p.Name] = at, links
	return true
}

// linksOf lists what no two peers by interface may share: a link of each node that there is, or could be.
func linksOf(p *fsm.Peer) map[string]bool {
	nodes := p.Nodes.Names
	if !p.Nodes.Only {
		nodes = []fsm.NodeID{"n1", "n2", "any other"}
	}
	out := map[string]bool{}
	for _, id := range nodes {
		out[string(id)+" "+p.Interface] = true
	}
	return out
}
