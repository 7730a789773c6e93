// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/keep"
)

// EventRemovalHeld is the reason of Events on Services that are absent from what is read of the cluster, and stay until a person has said
// that they are gone. The API server may not have the Service any more; people find the Event by its name.
const EventRemovalHeld = "RemovalHeld"

// tellHolds tells of holds of Services, or of their endpoints, that were not told of in this term. Of one hold a few Services are told: the
// Event says how many there are.
func (r *run) tellHolds(now time.Time) {
	there := map[fsm.HoldID]fsm.Revision{}
	for _, h := range fsm.List[*fsm.Hold](r.view, fsm.TableHolds) {
		if h.Released || h.Of != string(world.KindService) && h.Of != string(world.KindEndpointSlice) {
			continue
		}
		there[h.ID] = h.Since
		if told, known := r.held[h.ID]; known && told == h.Since {
			continue
		}
		var a keep.Allowance
		for _, e := range r.heldOf(h) {
			r.teller.Tell(e.event(r.c.Instance, now), &a, now)
		}
	}
	r.held = there
}

// heldOf are the Events of a hold.
func (r *run) heldOf(h *fsm.Hold) (out []telling) {
	what := "it is"
	if h.Of == string(world.KindEndpointSlice) {
		what = "its endpoints are"
	}
	for _, subject := range h.Subjects {
		id, _, _ := strings.Cut(subject, " ")
		s, known := fsm.Get[*fsm.Service](r.view, fsm.TableServices, id)
		if !known {
			continue
		}
		out = append(out, telling{
			id: s.ID, uid: s.UID, warning: true, reason: EventRemovalHeld, at: h.Since,
			note: fmt.Sprintf("%s absent from what is read of the cluster, as others are: %s. It is served on as before, until it is there again or somebody says "+
				"that it is gone: `fairlead holds release %s` (%d in all)", what, h.Why, h.ID, len(h.Subjects)),
		})
	}
	return out
}
