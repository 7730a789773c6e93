// SPDX-License-Identifier: Apache-2.0

package member

import (
	"sync"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/dataplane/bgp/derive"
	"fairlead.io/fairlead/fsm"
)

// shares is what nodes announce themselves, derived once for all of them.
type shares struct {
	mu      sync.Mutex
	view    *fsm.View
	derived derive.Shares
}

// Tables implements agents.Shares.
func (*shares) Tables() []fsm.Table { return append(derive.Tables(), fsm.TableMembers) }

// Of implements agents.Shares.
func (s *shares) Of(v *fsm.View, node fsm.NodeID, have uint64) (*fairleadv1.AnnouncementsResponse, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.view == nil || s.view.Revision().Before(v.Revision()) { // another stream may have been quicker
		s.view = v
		s.derived.Follow(v)
	}
	seq := s.derived.Seq(node)
	if seq == have {
		return nil, seq
	}
	return s.derived.Of(node).Message(), seq
}
