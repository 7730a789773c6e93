// SPDX-License-Identifier: Apache-2.0

package legacy

import (
	"fmt"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
)

// readNeighbor reads one of neighbors[]. A neighbour that is switched off is none.
func readNeighbor(n node, asn uint32) (bgp.Peer, bool) {
	c := n.child("config")
	p := bgp.Peer{
		Name:      c.text("description"),
		Address:   c.address("neighbor-address", required),
		RemoteASN: uint32(c.number("peer-as", 1, 1<<32-1, required)),
		LocalASN:  uint32(c.number("local-as", 0, 1<<32-1, 0)),
		Password:  bgp.Secret(c.text("auth-password")),
	}
	c.text("peer-type") // follows from the AS numbers
	t := n.child("transport").child("config")
	p.Passive = t.flag("passive-mode", false)
	p.Port = uint16(t.number("remote-port", 0, 65535, 0))
	if a := t.address("local-address", optional); a.IsValid() && !a.IsUnspecified() { // 0.0.0.0 and :: mean any address, as does none
		t.warn("local-address", "not used, since all members read this file", "set bgp.localAddress in a member's controller.yaml")
	}
	readTimers(n.child("timers").child("config"), &p)
	if m := n.child("ebgp-multihop").child("config"); m.flag("enabled", false) {
		p.EBGPMultihop = uint8(m.number("multihop-ttl", 0, 255, 0))
		if p.EBGPMultihop == 0 {
			p.EBGPMultihop = 255
		}
	} else {
		m.number("multihop-ttl", 0, 255, 0)
	}
	a := n.child("add-paths").child("config")
	a.flag("receive", false) // what peers announce is ignored
	p.SendMax = uint8(a.number("send-max", 0, 255, 0))
	readFamilies(n, &p)
	readRestart(n, &p)
	if c.flag("admin-down", false) {
		c.warn("admin-down", "the neighbour is switched off and left out", "remove the neighbour, or admin-down to have it back")
		return p, false
	}
	if c.doc.err == nil {
		if err := p.Validate(asn); err != nil {
			c.fail("neighbor-address", err.Error(), "change the setting named")
		}
	}
	return p, true
}

func readTimers(c node, p *bgp.Peer) {
	p.HoldTime = c.seconds("hold-time")
	p.Keepalive = c.seconds("keepalive-interval")
	p.ConnectRetry = c.seconds("connect-retry")
	c.seconds("idle-hold-time-after-reset") // sessions are never reset by hand here
}

func readFamilies(n node, p *bgp.Peer) {
	for _, f := range n.list("afi-safis") {
		c := f.child("config")
		name := c.text("afi-safi-name")
		on := c.flag("enabled", true)
		a := f.child("add-paths").child("config")
		a.flag("receive", false)
		p.SendMax = max(p.SendMax, uint8(a.number("send-max", 0, 255, 0)))
		switch {
		case !on:
		case name == bgp.IPv4.String():
			p.Families = append(p.Families, bgp.IPv4)
		case name == bgp.IPv6.String():
			p.Families = append(p.Families, bgp.IPv6)
		default:
			c.fail("afi-safi-name", fmt.Sprintf("%q is not announced here", name),
				fmt.Sprintf("use %s or %s", bgp.IPv4, bgp.IPv6))
		}
	}
}

// readRestart reads what is asked of the switch for the time of our absence. Long-lived graceful restart is added to
// what the file says: a switch that does not know it ignores it, one that does stops sending traffic to nodes that died
// while we were away.
func readRestart(n node, p *bgp.Peer) {
	g := n.child("graceful-restart").child("config")
	p.Restart.RestartTime = g.seconds("restart-time")
	if g.seconds("deferral-time") > 0 {
		g.warn("deferral-time", fmt.Sprintf("not used: a member that returns waits %s for the switch", bgp.DefaultDeferral), "remove it")
	}
	p.Restart.Notification = g.flag("notification-enabled", false)
	g.flag("long-lived-enabled", true)
	g.flag("helper-only", false)
	if !g.flag("enabled", true) {
		p.Restart = bgp.GracefulRestart{Mode: bgp.RestartNone}
		g.warn("enabled", "without graceful restart the switch drops all paths whenever the controller restarts", "remove it unless that is wanted")
	} else if p.Restart.RestartTime > bgp.DefaultRestartTime {
		g.warn("restart-time", fmt.Sprintf("the switch keeps sending traffic to the paths of a lost controller for %s, "+
			"also to nodes that died meanwhile", p.Restart.RestartTime),
			"leave it out unless the switch does not know long-lived graceful restart")
	}
	for _, f := range n.list("afi-safis") {
		f.child("mp-graceful-restart").child("config").flag("enabled", true) // goes with the neighbour's
		l := f.child("long-lived-graceful-restart").child("config")
		l.flag("enabled", true)
		p.Restart.StaleTime = max(p.Restart.StaleTime, l.seconds("restart-time"))
	}
	if p.Restart.Mode == bgp.RestartNone {
		p.Restart.StaleTime = 0
	}
}

// seconds reads a time in seconds; 0 if it is not given.
func (n node) seconds(key string) time.Duration {
	return time.Duration(n.number(key, 0, 1<<24-1, 0)) * time.Second
}
