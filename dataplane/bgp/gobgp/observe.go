// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/osrg/gobgp/v4/api"

	"fairlead.io/fairlead/dataplane/bgp"
)

// told is what the speaker was told last. It spares reading all of GoBGP's table back for one change: what is about to
// change is read back always, all of it now and then.
type told struct {
	paths bgp.Paths
	again time.Time // when everything is to be read back again; zero: at once, what is there is not known or in doubt
}

const (
	fullEvery    = 20 * time.Second // less than the time after which an announcer repeats itself
	fullShare    = 200              // reading everything back takes no more than one part in so many of the time
	fullAtLeast  = 10 * time.Minute // whatever a look took: this process may have stood still
	lookUpAtMost = 500              // prefixes; above, one look at the table is cheaper than many into it
)

// changed returns the prefixes, in order, that are told something else than before; nil if all are to be looked at.
func (t *told) changed(d bgp.Desired) (look []netip.Prefix) {
	if time.Now().After(t.again) {
		return nil
	}
	if look = d.Touched; look == nil || len(look) > lookUpAtMost {
		look = d.Paths.Differing(t.paths)
	}
	if len(look) > lookUpAtMost {
		return nil
	}
	return look
}

// note keeps what was told. Invalid paths are told again, so that their fault is shown again.
func (t *told) note(paths bgp.Paths, valid bool) {
	if t.paths = paths; !valid {
		t.again = time.Time{}
	}
}

// looked notes that everything was read back, which took so long.
func (t *told) looked(took time.Duration) {
	t.again = time.Now().Add(min(max(fullEvery, fullShare*took), fullAtLeast))
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
		paths, err := s.listPaths(ctx, api.TableType_TABLE_TYPE_GLOBAL, "", f, look...)
		if err != nil {
			return out, fmt.Errorf("list %s paths: %w", f, err)
		}
		out.Paths = append(out.Paths, paths...)
	}
	return out, s.observePeers(ctx, &out)
}

// compare reads back all that GoBGP announces, and keeps of it only the paths of prefixes, in order, that are not
// announced as paths say: the rest may be many times what memory is left for.
func (s *Speaker) compare(ctx context.Context, paths bgp.Paths) (other []netip.Prefix, out bgp.Observed, err error) {
	var list, wanted []bgp.Path
	differs := func(prefix netip.Prefix, now []bgp.Path) {
		list = paths.AppendOf(list[:0], prefix)
		wanted = bgp.AssignPathIDsIn(wanted, list)
		if len(wanted) > 0 && announcedAs(wanted, now) {
			return
		}
		other = append(other, prefix)
		out.Paths = append(out.Paths, now...)
	}
	for prefix := range paths.Prefixes() {
		if !prefix.IsValid() {
			other = append(other, prefix)
		}
	}
	for _, f := range families {
		if err := s.readBack(ctx, f, paths, differs); err != nil {
			return nil, out, fmt.Errorf("list %s paths: %w", f, err)
		}
	}
	slices.SortFunc(other, netip.Prefix.Compare)
	slices.SortFunc(out.Paths, bgp.Path.Compare)
	return other, out, s.observePeers(ctx, &out)
}

// readBackAtOnce is how many prefixes are asked for at once. GoBGP copies what it lists first, and does nothing else meanwhile.
const readBackAtOnce = 256

// readBack calls visit once with each prefix of a family that paths are of or that GoBGP announces, and with its paths there, which
// visit must not keep. Those of paths are asked for some at a time; only if GoBGP has others besides, all of it is listed at once.
func (s *Speaker) readBack(ctx context.Context, f bgp.Family, paths bgp.Paths, visit func(netip.Prefix, []bgp.Path)) error {
	there, err := s.server.GetTable(ctx, &api.GetTableRequest{TableType: api.TableType_TABLE_TYPE_GLOBAL, Family: apiFamily(f)})
	if err != nil {
		return err
	}
	left := there.NumDestination
	for some := range slices.Chunk(prefixesOf(paths, f), s.atOnce) {
		absent := make(map[netip.Prefix]bool, len(some))
		for _, prefix := range some {
			absent[prefix] = true
		}
		if left > 0 {
			err := s.eachPrefix(ctx, api.TableType_TABLE_TYPE_GLOBAL, "", f, some, func(prefix netip.Prefix, now []bgp.Path) {
				if absent[prefix] {
					delete(absent, prefix)
					left--
					visit(prefix, now)
				}
			})
			if err != nil {
				return err
			}
		}
		for prefix := range absent {
			visit(prefix, nil)
		}
	}
	if left == 0 {
		return nil
	}
	return s.eachPrefix(ctx, api.TableType_TABLE_TYPE_GLOBAL, "", f, nil, func(prefix netip.Prefix, now []bgp.Path) {
		if !paths.Has(prefix) {
			visit(prefix, now)
		}
	})
}

// prefixesOf gives those of a family that paths are of.
func prefixesOf(paths bgp.Paths, f bgp.Family) (out []netip.Prefix) {
	for p := range paths.Prefixes() {
		if p.IsValid() && bgp.FamilyOf(p.Addr()) == f {
			out = append(out, p)
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
