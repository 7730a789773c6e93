// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"
	"time"

	"fairlead.io/fairlead/fsm"
)

// unfit is what no log entry can hold of the newest plans, part by part: such a command is set aside, and what is planned with it goes on.
// Sources refuse objects that it could come from; what is here slipped through.
type unfit struct {
	mu     sync.Mutex
	now    map[Part]map[string]Explanation // of plans that are being proposed
	told   map[Part][]Explanation          // of those before
	logged time.Duration                   // when the newest line was written
}

// mostUnfit bounds how many objects of a part are told of.
const mostUnfit = 1000

// note takes in that a command was set aside.
func (u *unfit) note(part Part, c fsm.Command, outcome fsm.Outcome) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.now == nil {
		u.now = map[Part]map[string]Explanation{}
	}
	if u.now[part] == nil {
		u.now[part] = map[string]Explanation{}
	}
	if len(u.now[part]) < mostUnfit {
		u.now[part][outcome.Subject] = Explanation{
			Kind: tableOf(c), Name: fsm.NameOf(c), Code: WaitsForMend,
			Text: "it cannot be recorded (" + outcome.Have + "), and stays as it was; all else goes on. Make it shorter, or mend the text that is no UTF-8",
		}
	}
}

// turn takes in that a plan of a part was proposed, whose unfit commands are those noted since the one before. It gives the first that is
// new, unless a line was written a moment ago.
func (u *unfit) turn(part Part, now time.Duration) (first Explanation, news bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	var told []Explanation
	for _, key := range sortedKeys(u.now[part]) {
		told = append(told, u.now[part][key])
	}
	delete(u.now, part)
	i := slices.IndexFunc(told, func(e Explanation) bool { return !slices.Contains(u.told[part], e) })
	if u.told == nil {
		u.told = map[Part][]Explanation{}
	}
	if u.told[part] = told; i < 0 || u.logged > 0 && now < u.logged+unfitLine {
		return Explanation{}, false
	}
	u.logged = now
	return told[i], true
}

// unfitLine is how often a line is written at most: tenants may write many objects.
const unfitLine = time.Second

// all is what the newest plans have of it.
func (u *unfit) all() (out []Explanation) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, part := range sortedKeys(u.told) {
		out = append(out, u.told[part]...)
	}
	return out
}

// end forgets everything, with the term.
func (u *unfit) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.now, u.told = nil, nil
}

// tellUnfit tells of what was set aside of a plan, once it was proposed.
func (s *sentry) tellUnfit() {
	if first, news := s.unfit.turn(s.part, s.c.Clock.Now()); news {
		s.c.Log.Warn("set aside: no log entry can hold what is planned of an object; all else goes on",
			slog.Group("object", "kind", first.Kind, "name", first.Name), "why", first.Text)
	}
}

// tableOf is the table that a command writes an object of a user's to, or its own name.
func tableOf(c fsm.Command) string {
	var t fsm.Table
	switch c.(type) {
	case *fsm.PutService, *fsm.JudgeService:
		t = fsm.TableServices
	case *fsm.PutNode:
		t = fsm.TableNodes
	case *fsm.PutPool:
		t = fsm.TablePools
	case *fsm.PutPeer:
		t = fsm.TablePeers
	case *fsm.PutAdvertisement:
		t = fsm.TableAdvertisements
	case *fsm.PutL2Advertisement:
		t = fsm.TableL2Advertisements
	case *fsm.Allocate, *fsm.AdoptAllocation:
		t = fsm.TableAllocations
	case *fsm.SetRoute:
		t = fsm.TableRoutes
	case *fsm.PutDriver:
		t = fsm.TableDrivers
	case *fsm.PutLoadBalancer:
		t = fsm.TableBalancers
	case *fsm.PutBinding, *fsm.AdoptBinding:
		t = fsm.TableBindings
	case *fsm.PutPolicy, *fsm.SetPolicyHealth:
		t = fsm.TablePolicies
	}
	return cmp.Or(string(t), kindOf(c))
}
