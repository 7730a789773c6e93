// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"maps"
	"slices"

	"fairlead.io/fairlead/fsm"
)

// judged are the Services whose endpoints are probed, or of which verdicts are left: few of very many. The zero value has seen no record.
type judged struct {
	record *fsm.View
	byID   map[fsm.ServiceID]*fsm.Service
	list   []*fsm.Service // in order; never written to once it was given out
}

// in gives those of a record, which is at least as new as the one before. It costs what changed since.
func (j *judged) in(record *fsm.View) []*fsm.Service {
	if j.byID == nil {
		j.byID = map[fsm.ServiceID]*fsm.Service{}
	}
	anew := false
	fsm.Changes(j.record, record, fsm.TableServices, func(before, after *fsm.Service) {
		anew = j.drop(before) || anew
		anew = j.add(after) || anew
	})
	j.record = record
	if anew {
		j.list = make([]*fsm.Service, 0, len(j.byID))
		for _, id := range slices.Sorted(maps.Keys(j.byID)) {
			j.list = append(j.list, j.byID[id])
		}
	}
	return j.list
}

// drop forgets one that went, or is another now.
func (j *judged) drop(s *fsm.Service) bool {
	if s == nil || j.byID[s.ID] == nil {
		return false
	}
	delete(j.byID, s.ID)
	return true
}

func (j *judged) add(s *fsm.Service) bool {
	if s == nil || !s.Probe().Wanted() && len(s.Verdicts()) == 0 {
		return false
	}
	j.byID[s.ID] = s
	return true
}
