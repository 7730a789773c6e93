// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"maps"
	"slices"
	"time"

	"fairlead.io/fairlead/cluster/leader/balancers"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// OutsideInput is what outside load balancers are planned from: the record, and the views as the guards judged them last.
type OutsideInput struct {
	Record *fsm.View
	Views  []Admitted
	// Judged are the answers of drivers to which pods stay, by owner.
	Judged map[string]balancers.Judgement
	// Now is put on proposals for people to read.
	Now time.Time
}

// AskedOutside gives what outside load balancers would be planned from now, as Asked does for Services. An empty input comes with the
// reason: this member does not lead, somebody else looks after them, or the loop had no time before ctx ended.
func (l *Leader) AskedOutside(ctx context.Context) (in OutsideInput, why string) {
	if l.Status().Term == 0 {
		return OutsideInput{}, "this member does not lead"
	}
	if l.c.OutsideBusy != nil {
		if reason, busy := l.c.OutsideBusy(); busy {
			return OutsideInput{}, reason
		}
	}
	reply := make(chan OutsideInput, 1)
	select {
	case l.asksOutside <- reply:
		in = <-reply
	case <-ctx.Done():
	}
	if in.Record == nil {
		return in, "the leader waits for a commit, or has not planned them yet"
	}
	return in, ""
}

// present is what AskedOutside gives, empty before the first plan. It shares nothing that this loop still writes to.
func (o *outsidePlanning) present() OutsideInput {
	if o.seen == nil {
		return OutsideInput{}
	}
	own := origins{of: maps.Clone(o.origins.of)}
	in := OutsideInput{Record: o.c.Record.Read(), Judged: o.judging.judged(), Now: o.c.Clock.Wall()}
	for i := range o.seen {
		in.Views = append(in.Views, own.admit(i, o.said[i].Admit(&o.seen[i])))
	}
	return in
}

// Shows tells whether a source is among those that outside load balancers are planned from.
func (in *OutsideInput) Shows(source string) bool {
	return slices.ContainsFunc(in.Views, func(a Admitted) bool { return a.World != nil && a.World.Source == source })
}

// plan is what the balancers' plan is made from. What is drafted comes first, and takes the place of what the views show; only those say
// what is absent.
func (in *OutsideInput) plan(record *fsm.View, drafted *world.World) balancers.Input {
	seen := new(mergingOutside).merge(in.Views)
	all := seen
	if drafted != nil {
		all = new(mergingOutside).merge(append([]Admitted{{World: drafted, Complete: true}}, in.Views...))
	}
	return outsideInput(all, seen, record, in.Judged, in.Now)
}

// outsideInput joins what is there with what it is worth: what is absent is asked of seen.
func outsideInput(all, seen *merged, record *fsm.View, judged map[string]balancers.Judgement, now time.Time) balancers.Input {
	var deleted []world.Deletion
	for _, v := range seen.views {
		deleted = append(deleted, v.World.Deleted...)
	}
	return balancers.Input{
		Drivers: all.drivers, LoadBalancers: all.balancers, BackendGroups: all.groups, Binds: all.binds,
		BackendRecords: all.records, Pods: all.pods, Services: all.services, Nodes: all.nodes,
		Record: record, MayRemove: seen.mayRemove, Listed: seen.listed, Away: seen.away, Deleted: deleted,
		Judged: judged, Now: now,
	}
}
