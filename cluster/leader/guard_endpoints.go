// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm/world"
)

// sliceMemory is what this guard has seen of EndpointSlices. The record keeps the endpoints of a Service, not their
// slices, so that only a guard that saw a slice can tell that it is missing.
type sliceMemory struct {
	// of are the UIDs of a Service's slices by name, of those too that are missing.
	of map[world.ID]map[world.ID]string
	// went are Services that have no slice, and may have none.
	went map[world.ID]bool
	// settled: two complete lists were seen, so that no slice is missing that was never seen.
	settled bool
	listed  bool
	lists   uint64        // the first complete list
	began   time.Duration // and when it began
}

func newSliceMemory() sliceMemory {
	return sliceMemory{of: map[world.ID]map[world.ID]string{}, went: map[world.ID]bool{}}
}

// rememberSlices takes in the slices of the view, and forgets those that were seen to be deleted.
func (j *judgement) rememberSlices() {
	m := &j.slices
	view, yielded := j.views[world.KindEndpointSlice]
	if yielded && view.Complete {
		began := j.now - view.ListAge
		if !m.listed {
			m.listed, m.lists, m.began = true, view.Lists, began
		}
		m.settled = m.settled || view.Lists != m.lists && began-m.began >= j.limits.Confirm
	}
	for i := range j.w.EndpointSlices {
		s := &j.w.EndpointSlices[i]
		if m.of[s.Service] == nil {
			m.of[s.Service] = map[world.ID]string{}
		}
		m.of[s.Service][s.ID] = s.UID
		delete(m.went, s.Service)
	}
	for _, d := range j.w.Deleted {
		if d.Kind != world.KindEndpointSlice || d.How != world.ByWatch || j.hasSlice(d.Service, d.ID) {
			continue
		}
		if uid, ok := m.of[d.Service][d.ID]; ok && (uid == d.UID || uid == "" || d.UID == "") {
			m.forget(d.Service, d.ID)
		}
	}
}

func (m *sliceMemory) forget(service, slice world.ID) {
	delete(m.of[service], slice)
	if len(m.of[service]) == 0 {
		delete(m.of, service)
		m.went[service] = true
	}
}

// settle forgets the slices that a Service lacks.
func (m *sliceMemory) settle(j *judgement, service world.ID) {
	for slice := range m.of[service] {
		if !j.hasSlice(service, slice) {
			m.forget(service, slice)
		}
	}
	if len(m.of[service]) == 0 {
		m.went[service] = true
	}
}

// prune forgets what Services without recorded endpoints lack: there is nothing to lose.
func (m *sliceMemory) prune(j *judgement, known map[subject]bool) {
	for service := range m.of {
		if !known[subject{Kind: world.KindEndpointSlice, ID: service}] {
			m.settle(j, service)
		}
	}
	for service := range m.went {
		if !known[subject{Kind: world.KindEndpointSlice, ID: service}] {
			delete(m.went, service)
		}
	}
}

func (j *judgement) hasSlice(service, slice world.ID) bool {
	return slices.ContainsFunc(j.w.SlicesOf(service), func(s world.EndpointSlice) bool { return s.ID == slice })
}

// judgeEndpoints decides whether the recorded endpoints of a Service may shrink to what the view lists.
func (j *judgement) judgeEndpoints(s subject) {
	if why := j.joinBehind(s.ID); why != "" {
		delete(j.sightings, s)
		j.wait(s, why)
		j.relist(world.KindEndpointSlice)
		return
	}
	missing, scanned := j.missingSlices(s.ID)
	none := len(j.w.SlicesOf(s.ID)) == 0
	switch {
	case missing != "" && scanned && j.slices.settled:
		delete(j.sightings, s)
		j.absent[s] = bySight
	case missing != "":
		j.sight(s, missing)
	case none && j.slices.settled && j.slices.went[s.ID]:
		j.grantDeletion(s, "the deletion of its slices was seen")
	case none:
		j.sight(s, "all")
	case !j.slices.settled:
		delete(j.sightings, s)
		j.wait(s, "a second complete list must show that no slice is missing")
		j.relist(world.KindEndpointSlice)
		j.again(j.limits.Confirm)
	default:
		j.seen(s)
	}
}

// joinBehind says why the slices of a Service cannot be told to be none yet: the Service was seen at a version that
// its slices have not reached.
func (j *judgement) joinBehind(service world.ID) string {
	if len(j.w.SlicesOf(service)) > 0 {
		return ""
	}
	i, ok := slices.BinarySearchFunc(j.w.Services, service, func(s world.Service, id world.ID) int { return s.ID.Compare(id) })
	if !ok {
		return ""
	}
	view := j.views[world.KindEndpointSlice]
	if at := j.w.Services[i].Version; at != 0 && view.Version != 0 && view.Version < at {
		return fmt.Sprintf("the Service is at version %d and its slices are seen up to %d", at, view.Version)
	}
	return ""
}

// missingSlices names the slices of a Service that were seen and are not there, and tells whether all of them were
// seen to go by a polled source.
func (j *judgement) missingSlices(service world.ID) (names string, scanned bool) {
	var missing []string
	scanned = true
	for id, uid := range j.slices.of[service] {
		if j.hasSlice(service, id) {
			continue
		}
		missing = append(missing, id.Name)
		scanned = scanned && j.deletionOf(subject{Kind: world.KindEndpointSlice, ID: id, UID: uid}) == world.ByScan
	}
	slices.Sort(missing)
	return strings.Join(missing, " "), scanned && len(missing) > 0
}
