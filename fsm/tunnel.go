// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"slices"
)

// formatTunnels is the first format with tunnels.
const formatTunnels uint32 = 2

// TunnelSettings are how hosts reach each other by tunnels, whatever carries their pods' packets. The zero value has none. From format
// 2 on.
type TunnelSettings struct {
	// Range4 and Range6 are what hosts have tunnel addresses of, one or both.
	Range4 netip.Prefix `pb:"1" json:"range4,omitzero"`
	Range6 netip.Prefix `pb:"2" json:"range6,omitzero"`
	// Over6 has hosts send each other packets of IPv6 with those of both families in them; otherwise these are of IPv4.
	Over6 bool   `pb:"3" json:"over6,omitempty"`
	Port  uint16 `pb:"4" json:"port"` // of UDP, on every host
	VNI   uint32 `pb:"5" json:"vni"`
	// MTU is that of tunnels, in bytes; 0 is what is left of that of the way between hosts, on each host.
	MTU uint32 `pb:"6" json:"mtu,omitempty"`
}

// On tells whether there are tunnels.
func (s TunnelSettings) On() bool { return s.Range4.IsValid() || s.Range6.IsValid() }

// Overhead is what a tunnel adds to a packet, in bytes: the headers of Ethernet, VXLAN, UDP and IP.
func (s TunnelSettings) Overhead() uint32 {
	if s.Over6 {
		return 70
	}
	return 50
}

// mostTunnels bounds the hosts, and with it what each of them has to know.
const mostTunnels = 1 << 16

// Room is how many hosts there are addresses for.
func (s TunnelSettings) Room() uint32 {
	room := uint64(mostTunnels)
	for _, r := range []netip.Prefix{s.Range4, s.Range6} {
		if r.IsValid() {
			room = min(room, uint64(1)<<min(r.Addr().BitLen()-r.Bits(), 32)-2) // neither the first address nor the last
		}
	}
	return uint32(room)
}

// Addresses are those of the host with a number, one of each family that there is a range of, IPv4 first.
func (s TunnelSettings) Addresses(number uint32) (out []netip.Addr) {
	for _, r := range []netip.Prefix{s.Range4, s.Range6} {
		if !r.IsValid() {
			continue
		}
		raw := r.Addr().AsSlice()
		low := raw[len(raw)-4:]
		binary.BigEndian.PutUint32(low, binary.BigEndian.Uint32(low)+number)
		a, _ := netip.AddrFromSlice(raw)
		out = append(out, a)
	}
	return out
}

// Fault says what is wrong with the settings by themselves; empty for nothing.
func (s TunnelSettings) Fault() string {
	if !s.On() {
		if s != (TunnelSettings{}) {
			return "there is no range to take addresses from"
		}
		return ""
	}
	for _, r := range []struct {
		name   string
		prefix netip.Prefix
		is4    bool
		least  int
	}{{"range4", s.Range4, true, 8}, {"range6", s.Range6, false, 32}} {
		p := r.prefix
		switch {
		case p == netip.Prefix{}:
		case !p.IsValid() || p != p.Masked() || p.Addr().Is4In6() || p.Addr().Is4() != r.is4:
			return fmt.Sprintf("%s %s is no range of its family; write it as 10.250.0.0/16 or fd00:250::/64", r.name, p)
		case p.Bits() < r.least || p.Bits() > p.Addr().BitLen()-2:
			return fmt.Sprintf("%s %s has to have a length from %d to %d", r.name, p, r.least, p.Addr().BitLen()-2)
		case p.Addr().IsLoopback() || p.Addr().IsMulticast() || p.Addr().IsLinkLocalUnicast() || p.Addr().IsUnspecified():
			return fmt.Sprintf("%s %s are addresses of another kind; take private ones that nobody else uses", r.name, p)
		}
	}
	switch {
	case s.Port == 0:
		return "the port is missing"
	case s.VNI == 0 || s.VNI >= 1<<24:
		return fmt.Sprintf("the VNI is %d, and is a number from 1 to 16777215", s.VNI)
	case s.MTU != 0 && (s.MTU < 1280 || s.MTU > math.MaxUint16):
		return fmt.Sprintf("the MTU is %d, and is a number from 1280 to 65535, or 0 for what fits", s.MTU)
	}
	return ""
}

