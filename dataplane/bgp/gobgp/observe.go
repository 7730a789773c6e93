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

// told is what the speaker was told last. It spares reading all of GoBGP's table back for one change: what is about to
// change is read back always, all of it now and then.
type told struct {
	paths []bgp.Path // in order
	full  time.Time  // when everything was read last; zero: never, or what is there is in doubt
}

const (
	fullEvery    = 20 * time.Second // less than the time after which an announcer repeats itself
	lookUpAtMost = 500              // prefixes; above, one look at the table is cheaper than many into it
)

// changed returns all paths of d, in order, and the prefixes, in order, that are told something else than before; nil if
// all are to be looked at.
func (t *told) changed(d bgp.Desired) (paths []bgp.Path, look []netip.Prefix) {
	current := !t.full.IsZero() && time.Since(t.full) <= fullEvery
	if current && d.Touched != nil && len(d.Touched) <= lookUpAtMost {
		return d.Paths, d.Touched
	}
	paths = d.Paths
	if !slices.IsSortedFunc(paths, bgp.Path.Compare) {
		paths = slices.SortedFunc(slices.Values(paths), bgp.Path.Compare)
	}
	if !current {
		return paths, nil
	}
	if look = bgp.Differing(paths, t.paths); len(look) > lookUpAtMost {
		return paths, nil
	}
	return paths, look
}

// note keeps what was told, after a look at everything or a part. Invalid paths are told again, so that their fault is
// shown again.
func (t *told) note(paths []bgp.Path, whole, valid bool) {
	switch {
	case !valid:
		*t = told{}
	case whole:
		*t = told{paths: paths, full: time.Now()}
	default:
		t.paths = paths
	}
}

// observe reads back what GoBGP announces of the given prefixes, and to whom.
func (s *Speaker) observe(ctx context.Context, only []netip.Prefix) (bgp.Observed, error) {
	var out bgp.Observed
	for _, f := range families {
		var look []netip.Prefix
		for _, p := range only {
			if p.IsValid() && bgp.FamilyOf(p.Addr()) == f {
				look = append(look, p)
			}
		}
		if look == nil {
			continue
		}
		paths, err := s.listPaths(ctx, api.TableType_GLOBAL, "", f, look...)
		if err != nil {
			return out, fmt.Errorf("list %s paths: %w", f, err)
		}
		out.Paths = append(out.Paths, paths...)
	}
	return out, s.observePeers(ctx, &out)
}

// compare reads back all that GoBGP announces, and keeps of it only the paths of prefixes, in order, that are not
// announced as paths, in order, say: the rest may be many times what memory is left for.
func (s *Speaker) compare(ctx context.Context, paths []bgp.Path) (other []netip.Prefix, out bgp.Observed, err error) {
	right := make([]bool, len(paths)) // by where the paths of a prefix begin
	var scratch []bgp.Path
	differs := func(prefix netip.Prefix, now []bgp.Path) {
		from, to := bgp.RangeOf(paths, prefix)
		scratch = bgp.AssignPathIDsIn(scratch, paths[from:to])
		if from < to && announcedAs(scratch, now) {
			right[from] = true
			return
		}
		other = append(other, prefix)
		out.Paths = append(out.Paths, now...)
	}
	for _, f := range families {
		if err := s.readBack(ctx, f, paths, differs); err != nil {
			return nil, out, fmt.Errorf("list %s paths: %w", f, err)
		}
	}
	for i := range paths {
		if (i == 0 || paths[i].Prefix != paths[i-1].Prefix) && !right[i] {
			other = append(other, paths[i].Prefix)
		}
	}
	slices.SortFunc(other, netip.Prefix.Compare)
	slices.SortFunc(out.Paths, bgp.Path.Compare)
	return slices.Compact(other), out, s.observePeers(ctx, &out)
}

// readBackAtOnce is how many prefixes are asked for at once. GoBGP copies what it lists first, and does nothing else meanwhile.
const readBackAtOnce = 256

// readBack calls visit once with each prefix of a family that GoBGP announces, and its paths, which visit must not keep. Those of
// paths, which are in order, are asked for some at a time; only if GoBGP has others besides, all of it is listed at once.
func (s *Speaker) readBack(ctx context.Context, f bgp.Family, paths []bgp.Path, visit func(netip.Prefix, []bgp.Path)) error {
	there, err := s.server.GetTable(ctx, &api.GetTableRequest{TableType: api.TableType_GLOBAL, Family: apiFamily(f)})
	if err != nil {
		return err
	}
	left := there.NumDestination
	for some := range slices.Chunk(prefixesOf(paths, f), s.atOnce) {
		if left == 0 {
			return nil
		}
		err := s.eachPrefix(ctx, api.TableType_GLOBAL, "", f, some, func(prefix netip.Prefix, now []bgp.Path) {
			if _, asked := slices.BinarySearchFunc(some, prefix, inOrder); asked {
				left--
				visit(prefix, now)
			}
		})
		if err != nil {
			return err
		}
	}
	if left == 0 {
		return nil
	}
	return s.eachPrefix(ctx, api.TableType_GLOBAL, "", f, nil, func(prefix netip.Prefix, now []bgp.Path) {
		if from, to := bgp.RangeOf(paths, prefix); from == to {
			visit(prefix, now)
		}
	})
}

// inOrder is the order of paths.
func inOrder(p, q netip.Prefix) int { return bgp.Path{Prefix: p}.Compare(bgp.Path{Prefix: q}) }

// prefixesOf gives those of a family that paths, which are in order, are of.
func prefixesOf(paths []bgp.Path, f bgp.Family) (out []netip.Prefix) {
	for i, p := range paths {
		if (i == 0 || p.Prefix != paths[i-1].Prefix) && p.Prefix.IsValid() && bgp.FamilyOf(p.Prefix.Addr()) == f {
			out = append(out, p.Prefix)
		}
	}
	return out
}

// announcedAs tells whether all paths of one prefix that are wanted, with their identifiers, are valid and just those that are there.
func announcedAs(wanted, now []bgp.Path) bool {
	if len(wanted) != len(now) {
		return false
	}
	for _, p := range wanted {
		if !slices.ContainsFunc(now, p.Equal) || p.Validate() != nil {
			return false
		}
	}
	return true
}

var families = []bgp.Family{bgp.IPv4, bgp.IPv6}

// observePeers reads back to whom GoBGP announces.
func (s *Speaker) observePeers(ctx context.Context, out *bgp.Observed) error {
	peers, err := s.listPeers(ctx)
	if err != nil {
		return fmt.Errorf("list peers: %w", err)
	}
	for _, a := range slices.SortedFunc(maps.Keys(peers), netip.Addr.Compare) {
		peer, err := decodePeer(peers[a])
		if err != nil {
			return fmt.Errorf("list peers: %w", err)
		}
		out.Peers = append(out.Peers, peer)
	}
	out.Demoted, err = s.listDemoted(ctx)
	if err != nil {
		return fmt.Errorf("list demoted peers: %w", err)
	}
	return nil
}
