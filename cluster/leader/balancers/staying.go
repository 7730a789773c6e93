// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"slices"

	"fairlead.io/fairlead/fsm/world"
)

// staying tells which of an owner's pods stay registered though they are not available (lbcf §5.2). It asks the
// driver where the policy says so; until that has answered, all stay.
func (p *planner) staying(o *owner, pods []*world.Pod) func(*world.Pod) bool {
	leave := o.balancing.Leave
	if leave.Policy != world.LeaveWebhook {
		return byPolicy(leave.Policy)
	}
	var asked []PodRef
	for _, pod := range pods {
		if !pod.Available() && !pod.Deleting {
			asked = append(asked, PodRef{ID: pod.ID, UID: pod.UID})
		}
	}
	if len(asked) == 0 {
		return byPolicy(world.LeaveIfNotReady)
	}
	o.asks = true
	slices.SortStableFunc(asked, func(a, b PodRef) int { return a.ID.Compare(b.ID) })
	if !p.callable(leave.Driver) {
		if !p.in.Listed(world.KindDriver) {
			return byPolicy(world.LeaveDoNothing)
		}
		p.explain(o.kind, o.meta.ID.String(), WaitsForDriver, "there is no LoadBalancerDriver "+leave.Driver.String()+
			" to ask which pods stay: deregisterWebhook.failurePolicy holds")
		return byFailurePolicy(leave.Failing)
	}
	p.out.Questions = append(p.out.Questions, Question{Owner: o.id, Driver: leave.Driver, Pods: asked})
	answer, ok := p.in.Judged[o.id]
	if !ok || !slices.Equal(answer.Pods, asked) {
		p.explain(o.kind, o.meta.ID.String(), WaitsForJudgement, "driver "+leave.Driver.String()+" is asked which pods stay")
		return byPolicy(world.LeaveDoNothing)
	}
	if answer.Failed {
		p.explain(o.kind, o.meta.ID.String(), WaitsForJudge, answer.Why+": deregisterWebhook.failurePolicy holds")
		return byFailurePolicy(leave.Failing)
	}
	return func(pod *world.Pod) bool { return slices.Contains(answer.Keep, pod.UID) }
}

// byPolicy keeps what a policy keeps by itself. One that is unknown is IfNotReady.
func byPolicy(policy string) func(*world.Pod) bool {
	return func(pod *world.Pod) bool {
		return policy == world.LeaveDoNothing || policy == world.LeaveIfNotRunning && pod.Alive()
	}
}

// byFailurePolicy keeps what is kept when the driver gave no answer. A policy that is unset or unknown is DoNothing.
func byFailurePolicy(policy string) func(*world.Pod) bool {
	if policy != world.LeaveIfNotReady && policy != world.LeaveIfNotRunning {
		policy = world.LeaveDoNothing
	}
	return byPolicy(policy)
}
