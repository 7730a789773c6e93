// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"slices"

	"fairlead.io/fairlead/cluster/leader/balancers"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// OutsideExplained is a plan of outside load balancers that was made to be asked about. Nothing of it is proposed.
type OutsideExplained struct {
	record  *fsm.View
	in      balancers.Input
	waiting []balancers.Explanation
}

// ExplainOutside plans as the leader does, from the same input. Without views it tells what the record alone says.
func ExplainOutside(in OutsideInput) *OutsideExplained {
	x := &OutsideExplained{record: in.Record, in: balancers.Input{Record: in.Record}}
	if len(in.Views) > 0 {
		x.in = in.plan(in.Record, nil)
		x.waiting = balancers.Plan(x.in).Waiting
	}
	return x
}

// Record is what was planned from.
func (x *OutsideExplained) Record() *fsm.View { return x.record }

// Shows tells whether a source shows an object.
func (x *OutsideExplained) Shows(kind world.Kind, id world.ID) bool {
	switch kind {
	case world.KindBackendGroup:
		return slices.ContainsFunc(x.in.BackendGroups, func(o *world.BackendGroup) bool { return o.ID == id })
	case world.KindBind:
		return slices.ContainsFunc(x.in.Binds, func(o *world.Bind) bool { return o.ID == id })
	case world.KindLoadBalancer:
		return slices.ContainsFunc(x.in.LoadBalancers, func(o *world.OutsideBalancer) bool { return o.ID == id })
	}
	return false
}

// Waiting is what is not as an object asks for, and why.
func (x *OutsideExplained) Waiting(kind world.Kind, id world.ID) (out []Reason) {
	for _, e := range x.waiting {
		if e.Kind == string(kind) && e.Name == id.String() {
			out = append(out, Reason{Code(e.Code), e.Text})
		}
	}
	return out
}

// Absent are the pods of a group or a Bind that are not registered, and why. Those that its policy keeps registered are left out.
func (x *OutsideExplained) Absent(kind world.Kind, id world.ID, registered []*fsm.Binding) (pods []world.ID, why []Reason) {
	for _, a := range balancers.Absentees(x.in, kind, id) {
		if slices.ContainsFunc(registered, func(b *fsm.Binding) bool { return b.Backend.Kind == "Pod" && b.Backend.Name == a.Pod.Name }) {
			continue
		}
		pods, why = append(pods, a.Pod), append(why, Reason{Code(a.Code), absentText[a.Code]})
	}
	return pods, why
}

var absentText = map[string]string{
	balancers.PodMissing: "it is named, and no source shows it", balancers.PodDeleting: "it is being deleted",
	balancers.PodNoAddress: "it has no address yet", balancers.PodNotReady: "it is not ready",
}

// OutsideCodes lists the codes that reasons about outside load balancers have beside Codes.
func OutsideCodes() []Code {
	var out []Code
	for _, code := range []string{
		balancers.WaitsForFormat, balancers.WaitsForDriver, balancers.WaitsForLoadBalancer, balancers.WaitsForScope, balancers.WaitsForUsable,
		balancers.WaitsForAdoption, balancers.WaitsForBackends, balancers.WaitsForDeregister, balancers.WaitsForHeir,
		balancers.WaitsForJudgement, balancers.WaitsForJudge, balancers.PodMissing, balancers.PodDeleting, balancers.PodNoAddress, balancers.PodNotReady,
	} {
		out = append(out, Code(code))
	}
	return out
}

// outsideRemedy is the remedy of one of OutsideCodes.
func outsideRemedy(c Code) string {
	switch string(c) {
	case balancers.WaitsForFormat:
		return "upgrade every member, then `fairlead raft finalize`"
	case balancers.WaitsForDriver:
		return "apply the LoadBalancerDriver that is named"
	case balancers.WaitsForLoadBalancer, balancers.WaitsForUsable:
		return "`fairlead why loadbalancer NAME` tells what it waits for"
	case balancers.WaitsForScope:
		return "add the namespace to spec.scope of the LoadBalancer"
	case balancers.WaitsForAdoption:
		return "see whether BackendRecords can be listed: `fairlead get sources`, and the leader's log"
	case balancers.WaitsForBackends, balancers.WaitsForDeregister:
		return "`fairlead why backend NAME` tells what the driver answers"
	case balancers.WaitsForJudge:
		return "see whether the driver of deregisterWebhook answers: `fairlead driver test`"
	case balancers.PodMissing:
		return "name pods that are there"
	case balancers.PodNotReady:
		return "look at the readiness of the pod"
	}
	return ""
}
