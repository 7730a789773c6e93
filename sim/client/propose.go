// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/wire"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/vm"
)

// patience is how long a client waits for an answer: less than any bound on how long new work may take.
const patience = 2 * time.Second

// again is how long a client waits after an error before it asks somebody else.
const again = 50 * time.Millisecond

// began publishes that a call was made, and gives what publishes its end.
func (g *Group) began(c event.CallBegan) (ended func(outcome string, e event.CallEnded)) {
	g.calls++
	c.ID = g.calls
	g.o.World.Publish(c)
	return func(outcome string, e event.CallEnded) {
		e.Client, e.ID, e.Outcome = c.Client, c.ID, outcome
		g.o.World.Publish(e)
	}
}

// Outcomes of calls, as event.CallEnded has them.
const (
	done    = "ok"
	refused = "refused"
	unknown = "unknown"
)

// propose has a member commit a command, and publishes the call. What the record refused was answered all the same.
func (g *Group) propose(c event.CallBegan, command fsm.Command, then func(fsm.Outcome, error)) {
	ended := g.began(c)
	finish := func(o fsm.Outcome, err error) {
		switch {
		case err == nil && o.Reject == fsm.Accepted:
			ended(done, event.CallEnded{Epoch: uint64(o.Revision.Epoch), Index: uint64(o.Revision.Index)})
		case err == nil:
			ended(done, event.CallEnded{Value: o.Reject.String(), Why: o.Err().Error()})
		case Sure(err):
			ended(refused, event.CallEnded{Why: err.Error()})
		default:
			ended(unknown, event.CallEnded{Why: err.Error()})
		}
		then(o, err)
	}
	entry, err := fsm.EncodeEntry(g.epoch(), []fsm.Proposal{{
		Actor: c.Client, Reason: "simulated", AtUnixMilli: vm.Epoch.Add(g.o.World.Now()).UnixMilli(), Command: command,
	}})
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", command, err)) // ours are plain
	}
	request := &fairleadv1.ProposeRequest{Lane: fairleadv1.Lane_LANE_BULK, Proposals: [][]byte{entry}}
	answer := &fairleadv1.ProposeResponse{}
	g.call(Machine, c.To, fairleadv1connect.RecordServiceProposeProcedure, request, answer, patience, func(err error) {
		var outcome fsm.Outcome
		if err == nil {
			outcome, err = outcomeOf(answer)
		}
		finish(outcome, err)
	})
}

func outcomeOf(answer *fairleadv1.ProposeResponse) (o fsm.Outcome, err error) {
	if n := len(answer.GetOutcomes()); n != 1 {
		return o, fmt.Errorf("1 command gave %d outcomes", n)
	}
	return o, wire.Decode(answer.GetOutcomes()[0], &o)
}
