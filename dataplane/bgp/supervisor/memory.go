// SPDX-License-Identifier: Apache-2.0

package supervisor

import "fairlead.io/fairlead/dataplane/bgp"

// What a child may have in memory. GoBGP has queues without a bound, and does not give back all that was in those of sessions that ended:
// a child that has more than what it announces can need is ended, and the next one has its sessions' paths kept as after a crash.
const (
	memoryAtLeast = 512 << 20
	memoryPerPath = 8 << 10 // in its table and for each peer; GoBGP keeps some 400 bytes and as much again as attributes have
)

// mayHave is how many bytes a child that announces something may have.
func mayHave(desired *bgp.Desired) uint64 {
	if desired == nil {
		return memoryAtLeast
	}
	return memoryAtLeast + memoryPerPath*uint64(desired.Paths.Len())*uint64(1+len(desired.Peers))
}

// mayUse is up to how many bytes a child lets garbage lie: below what it may have, so that it collects before it is ended.
func mayUse(desired *bgp.Desired) uint64 { return mayHave(desired) / 8 * 7 }

// fence ends the child if it has more memory than it may. The caller has the turn.
func (s *Speaker) fence() {
	if s.child == nil {
		return
	}
	has, most := s.child.Memory(), mayHave(s.desired)
	if has <= most {
		return
	}
	s.options.Logger.Error("bgp speaker's process has too much memory, and is ended", "bytes", has, "at_most", most,
		"remedy", "look in the log for peers whose sessions come and go, or that ask for paths again and again")
	s.child.Kill()
}
