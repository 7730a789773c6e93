// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"time"

	"fairlead.io/fairlead/fsm"
)

// NextCall is what the operator is about to do on a line.
type NextCall struct {
	Action fsm.Action    // zero: it waits for the end of an attempt of an earlier leader
	In     time.Duration // from now, zero for at once
	// UnderWay says that the driver has the call, or is about to get it; Queued that it waits for its turn there.
	UnderWay, Queued bool
}

// questionOfLines asks the operator.
type questionOfLines struct {
	subjects []fsm.Subject
	reply    chan<- map[fsm.Subject]NextCall
}

// NextCalls tells what the operator is about to do about subjects; those that nothing is to be done about are left out. False: this member
// does not operate, or had no time before ctx ended.
func (l *Leader) NextCalls(ctx context.Context, subjects []fsm.Subject) (map[fsm.Subject]NextCall, bool) {
	reply := make(chan map[fsm.Subject]NextCall, 1)
	select {
	case l.asksOperator <- questionOfLines{subjects, reply}:
		return <-reply, true
	case <-ctx.Done():
		return nil, false
	}
}

func (o *operator) nextCalls(subjects []fsm.Subject, now time.Duration) map[fsm.Subject]NextCall {
	out := map[fsm.Subject]NextCall{}
	for _, s := range subjects {
		switch l := o.lines[s]; {
		case l == nil:
		case l.job != nil:
			out[s] = NextCall{Action: l.job.action, UnderWay: true}
		case l.in == &o.alarms:
			out[s] = NextCall{Action: l.errand.action, In: max(0, l.at-now)}
		case l.errand.action != 0:
			out[s] = NextCall{Action: l.errand.action, Queued: true}
		}
	}
	return out
}
