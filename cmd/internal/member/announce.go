// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/appliedstate"
	"fairlead.io/fairlead/dataplane/bgp/derive"
	"fairlead.io/fairlead/fsm"
)

// routes is the record as the announcer sees it: derived anew whenever a table that counts has changed.
type routes struct {
	state   *fsm.State
	self    string     // this member's name
	local   netip.Addr // what sessions are dialled from; unset: the kernel's choice
	secrets derive.Secrets
	log     *slog.Logger
	changed chan struct{}
	holding *holding // nil: nobody waits for peers that are left out

	mu      sync.Mutex
	missing map[fsm.PeerName]bool // already complained about
	from    *fsm.View
	paths   derive.Rollup
	derived bgp.Routes
	settled derive.Settled
	kept    bool // derived holds paths that are not of the record
	silent  bool // members peer with nobody, and derived has no paths
}

func newRoutes(state *fsm.State, self string, c config.BGP, secrets derive.Secrets, log *slog.Logger) *routes {
	return &routes{
		state: state, self: self, local: c.LocalAddress, secrets: secrets, log: log,
		changed: make(chan struct{}, 1), missing: map[fsm.PeerName]bool{},
	}
}

// Routes implements bgp.Source. The revision is the newest at which anything that counts changed: were it that
// of the whole record, reporting it would be a change to report.
func (r *routes) Routes() bgp.Routes {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.from == nil || r.state.Changed(r.from, derive.Tables()...) || !r.silent && r.paths.Stale(r.state.Read()) {
		r.from = r.state.Read()
		r.derive(r.from)
	}
	return r.derived
}

func (r *routes) derive(view *fsm.View) {
	peers, missing := derive.Peers(view, r.secrets)
	// Where nodes alone announce, a member would hold for nobody what is the most of its memory.
	r.silent = len(peers)+len(missing) == 0 && view.Group().Quarantine.IsZero()
	if view.Aside(r.self) {
		peers, missing = nil, nil
	}
	paths, touched, whole := r.pathsOf(view)
	for i := range peers {
		if r.local.IsValid() && r.local.BitLen() == peers[i].Address.BitLen() {
			peers[i].LocalAddress = r.local
		}
	}
	r.sayMissing(missing)
	if r.holding != nil {
		r.holding.peers(peers, addressesOf(view, missing))
	}
	rev := view.Revision()
	next := bgp.Routes{
		Revision: bgp.Revision{Epoch: uint64(rev.Epoch), Index: uint64(rev.Index)}, Paths: paths, Peers: peers,
	}
	if !whole && !r.kept && slices.EqualFunc(peers, r.derived.Peers, bgp.Peer.Equal) {
		next.Since, next.Touched = r.derived.Revision, touched
	}
	r.derived, r.kept = next, !view.Group().Quarantine.IsZero()
}

// pathsOf gives the paths of a view, and what of them differs from those before.
func (r *routes) pathsOf(view *fsm.View) (paths bgp.Paths, touched []netip.Prefix, whole bool) {
	if r.silent {
		r.paths, r.settled = derive.Rollup{}, derive.Settled{}
		return paths, nil, r.derived.Paths.Len() > 0
	}
	paths, touched, whole = r.paths.Follow(view)
	if view.Group().Quarantine.IsZero() {
		r.settled = derive.Settled{View: view, Paths: r.paths.Apart()}
		return paths, touched, whole
	}
	return derive.Keep(view, paths, r.settled), nil, true
}

// before is how many members come before one, by name. Sessions are restarted in that order.
func before(view *fsm.View, self string) (n int) {
	for _, m := range fsm.List[*fsm.Member](view, fsm.TableMembers) {
		if m.Name < self {
			n++
		}
	}
	return n
}

// addressesOf are those of peers of the record.
func addressesOf(view *fsm.View, peers []fsm.PeerName) (out []netip.Addr) {
	for _, name := range peers {
		if p, ok := fsm.Get[*fsm.Peer](view, fsm.TablePeers, string(name)); ok {
			out = append(out, p.Address)
		}
	}
	return out
}

// sayMissing says once of a peer that it is left out, and again if that happens another time.
func (r *routes) sayMissing(missing []fsm.PeerName) {
	for _, name := range missing {
		if !r.missing[name] {
			r.log.Error("peer left out: its password is not on this member", "peer", name)
		}
	}
	clear(r.missing)
	for _, name := range missing {
		r.missing[name] = true
	}
}

// without lists the peers that are left out.
func (r *routes) without() (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.missing {
		names = append(names, string(name))
	}
	slices.Sort(names)
	return names
}

// again has everything derived anew, although the record is what it was: a password is another one.
func (r *routes) again() {
	r.mu.Lock()
	r.from = nil
	r.mu.Unlock()
	r.tell()
}

// Changed implements bgp.Source.
func (r *routes) Changed() <-chan struct{} { return r.changed }

// follow tells the announcer of every change that counts, until ctx ends.
func (r *routes) follow(ctx context.Context) error {
	for {
		view := r.state.Read()
		if err := r.state.Wait(ctx, view, derive.Tables()...); err != nil {
			return nil
		}
		r.tell()
	}
}

func (r *routes) tell() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// standing tells the announcer how this member stands with the group.
type standing struct{ node *cluster.Node }

// Contact implements bgp.Group.
func (s standing) Contact() bgp.Contact {
	c := s.node.Contact()
	out := bgp.Contact{Silence: bgp.Never, Commit: uint64(c.Commit), Applied: uint64(c.Applied)}
	if !c.AsOf.IsZero() {
		out.Silence = time.Since(c.AsOf)
	}
	return out
}

// keptState is applied.state, once the group has a name: before that there is nothing to announce.
type keptState struct {
	folder string
	group  func() string
}

// Load implements bgp.Store.
func (k keptState) Load() (*bgp.Routes, error) {
	group := k.group()
	if group == "" {
		return nil, nil
	}
	return appliedstate.In(k.folder, group).Load()
}

// Save implements bgp.Store.
func (k keptState) Save(r bgp.Routes) error {
	group := k.group()
	if group == "" {
		return errors.New("keep what was announced: this member belongs to no group yet")
	}
	return appliedstate.In(k.folder, group).Save(r)
}
