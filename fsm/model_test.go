// SPDX-License-Identifier: Apache-2.0

package fsm_test

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"

	"fairlead.io/fairlead/fsm"
)

// model is the record as design §4 and §9 tell it, in plain maps and with the rules in other words: it takes
// the commands' structs and calls none of fsm's code. It keeps what guards look at, and forgets the rest.
type model struct {
	now rev // of the entry being applied

	group      fsm.GroupID
	format     uint32
	settings   fsm.Settings
	quarantine rev
	checkpoint fsm.Index

	members   map[fsm.ServerID]mMember
	pools     map[fsm.PoolName][]fsm.Range
	peers     map[fsm.PeerName]netip.AddrPort
	links     map[fsm.PeerName]map[string]bool // of nodes, behind which a peer by interface is
	adverts   map[fsm.AdvertisementName]bool
	l2        map[fsm.AdvertisementName]string // their pools
	configs   map[string]bool
	services  map[fsm.ServiceID]mService
	owners    map[netip.Addr]map[fsm.ServiceID]mOwner
	routes    map[netip.Prefix]map[fsm.HopSpec]mHop
	givenUp   map[netip.Addr]map[mGivenUp]rev // since when
	leases    map[netip.Addr]mLease
	granted   map[netip.Addr]rev // the newest fence of each, whatever became of it
	nodes     map[fsm.NodeID]mNode
	registers map[fsm.RegisterID]mObject
	holds     map[fsm.HoldID]mHold
	enrolled  map[fsm.EnrolmentID]mEnrolment
	drains    map[mDrain]rev  // since when
	aside     map[string]bool // members that are drained and stepped aside
	moves     map[fsm.ServiceID]mMove
	policies  map[fsm.PolicyID]mPolicy
	hosts     map[fsm.HostID]mHost
	revoked   map[mRevoked]int64 // before when
	numbers   []mNumber
	numbered  uint32 // the newest number that one got without asking
	mesh      fsm.TunnelSettings
	tunnels   map[fsm.TunnelID]mTunnel
	given     uint32 // the newest number that a tunnel got
	views     map[string]mView
	drivers   map[string]string // their URLs
	balancers map[fsm.BalancerID]mBalancer
	lives     int // how many balancers and bindings began to exist
	bindings  map[fsm.BindingID]mBinding
	lines     map[string]mLine // by what may have one call in flight: see line
}

var isSum = regexp.MustCompile(`^[0-9a-f]{64}$`)

// isRevocable is what can be revoked: a certificate by its number, what somebody has in a role, or a membership.
var isRevocable = regexp.MustCompile(`^(serial [0-9a-f]{1,42}|(member|agent|host|operator|viewer|membership) .{1,253})$`)

// rev is (epoch, index). Older is by epoch first.
type rev = fsm.Revision

func older(a, b rev) bool { return a.Epoch < b.Epoch || a.Epoch == b.Epoch && a.Index < b.Index }

type (
	mObject struct {
		uid     string
		version uint64
	}
	mMember struct {
		name      string
		format    uint32
		run       string
		announced rev
		withdrawn rev
		excused   rev // the newest withdrawal that did not wait for it
		sessions  string
		away      fsm.Absence
	}
	mEnrolment struct {
		node    fsm.NodeID
		outside bool
		used    bool
	}
	mHost struct {
		since        rev
		boot         fsm.BootID
		addresses    string
		acknowledged rev
		tunnels      bool
	}
	mRevoked struct{ of, name string }
	mDrain   struct {
		of   fsm.DrainOf
		name string
	}
	mMove struct {
		node  fsm.NodeID
		since rev
	}
	mPolicy struct {
		mObject
		number   uint32
		told     string // to hosts
		since    rev
		probe    string
		probed   map[mProbed]bool
		verdicts map[mProbed]fsm.ProbeVerdict
		pods     map[string]mProxied
	}
	mProbed struct {
		address netip.Addr
		port    fsm.Port
	}
	mNumber struct { // that hosts may still hold
		number uint32
		of     fsm.PolicyID
		at     rev
	}
	mHold struct {
		subjects string
		released bool
	}
	mView struct {
		cluster  string
		versions map[string]uint64
		rewind   bool
	}
)

