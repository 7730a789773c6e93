// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	api "github.com/osrg/gobgp/v3/api"

	"fairlead.io/fairlead/dataplane/bgp"
)

// told is what the speaker was told last, by prefix. It spares reading all of GoBGP's table back for one change: what
// is about to change is read back always, all of it now and then.
type told struct {
	paths map[netip.Prefix][]bgp.Path // nil: read everything
	full  time.Time                   // when everything was read last
}

const (
	fullEvery    = 20 * time.Second // less than the time after which an announcer repeats itself
	lookUpAtMost = 500              // prefixes; above, one look at the table is cheaper than many into it
)

func byPrefix(paths []bgp.Path) map[netip.Prefix][]bgp.Path {
	out := make(map[netip.Prefix][]bgp.Path, len(paths)/2)
	for _, p := range paths {
		out[p.Prefix] = append(out[p.Prefix], p)
	}
	return out
}

// changed returns the prefixes, in order, that are told something else than before, and at least their paths; no
// prefixes, that is nil, if all are to be looked at, and all paths.
func (t *told) changed(d bgp.Desired) (paths map[netip.Prefix][]bgp.Path, look []netip.Prefix) {
	current := t.paths != nil && time.Since(t.full) <= fullEvery
	if current && d.Touched != nil && len(d.Touched) <= lookUpAtMost {
		return byPrefix(bgp.PathsOf(d.Paths, d.Touched)), d.Touched
	}
	paths = byPrefix(d.Paths)
	if !current {
		return paths, nil
	}
	out := []netip.Prefix{}
	for p, now := range paths {
		if !slices.EqualFunc(now, t.paths[p], bgp.Path.Equal) {
			out = append(out, p)
		}
	}
	for p := range t.paths {
		if _, ok := paths[p]; !ok {
			out = append(out, p)
		}
	}
	if len(out) > lookUpAtMost {
		return paths, nil
	}
	slices.SortFunc(out, netip.Prefix.Compare)
	return paths, out
}

// note keeps what was told. Invalid paths are told again, so that their fault is shown again.
func (t *told) note(paths map[netip.Prefix][]bgp.Path, look []netip.Prefix, valid bool) {
	switch {
	case !valid:
		*t = told{}
	case look == nil:
		*t = told{paths: paths, full: time.Now()}
	default:
		for _, p := range look {
			if now := paths[p]; len(now) > 0 {
				t.paths[p] = now
			} else {
				delete(t.paths, p)
			}
		}
	}
}

// observe reads back what GoBGP announces, of the given prefixes or, if that is nil, of all, and to whom.
func (s *Speaker) observe(ctx context.Context, only []netip.Prefix) (bgp.Observed, error) {
	var out bgp.Observed
	for _, f := range []bgp.Family{bgp.IPv4, bgp.IPv6} {
		var look []netip.Prefix
		for _, p := range only {
			if p.IsValid() && bgp.FamilyOf(p.Addr()) == f {
				look = append(look, p)
			}
		}
		if only != nil && look == nil {
			continue
		}
		paths, err := s.listPaths(ctx, api.TableType_GLOBAL, "", f, look...)
		if err != nil {
			return out, fmt.Errorf("list %s paths: %w", f, err)
		}
		out.Paths = append(out.Paths, paths...)
	}
	peers, err := s.listPeers(ctx)
	if err != nil {
		return out, fmt.Errorf("list peers: %w", err)
	}
	for _, a := range slices.SortedFunc(maps.Keys(peers), netip.Addr.Compare) {
		peer, err := decodePeer(peers[a])
		if err != nil {
			return out, fmt.Errorf("list peers: %w", err)
		}
		out.Peers = append(out.Peers, peer)
	}
	out.Demoted, err = s.listDemoted(ctx)
	if err != nil {
		return out, fmt.Errorf("list demoted peers: %w", err)
	}
	return out, nil
}
