// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"

	"fairlead.io/fairlead/fsm"
)

// board is what all nodes share: the items as of a revision of the record, and the newest steps towards it, for those who are told
// all of them and for those who are told less.
type board struct {
	record fsm.Reader

	encoding sync.Mutex // held by who encodes everything; before mu
	mu       sync.Mutex
	view     *fsm.View    // what everything here is of
	at       fsm.Revision // its revision
	changed  chan struct{}

	inside  shelf                     // for nodes
	outside shelf                     // for hosts outside the cluster, while there are any
	hosts   bool                      // there are
	homes   map[netip.Addr]fsm.NodeID // the nodes by their addresses; replaced, never written to
	limit   ringLimit
	// followed says that an agent runs on a node, or did.
	followed bool

	// wanted is the newest revision at which a hop of each node came to be wanted, or a port was given up of an address that
	// leads there: its node has to acknowledge that, whether or not anything changed for it.
	wanted map[fsm.NodeID]fsm.Revision
	// policiesSince is the newest revision at which a policy came to be what it is, or gave its number up: those who are told policies
	// have to acknowledge that, whether or not anything changed for them.
	policiesSince fsm.Revision
	// meshed is likewise of tunnels, for those who make them.
	meshed fsm.Revision
	// probed is likewise of what is probed of Services, for those who are told those.
	probed fsm.Revision
	own    own
}

func newBoard(record fsm.Reader) *board {
	return &board{
		record: record, limit: defaultRing(), changed: make(chan struct{}), inside: newShelf(tellsAddresses, tellsAddressed, tellsAll),
		outside: newShelf(tellsAll), wanted: map[fsm.NodeID]fsm.Revision{},
	}
}

// itemTables are what items and wanted hops are made of, ownTables what is each node's own.
func itemTables() []fsm.Table {
	return []fsm.Table{
		fsm.TableAllocations, fsm.TableRoutes, fsm.TableServices, fsm.TableNodes, fsm.TablePolicies, fsm.TableNumbers, fsm.TableTunnels, fsm.TableGroup,
	}
}

func ownTables() []fsm.Table {
	return []fsm.Table{fsm.TableGroup, fsm.TableMembers, fsm.TableNodeConfigs, fsm.TableNodes, fsm.TableHosts, fsm.TableTunnels}
}

// run keeps the board current until ctx ends.
func (b *board) run(ctx context.Context) error {
	for {
		v, err := b.refresh()
		if err != nil {
			return err
		}
		if err := b.record.Wait(ctx, v, append(itemTables(), ownTables()...)...); err != nil {
			return err
		}
	}
}

// wake lets every stream look again.
func (b *board) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wakeLocked()
}

func (b *board) wakeLocked() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// refresh brings the board up to what the record shows now. It costs what changed.
func (b *board) refresh() (*fsm.View, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refreshLocked()
}

// startOver derives everything anew, in place of what changes led to. Whoever has something of that is sent everything.
func (b *board) startOver() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inside.clear()
	b.outside.clear()
	b.view, b.at = nil, fsm.Revision{}
	_, err := b.refreshLocked()
	return err
}

func (b *board) refreshLocked() (*fsm.View, error) {
	v := b.record.Read()
	if b.view != nil && v.Revision().Before(b.at) {
		return v, fmt.Errorf("follow the record: it ran back from %s to %s", b.at, v.Revision())
	}
	first := b.view == nil
	news := first
	if first || b.differs(itemTables()) || b.hosts != anyHosts(v) {
		changed, err := b.deriveItems(v)
		if err != nil {
			return v, err
		}
		news = news || changed
	}
	if first || b.differs(ownTables()) {
		news = b.own.derive(v) || news
	}
	b.view, b.at = v, v.Revision()
	if news {
		b.wakeLocked()
	}
	return v, nil
}

// differs tells whether any of the tables changed since the board's view.
func (b *board) differs(tables []fsm.Table) bool {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	return b.record.Wait(over, b.view, tables...) == nil
}

