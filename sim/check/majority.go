// SPDX-License-Identifier: Apache-2.0

package check

import (
	"maps"
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
)

// members are those of the record, or of the topology while the group is still being formed.
func (s *scene) members() []string {
	v := s.record.View()
	if s.view != nil && !fsm.Differ(s.view, v, fsm.TableMembers) {
		return s.names
	}
	s.view, s.names = v, nil
	for _, m := range fsm.List[*fsm.Member](v, fsm.TableMembers) {
		if !slices.Contains(s.names, m.Name) {
			s.names = append(s.names, m.Name)
		}
		known := s.servers[m.Name]
		if slices.Contains(known, m.Server) { // the row of a former server stays for a while
			continue
		}
		if len(known) > 0 {
			s.waiting[m.Name] = s.now
		}
		s.servers[m.Name] = append(known, m.Server)
	}
	if s.whole = s.whole || len(s.names) >= len(s.topology.Members); !s.whole {
		s.names = s.topology.Members
	}
	return s.names
}

// promotion is how long a leader may take to give a vote to a new server: it takes it in when it is asked, at least twice
// a second; then the server has to be healthy for two seconds, and is looked at every few. Both have to be undisturbed
// meanwhile.
const promotion = 5 * time.Second

// votes tells whether a member must have a vote by now.
func (s *scene) votes(member string) bool {
	_, waits := s.waiting[member]
	return !waits
}

// promotes notes which new servers must have their vote by now.
func (s *scene) promotes() {
	waited := len(s.waiting)
	maps.DeleteFunc(s.waiting, func(member string, since time.Duration) bool {
		return s.leader != "" && s.now-max(since, s.lead) >= promotion && s.worksFor(member, promotion) && s.worksFor(s.leader, promotion)
	})
	if len(s.waiting) < waited {
		s.sounds()
	}
}

// sounds keeps since when a majority of members can be expected to work together.
func (s *scene) sounds() {
	members := s.members()
	well := 0
	for _, m := range members {
		if s.votes(m) && s.runs[m] && s.unexcused(m) && !s.recalling(m) {
			well++
		}
	}
	switch sound := 2*well > len(members); {
	case !sound:
		s.sound = never
	case s.sound == never:
		s.sound = s.now
	}
}
