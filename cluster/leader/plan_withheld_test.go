// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// Whatever a pool and the cluster have in common, in one family or both: who has an address keeps it, nobody comes to have one of the cluster's, and
// all others are given out before somebody is told that there are none.
func TestPropertyPoolsGiveNoAddressOfTheCluster(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		address := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}) }
		s := newScene(t)
		free := map[netip.Addr]bool{}
		line := "pool p"
		for from := rapid.IntRange(0, 20).Draw(t, "from"); from < 256; {
			to := min(255, from+rapid.IntRange(0, 40).Draw(t, "further"))
			line += fmt.Sprintf(" %s-%s", address(from), address(to))
			for n := from; n <= to; n++ {
				free[address(n)] = true
			}
			from = to + 1 + rapid.IntRange(1, 200).Draw(t, "gap")
		}
		had := rapid.IntRange(0, 5).Draw(t, "had")
		s.line(line)
		for i := range had {
			s.line(fmt.Sprintf("service had%d", i))
		}
		s.group.settle(s.input())
		kept := ownersIn(s)
		for range rapid.IntRange(0, 4).Draw(t, "prefixes") {
			prefix := netip.PrefixFrom(address(rapid.IntRange(0, 255).Draw(t, "prefix")), rapid.IntRange(23, 32).Draw(t, "bits")).Masked()
			switch rapid.IntRange(0, 2).Draw(t, "of") {
			case 0:
				s.options.ClusterCIDRs = append(s.options.ClusterCIDRs, prefix)
			case 1:
				s.serviceCIDRs = append(s.serviceCIDRs, prefix)
			case 2:
				s.line(fmt.Sprintf("node n%d 192.0.2.%d pods=%s", len(s.world.Nodes), len(s.world.Nodes), prefix))
			}
			for a := range free {
				if prefix.Contains(a) {
					delete(free, a)
				}
			}
		}
		for _, a := range kept {
			delete(free, a)
		}
		for i := range rapid.IntRange(0, 12).Draw(t, "new") {
			s.line(fmt.Sprintf("service new%02d", i))
		}
		s.group.settle(s.input())
		lacking := 0
		after := ownersIn(s)
		for _, w := range s.world.Services {
			id := fsm.ServiceID(w.ID.String())
			switch a, has := after[id]; {
			case strings.HasPrefix(w.Name, "had"):
				if a != kept[id] {
					t.Fatalf("%s had %s and has %s", id, kept[id], a)
				}
			case !has:
				lacking++
			case !free[a]:
				t.Fatalf("%s came to have %s", id, a)
			default:
				delete(free, a)
			}
		}
		if lacking > 0 && len(free) > 0 {
			t.Fatalf("%d Services have none of %v", lacking, slices.SortedFunc(maps.Keys(free), netip.Addr.Compare))
		}
	})
}

// ownersIn are the addresses of Services by the record.
func ownersIn(s *scene) map[fsm.ServiceID]netip.Addr {
	out := map[fsm.ServiceID]netip.Addr{}
	for _, a := range fsm.List[*fsm.Allocation](s.group.state.Read(), fsm.TableAllocations) {
		out[a.Service] = a.Address
	}
	return out
}