// Covers tells whether an address is in one of the ranges.
func (s TunnelSettings) Covers(a netip.Addr) bool {
	return s.Range4.IsValid() && s.Range4.Contains(a) || s.Range6.IsValid() && s.Range6.Contains(a)
}

// Overlap names what of the record has addresses in the ranges; empty for nothing.
func (v *View) Overlap(s TunnelSettings) string { return overlap(v.rows, s) }

func overlap(rows *rows, s TunnelSettings) string {
	for _, n := range list[*Node](rows, TableNodes) {
		if i := slices.IndexFunc(n.Addresses, s.Covers); i >= 0 {
			return fmt.Sprintf("node %s has %s", n.ID, n.Addresses[i])
		}
	}
	for _, p := range list[*Pool](rows, TablePools) {
		for _, r := range p.Ranges {
			if s.Covers(r.From) || s.Covers(r.To) || r.Contains(s.Range4.Addr()) || r.Contains(s.Range6.Addr()) {
				return fmt.Sprintf("pool %s has %s to %s", p.Name, r.From, r.To)
			}
		}
	}
	return ""
}

// Tunnel is a host that others reach by a tunnel. Its addresses are those that the settings have for its number.
type Tunnel struct {
	seal
	Host TunnelID `pb:"1" json:"host"`
	// Number is from 1 up, unlike that of any other host, and stays as long as the row does.
	Number   uint32     `pb:"2" json:"number"`
	Underlay netip.Addr `pb:"3" json:"underlay"` // where others send its packets to
	// Since is when this came to be so: a host that acknowledged it has its tunnel, and knows of this one.
	Since Revision `pb:"4" json:"since"`
	// Leaving says that it is given up: others forget it, and once they did its number is free.
	Leaving bool  `pb:"5" json:"leaving,omitempty"`
	History Trail `pb:"6" json:"history"`
}

// Table is TableTunnels.
func (*Tunnel) Table() Table { return TableTunnels }

// Key names the host.
func (t *Tunnel) Key() string { return string(t.Host) }

// TunnelOf gives the addresses of a host's tunnel, if the host has acknowledged that it has it. They stay with it while
// it runs: a new boot has to say so anew, as for routes (S9).
func (v *View) TunnelOf(id TunnelID) (addresses []netip.Addr, ready bool) {
	t, ok := find[*Tunnel](v.rows, TableTunnels, string(id))
	if !ok || t.Leaving {
		return nil, false
	}
	makes, acknowledged, failed := makerOf(v.rows, id)
	if !makes || acknowledged.IsZero() || acknowledged.Before(t.Since) {
		return nil, false
	}
	for _, a := range v.Group().Tunnels.Addresses(t.Number) {
		if !slices.Contains(failed, HostPrefix(a)) {
			addresses = append(addresses, a)
		}
	}
	return addresses, len(addresses) > 0
}

// makerOf is what the host of a tunnel said: that it makes tunnels, what it carried out, and what it could not.
func makerOf(rows *rows, id TunnelID) (makes bool, acknowledged Revision, failed []netip.Prefix) {
	if outside, is := id.Outside(); is {
		if h, ok := find[*Host](rows, TableHosts, string(outside)); ok {
			return h.Tunnels, h.Acknowledged, nil
		}
		return false, Revision{}, nil
	}
	if n, ok := find[*Node](rows, TableNodes, string(id)); ok {
		return n.Tunnels, n.Acknowledged, n.Failed
	}
	return false, Revision{}, nil
}

// SetTunnels replaces the settings. Numbers stay, where there is an address for them.
type SetTunnels struct {
	Settings TunnelSettings `pb:"1"`
}

