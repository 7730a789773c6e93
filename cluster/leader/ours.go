// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"slices"
	"sync"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// oursAgain is how often to look whether outside load balancers are somebody else's.
const oursAgain = 250 * time.Millisecond

// WaitsForHandover is the code of what waits for another controller to end.
const WaitsForHandover = "handover"

// whileOurs runs parts whenever nobody else looks after outside load balancers, until ctx ends.
func (l *Leader) whileOurs(ctx context.Context, parts []func(context.Context)) {
	if l.c.OutsideBusy == nil {
		runAll(ctx, parts)
		return
	}
	for ctx.Err() == nil {
		reason, busy := l.c.OutsideBusy()
		if busy {
			l.setOutside(OutsideStatus{Waiting: []Explanation{{Kind: string(world.KindDriver), Code: WaitsForHandover, Text: reason}}})
			sleep(ctx, l.c.Clock, oursAgain, nil)
			continue
		}
		ours, end := context.WithCancel(ctx)
		var watching sync.WaitGroup
		watching.Go(func() {
			defer end()
			for !busy && sleep(ours, l.c.Clock, oursAgain, nil) {
				_, busy = l.c.OutsideBusy()
			}
		})
		runAll(ours, parts)
		end()
		watching.Wait()
	}
}

// outsideUnsure tells whether somebody else may look after outside load balancers by now. To be asked before views are read: what
// they show of another one's work is known once it is sure that there is none.
func (l *Leader) outsideUnsure() bool { return l.c.OutsideUnsure != nil && l.c.OutsideUnsure() }

// onlyKnown leaves out of a plan what the record has nothing of yet: another controller may have made it, or be about to.
func onlyKnown(record *fsm.View, proposals []fsm.Proposal) []fsm.Proposal {
	return slices.DeleteFunc(slices.Clone(proposals), func(p fsm.Proposal) bool {
		known := true
		switch c := p.Command.(type) {
		case *fsm.PutBinding:
			_, known = fsm.Get[*fsm.Binding](record, fsm.TableBindings, string(c.ID))
		case *fsm.PutLoadBalancer:
			_, known = fsm.Get[*fsm.LoadBalancer](record, fsm.TableBalancers, string(c.ID))
		}
		return !known
	})
}

// runAll runs parts until ctx ends and all of them have.
func runAll(ctx context.Context, parts []func(context.Context)) {
	var running sync.WaitGroup
	for _, part := range parts {
		running.Go(func() { part(ctx) })
	}
	running.Wait()
}