// deriveItems makes a step of what changed. It tells whether any agent has to hear of it.
func (b *board) deriveItems(v *fsm.View) (bool, error) {
	news := b.at.IsZero() // trays do not tell of their first step
	was := source{b.view, b.homes}
	dirty, serving := map[netip.Addr]bool{}, map[fsm.ServiceID]bool{}
	fsm.Changes(b.view, v, fsm.TableAllocations, either(func(a *fsm.Allocation) { dirty[a.Address], serving[a.Service] = true, true }))
	fsm.Changes(b.view, v, fsm.TableServices, either(func(s *fsm.Service) { serving[s.ID] = true }))
	moved := nodesThatMoved(b.view, v)
	if len(moved) > 0 {
		b.homes = homesOf(v)
	}
	b.noteNodes(v, len(moved) > 0, serving)
	fsm.Changes(b.view, v, fsm.TableRoutes, func(before, after *fsm.Route) {
		either(func(r *fsm.Route) { dirty[r.Prefix.Addr()] = true })(before, after)
		if after != nil {
			news = b.noteWanted(after) || news
		}
	})
	changed := changedItems{
		addresses: slices.SortedFunc(maps.Keys(dirty), netip.Addr.Compare), services: slices.Sorted(maps.Keys(serving)),
		policies: policiesThatChanged(b.view, v), nodes: moved, tunnels: b.tunnelsThatChanged(v),
	}
	for _, note := range []func(*fsm.View) bool{b.noteTunnels, b.notePolicies, b.noteProbes} {
		news = note(v) || news
	}
	b.inside.begin(b.at, v.Revision())
	if b.view != nil {
		if err := was.tellInside(changed, b.inside.was); err != nil {
			return false, err
		}
	}
	if err := (source{v, b.homes}).tellInside(changed, &b.inside); err != nil {
		return false, err
	}
	newsOutside, err := b.deriveOutside(was, v, changed)
	if err != nil {
		return false, err
	}
	newsInside, err := b.inside.push(b.limitFor(v)) // last: what fails before is derived once more, from where it was
	if err != nil {
		return false, err
	}
	return news || newsInside || newsOutside, nil
}

// limitFor is what nodes may be told from steps. As long as no agent registered at any, steps are kept for nobody: the first one is sent
// everything, as is who was away for too long.
func (b *board) limitFor(v *fsm.View) ringLimit {
	if b.view == nil || fsm.Differ(b.view, v, fsm.TableNodes) {
		b.followed = slices.ContainsFunc(fsm.List[*fsm.Node](v, fsm.TableNodes), func(n *fsm.Node) bool { return n.Boot != "" })
	}
	if !b.followed {
		return ringLimit{}
	}
	return b.limit
}

// noteNodes adds the Services of which something else is to be told since nodes went down, came back, or moved. That is rare, so all
// may be looked at.
func (b *board) noteNodes(v *fsm.View, moved bool, serving map[fsm.ServiceID]bool) {
	flipped, from := nodesThatFlipped(b.view, v), source{v, b.homes}
	if len(flipped) == 0 && !moved {
		return
	}
	for _, s := range fsm.List[*fsm.Service](v, fsm.TableServices) {
		if slices.ContainsFunc(s.Endpoints, func(e fsm.Endpoint) bool { return flipped[from.nodeOf(e)] || moved && e.Node == "" }) {
			serving[s.ID] = true
		}
	}
}

// nodesThatFlipped are those that went down or came back.
func nodesThatFlipped(before, after *fsm.View) map[fsm.NodeID]bool {
	out := map[fsm.NodeID]bool{}
	fsm.Changes(before, after, fsm.TableNodes, func(was, is *fsm.Node) {
		if down := func(n *fsm.Node) bool { return n != nil && n.Liveness == fsm.NodeDown }; down(was) != down(is) {
			out[cmp.Or(is, was).ID] = true
		}
	})
	return out
}

