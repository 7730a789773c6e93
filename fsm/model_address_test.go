// SPDX-License-Identifier: Apache-2.0

package fsm_test

import (
	"fmt"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm"
)

type (
	mService struct {
		mObject
		deleting   bool
		everywhere bool // it asks for all nodes
		probe      string
		probed     map[netip.Addr]bool
		verdicts   map[netip.Addr]fsm.ProbeVerdict
		asked      map[netip.Addr]string // which ports
		since      rev                   // that is so
	}
	mOwner struct {
		key       string
		ports     []fsm.Port
		releasing bool
	}
	mHop struct {
		since       rev
		withdrawing bool
	}
	// mGivenUp is a port that a service gave up, of an address that still leads somewhere.
	mGivenUp struct {
		port    fsm.Port
		service fsm.ServiceID
	}
	mLease struct {
		holder fsm.NodeID
		fence  rev
		kept   bool
	}
)

// applyAddress has the rules of services, of who owns which address (S3), of routes and of leases.
func (m *model) applyAddress(command fsm.Command) (ok, known bool) {
	switch c := command.(type) {
	case *fsm.PutService:
		return m.putService(&c.Service), true
	case *fsm.JudgeService:
		s, exists := m.services[c.ID]
		if m.format < 2 || !exists || s.uid != c.UID {
			return false, true
		}
		s.verdicts = map[netip.Addr]fsm.ProbeVerdict{}
		for _, v := range c.Verdicts {
			if _, said := s.verdicts[v.Address]; v.Port == (fsm.Port{}) && s.probed[v.Address] && !said {
				s.verdicts[v.Address] = v
			}
		}
		m.services[c.ID] = s
		return true, true
	case *fsm.DeleteService:
		s, exists := m.services[c.ID]
		ok := exists && s.uid == c.UID && !m.ownsAny(c.ID) && !m.quarantined()
		if ok {
			delete(m.services, c.ID)
			delete(m.drains, mDrain{"service", string(c.ID)})
			delete(m.moves, c.ID)
		}
		return ok, true
	case *fsm.Allocate:
		return m.allocate(c, false), true
	case *fsm.AdoptAllocation:
		return m.format >= 2 && m.allocate(&c.Allocation, true), true
	case *fsm.ReleaseAllocation:
		o, exists := m.owners[c.Address][c.Service]
		if !exists || m.quarantined() {
			return false, true
		}
		o.releasing = true
		m.owners[c.Address][c.Service] = o
		return true, true
	case *fsm.FreeAllocation:
		return m.free(c), true
	case *fsm.SetRoute:
		return m.setRoute(c), true
	case *fsm.FinishWithdrawal:
		return m.finishWithdrawal(c), true
	case *fsm.GrantLease:
		_, held := m.leases[c.VIP]
		ok := c.VIP.IsValid() && c.Holder != "" && c.Term > 0 && !held && m.owned(c.VIP) && !m.quarantined() && m.granted[c.VIP] != m.now &&
			(m.format >= 2 || !c.Keep)
		if ok { // no two fences are equal
			m.leases[c.VIP], m.granted[c.VIP] = mLease{c.Holder, m.now, c.Keep}, m.now
		}
		return ok, true
	case *fsm.EndLease:
		l, held := m.leases[c.VIP]
		mayEnd := map[fsm.Word]bool{fsm.WordTime: !l.kept, fsm.WordHolder: m.format >= 2, fsm.WordOperator: m.format >= 2}
		ok := held && l.fence == c.Fence && mayEnd[c.Word]
		if ok {
			delete(m.leases, c.VIP)
		}
		return ok, true
	}
	return false, false
}