func newModel() *model {
	return &model{
		members: map[fsm.ServerID]mMember{}, pools: map[fsm.PoolName][]fsm.Range{}, peers: map[fsm.PeerName]netip.AddrPort{}, links: map[fsm.PeerName]map[string]bool{},
		adverts: map[fsm.AdvertisementName]bool{}, l2: map[fsm.AdvertisementName]string{}, configs: map[string]bool{}, services: map[fsm.ServiceID]mService{},
		owners: map[netip.Addr]map[fsm.ServiceID]mOwner{}, routes: map[netip.Prefix]map[fsm.HopSpec]mHop{}, givenUp: map[netip.Addr]map[mGivenUp]rev{},
		leases: map[netip.Addr]mLease{}, granted: map[netip.Addr]rev{}, nodes: map[fsm.NodeID]mNode{}, registers: map[fsm.RegisterID]mObject{},
		holds: map[fsm.HoldID]mHold{}, enrolled: map[fsm.EnrolmentID]mEnrolment{}, drains: map[mDrain]rev{}, aside: map[string]bool{}, moves: map[fsm.ServiceID]mMove{}, policies: map[fsm.PolicyID]mPolicy{}, hosts: map[fsm.HostID]mHost{}, revoked: map[mRevoked]int64{}, tunnels: map[fsm.TunnelID]mTunnel{}, views: map[string]mView{}, drivers: map[string]string{}, balancers: map[fsm.BalancerID]mBalancer{},
		bindings: map[fsm.BindingID]mBinding{}, lines: map[string]mLine{},
	}
}