// nodesThatMoved are those whose addresses changed, in order.
func nodesThatMoved(before, after *fsm.View) (out []fsm.NodeID) {
	at := func(n *fsm.Node) (addresses, others []netip.Addr) {
		if n == nil {
			return nil, nil
		}
		return n.Addresses, n.Others
	}
	fsm.Changes(before, after, fsm.TableNodes, func(was, is *fsm.Node) {
		before, othersBefore := at(was)
		after, othersAfter := at(is)
		if !slices.Equal(before, after) || !slices.Equal(othersBefore, othersAfter) {
			out = append(out, cmp.Or(is, was).ID)
		}
	})
	slices.Sort(out)
	return out
}

// policiesThatChanged are in order.
func policiesThatChanged(before, after *fsm.View) (out []fsm.PolicyID) {
	fsm.Changes(before, after, fsm.TablePolicies, either(func(r *fsm.Policy) { out = append(out, r.ID) }))
	slices.Sort(out)
	return out
}

// tunnelsThatChanged are in order: all, if the way in which they are made did.
func (b *board) tunnelsThatChanged(after *fsm.View) (out []fsm.TunnelID) {
	if b.view == nil || b.view.Group().Tunnels != after.Group().Tunnels {
		for _, t := range fsm.List[*fsm.Tunnel](after, fsm.TableTunnels) {
			out = append(out, t.Host)
		}
	}
	fsm.Changes(b.view, after, fsm.TableTunnels, either(func(t *fsm.Tunnel) { out = append(out, t.Host) }))
	slices.Sort(out)
	return slices.Compact(out)
}

// homesOf are the nodes by their addresses. Of two that claim the same one it is that which comes first by name.
func homesOf(v *fsm.View) map[netip.Addr]fsm.NodeID {
	out := map[netip.Addr]fsm.NodeID{}
	for _, n := range fsm.List[*fsm.Node](v, fsm.TableNodes) {
		for _, a := range n.Addresses {
			if _, taken := out[a]; !taken {
				out[a] = n.ID
			}
		}
	}
	return out
}

// noteWanted remembers since when nodes have something to acknowledge, and tells whether that is new.
func (b *board) noteWanted(r *fsm.Route) (news bool) {
	for _, h := range r.NextHops {
		if !h.Withdrawing && b.wanted[h.Node()].Before(h.Since) {
			b.wanted[h.Node()], news = h.Since, true
		}
		for _, c := range r.Closing {
			if b.wanted[h.Node()].Before(c.Since) {
				b.wanted[h.Node()], news = c.Since, true
			}
		}
	}
	return news
}

// notePolicies remembers since when there is something to acknowledge of policies, and tells whether that is new.
func (b *board) notePolicies(v *fsm.View) (news bool) {
	note := func(at fsm.Revision) {
		if b.policiesSince.Before(at) {
			b.policiesSince, news = at, true
		}
	}
	fsm.Changes(b.view, v, fsm.TablePolicies, func(_, after *fsm.Policy) {
		if after != nil {
			note(after.Since)
		}
	})
	fsm.Changes(b.view, v, fsm.TableNumbers, func(_, after *fsm.Number) {
		if after != nil {
			note(after.At)
		}
	})
	return news
}

// noteTunnels remembers since when there is something to acknowledge of tunnels, and tells whether that is new.
func (b *board) noteTunnels(v *fsm.View) (news bool) {
	fsm.Changes(b.view, v, fsm.TableTunnels, func(_, after *fsm.Tunnel) {
		if after != nil && b.meshed.Before(after.Since) {
			b.meshed, news = after.Since, true
		}
	})
	return news
}

// noteProbes remembers since when there is something to acknowledge of what is probed of Services, and tells whether that is new.
func (b *board) noteProbes(v *fsm.View) (news bool) {
	fsm.Changes(b.view, v, fsm.TableServices, func(_, after *fsm.Service) {
		if after != nil && b.probed.Before(after.ProbedSince()) {
			b.probed, news = after.ProbedSince(), true
		}
	})
	return news
}

// either visits both sides of a change with what is the same on both.
func either[R interface {
	fsm.Record
	comparable
}](visit func(R)) func(before, after R) {
	var none R
	return func(before, after R) {
		if after != none {
			visit(after)
		} else {
			visit(before)
		}
	}
}
