// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"hash/fnv"
	"net/netip"
	"slices"
)

// AssignPathIDs returns paths in order, each with the identifier that tells it apart from the others of its prefix.
//
// An identifier is a hash of the next hop, and of who is sent the path where that is not everybody: a path that others are sent
// is another one, which comes before the former goes; of two next hops of one prefix that collide, the greater one takes the next
// free number. So identifiers are unique per prefix, never 0, independent of the order of paths and of what was
// announced before, and hence equal on all speakers. A next hop nearly always keeps its number; where a new neighbour
// does move it, Plan announces the path anew before the old one goes.
func AssignPathIDs(paths []Path) []Path {
	return assignPathIDs(nil, paths, hashNextHop)
}

// AssignPathIDsIn does the same in the memory of another list, which it writes over.
func AssignPathIDsIn(list, paths []Path) []Path {
	return assignPathIDs(list, paths, hashNextHop)
}

func assignPathIDs(list, paths []Path, hash func(netip.Addr) uint32) []Path {
	out := append(list[:0], paths...)
	for i := range out {
		out[i].PathID = 0
	}
	slices.SortFunc(out, Path.Compare)
	taken := map[uint32]bool{}
	for i := range out {
		if i == 0 || out[i].Prefix != out[i-1].Prefix {
			clear(taken)
		}
		id := hash(out[i].NextHop) ^ out[i].audience()
		for id = rankedID(id, out[i].Withheld); id == 0 || taken[id]; {
			id = rankedID(id+1, out[i].Withheld)
		}
		taken[id] = true
		out[i].PathID = id
	}
	return out
}

// rankedID puts the identifiers of paths that some peers are not sent behind those of all others: of equally good paths a speaker takes the
// one of the lowest for the best, and the best is all that a peer without ADD-PATH is sent.
func rankedID(id uint32, withheld bool) uint32 {
	if withheld {
		return id | 1<<31
	}
	return id &^ (1 << 31)
}

func hashNextHop(a netip.Addr) uint32 {
	h := fnv.New32a()
	b := a.As16()
	h.Write(b[:])
	return h.Sum32()
}