// Kind is KindSetTunnels.
func (*SetTunnels) Kind() Kind { return KindSetTunnels }

func (c *SetTunnels) apply(tx *txn) Outcome {
	const subject = "tunnels"
	if out, old := tx.formatBelow(formatTunnels, subject); old {
		return out
	}
	s := c.Settings
	if why := s.Fault(); why != "" {
		return refuse(RejectInvalid, subject, "", why)
	}
	if tx.group().Tunnels == s {
		return tx.ok()
	}
	tunnels := list[*Tunnel](tx.rows, TableTunnels)
	if s.On() {
		if what := overlap(tx.rows, s); what != "" {
			return refuse(RejectOverlap, subject, what, "ranges of nobody else")
		}
		if len(tunnels) > int(s.Room()) {
			return refuse(RejectInUse, subject, fmt.Sprintf("%d hosts", len(tunnels)), fmt.Sprintf("ranges with room for them, not %d", s.Room()))
		}
	}
	g := *tx.group()
	g.Tunnels = s
	what := "tunnels off"
	if s.On() {
		what = "tunnels on"
	}
	g.History = tx.step(g.History, what)
	tx.put(&g)
	for _, t := range tunnels {
		next := *t
		if next.Since = tx.revision(); s.On() && next.Number > s.Room() {
			next.Number = 0
			tx.put(&next) // its number is nobody's before another is looked for
			next.Number, _ = tx.nextTunnel()
			next.History = tx.step(next.History, "renumbered")
		}
		again := next
		tx.put(&again)
	}
	return tx.ok()
}

// PutTunnel gives a host a tunnel, or says where others reach it. It keeps its number; a new one gets one that nobody has, and that
// was not given for as long as possible: a host that nobody heard of for long may have it in its tables.
type PutTunnel struct {
	Host     TunnelID   `pb:"1"`
	Underlay netip.Addr `pb:"2"`
}

// Kind is KindPutTunnel.
func (*PutTunnel) Kind() Kind { return KindPutTunnel }

func (c *PutTunnel) apply(tx *txn) Outcome {
	subject := "tunnel of " + string(c.Host)
	if out, old := tx.formatBelow(formatTunnels, subject); old {
		return out
	}
	s := tx.group().Tunnels
	switch {
	case c.Host == "":
		return refuse(RejectInvalid, "tunnel", "", "a host")
	case !s.On():
		return refuse(RejectWrongState, subject, "tunnels are off", "on")
	case !plain(c.Underlay) || c.Underlay.Is6() != s.Over6 || s.Covers(c.Underlay):
		return refuse(RejectInvalid, subject, "", "an address of the family that carries tunnels, and of no tunnel")
	}
	for _, t := range list[*Tunnel](tx.rows, TableTunnels) {
		if t.Host != c.Host && t.Underlay == c.Underlay && !t.Leaving {
			return refuse(RejectInUse, subject, c.Underlay.String()+" is that of "+string(t.Host), "an address of its own")
		}
	}
	old, known := find[*Tunnel](tx.rows, TableTunnels, string(c.Host))
	next := &Tunnel{Host: c.Host}
	switch {
	case known && !old.Leaving && old.Underlay == c.Underlay:
		return tx.ok()
	case known:
		*next = *old
		next.History = tx.step(old.History, "at "+c.Underlay.String())
	default:
		if out, wait := tx.quarantined(subject); wait {
			return out
		}
		number, ok := tx.nextTunnel()
		if !ok {
			return refuse(RejectInUse, subject, "all addresses of the ranges", "larger ranges")
		}
		next.Number, next.History = number, tx.step(nil, "at "+c.Underlay.String())
	}
	next.Underlay, next.Leaving, next.Since = c.Underlay, false, tx.revision()
	tx.put(next)
	return tx.ok()
}

