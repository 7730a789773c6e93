// SPDX-License-Identifier: Apache-2.0

package records

import (
	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/fsm"
)

func (r *renderer) driver(d *fsm.Driver) any {
	timeouts := make(map[string]int64, len(d.Timeouts))
	for _, t := range d.Timeouts {
		timeouts[t.Webhook] = milliseconds(t.Timeout)
	}
	return records.Driver{
		Name: d.Name, UID: d.UID, URL: fsm.WithoutUserinfo(d.URL), TimeoutsMs: timeouts, AcceptsDryRun: d.AcceptsDryRun, Draining: d.Draining,
		Secret: d.Secret, Concurrent: d.Concurrent, SettleMs: milliseconds(d.Settle), LoadBalancers: r.view.CountBalancersOf(d.Name),
	}
}

func ensure(p fsm.EnsurePolicy) records.Ensure {
	return records.Ensure{Policy: p.Policy, PeriodMs: milliseconds(p.Period)}
}

func (r *renderer) balancer(l *fsm.LoadBalancer) any {
	return records.LoadBalancer{
		Name: string(l.ID), Driver: l.Driver, Info: pairs(l.Info), Attributes: pairs(l.Attributes), Ensured: l.Ensured,
		State: l.State.String(), Identity: string(l.Identity), Spec: pairs(l.Spec), UID: l.UID, Ensure: ensure(l.Ensure),
		Synced: pairs(l.Synced), Generation: l.Generation, Asked: l.Asked, Attempts: l.Attempts, Reason: l.Reason, Message: l.Message,
		Bindings: r.view.CountBindingsOf(l.ID), Subject: string(l.Subject()),
	}
}

func backend(b fsm.Backend) records.Backend {
	return records.Backend{
		Kind: b.Kind, Name: b.Name, UID: b.UID, Port: b.Port, Protocol: b.Protocol, NodePort: b.NodePort, Node: b.Node, Target: b.Target,
	}
}

func (r *renderer) binding(b *fsm.Binding) any {
	return records.Binding{
		Name: string(b.ID), Balancer: string(b.Balancer), Owner: b.Owner, Address: b.Address,
		Parameters: pairs(b.Parameters), State: b.State.String(), Generation: b.Generation, Asked: b.Asked,
		Attempts: b.Attempts, Reason: b.Reason, Returned: pairs(b.Returned), Subject: string(b.Subject()),
		Identity: string(b.Identity), UID: b.UID, Backend: backend(b.Backend), Attributes: pairs(b.Attributes), Ensure: ensure(b.Ensure),
		Registered: b.Registered, Message: b.Message,
	}
}

func (r *renderer) operation(o *fsm.Operation) any {
	return records.Operation{
		Name: string(o.Subject), Action: o.Action.String(), Binding: string(o.Binding), Balancer: string(o.Balancer),
		Attempt: revision(o.Attempt), Open: o.Open, DeadlineMs: milliseconds(o.Deadline), Generation: o.Generation,
		Unsettled: maybe(o.Unsettled), NotBefore: notBefore(o),
	}
}

// notBefore is when a driver wants to hear of the same again, as it said; empty: it said nothing.
func notBefore(o *fsm.Operation) string {
	if o.Open || o.RetryAfter <= 0 {
		return ""
	}
	return stamp(o.Answered + o.RetryAfter.Milliseconds())
}

func (r *renderer) lease(l *fsm.Lease) any {
	return records.Lease{Name: l.Key(), Holder: string(l.Holder), Fence: revision(l.Fence), TermMs: milliseconds(l.Term)}
}