// apply carries a command out, proposed in an epoch, and tells whether it was allowed.
func (m *model) apply(proposed fsm.Epoch, command fsm.Command) bool {
	defer m.dropQuestions()
	if c, ok := command.(*fsm.NewEpoch); ok {
		return m.newEpoch(c)
	}
	if proposed != m.now.Epoch {
		return false
	}
	switch c := command.(type) {
	case *fsm.InitGroup:
		return m.initGroup(c)
	case *fsm.EndQuarantine:
		ok := m.quarantined() && m.quarantine == c.Since
		if ok {
			m.quarantine = rev{}
		}
		return ok
	case *fsm.RaiseFormat:
		ok := m.mayRaise(c.Format)
		if ok {
			m.format = c.Format
		}
		return ok
	case *fsm.PutSettings:
		ok := bounded(c.Settings)
		if ok {
			m.settings = c.Settings
		}
		return ok
	case *fsm.Checkpoint:
		ok := c.Index > m.checkpoint && c.Index < m.now.Index
		if ok {
			m.checkpoint = c.Index
		}
		return ok
	case *fsm.ReportMember:
		return m.reportMember(c)
	case *fsm.ReportAnnounced:
		return m.reportAnnounced(c)
	case *fsm.ReportSessions:
		return m.reportSessions(c)
	case *fsm.ReportAbsences:
		return m.reportAbsences(c)
	case *fsm.RemoveMember:
		return m.removeMember(c.Server)
	case *fsm.PutHold:
		return m.putHold(c)
	case *fsm.ReleaseHold:
		h, ok := m.holds[c.ID]
		if ok {
			h.released = true
			m.holds[c.ID] = h
		}
		return ok
	case *fsm.DeleteHold:
		return drop(m.holds, c.ID)
	case *fsm.ObserveView:
		return m.observeView(c)
	case *fsm.AcceptRewind:
		v, ok := m.views[c.Source]
		if ok {
			v.rewind = true
			m.views[c.Source] = v
		}
		return ok
	case *fsm.PutEnrolment:
		_, exists := m.enrolled[c.ID]
		ok := !exists && c.Node != "" && c.TTL > 0 && isSum.MatchString(string(c.ID)) && m.format >= 2
		if ok {
			m.enrolled[c.ID] = mEnrolment{node: c.Node, outside: c.Outside}
		}
		return ok
	case *fsm.UseEnrolment:
		e, exists := m.enrolled[c.ID]
		ok := exists && e.node == c.Node && e.outside == c.Outside && !e.used
		if ok {
			e.used = true
			m.enrolled[c.ID] = e
		}
		if ok && e.outside {
			m.takeIn(fsm.HostID(e.node))
		}
		return ok
	case *fsm.DeleteEnrolment:
		return drop(m.enrolled, c.ID)
	case *fsm.RegisterHost:
		return m.registerHost(c)
	case *fsm.ReportHosts:
		return m.reportHosts(c)
	case *fsm.RemoveHost:
		return m.removeHost(c.ID)
	case *fsm.Revoke:
		ok := m.format >= 2 && isRevocable.MatchString(string(c.Of)+" "+c.Name) && c.Before >= 0 && (c.Before == 0 || c.Of != "serial" && c.Of != "membership")
		if ok {
			m.revoked[mRevoked{string(c.Of), c.Name}] = c.Before
		}
		return ok
	case *fsm.EndRevocation:
		return drop(m.revoked, mRevoked{string(c.Of), c.Name})
	case *fsm.BeginDrain:
		at := mDrain{c.Of, c.Name}
		if _, already := m.drains[at]; already {
			return m.format >= 2
		}
		ok := m.isThere(at) && m.format >= 2 && (c.Of != "member" || m.staysWithout(c.Name))
		if ok {
			m.drains[at] = m.now
		}
		return ok
	case *fsm.EndDrain:
		at := mDrain{c.Of, c.Name}
		if c.Of == "member" {
			delete(m.aside, c.Name)
		}
		return drop(m.drains, at) || m.isThere(at)
	case *fsm.StepAside:
		since, drained := m.drains[mDrain{"member", c.Name}]
		ok := drained && since == c.Since && (m.aside[c.Name] || !m.announces(c.Name) || m.announcedElsewhere(since))
		if ok {
			m.aside[c.Name] = true
		}
		return ok
	case *fsm.BeginMove:
		return m.beginMove(c)
	case *fsm.EndMove:
		_, known := m.services[c.Service]
		return drop(m.moves, c.Service) || known
	case *fsm.PutPolicy:
		return m.putPolicy(&c.Policy)
	case *fsm.SetPolicyHealth:
		r, exists := m.policies[c.ID]
		if m.format < 2 || !exists || r.uid != c.UID {
			return false
		}
		r.verdicts = map[mProbed]fsm.ProbeVerdict{}
		for _, v := range c.Verdicts {
			if at := (mProbed{v.Address, v.Port}); r.probed[at] && r.verdicts[at] == (fsm.ProbeVerdict{}) {
				r.verdicts[at] = v
			}
		}
		m.policies[c.ID] = r
		return true
	case *fsm.DeletePolicy:
		if r, exists := m.policies[c.ID]; !exists || r.uid != c.UID || m.quarantined() {
			return false
		}
		m.retire(m.policies[c.ID].number, c.ID)
		return drop(m.policies, c.ID)
	case *fsm.NumberNode:
		return m.numberNode(c)
	case *fsm.ReportPolicySupport:
		n, exists := m.nodes[c.Node]
		if m.format < 2 || !exists || c.Boot == "" || n.boot != c.Boot {
			return false
		}
		n.carries = c.Carries
		m.nodes[c.Node] = n
		return true
	case *fsm.PutRegister:
		return c.ID != "" && putObject(m.registers, c.ID, mObject{c.UID, c.Version})
	case *fsm.DeleteRegister:
		return !m.quarantined() && drop(m.registers, c.ID)
	}
	for _, noun := range []func(fsm.Command) (bool, bool){m.applyAddress, m.applyNode, m.applyConfig, m.applyBalancer, m.applyBinding, m.applyTunnel} {
		if ok, known := noun(command); known {
			return ok
		}
	}
	panic(fmt.Sprintf("the model has no rule for %T", command))
}