func (m *model) putService(s *fsm.Service) bool {
	old, exists := m.services[s.ID]
	if s.ID == "" || exists && old.uid == s.UID && s.Version < old.version {
		return false
	}
	if m.format < 2 && (s.NodePortsIPv4 || s.NodePortsIPv6 || len(s.ClusterIPs) > 0 || len(s.ByOthers()) > 0) {
		return false
	}
	next := mService{
		mObject: mObject{s.UID, s.Version}, deleting: s.Deleting, everywhere: s.AllNodes && !s.Local, probe: fmt.Sprint(s.Probe()),
		probed: map[netip.Addr]bool{}, verdicts: map[netip.Addr]fsm.ProbeVerdict{}, asked: map[netip.Addr]string{},
	}
	for _, e := range s.Endpoints {
		next.asked[e.Address] += "" // two may have one address
		for _, port := range e.Ports() {
			if s.Probe().Port == 0 {
				next.asked[e.Address] += fmt.Sprint(port.Port, " ")
			}
		}
		if !s.Deleting && (e.Ready || e.Failing) && s.Probe().Type != "" && s.Probe().Type != "None" {
			next.probed[e.Address] = true
		}
	}
	same := exists && old.uid == s.UID && old.probe == next.probe
	for a, v := range old.verdicts {
		if next.probed[a] && same && next.asked[a] == old.asked[a] {
			next.verdicts[a] = v
		}
	}
	for a, by := range next.asked {
		if before, had := old.asked[a]; had && before != by {
			same = false
		}
	}
	switch {
	case s.Probe().Type == "" || s.Probe().Type == "None":
	case same:
		next.since = old.since
	default:
		next.since = m.now
	}
	m.services[s.ID] = next
	return true
}

func (m *model) ownsAny(s fsm.ServiceID) bool {
	for _, owners := range m.owners {
		if _, ok := owners[s]; ok {
			return true
		}
	}
	return false
}

// owned: some service has the address and is not giving it up.
func (m *model) owned(a netip.Addr) bool {
	for _, o := range m.owners[a] {
		if !o.releasing {
			return true
		}
	}
	return false
}

// plain addresses have one way to be written: an IPv4 address in IPv6 clothes is the IPv4 address.
func plain(a netip.Addr) bool { return a.IsValid() && a == a.Unmap() && a.Zone() == "" }

// allocate is S3: an address belongs to one service, or to some that agreed and have no port in common.
//
// What is taken over was had before the group forgot it, which a quarantine is for.
func (m *model) allocate(c *fsm.Allocate, takenOver bool) bool {
	if _, exists := m.services[c.Service]; !exists || !plain(c.Address) {
		return false
	}
	for service, o := range m.owners[c.Address] {
		if service == c.Service {
			continue
		}
		if c.SharingKey == "" || o.key != c.SharingKey {
			return false
		}
		if slices.ContainsFunc(c.Ports, func(p fsm.Port) bool { return slices.Contains(o.ports, p) }) {
			return false
		}
	}
	if _, mine := m.owners[c.Address][c.Service]; !mine && !takenOver && m.quarantined() {
		return false
	}
	had := m.owners[c.Address][c.Service].ports
	for given, since := range m.givenUp[c.Address] {
		if slices.Contains(c.Ports, given.port) && given.service != c.Service && m.reachesFormer(c.Address, since) {
			return false
		}
	}
	m.giveUp(c.Address, c.Service, had, c.Ports)
	if m.owners[c.Address] == nil {
		m.owners[c.Address] = map[fsm.ServiceID]mOwner{}
	}
	m.owners[c.Address][c.Service] = mOwner{key: c.SharingKey, ports: c.Ports}
	return true
}

// free: nobody gets an address to which a path may still lead, or for which somebody may still answer.
func (m *model) free(c *fsm.FreeAllocation) bool {
	o, exists := m.owners[c.Address][c.Service]
	if !exists || !o.releasing || m.quarantined() {
		return false
	}
	if len(m.owners[c.Address]) == 1 {
		_, leased := m.leases[c.Address]
		if leased || len(m.routes[netip.PrefixFrom(c.Address, c.Address.BitLen())]) > 0 {
			return false
		}
	}
	m.giveUp(c.Address, c.Service, o.ports, nil)
	delete(m.owners[c.Address], c.Service)
	return true
}

// reachesFormer tells whether what comes for an address may still end with somebody who gave up his part of it at a
// revision: at any node where a path may lead and which is not known to have heard of it since.
func (m *model) reachesFormer(a netip.Addr, since rev) bool {
	prefix := netip.PrefixFrom(a, a.BitLen())
	for spec, hop := range m.routes[prefix] {
		n := m.nodes[spec.Node]
		heard := !older(n.acknowledged, since) && !slices.Contains(n.failed, prefix)
		if m.settings.Unsteered && hop.withdrawing || !m.settings.Unsteered && !heard {
			return true
		}
	}
	return false
}

