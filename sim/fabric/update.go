// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"fairlead.io/fairlead/sim/fabric/message"
)

// judge tells what is wrong with a speaker's Open: the subcode and why, empty if nothing is.
func (s *Switch) judge(n *neighbour, o message.Open) (code uint8, why string) {
	switch {
	case n == nil:
		return 0, "no such neighbour is configured"
	case o.ASN != n.ASN:
		return message.BadPeerAS, fmt.Sprintf("AS %d: it is configured as %d", o.ASN, n.ASN)
	case !o.RouterID.Is4() || o.RouterID.IsUnspecified() || o.RouterID == s.o.RouterID:
		return 3, fmt.Sprintf("router id %s: must be an IPv4 address of its own", o.RouterID)
	case o.Hold != 0 && o.Hold < 3*time.Second:
		return 6, fmt.Sprintf("hold time %s: must be 0 or from 3s", o.Hold)
	case len(o.Families) == 0 || !slices.IsSorted(o.Families) || len(slices.Compact(slices.Clone(o.Families))) != len(o.Families):
		return 7, "its families must be in order, and at least one"
	case slices.ContainsFunc(o.Families, func(f message.Family) bool { return f != 4 && f != 6 }):
		return 7, "unknown address family"
	case o.AddPath && o.SendMax == 0:
		return 7, "ADD-PATH without a number of paths"
	case o.Restart != nil && (o.Restart.Time < 0 || o.Restart.Time > 4095*time.Second || o.Restart.Stale >= 1<<24*time.Second):
		return 7, "restart times do not fit into a capability"
	}
	return 0, ""
}

// update takes paths and withdrawals.
func (n *session) update(m message.Update) {
	if why := n.fault(m); why != "" {
		n.refuse(message.Notification{Code: message.UpdateError, Subcode: message.BadAttributes, Text: why}, "Update", why)
		return
	}
	s := n.s
	for _, w := range m.Withdrawn {
		k := key{n.member, w.PathID}
		if _, there := s.rib[w.Prefix][k]; there { // others were withdrawn when the session was lost
			s.rib.remove(w.Prefix, k)
			s.touch(w.Prefix)
		}
	}
	for _, a := range m.Announced {
		s.rib.put(a.Prefix, &path{Attributes: m.Attributes, member: n.member, id: a.PathID})
		s.touch(a.Prefix)
	}
	for _, a := range m.Announced {
		if fresh := n.fresh(a.Prefix); fresh > n.most() {
			why := fmt.Sprintf("%d paths of %s: it said that it would send %d", fresh, a.Prefix, n.most())
			n.refuse(message.Notification{Code: message.Cease, Subcode: 1, Text: why}, "Update", why)
			return
		}
	}
}

// fresh counts the paths of a prefix that were announced in this session.
func (n *session) fresh(prefix netip.Prefix) (count int) {
	for k, p := range n.s.rib[prefix] {
		if k.member == n.member && !p.stale {
			count++
		}
	}
	return count
}

// most is how many paths of a prefix the session may have.
func (n *session) most() int {
	if n.addPath() {
		return int(n.open.SendMax)
	}
	return 1
}

func (n *session) addPath() bool { return n.open.AddPath && !n.s.o.OnePath }

// fault tells what is wrong with an update, or nothing.
func (n *session) fault(m message.Update) string {
	if len(m.Withdrawn)+len(m.Announced) == 0 {
		return "it says nothing"
	}
	for _, list := range [][]message.NLRI{m.Withdrawn, m.Announced} {
		seen := map[message.NLRI]bool{}
		for _, one := range list {
			if why := n.faultOf(one); why != "" {
				return fmt.Sprintf("%s: %s", one.Prefix, why)
			}
			if seen[one] {
				return fmt.Sprintf("%s: path id %d is there twice", one.Prefix, one.PathID)
			}
			seen[one] = true
		}
	}
	if len(m.Announced) == 0 {
		return ""
	}
	for _, one := range m.Announced {
		if one.Prefix.Addr().Is4() != m.Attributes.NextHop.Is4() {
			return fmt.Sprintf("%s: next hop %s is of another family", one.Prefix, m.Attributes.NextHop)
		}
	}
	return n.faultOfAttributes(m.Attributes)
}

func (n *session) faultOf(one message.NLRI) string {
	switch {
	case !one.Prefix.IsValid():
		return "no prefix"
	case one.Prefix != one.Prefix.Masked():
		return "bits are set behind the mask"
	case !slices.Contains(n.open.Families, message.FamilyOf(one.Prefix.Addr())):
		return "its family was not agreed on"
	case !slices.Contains(n.s.o.Families, message.FamilyOf(one.Prefix.Addr())):
		return "its family was not agreed on"
	case one.PathID != 0 && !n.addPath():
		return "a path id, and ADD-PATH was not agreed on"
	}
	return ""
}

func (n *session) faultOfAttributes(a message.Attributes) string {
	internal := n.open.ASN == n.s.o.ASN
	switch {
	case !a.NextHop.IsValid(), a.NextHop.IsUnspecified(), a.NextHop.IsMulticast(), a.NextHop.IsLoopback(), a.NextHop.IsLinkLocalUnicast():
		return fmt.Sprintf("next hop %s is no unicast address that can be reached", a.NextHop)
	case a.Origin > 2:
		return fmt.Sprintf("origin %d is unknown", a.Origin)
	case slices.Contains(a.ASPath, n.s.o.ASN):
		return fmt.Sprintf("our own AS %d is in its AS path", n.s.o.ASN)
	case !internal && (len(a.ASPath) == 0 || a.ASPath[0] != n.open.ASN):
		return fmt.Sprintf("its AS path %v does not begin with %d", a.ASPath, n.open.ASN)
	case !internal && a.LocalPref != 0:
		return "a local preference from another AS"
	case internal && a.LocalPref == 0:
		return "no local preference"
	}
	return ""
}