// isThere tells of something that it exists and is of a kind that can be drained.
func (m *model) isThere(d mDrain) bool {
	_, node := m.nodes[fsm.NodeID(d.name)]
	_, service := m.services[fsm.ServiceID(d.name)]
	return d.of == "node" && node || d.of == "service" && service || d.of == "member" && m.names()[d.name] > 0
}

// beginMove: a Service of its own addresses, which does not ask for all nodes, goes to a node that nothing is in the way of.
func (m *model) beginMove(c *fsm.BeginMove) bool {
	s, known := m.services[c.Service]
	n, there := m.nodes[c.Node]
	if !known || !there || m.format < 2 {
		return false
	}
	if was, moved := m.moves[c.Service]; moved && was.node == c.Node {
		return true
	}
	_, drained := m.drains[mDrain{"node", string(c.Node)}]
	if s.everywhere || m.shares(c.Service) || !n.eligible || n.liveness != 0 || drained {
		return false
	}
	m.moves[c.Service] = mMove{c.Node, m.now}
	return true
}

// movedTo: all who own the address and keep it were moved to one node, and may be.
func (m *model) movedTo(address netip.Addr) fsm.NodeID {
	to := map[fsm.NodeID]bool{}
	for id, o := range m.owners[address] {
		if s, known := m.services[id]; !o.releasing {
			move := m.moves[id]
			if !known || s.everywhere {
				move.node = ""
			}
			to[move.node] = true
		}
	}
	for node := range to {
		if len(to) == 1 {
			return node
		}
	}
	return ""
}

// shares tells whether some address has another owner besides a Service.
func (m *model) shares(id fsm.ServiceID) bool {
	for _, owners := range m.owners {
		staying := 0
		for _, o := range owners {
			if !o.releasing {
				staying++
			}
		}
		if o, owns := owners[id]; owns && !o.releasing && staying > 1 {
			return true
		}
	}
	return false
}

// putPolicy: an object keeps its number; a new one gets what it asks for if nobody else has it, otherwise the next that nobody has.
func (m *model) putPolicy(r *fsm.Policy) bool {
	old, exists := m.policies[r.ID]
	if m.format < 2 || r.ID == "" || exists && old.uid == r.UID && r.Version < old.version {
		return false
	}
	next := mPolicy{mObject{r.UID, r.Version}, old.number, "", old.since, r.Probe.Type, map[mProbed]bool{}, map[mProbed]fsm.ProbeVerdict{}, map[string]mProxied{}}
	for _, b := range r.Backends {
		for _, c := range r.Captures {
			if b.Pod == "" && b.Address.BitLen() == c.Address.BitLen() && r.Probe.Type != "" && r.Probe.Type != "None" {
				next.probed[mProbed{b.Address, fsm.Port{Protocol: c.Port.Protocol, Number: c.Target}}] = true
			}
		}
	}
	for at, v := range old.verdicts {
		if next.probed[at] && old.uid == r.UID && old.probe == r.Probe.Type {
			next.verdicts[at] = v
		}
	}
	for _, p := range r.Proxied {
		since := m.now
		if was, there := old.pods[p.Pod]; there && was.uid == p.UID {
			since = was.since
		}
		next.pods[p.Pod] = mProxied{p.UID, p.Ready, since}
	}
	told := fmt.Sprint(r.UID, r.Created, r.Captures, r.EveryNode, r.Backends, r.Probe)
	for _, p := range r.Proxied {
		p.Since = next.pods[p.Pod].since
		told += fmt.Sprint(p)
	}
	next.told = told
	if !exists || old.uid != r.UID {
		taken := map[uint32]bool{0: true}
		for id, other := range m.policies {
			taken[other.number] = taken[other.number] || id != r.ID
		}
		own := map[uint32]bool{}
		for i, n := range m.numbers { // who had it last
			again := slices.ContainsFunc(m.numbers[i+1:], func(later mNumber) bool { return later.number == n.number })
			if m.mayHold(n) && !again {
				taken[n.number] = taken[n.number] || n.of != r.ID
				own[n.number] = n.of == r.ID
			}
		}
		if next.number = r.Number; taken[r.Number] {
			taken[old.number] = true
			for number := range own { // it may ask for it, but is not given it
				taken[number] = true
			}
			for m.numbered++; taken[m.numbered]; m.numbered++ {
			}
			next.number = m.numbered
		}
	}
	if exists && old.number != next.number {
		m.retire(old.number, r.ID)
	}
	if !exists || old.told != told || old.number != next.number {
		next.since = m.now
	}
	m.policies[r.ID] = next
	return true
}

