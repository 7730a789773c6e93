// SPDX-License-Identifier: Apache-2.0

package records

import (
	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/fsm"
)

func (r *renderer) balancer(l *fsm.LoadBalancer) any {
	return records.LoadBalancer{
		Name: string(l.ID), Driver: l.Driver, Info: pairs(l.Info), Attributes: pairs(l.Attributes), Ensured: l.Ensured,
	}
}

func (r *renderer) binding(b *fsm.Binding) any {
	return records.Binding{
		Name: string(b.ID), Balancer: string(b.Balancer), Owner: b.Owner, Address: b.Address,
		Parameters: pairs(b.Parameters), State: b.State.String(), Generation: b.Generation, Asked: b.Asked,
		Attempts: b.Attempts, Reason: b.Reason, Returned: pairs(b.Returned), Subject: string(b.Subject()),
	}
}

func (r *renderer) operation(o *fsm.Operation) any {
	return records.Operation{
		Name: string(o.Subject), Action: o.Action.String(), Binding: string(o.Binding), Balancer: string(o.Balancer),
		Attempt: revision(o.Attempt), Open: o.Open, DeadlineMs: milliseconds(o.Deadline), Generation: o.Generation,
		Unsettled: maybe(o.Unsettled),
	}
}

func (r *renderer) lease(l *fsm.Lease) any {
	return records.Lease{Name: l.Key(), Holder: string(l.Holder), Fence: revision(l.Fence), TermMs: milliseconds(l.Term)}
}

func (r *renderer) policy(p *fsm.Policy) any {
	spec := p.Spec
	if spec == nil {
		spec = []byte{}
	}
	return records.Policy{Name: string(p.ID), UID: p.UID, Version: p.Version, Spec: spec}
}