// giveUp: from format 2 on, the ports that a service has no more are remembered while its address leads anywhere.
func (m *model) giveUp(a netip.Addr, s fsm.ServiceID, had, has []fsm.Port) {
	if m.format < 2 {
		return
	}
	m.settleGivenUp(a)
	if len(m.routes[netip.PrefixFrom(a, a.BitLen())]) == 0 {
		return
	}
	for _, p := range has {
		delete(m.givenUp[a], mGivenUp{p, s})
	}
	for _, p := range had {
		if !slices.Contains(has, p) {
			if m.givenUp[a] == nil {
				m.givenUp[a] = map[mGivenUp]rev{}
			}
			m.givenUp[a][mGivenUp{p, s}] = m.now
		}
	}
}

// settleGivenUp forgets what no path can lead to any more. It is looked at when ports or next hops change.
func (m *model) settleGivenUp(a netip.Addr) {
	for given, since := range m.givenUp[a] {
		if !m.reachesFormer(a, since) {
			delete(m.givenUp[a], given)
		}
	}
}

func (m *model) setRoute(c *fsm.SetRoute) bool {
	if !c.Prefix.IsValid() || c.Prefix.Bits() != c.Prefix.Addr().BitLen() {
		return false
	}
	for _, h := range c.Hops {
		if h.Node == "" || h.Address.BitLen() != c.Prefix.Addr().BitLen() {
			return false
		}
	}
	if len(c.Hops) > 0 && !m.owned(c.Prefix.Addr()) {
		return false
	}
	hops := m.routes[c.Prefix]
	if hops == nil {
		hops = map[fsm.HopSpec]mHop{}
	}
	for spec, h := range hops {
		if !h.withdrawing && !slices.Contains(c.Hops, spec) {
			hops[spec] = mHop{since: m.now, withdrawing: true}
		}
	}
	for _, spec := range c.Hops {
		if h, exists := hops[spec]; !exists || h.withdrawing {
			hops[spec] = mHop{since: m.now}
		}
	}
	m.routes[c.Prefix] = hops
	m.settleGivenUp(c.Prefix.Addr())
	return true
}

// finishWithdrawal: every member says that no switch holds the path since it was withdrawn, or is excused, and so does the
// node where it speaks itself. Before format 2 members say so by what they announced.
func (m *model) finishWithdrawal(c *fsm.FinishWithdrawal) bool {
	spec := fsm.HopSpec{Node: c.Node, Address: c.Address}
	h, exists := m.routes[c.Prefix][spec]
	if !exists || !h.withdrawing || h.since != c.Since || m.quarantined() {
		return false
	}
	if l, leased := m.leases[c.Prefix.Addr()]; leased && l.holder == c.Node && m.format >= 2 {
		return false // it still answers for the address
	}
	for id, member := range m.members {
		upto := member.withdrawn
		if m.format < 2 {
			upto = member.announced
		}
		if older(upto, h.since) && !slices.Contains(c.Excused, id) {
			return false
		}
	}
	if m.format < 2 && c.NodeExcused {
		return false
	}
	if n := m.nodes[c.Node]; n.speaks && older(n.withdrawn, h.since) && !c.NodeExcused {
		return false
	}
	m.excuse(c.Node, h.since)
	delete(m.routes[c.Prefix], spec)
	m.settleGivenUp(c.Prefix.Addr())
	return true
}

// excuse remembers who did not say that no switch holds a path, when that counted all the same.
func (m *model) excuse(node fsm.NodeID, since rev) {
	if m.format < 2 {
		return
	}
	for id, member := range m.members {
		if older(member.withdrawn, since) && older(member.excused, since) {
			member.excused = since
			m.members[id] = member
		}
	}
	if n, exists := m.nodes[node]; exists && n.speaks && older(n.withdrawn, since) && older(n.excused, since) {
		n.excused = since
		m.nodes[node] = n
	}
}
