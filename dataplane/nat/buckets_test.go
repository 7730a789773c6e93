// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/internal/testkit"
)

// noDraw is of machines that may leave nothing to chance.
func noDraw(int, uint32) uint32 { panic("drawn, though all nodes shall choose alike") }

// hashedEvenly walks a packet with each hash that it could have: it meets every endpoint that may serve it, and each as
// often as it weighs: no bucket could change hands for the shares to be more alike. Of one weight they differ by one at most.
func hashedEvenly(t *rapid.T, rules Ruleset, config Config, services []*desired.Service, p packet) {
	want := kubernetes(config, services, p)
	met := map[netip.AddrPort]int{}
	buckets := 1
	for bucket := 0; bucket < buckets; bucket++ {
		m := newMachine(rules)
		m.draw = noDraw
		m.hash = func(data string, of uint32) uint32 {
			if wanted := hashed(p, want.by); data != wanted {
				t.Fatalf("%+v: hashed %x, want %x", p, data, wanted)
			}
			buckets = int(of)
			return uint32(bucket)
		}
		f := m.walk(p)
		if f.verdict != "translated" || f.masqueraded != masqueraded(config, services, p, f.endpoint) {
			t.Fatalf("%+v, bucket %d: %+v", p, bucket, f)
		}
		met[f.endpoint]++
	}
	for _, e := range want.endpoints {
		for _, other := range want.endpoints {
			if met[e] == 0 || met[e] > 1 && (2*met[e]-1)*want.weights[other] > (2*met[other]+1)*want.weights[e] {
				t.Fatalf("%+v: %s has %d of %d buckets and weighs %d, %s has %d and weighs %d", p, e, met[e], buckets, want.weights[e],
					other, met[other], want.weights[other])
			}
		}
	}
	for _, e := range want.endpoints {
		delete(met, e)
	}
	if len(met) > 0 {
		t.Fatalf("%+v: led to %v, which may not serve it", p, met)
	}
}

// hashed is what makes two flows the same one, or two clients, or two that dial the same address.
func hashed(p packet, by string) string {
	source := string(p.source.AsSlice())
	switch by {
	case "source":
		return source
	case "destination":
		return string(p.destination.AsSlice())
	}
	return string(p.destination.AsSlice()) + string([]byte{p.protocol, 0, 0, 0, byte(p.port >> 8), byte(p.port), 0, 0}) +
		source + string([]byte{byte(p.sourcePort >> 8), byte(p.sourcePort), 0, 0})
}

// Two nodes that know the same Services send a flow to the same endpoint, in whatever order they learned of those, and
// whatever else they are told.
func TestPropertyNodesChooseAlike(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		services := genServices().Draw(t, "services")
		one, other := genConfig().Draw(t, "one"), genConfig().Draw(t, "other")
		other.Node = "n2"
		other.Consistent, other.WithoutSCTP = one.Consistent, one.WithoutSCTP
		var again []*desired.Service
		for _, s := range rapid.Permutation(services).Draw(t, "order") {
			s := *s
			s.Endpoints = rapid.Permutation(s.Endpoints).Draw(t, "endpoints")
			again = append(again, &s)
		}
		here, there := newMachine(planOf(one, services).Ruleset()), newMachine(planOf(other, again).Ruleset())
		for _, p := range rapid.SliceOfN(genPacket(services), 1, 8).Draw(t, "packets") {
			if want := kubernetes(one, services, p); !want.agreed || kubernetes(other, services, p).verdict != want.verdict {
				continue
			}
			p.local = false
			here.draw, there.draw = firstOf, firstOf
			if a, b := here.walk(p), there.walk(p); a.verdict == b.verdict && a.endpoint != b.endpoint {
				t.Fatalf("%+v: %s here, %s there", p, a.endpoint, b.endpoint)
			}
		}
	})
}

// firstOf is the draw of one.
func firstOf(_ int, of uint32) uint32 {
	if of != 1 {
		panic("drawn, though all nodes shall choose alike")
	}
	return 0
}

// An endpoint that leaves takes its own flows along and few others; seen from its end, one that comes does no more.
func TestPropertyEndpointThatLeavesMovesFewFlows(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 140).Draw(t, "endpoints")
		endpoints := someEndpoints(t, n)
		gone := rapid.IntRange(0, n-1).Draw(t, "leaves")
		rest := slices.Delete(slices.Clone(endpoints), gone, gone+1)
		before, after := dealBuckets(targets{at: endpoints}), dealBuckets(targets{at: rest})
		if len(before) != len(after) {
			return // a step: docs/nat.md has how many endpoints those are
		}
		moved := 0
		for b := range before {
			if before[b] != gone && endpoints[before[b]] != rest[after[b]] {
				moved++
			}
		}
		if share := float64(moved) / float64(len(before)); share > 0.15 {
			t.Fatalf("of %d endpoints %s left, and %.2f of the flows to others moved", n, endpoints[gone], share)
		}
	})
}

// someEndpoints are so many in order.
func someEndpoints(t *rapid.T, n int) (out []netip.AddrPort) {
	for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, 4000), n, n, rapid.ID[int]).Draw(t, "numbers") {
		out = append(out, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 8080))
	}
	slices.SortFunc(out, netip.AddrPort.Compare)
	return out
}

// K39, K40: what a scheduler hashes is what its name says, and shares are by weight.
// Rule: K39.
func TestPropertyHashesAreByName(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		config, services := genConfig().Draw(t, "config"), genServices().Draw(t, "services")
		scheduler := rapid.SampledFrom([]string{desired.SourceHash, desired.DestinationHash, desired.ConsistentHash}).Draw(t, "by")
		for _, s := range services {
			s.Local, s.Scheduler, s.SourceRanges = false, scheduler, nil
			for i := range s.Endpoints {
				s.Endpoints[i].Ready = true
			}
		}
		rules := planOf(config, services).Ruleset()
		for _, p := range rapid.SliceOfN(genPacket(services), 1, 4).Draw(t, "packets") {
			if want := kubernetes(config, services, p); len(want.endpoints) > 1 {
				hashedEvenly(t, rules, config, services, p)
			}
		}
	})
}
