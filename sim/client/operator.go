// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// Operator is somebody who looks after the group. What it asks for is asked of one member after the other until one
// answers; what became of it is told once, and in a line of log. It may be nil where nobody wants to know.
type Operator struct{ g *Group }

// Operator is the group's.
func (g *Group) Operator() *Operator { return &Operator{g} }

// ReleaseHold says that a held mass change may go ahead.
func (o *Operator) ReleaseHold(id, reason string, then func(error)) {
	o.ask("release hold "+id, fairleadv1connect.RecordServiceReleaseHoldProcedure,
		&fairleadv1.ReleaseHoldRequest{Id: id, Reason: reason}, &fairleadv1.ReleaseHoldResponse{}, then)
}

// Release releases everything that is held back at present.
func (o *Operator) Release() {
	if !o.g.founded() {
		return
	}
	for _, h := range fsm.List[*fsm.Hold](o.g.o.Record(), fsm.TableHolds) {
		if !h.Released {
			o.ReleaseHold(string(h.ID), "simulated", nil)
		}
	}
}

// AcceptRewind says that an older view of a source is the truth.
func (o *Operator) AcceptRewind(source, reason string, then func(error)) {
	o.ask("accept rewind of "+source, fairleadv1connect.RecordServiceAcceptRewindProcedure,
		&fairleadv1.AcceptRewindRequest{Source: source, Reason: reason}, &fairleadv1.AcceptRewindResponse{}, then)
}

// DrainNode has new flows go past a node, or takes that back.
func (o *Operator) DrainNode(node string, undo bool, then func(error)) {
	what := "drain node " + node
	if undo {
		what = "end the drain of node " + node
	}
	o.ask(what, fairleadv1connect.RecordServiceDrainProcedure,
		&fairleadv1.DrainRequest{Of: string(fsm.DrainNode), Name: node, Undo: undo, Reason: "simulated"}, &fairleadv1.DrainResponse{}, then)
}

// MoveService has the addresses of a Service lead to a node; where no node is named, where they would by themselves.
func (o *Operator) MoveService(service, node string, then func(error)) {
	what := "move " + service + " to " + node
	if node == "" {
		what = "end the move of " + service
	}
	o.ask(what, fairleadv1connect.RecordServiceMoveProcedure,
		&fairleadv1.MoveRequest{Service: service, Node: node, Undo: node == "", Reason: "simulated"}, &fairleadv1.MoveResponse{}, then)
}

// Transfer hands leadership to a member; empty lets the leader pick one.
func (o *Operator) Transfer(to string, then func(error)) {
	o.ask("transfer leadership to "+to, fairleadv1connect.RaftServiceTransferProcedure,
		&fairleadv1.TransferRequest{Server: to, Reason: "simulated"}, &fairleadv1.TransferResponse{}, then)
}

// Add puts a server into the configuration, or changes its suffrage.
func (o *Operator) Add(r *fairleadv1.AddRequest, then func(error)) {
	o.ask("add "+r.GetName(), fairleadv1connect.RaftServiceAddProcedure, r, &fairleadv1.AddResponse{}, then)
}

// Remove takes a server, by its id or name, out of the configuration.
func (o *Operator) Remove(server string, force bool, then func(error)) {
	o.ask("remove "+server, fairleadv1connect.RaftServiceRemoveProcedure,
		&fairleadv1.RemoveRequest{Server: server, Force: force, Reason: "simulated"}, &fairleadv1.RemoveResponse{}, then)
}

// For how long an operator looks whether a member that was removed is to be added again, and how often: the removal itself may still be
// under way when its machine starts anew.
const (
	readmitWithin = 30 * time.Second
	readmitEvery  = time.Second
)

// Readmit adds a member again that was removed and has started with an empty disk; what it is called as a server it says itself. Then is told
// what became of each attempt.
func (o *Operator) Readmit(name, address string, then func(error)) {
	o.readmit(name, address, readmitWithin, then)
}

func (o *Operator) readmit(name, address string, left time.Duration, then func(error)) {
	if left <= 0 {
		return
	}
	o.g.o.World.After(readmitEvery, func() { o.readmit(name, address, left-readmitEvery, then) })
	if !o.g.founded() {
		return
	}
	if _, removed := o.g.o.Record().Revoked(fsm.RevokedMembership, name); !removed {
		return
	}
	o.Status(name, true, func(answer *fairleadv1.StatusResponse, err error) {
		if err == nil {
			o.Add(&fairleadv1.AddRequest{Name: name, ServerId: answer.GetAnsweredBy(), Address: address, Reason: "simulated"}, then)
		}
	})
}

