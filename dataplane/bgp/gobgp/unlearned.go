// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"net/netip"

	wire "github.com/osrg/gobgp/v4/pkg/packet/bgp"
)

// We learn no routes. GoBGP keeps what it is sent, also what its policies refuse, at 380 bytes a path and as much again as its attributes
// have: a switch that sends all that it knows, or makes paths up, would have the memory of each member. GoBGP offers nothing that keeps
// less. But it logs each UPDATE, before it takes paths from it, by the very values that it takes them from: there they are made to name
// one prefix, or none, so that a session keeps one path, whatever it is sent. What GoBGP withdraws or takes for End-of-RIB stays as it is.

// receivedUpdate is what GoBGP says before it takes in an UPDATE.
const receivedUpdate = "received update"

// nothing is the prefix that all paths have that peers send. Policies refuse it, as all others.
var nothing = func() wire.NLRI {
	n, err := wire.NewIPAddrPrefix(netip.PrefixFrom(netip.IPv4Unspecified(), 0))
	if err != nil {
		panic(err) // not before the package is another one
	}
	return n
}()

// unlearn has GoBGP forget the paths of an UPDATE that it is about to take in, and counts them.
func (s *Speaker) unlearn(about attributes) {
	count := 0
	if nlri, ok := about["nlri"].Any().([]wire.PathNLRI); ok {
		count += len(nlri)
		for i := range nlri {
			nlri[i] = wire.PathNLRI{NLRI: nothing}
		}
	}
	attrs, _ := about["path_attributes"].Any().([]wire.PathAttributeInterface)
	for _, a := range attrs {
		if reach, ok := a.(*wire.PathAttributeMpReachNLRI); ok {
			count += len(reach.Value)
			reach.Value = nil
		}
	}
	a, err := netip.ParseAddr(about["Key"].String())
	if err != nil || count == 0 {
		return
	}
	a = s.zoned(a)
	s.sessionsMu.Lock()
	defer s.sessionsMu.Unlock()
	s.refused[a] += count
}