// nextTunnel is a number that no host has, in turn.
func (tx *txn) nextTunnel() (number uint32, ok bool) {
	taken := map[uint32]bool{}
	for _, t := range list[*Tunnel](tx.rows, TableTunnels) {
		taken[t.Number] = true
	}
	g := *tx.group()
	room := g.Tunnels.Room()
	for range room {
		if g.LastTunnel++; g.LastTunnel > room {
			g.LastTunnel = 1
		}
		if !taken[g.LastTunnel] {
			tx.put(&g)
			return g.LastTunnel, true
		}
	}
	return 0, false
}

// ReleaseTunnel has all hosts forget a host.
type ReleaseTunnel struct {
	Host TunnelID `pb:"1"`
}

// Kind is KindReleaseTunnel.
func (*ReleaseTunnel) Kind() Kind { return KindReleaseTunnel }

func (c *ReleaseTunnel) apply(tx *txn) Outcome {
	subject := "tunnel of " + string(c.Host)
	t, ok := find[*Tunnel](tx.rows, TableTunnels, string(c.Host))
	if !ok {
		return refuse(RejectNotFound, subject, "", "")
	}
	if out, wait := tx.quarantined(subject); wait {
		return out
	}
	if t.Leaving {
		return tx.ok()
	}
	next := *t
	next.Leaving, next.Since, next.History = true, tx.revision(), tx.step(t.History, "given up")
	tx.put(&next)
	return tx.ok()
}

// FreeTunnel ends a tunnel that was given up, once no host has it in its tables: each that makes tunnels and was told of it, the host
// itself too, acknowledged that it is gone.
type FreeTunnel struct {
	Host TunnelID `pb:"1"`
}

// Kind is KindFreeTunnel.
func (*FreeTunnel) Kind() Kind { return KindFreeTunnel }

func (c *FreeTunnel) apply(tx *txn) Outcome {
	subject := "tunnel of " + string(c.Host)
	t, ok := find[*Tunnel](tx.rows, TableTunnels, string(c.Host))
	if !ok {
		return refuse(RejectNotFound, subject, "", "")
	}
	if !t.Leaving {
		return refuse(RejectWrongState, subject, "in use", "given up")
	}
	if out, wait := tx.quarantined(subject); wait {
		return out
	}
	if holder := holderOf(tx.rows, t); holder != "" {
		return refuse(RejectInUse, subject, holder+" may have it in its tables", "that it acknowledges "+t.Since.String())
	}
	tx.bury(t, t.History, "gone")
	return tx.ok()
}

// Holder names a host that may have a tunnel in its tables which was given up, such as "node n1"; empty for none.
func (v *View) Holder(t *Tunnel) string { return holderOf(v.rows, t) }

func holderOf(rows *rows, t *Tunnel) string {
	for _, n := range list[*Node](rows, TableNodes) {
		if n.Tunnels && n.Acknowledged.Before(t.Since) {
			return "node " + string(n.ID)
		}
	}
	own, outside := t.Host.Outside()
	for _, h := range list[*Host](rows, TableHosts) {
		if h.Tunnels && h.Acknowledged.Before(t.Since) && (!outside || h.ID == own) { // hosts outside are not told of each other
			return "host " + string(h.ID)
		}
	}
	return ""
}

// ReportTunnels says whether a node's agent makes tunnels.
type ReportTunnels struct {
	Node    NodeID `pb:"1"`
	Boot    BootID `pb:"2" max:"128"`
	Tunnels bool   `pb:"3"`
}

// Kind is KindReportTunnels.
func (*ReportTunnels) Kind() Kind { return KindReportTunnels }

func (c *ReportTunnels) apply(tx *txn) Outcome {
	n, out := tx.says(c.Node, c.Boot, formatTunnels)
	if n == nil || n.Tunnels == c.Tunnels {
		return out
	}
	next := *n
	next.Tunnels = c.Tunnels
	what := "makes no tunnels any more"
	if c.Tunnels {
		what = "makes tunnels"
	}
	next.History = tx.step(n.History, what)
	tx.put(&next)
	return tx.ok()
}