// takeIn: a host that the group has already stays as it is.
func (m *model) takeIn(id fsm.HostID) {
	if _, known := m.hosts[id]; !known {
		m.hosts[id] = mHost{since: m.now, addresses: "[]"}
	}
}

// registerHost: a host says where it is and under which boot, after an operator or a token took it in.
func (m *model) registerHost(c *fsm.RegisterHost) bool {
	for _, a := range c.Addresses {
		if a == (netip.Addr{}) || a != a.Unmap().WithZone("") {
			return false
		}
	}
	if m.format < 2 || c.ID == "" || c.Boot == "" && !c.Admit {
		return false
	}
	if c.Admit {
		m.takeIn(c.ID)
	}
	h, known := m.hosts[c.ID]
	if !known || c.Boot == "" {
		return known
	}
	if h.boot != c.Boot {
		h.boot, h.acknowledged = c.Boot, rev{}
	}
	h.addresses, h.tunnels = fmt.Sprint(c.Addresses), c.Tunnels
	m.hosts[c.ID] = h
	return true
}

// reportHosts takes the marks that hold and leaves the others.
func (m *model) reportHosts(c *fsm.ReportHosts) bool {
	all := true
	for _, mark := range c.Marks {
		h, known := m.hosts[mark.Host]
		if !known || h.boot == "" || h.boot != mark.Boot || older(mark.Upto, h.acknowledged) || older(m.now, mark.Upto) {
			all = false
			continue
		}
		h.acknowledged = mark.Upto
		m.hosts[mark.Host] = h
	}
	return all
}

// removeHost: with the host go the tokens that would bring it back.
func (m *model) removeHost(id fsm.HostID) bool {
	some := drop(m.hosts, id)
	for sum, e := range m.enrolled {
		if e.outside && !e.used && string(e.node) == string(id) {
			delete(m.enrolled, sum)
			some = true
		}
	}
	return some
}

// mayHold tells whether a node that carries policies out has not acknowledged that a number was given up.
func (m *model) mayHold(n mNumber) bool {
	for _, node := range m.nodes {
		if node.carries && older(node.acknowledged, n.at) {
			return true
		}
	}
	for _, host := range m.hosts {
		if host.boot != "" && older(host.acknowledged, n.at) {
			return true
		}
	}
	return false
}

func (m *model) retire(number uint32, of fsm.PolicyID) {
	m.numbers = slices.DeleteFunc(m.numbers, func(n mNumber) bool { return !m.mayHold(n) })
	if now := (mNumber{number, of, m.now}); m.mayHold(now) { // nobody has acknowledged yet what is happening
		m.numbers = append(slices.DeleteFunc(m.numbers, func(n mNumber) bool { return n.number == number && n.at == m.now }), now)
	}
}

