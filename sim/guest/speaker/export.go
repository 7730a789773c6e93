// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/netip"
	"slices"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/sim/fabric/message"
)

// key stands for a signature with a password.
func key(password bgp.Secret) string {
	if password == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(password))
	return hex.EncodeToString(sum[:8])
}

// flush sends what differs between what is announced and what the switch was sent.
func (n *session) flush() error {
	s := n.p.s
	s.mu.Lock()
	if !n.ready {
		s.mu.Unlock()
		return nil
	}
	out := n.changes()
	first := !n.told
	n.writing = true
	n.updates += uint64(len(out))
	families := n.families()
	if !first || n.peer.Restart.Mode == bgp.RestartNone {
		families = nil
	}
	n.said += uint64(len(out) + len(families))
	s.mu.Unlock()
	for _, m := range out {
		if err := n.write(m); err != nil {
			return err
		}
	}
	for _, f := range families {
		if err := n.write(message.EndOfRIB{Family: f}); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n.writing, n.told = false, true
	n.mend()
	return nil
}

// announcement is a path and its attributes.
type announcement struct {
	message.NLRI
	message.Attributes
}

// changes are the updates that bring the switch up to date: new paths, then those that replace others, then
// withdrawals; but where too many paths of a prefix would meet, those that go do so first.
func (n *session) changes() []message.Message {
	var early, late []message.NLRI
	var fresh, replaced []announcement
	for _, prefix := range slices.SortedFunc(maps.Keys(n.dirty), netip.Prefix.Compare) {
		want, have := n.export(prefix), n.counted(prefix)
		var gone []message.NLRI
		for _, id := range slices.Sorted(maps.Keys(have)) {
			if _, stays := want[id]; !stays {
				gone = append(gone, message.NLRI{Prefix: prefix, PathID: id})
			}
		}
		for _, id := range slices.Sorted(maps.Keys(want)) {
			one := announcement{message.NLRI{Prefix: prefix, PathID: id}, want[id]}
			if was, there := have[id]; !there {
				fresh = append(fresh, one)
			} else if !equal(was, want[id]) {
				replaced = append(replaced, one)
			}
		}
		if len(want)+len(gone) > n.most() {
			early = append(early, gone...)
		} else {
			late = append(late, gone...)
		}
		n.note(prefix, want)
	}
	clear(n.dirty)
	return slices.Concat(withdrawals(early), announcements(fresh), announcements(replaced), withdrawals(late))
}

// loseCount has the library not know any more what it told the switch.
func (n *session) loseCount() {
	n.p.s.mu.Lock()
	defer n.p.s.mu.Unlock()
	for prefix, paths := range n.sent {
		n.lost[prefix] = map[uint32]bool{}
		for id := range paths {
			n.lost[prefix][id] = true
		}
	}
}

// counted is what the library knows of what it told the switch of a prefix.
func (n *session) counted(prefix netip.Prefix) map[uint32]message.Attributes {
	lost := n.lost[prefix]
	if len(lost) == 0 {
		return n.sent[prefix]
	}
	out := maps.Clone(n.sent[prefix])
	maps.DeleteFunc(out, func(id uint32, _ message.Attributes) bool { return lost[id] })
	return out
}

// note keeps what the switch has of a prefix once it is told what it shall have: that, and what the library has lost count of.
func (n *session) note(prefix netip.Prefix, want map[uint32]message.Attributes) {
	delete(n.astray, prefix)
	for id := range n.lost[prefix] {
		if _, again := want[id]; again {
			delete(n.lost[prefix], id) // it is told anew
		} else {
			want[id] = n.sent[prefix][id]
			n.astray[prefix] = true
		}
	}
	if n.sent[prefix] = want; len(want) == 0 {
		delete(n.sent, prefix)
	}
}

// healEvery is how often a session ends at most since its switch has what it is not to have.
const healEvery = time.Minute

// mend ends the session soon if its switch has what it is not to have.
func (n *session) mend() {
	if len(n.astray) == 0 {
		n.heal.Stop()
		return
	}
	wait := time.Duration(0)
	if last := n.p.healed; !last.IsZero() {
		wait = max(0, time.Until(last.Add(healEvery)))
	}
	n.heal.Reset(wait)
}

// most is how many paths of a prefix the switch is sent.
func (n *session) most() int {
	if n.remote.AddPath {
		return int(n.peer.SendMax)
	}
	return 1
}

// export is what the switch shall have of a prefix, by identifier.
func (n *session) export(prefix netip.Prefix) map[uint32]message.Attributes {
	if !slices.Contains(n.families(), message.FamilyOf(prefix.Addr())) {
		return nil
	}
	out := map[uint32]message.Attributes{}
	for _, p := range n.p.s.table[prefix] {
		if len(out) == n.most() {
			break
		}
		p, sent := p.To(n.peer.Name)
		if !sent {
			continue
		}
		id := p.PathID
		if !n.remote.AddPath {
			id = 0
		}
		out[id] = n.attributes(p)
	}
	return out
}

// attributes are those of a path towards the switch, with what demotion changes.
func (n *session) attributes(p bgp.Path) message.Attributes {
	a := message.Attributes{NextHop: p.NextHop, Origin: p.Origin.Code(), MED: p.MED}
	demoted := slices.Contains(n.p.s.demoted, n.peer.Address)
	if demoted {
		a.MED += bgp.DemotionMED
	}
	switch {
	case !n.peer.IBGP():
		a.ASPath = []uint32{n.peer.LocalASN}
	case demoted:
		a.LocalPref = bgp.DemotedLocalPref
	case p.LocalPref == 0:
		a.LocalPref = 100
	default:
		a.LocalPref = p.LocalPref
	}
	for _, c := range p.Communities {
		a.Communities = append(a.Communities, uint32(c))
	}
	for _, c := range p.LargeCommunities {
		a.LargeCommunities = append(a.LargeCommunities, [3]uint32{c.Global, c.Local1, c.Local2})
	}
	return a
}

func equal(a, b message.Attributes) bool {
	return a.NextHop == b.NextHop && a.Origin == b.Origin && a.MED == b.MED && a.LocalPref == b.LocalPref &&
		slices.Equal(a.ASPath, b.ASPath) && slices.Equal(a.Communities, b.Communities) &&
		slices.Equal(a.LargeCommunities, b.LargeCommunities)
}

// announcements packs paths of equal attributes together, in order.
func announcements(list []announcement) (out []message.Message) {
	for len(list) > 0 {
		a := list[0].Attributes
		var same []message.NLRI
		var others []announcement
		for _, one := range list {
			if equal(one.Attributes, a) {
				same = append(same, one.NLRI)
			} else {
				others = append(others, one)
			}
		}
		for _, chunk := range pack(same, a.Room()) {
			out = append(out, message.Update{Attributes: a, Announced: chunk})
		}
		list = others
	}
	return out
}

func withdrawals(list []message.NLRI) (out []message.Message) {
	for _, chunk := range pack(list, message.Attributes{}.Room()) {
		out = append(out, message.Update{Withdrawn: chunk})
	}
	return out
}

// pack splits paths into lists that take no more than so many bytes.
func pack(list []message.NLRI, room int) (out [][]message.NLRI) {
	size := 0
	for i, one := range list {
		if i == 0 || size+one.Size() > room {
			out = append(out, nil)
			size = 0
		}
		size += one.Size()
		out[len(out)-1] = append(out[len(out)-1], one)
	}
	return out
}
