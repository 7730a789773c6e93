// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"maps"
	"slices"

	"fairlead.io/fairlead/api/desired"
)

// Own is that a rule leaves sockets of a cgroup, and of those below it, alone (balancing §6).
type Own struct {
	Cgroup uint64 // its inode number
	Rule   uint32
}

// Sparing is how pods are found that rules spare, and how the kernel is told.
type Sparing struct {
	// Cgroups gives the cgroups of pods, by UID, as far as they are there.
	Cgroups func(uids []string) map[string]uint64
	// Hold has the kernel spare these, and no others. It may be repeated.
	Hold func(map[Own]bool) error
}

// spared are the pods of this host that rules spare, by UID.
func (c Config) spared(redirects []*desired.Policy) map[string][]uint32 {
	out := map[string][]uint32{}
	for _, d := range redirects {
		if !d.SpareOwn {
			continue
		}
		for _, b := range d.Backends {
			if b.UID != "" && b.Node == c.Node && !slices.Contains(out[b.UID], d.Number) {
				out[b.UID] = append(out[b.UID], d.Number)
			}
		}
	}
	return out
}

// spare tells the kernel where pods are now that rules spare: they come before their cgroups, and their cgroups may come anew.
func (s *Sock) spare() error {
	if s.sparing.Hold == nil {
		return nil
	}
	want := map[Own]bool{}
	for uid, cgroup := range s.sparing.Cgroups(slices.Sorted(maps.Keys(s.spared))) {
		for _, rule := range s.spared[uid] {
			want[Own{cgroup, rule}] = true
		}
	}
	return s.sparing.Hold(want)
}

// respare is spare, where there is anything to spare.
func (s *Sock) respare() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.spared) == 0 {
		return nil
	}
	return s.spare()
}
