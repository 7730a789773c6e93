// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
)

// Closing is a port that a Service gave up at an address that leads somewhere: nodes may go on passing it to that
// Service until they are known to have stopped, and so long no other one gets it (S3).
type Closing struct {
	Port    Port      `pb:"1" json:"port"`
	Service ServiceID `pb:"2" json:"service"` // which had it
	Since   Revision  `pb:"3" json:"since"`
}

// formatClosing is the first format in which ports that were given up are remembered. Before it they are free at once.
const formatClosing uint32 = 2

// Lingers names a node to which the address may lead, and which may still pass a closing port to the Service that had
// it. A node that acknowledged what came after it does so no more; nor does one that no path can lead to any longer,
// which is no next hop then. Where nobody asks nodes to acknowledge anything (Settings.Unsteered), they follow the
// cluster by themselves, and only paths that shall not be there any more count.
func (r *Route) Lingers(c Closing, node func(NodeID) *Node, settings Settings) (NodeID, bool) {
	for _, h := range r.NextHops {
		if r.stopped(h, node, settings).Before(c.Since) {
			return h.Node(), true
		}
	}
	return "", false
}

// stopped is up to where a next hop is known to pass nothing on any more that was given up: zero if that is not known.
func (r *Route) stopped(h NextHop, node func(NodeID) *Node, settings Settings) Revision {
	if settings.Unsteered {
		if h.Withdrawing {
			return Revision{}
		}
		return lastRevision()
	}
	if n := node(h.Node()); n != nil && !slices.Contains(n.Failed, r.Prefix) {
		return n.Acknowledged
	}
	return Revision{}
}

// lastRevision is before none.
func lastRevision() Revision { return Revision{Epoch: math.MaxUint64, Index: math.MaxUint64} }

// allStopped is up to where all next hops of a route have stopped: its nodes are looked at once, however many ports are closing.
func (tx *txn) allStopped(r *Route) Revision {
	least := lastRevision()
	for _, h := range r.NextHops {
		if at := r.stopped(h, tx.node, tx.group().Settings); at.Before(least) {
			least = at
		}
	}
	return least
}

// lingering are the closing ports of a route that cannot be given to others yet.
func (tx *txn) lingering(r *Route) []Closing {
	if len(r.Closing) == 0 {
		return nil
	}
	stopped := tx.allStopped(r)
	return slices.DeleteFunc(slices.Clone(r.Closing), func(c Closing) bool { return !stopped.Before(c.Since) })
}

func (tx *txn) node(id NodeID) *Node {
	n, _ := find[*Node](tx.rows, TableNodes, string(id))
	return n
}

// portsChanged remembers what a Service gave up of an address, and forgets what it took up again. An address without a
// route leads nowhere: nothing is to be waited for.
func (tx *txn) portsChanged(a netip.Addr, s ServiceID, had, has []Port) {
	r, routed := find[*Route](tx.rows, TableRoutes, HostPrefix(a).String())
	if !routed || tx.group().Format < formatClosing {
		return
	}
	next := *r
	next.Closing = slices.DeleteFunc(tx.lingering(r), func(c Closing) bool {
		return c.Service == s && slices.Contains(has, c.Port)
	})
	for _, p := range had {
		if !slices.Contains(has, p) {
			next.Closing = append(next.Closing, Closing{Port: p, Service: s, Since: tx.revision()})
		}
	}
	slices.SortStableFunc(next.Closing, compareClosing)
	next.Closing = slices.Compact(next.Closing)
	if !slices.Equal(next.Closing, r.Closing) {
		tx.put(&next)
	}
}

func compareClosing(a, b Closing) int {
	return cmp.Or(cmp.Compare(a.Port.Protocol, b.Port.Protocol), cmp.Compare(a.Port.Number, b.Port.Number), cmp.Compare(a.Service, b.Service), a.Since.Compare(b.Since))
}

// portFree refuses a port that may still lead to another Service, which had it. One that a Service has leads nowhere else:
// it would not have got it.
func (tx *txn) portFree(c *Allocate) (Outcome, bool) {
	r, routed := find[*Route](tx.rows, TableRoutes, HostPrefix(c.Address).String())
	if !routed {
		return Outcome{}, true
	}
	if len(r.Closing) == 0 {
		return Outcome{}, true
	}
	stopped := tx.allStopped(r)
	for _, closing := range r.Closing {
		if closing.Service == c.Service || !slices.Contains(c.Ports, closing.Port) || !stopped.Before(closing.Since) {
			continue
		}
		if node, lingers := r.Lingers(closing, tx.node, tx.group().Settings); lingers {
			return refuse(RejectNotWithdrawn, "address "+c.Address.String()+" port "+closing.Port.String(), string(closing.Service)+" at "+string(node), string(c.Service)), false
		}
	}
	return Outcome{}, true
}
