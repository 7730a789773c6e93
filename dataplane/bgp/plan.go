// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"net/netip"
	"slices"
)

// Observed is what a speaker announces now, read back from its tables.
type Observed struct {
	Paths   []Path       // with their identifiers
	Peers   []Peer       // normal; Name and Demoted do not count
	Demoted []netip.Addr // peers that are sent demoted paths; may name peers that are gone
}

// Action says what a Step does.
type Action uint8

// The actions, in the order in which Plan puts them.
const (
	SetDemoted  Action = iota // make Step.Demoted the set of demoted peers, and tell those that it changes for
	AddPath                   // announce a path; one with its identifier is replaced without a gap
	RemovePath                // withdraw a path
	AddPeer                   // open a session
	TunePeer                  // change a peer without touching its session
	RestartPeer               // change a peer by a new session, without the peer dropping our paths in between
	RemovePeer                // end a session for good: the peer drops our paths at once
)

// String names the action.
func (a Action) String() string {
	names := [...]string{"set demoted", "add path", "remove path", "add peer", "tune peer", "restart peer", "remove peer"}
	if int(a) < len(names) {
		return names[a]
	}
	return "unknown action"
}

// Step is one change of a speaker. The field that its Action speaks of is set. A speaker that starts has as many as there are paths.
type Step struct {
	Action  Action
	Path    Path
	Peer    *Peer
	Demoted []netip.Addr // sorted
}

// Plan returns the steps by which a speaker of the AS asn gets from observed to desired, in an order that is safe to
// stop and to begin anew after any step:
//
//   - who is to be demoted is so before anything else, so that no new path is seen at full rank; who is to be no longer
//     is so last, after stale paths are gone;
//   - paths come before others go, and fresh ones before those that replace another under its identifier; but where a peer would have more
//     of a prefix than it is to be sent, some go first, and some come last;
//   - peers come once the whole table is loaded, since a switch drops what a returning speaker does not announce at
//     once, and go last; a peer that changed is the only one whose session is touched, and only if it must.
//
// What is invalid in desired is left out, except that a peer which is there stays as it is; the error tells. Plan of
// what is there already is empty.
func Plan(asn uint32, desired Desired, observed Observed) ([]Step, error) {
	normal, err := desired.Normal(asn)
	for _, p := range desired.Peers {
		a := p.Address.Unmap()
		if i := indexPeer(observed.Peers, a); i >= 0 && indexPeer(normal.Peers, a) < 0 {
			kept := observed.Peers[i]
			kept.Demoted = p.Demoted || desired.Demoted
			normal.Peers = append(normal.Peers, kept)
		}
	}
	slices.SortFunc(normal.Peers, comparePeers)

	steps := make([]Step, 0, max(2, normal.Paths.Len()-len(observed.Paths)))
	final := demotedPeers(normal.Peers)
	demoted := slices.Clone(final)
	for _, a := range observed.Demoted { // those that this plan undemotes stay demoted until its end
		if !slices.Contains(demoted, a) && indexPeer(normal.Peers, a) >= 0 {
			demoted = append(demoted, a)
		}
	}
	slices.SortFunc(demoted, netip.Addr.Compare)
	if !slices.Equal(demoted, slices.SortedFunc(slices.Values(observed.Demoted), netip.Addr.Compare)) {
		steps = append(steps, Step{Action: SetDemoted, Demoted: demoted})
	}
	steps = planPaths(steps, normal.Paths, observed.Paths, limitsOf(normal.Peers))
	steps = append(steps, planPeers(normal.Peers, observed.Peers)...)
	if !slices.Equal(final, demoted) {
		steps = append(steps, Step{Action: SetDemoted, Demoted: final})
	}
	return steps, err
}

func demotedPeers(peers []Peer) []netip.Addr {
	var out []netip.Addr
	for _, p := range peers {
		if p.Demoted {
			out = append(out, p.Address)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}

func indexPeer(peers []Peer, a netip.Addr) int {
	return slices.IndexFunc(peers, func(p Peer) bool { return p.Address == a })
}

// planPaths appends the steps that paths need.
func planPaths(steps []Step, desired Paths, observed []Path, most limits) []Step {
	have := make(map[pathKey]Path, len(observed))
	for _, p := range observed {
		have[p.key()] = p
	}
	begin := len(steps) // of fresh ones; there may be as many as there are paths
	var replaced, gone []Step
	for p := range desired.All() {
		old, ok := have[p.key()]
		delete(have, p.key())
		switch {
		case !ok:
			steps = append(steps, Step{Action: AddPath, Path: p})
		case !old.Equal(p):
			replaced = append(replaced, Step{Action: AddPath, Path: p})
		}
	}
	for _, p := range have {
		gone = append(gone, Step{Action: RemovePath, Path: p})
	}
	slices.SortFunc(gone, func(a, b Step) int { return a.Path.Compare(b.Path) })
	x, tight := most.exchange(steps[begin:], gone, observed)
	if !tight {
		return append(append(steps, replaced...), gone...)
	}
	return slices.Concat(steps[:begin], x.firstGo, x.firstCome, replaced, x.lastGo, x.lastCome)
}

func planPeers(desired, observed []Peer) []Step {
	have := make(map[netip.Addr]Peer, len(observed))
	for _, p := range observed {
		have[p.Address] = p
	}
	var added, changed, gone []Step
	for _, p := range desired {
		old, ok := have[p.Address]
		delete(have, p.Address)
		switch {
		case !ok:
			added = append(added, Step{Action: AddPeer, Peer: &p})
		case old.sameOnWire(p):
		case old.sameSession(p):
			changed = append(changed, Step{Action: TunePeer, Peer: &p})
		default:
			changed = append(changed, Step{Action: RestartPeer, Peer: &p})
		}
	}
	for _, p := range have {
		gone = append(gone, Step{Action: RemovePeer, Peer: &p})
	}
	slices.SortFunc(gone, func(a, b Step) int { return comparePeers(*a.Peer, *b.Peer) })
	return slices.Concat(added, changed, gone)
}