// numberNode: a node has the number that it asks for if no other has it, otherwise the next that none has, and keeps it.
func (m *model) numberNode(c *fsm.NumberNode) bool {
	n, exists := m.nodes[c.ID]
	if m.format < 2 || !exists || n.number != 0 {
		return false
	}
	taken := map[uint32]bool{0: true}
	for _, other := range m.nodes {
		taken[other.number] = true
	}
	if n.number = c.Number; taken[c.Number] {
		for m.numbered++; taken[m.numbered]; m.numbered++ {
		}
		n.number = m.numbered
	}
	m.nodes[c.ID] = n
	return true
}

// names counts the servers of each member.
func (m *model) names() map[string]int {
	out := map[string]int{}
	for _, s := range m.members {
		out[s.name]++
	}
	return out
}

// staysWithout: with this member drained too, more than half would be left, or one of two.
func (m *model) staysWithout(name string) bool {
	all, left := 0, 0
	for n := range m.names() {
		all++
		if _, drained := m.drains[mDrain{"member", n}]; !drained && n != name {
			left++
		}
	}
	return 2*left > all || all == 2 && left == 1
}

func (m *model) announces(name string) bool {
	for _, s := range m.members {
		if s.name == name && s.announced != (rev{}) {
			return true
		}
	}
	return false
}

func (m *model) announcedElsewhere(since rev) bool {
	for _, s := range m.members {
		if _, drained := m.drains[mDrain{"member", s.name}]; !drained && !older(s.announced, since) {
			return true
		}
	}
	return false
}

// removeMember ends the drain of a member with its last server.
func (m *model) removeMember(id fsm.ServerID) bool {
	name := m.members[id].name
	if !drop(m.members, id) {
		return false
	}
	if m.names()[name] == 0 {
		delete(m.drains, mDrain{"member", name})
		delete(m.aside, name)
	}
	return true
}

func (m *model) quarantined() bool { return m.quarantine != rev{} }

// drop deletes what is there.
func drop[K comparable, V any](table map[K]V, key K) bool {
	_, ok := table[key]
	delete(table, key)
	return ok
}

// putObject keeps an object of a source unless it would travel back in time.
func putObject[K comparable](table map[K]mObject, key K, o mObject) bool {
	if old, ok := table[key]; ok && old.uid == o.uid && o.version < old.version {
		return false
	}
	table[key] = o
	return true
}

func bounded(s fsm.Settings) bool { return s.HistoryLimit <= 64 && s.GraveLimit <= 1_000_000 }

func (m *model) initGroup(c *fsm.InitGroup) bool {
	if m.group != "" || c.Group == "" || c.Format == 0 || !bounded(c.Settings) {
		return false
	}
	m.group, m.format, m.settings = c.Group, c.Format, c.Settings
	m.now.Epoch = 1
	return true
}

// newEpoch makes every call that was in flight one that may still happen.
func (m *model) newEpoch(c *fsm.NewEpoch) bool {
	if m.group == "" || c.Group != m.group || c.Epoch <= m.now.Epoch {
		return false
	}
	if l := c.Lineage; l != (fsm.Lineage{}) && (m.format < 2 || l.Group == "" || l.Epoch == 0 || l.Epoch > c.Epoch || len(l.Nonce) > 16) {
		return false
	}
	m.now.Epoch = c.Epoch
	m.quarantine = m.now
	for at, l := range m.lines {
		if l.open {
			l.open, l.unsettled = false, l.attempt
			m.lines[at] = l
			m.countFailure(at, l)
		}
	}
	return true
}

// mayRaise: only when all servers said that they know the format, and somebody said so.
func (m *model) mayRaise(format uint32) bool {
	for _, s := range m.members {
		if s.format < format {
			return false
		}
	}
	return format > m.format && len(m.members) > 0
}

func (m *model) reportMember(c *fsm.ReportMember) bool {
	if c.Server == "" || c.Run == "" || c.Format < m.format {
		return false
	}
	next := mMember{name: c.Name, format: c.Format, run: c.Run}
	old := m.members[c.Server]
	next.excused, next.sessions = old.excused, old.sessions
	if old.run == c.Run {
		next.announced, next.withdrawn = old.announced, old.withdrawn
	}
	m.members[c.Server] = next
	return true
}