// Snapshot has the leader shorten its log.
func (o *Operator) Snapshot(then func(error)) {
	o.ask("snapshot", fairleadv1connect.RaftServiceSnapshotProcedure,
		&fairleadv1.SnapshotRequest{Reason: "simulated"}, &fairleadv1.SnapshotResponse{}, then)
}

// Finalize raises the format of the record after an upgrade.
func (o *Operator) Finalize(format uint32, then func(error)) {
	o.ask(fmt.Sprint("finalize format ", format), fairleadv1connect.RaftServiceFinalizeProcedure,
		&fairleadv1.FinalizeRequest{Format: format, Reason: "simulated"}, &fairleadv1.FinalizeResponse{}, then)
}

// Status asks one member how the group is doing: by its own knowledge alone if local, which needs no quorum.
func (o *Operator) Status(member string, local bool, then func(*fairleadv1.StatusResponse, error)) {
	answer := &fairleadv1.StatusResponse{}
	o.g.call(OperatorMachine, member, fairleadv1connect.RaftServiceStatusProcedure, &fairleadv1.StatusRequest{Local: local}, answer,
		quickly, func(err error) { then(answer, err) })
}

// Watch has an operator ask for the status of the group from time to time, one member after the other, and publishes what he is told of health.
func (o *Operator) Watch(every time.Duration) {
	turn, began := turn{g: o.g}, o.g.o.World.Now()
	o.g.o.World.After(every, func() { o.Watch(every) })
	turn.n = int(began / every)
	if turn.whom() == "" {
		return
	}
	o.Status(turn.whom(), false, func(answer *fairleadv1.StatusResponse, err error) {
		if err != nil {
			return
		}
		servers, judges := map[string]int{}, false
		for _, m := range answer.GetMembers() {
			servers[m.GetName()]++
			judges = judges || m.GetLeader() && m.GetServerId() == answer.GetAnsweredBy()
		}
		if !judges {
			return // others pass on what the leader says, but for one that is no member any more, which the leader tells nothing
		}
		for _, m := range answer.GetMembers() {
			if servers[m.GetName()] > 1 {
				continue // one of them is gone, and nobody outside can tell which
			}
			o.g.o.World.Publish(event.Judged{Member: m.GetName(), Leader: answer.GetLeader(), Healthy: m.GetHealthy(), Why: m.GetUnhealthy(), Asked: began})
		}
	})
}

// How long an operator waits for a look, and for a change, which may have to wait for another one.
const (
	quickly  = 10 * time.Second
	changing = 20 * time.Second
)

// errNobody says that there was nobody to ask.
var errNobody = errors.New("there is no member to ask")

// ask asks each member once, until one answers or may have done it.
func (o *Operator) ask(what, procedure string, request, answer proto.Message, then func(error)) {
	o.try(what, func(member string, done func(error)) {
		o.g.call(OperatorMachine, member, procedure, request, answer, changing, done)
	}, then)
}

// try makes a call to each member once, until one answers or may have done it.
func (o *Operator) try(what string, call func(member string, done func(error)), then func(error)) {
	o.tryFrom("", what, call, then)
}

// tryFrom is try that begins with a member, if it is one.
func (o *Operator) tryFrom(first, what string, call func(member string, done func(error)), then func(error)) {
	members := slices.Clone(o.g.o.Members())
	if i := slices.Index(members, first); i > 0 {
		members = append([]string{first}, slices.Delete(members, i, i+1)...)
	}
	var from func(int, error)
	from = func(i int, last error) {
		if i == len(members) {
			o.over(what, last, then)
			return
		}
		call(members[i], func(err error) {
			if err != nil && Sure(err) && !errors.Is(err, admin.Invalid) {
				from(i+1, err)
				return
			}
			o.over(what, err, then)
		})
	}
	from(0, errNobody)
}

func (o *Operator) over(what string, err error, then func(error)) {
	line := event.Log{Process: OperatorMachine, Level: "INFO", Text: what}
	if err != nil {
		line.Level, line.Fields = "WARN", fmt.Sprintf("err=%v", err)
	}
	o.g.o.World.Publish(line)
	if then != nil {
		then(err)
	}
}
