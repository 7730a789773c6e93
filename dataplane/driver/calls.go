// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"errors"
	"fmt"

	"fairlead.io/fairlead/dataplane/driver/webhook"
)

// The calls. Their errors are *Error. RetryID and DryRun of requests are filled in here.

// ValidateLoadBalancer asks whether a load balancer may be as its user writes it (lbcf §3.4).
func (c *Client) ValidateLoadBalancer(ctx context.Context, call Call, r webhook.ValidateLoadBalancerRequest) (webhook.Verdict, error) {
	r.DryRun = c.dry(call)
	if r.Operation != webhook.Update {
		r.OldAttributes = nil
	}
	return ask(ctx, c, webhook.ValidateLoadBalancer, call, r, verdict)
}

// CreateLoadBalancer asks for a load balancer. After Succ, LBInfo is its identity (lbcf §3.5).
func (c *Client) CreateLoadBalancer(ctx context.Context, call Call, r webhook.CreateLoadBalancerRequest) (webhook.CreateLoadBalancerResponse, error) {
	r.Attempt = c.attempt(call, r.Attempt)
	return ask(ctx, c, webhook.CreateLoadBalancer, call, r, func(a *webhook.CreateLoadBalancerResponse) (bool, error) {
		switch {
		case a.Status != webhook.Succ:
			a.LBInfo = nil
		case len(a.LBInfo) == 0:
			a.LBInfo = r.LBSpec
		}
		return valid(&a.Answer)
	})
}

// EnsureLoadBalancer asks to give a load balancer its attributes (lbcf §3.6).
func (c *Client) EnsureLoadBalancer(ctx context.Context, call Call, r webhook.LoadBalancerRequest) (webhook.Answer, error) {
	r.Attempt = c.attempt(call, r.Attempt)
	return ask(ctx, c, webhook.EnsureLoadBalancer, call, r, valid)
}

// DeleteLoadBalancer asks to delete a load balancer (lbcf §3.7).
func (c *Client) DeleteLoadBalancer(ctx context.Context, call Call, r webhook.LoadBalancerRequest) (webhook.Answer, error) {
	r.Attempt = c.attempt(call, r.Attempt)
	return ask(ctx, c, webhook.DeleteLoadBalancer, call, r, valid)
}

// ValidateBackend asks whether backends may join a load balancer with these parameters (lbcf §3.8).
func (c *Client) ValidateBackend(ctx context.Context, call Call, r webhook.ValidateBackendRequest) (webhook.Verdict, error) {
	r.DryRun = c.dry(call)
	if r.Operation != webhook.Update {
		r.OldParameters = nil
	}
	return ask(ctx, c, webhook.ValidateBackend, call, r, verdict)
}

// GenerateBackendAddr asks by which address the load balancer knows a backend. After Succ there is one (lbcf §3.9).
func (c *Client) GenerateBackendAddr(ctx context.Context, call Call, r webhook.GenerateBackendAddrRequest) (webhook.GenerateBackendAddrResponse, error) {
	r.Attempt = c.attempt(call, r.Attempt)
	return ask(ctx, c, webhook.GenerateBackendAddr, call, r, func(a *webhook.GenerateBackendAddrResponse) (bool, error) {
		switch {
		case a.Status != webhook.Succ:
			a.BackendAddr = ""
		case a.BackendAddr == "":
			return false, errors.New("it succeeded with an empty backendAddr")
		}
		return valid(&a.Answer)
	})
}

// EnsureBackend asks to register a backend. InjectedInfo is there after Succ only; if it is empty, what an earlier call
// answered stays (lbcf §3.10).
func (c *Client) EnsureBackend(ctx context.Context, call Call, r webhook.BackendRequest) (webhook.EnsureBackendResponse, error) {
	r.Attempt = c.attempt(call, r.Attempt)
	return ask(ctx, c, webhook.EnsureBackend, call, r, func(a *webhook.EnsureBackendResponse) (bool, error) {
		if a.Status != webhook.Succ || len(a.InjectedInfo) == 0 {
			a.InjectedInfo = nil
		}
		return valid(&a.Answer)
	})
}

// DeregisterBackend asks to deregister a backend. An injectedInfo in the answer is not heeded (lbcf §3.11).
func (c *Client) DeregisterBackend(ctx context.Context, call Call, r webhook.BackendRequest) (webhook.Answer, error) {
	r.Attempt = c.attempt(call, r.Attempt)
	a, err := ask(ctx, c, webhook.DeregisterBackend, call, r, func(a *webhook.EnsureBackendResponse) (bool, error) {
		return valid(&a.Answer)
	})
	return a.Answer, err
}

// Judgement is which pods a driver wants to keep.
type Judgement struct {
	webhook.Verdict
	// Keep are the UIDs of those, in the order of the answer. All are of the request.
	Keep []string
	// Strangers is how many others the driver named; they are not heeded.
	Strangers int
}

// JudgePodDeregister asks which pods shall stay although they are not ready (lbcf §3.12); with no pods it asks nobody. Errors
// also: a pod of the request has no UID.
func (c *Client) JudgePodDeregister(ctx context.Context, call Call, r webhook.JudgePodDeregisterRequest) (Judgement, error) {
	r.DryRun = c.dry(call)
	asked := map[string]bool{}
	for _, pod := range r.NotReadyPods {
		uid, err := webhook.UID(pod)
		if err != nil {
			return Judgement{}, c.blame(webhook.JudgePodDeregister, &Error{Cause: CauseRequest, Err: err})
		}
		asked[uid] = true
	}
	if len(asked) == 0 {
		return Judgement{Verdict: webhook.Verdict{Succ: true}}, nil // nothing to ask
	}
	var j Judgement
	a, err := ask(ctx, c, webhook.JudgePodDeregister, call, r, func(a *webhook.JudgePodDeregisterResponse) (bool, error) {
		for i, pod := range a.DoNotDeregister {
			uid, err := webhook.UID(pod)
			switch {
			case err != nil:
				return false, fmt.Errorf("doNotDeregister[%d]: %w", i, err)
			case !asked[uid]:
				j.Strangers++
			default:
				j.Keep = append(j.Keep, uid)
			}
		}
		return verdict(&a.Verdict)
	})
	if err != nil {
		return Judgement{}, err
	}
	j.Verdict = a.Verdict
	return j, nil
}

// Healthz asks how the driver is (lbcf §3.13). Drivers from before that call answer 404, which says nothing: known is false then.
func (c *Client) Healthz(ctx context.Context, call Call) (healthy, known bool, err error) {
	a, err := ask(ctx, c, webhook.Healthz, call, nil, func(a *webhook.HealthzResponse) (bool, error) { return !a.Healthy, nil })
	var e *Error
	if errors.As(err, &e) && e.Status == 404 {
		return false, false, nil
	}
	return a.Healthy, err == nil, err
}

// attempt makes an attempt unlike all others (lbcf §3.3).
func (c *Client) attempt(call Call, a webhook.Attempt) webhook.Attempt {
	a.RetryID, a.DryRun = c.dice.uuid(), c.dry(call)
	return a
}

// dry tells whether a call must change nothing.
func (c *Client) dry(call Call) bool { return c.o.DryRun || call.DryRun }

func valid(a *webhook.Answer) (bool, error) {
	if !a.Status.Valid() {
		return false, fmt.Errorf("its answer's status %.40q is none of %s, %s, %s", a.Status, webhook.Succ, webhook.Fail, webhook.Running)
	}
	return a.Status == webhook.Fail, nil
}

func verdict(v *webhook.Verdict) (bool, error) { return !v.Succ, nil }