// reportAnnounced takes the marks that hold and leaves the others; it is refused when any was left. What was withdrawn was
// announced as well, by whoever announces anything.
func (m *model) reportAnnounced(c *fsm.ReportAnnounced) bool {
	all := true
	for _, mark := range c.Marks {
		s, ok := m.members[mark.Server]
		if !ok || s.run != mark.Run || older(m.now, mark.Upto) || older(m.now, mark.Withdrawn) || mark.Upto != (rev{}) && older(mark.Upto, mark.Withdrawn) ||
			!older(s.announced, mark.Upto) && !older(s.withdrawn, mark.Withdrawn) || m.format < 2 && mark.Withdrawn != (rev{}) {
			all = false
			continue
		}
		if older(s.announced, mark.Upto) {
			s.announced = mark.Upto
		}
		if older(s.withdrawn, mark.Withdrawn) {
			s.withdrawn = mark.Withdrawn
		}
		s.away = fsm.Absence{}
		m.members[mark.Server] = s
	}
	return all
}

// reportSessions takes what members of this run say, in order of peers, and leaves the rest; it is refused when any was left.
func (m *model) reportSessions(c *fsm.ReportSessions) bool {
	all := m.format >= 2
	for _, said := range c.Members {
		s, ok := m.members[said.Server]
		inOrder := len(said.Open) < 2 || said.Open[0].Peer <= said.Open[1].Peer
		if m.format < 2 || !ok || s.run != said.Run || !inOrder {
			all = false
			continue
		}
		s.sessions, s.away = fmt.Sprint("told", said.Open), fsm.Absence{}
		m.members[said.Server] = s
	}
	return all
}

// reportAbsences: what leaders counted grows until somebody hears of the speaker, which is over with its run or boot.
func (m *model) reportAbsences(c *fsm.ReportAbsences) bool {
	if m.format < 2 {
		return false
	}
	all := true
	grows := func(was, now fsm.Absence) bool {
		return now == fsm.Absence{} || now.For >= 0 && was.For <= now.For && now.Holds > 0 && was.Holds <= now.Holds
	}
	for _, said := range c.Members {
		s, ok := m.members[said.Server]
		if !ok || s.run != said.Run || !grows(s.away, said.Absence) {
			all = false
			continue
		}
		s.away = said.Absence
		m.members[said.Server] = s
	}
	for _, said := range c.Nodes {
		n, ok := m.nodes[said.Node]
		if !ok || n.boot != said.Boot || !n.speaks || n.liveness == fsm.NodeUp || !grows(n.away, said.Absence) {
			all = false
			continue
		}
		n.away = said.Absence
		m.nodes[said.Node] = n
	}
	return all
}

// putHold: an operator's word holds for the very set it was given for.
func (m *model) putHold(c *fsm.PutHold) bool {
	if c.ID == "" || len(c.Subjects) == 0 {
		return false
	}
	subjects := fmt.Sprint(c.Subjects)
	old := m.holds[c.ID]
	m.holds[c.ID] = mHold{subjects: subjects, released: old.released && old.subjects == subjects}
	return true
}

// observeView: no kind ever runs back, and another cluster is never taken for this one.
func (m *model) observeView(c *fsm.ObserveView) bool {
	old := m.views[c.Source]
	if c.Source == "" || old.cluster != "" && old.cluster != c.Cluster {
		return false
	}
	next := mView{cluster: c.Cluster, versions: map[string]uint64{}}
	if !old.rewind {
		for kind, version := range old.versions {
			next.versions[kind] = version
		}
	}
	for _, k := range c.Versions {
		if k.Version < next.versions[k.Kind] {
			return false
		}
		next.versions[k.Kind] = k.Version
	}
	m.views[c.Source] = next
	return true
}
