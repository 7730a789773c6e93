// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"fairlead.io/fairlead/dataplane/driver/webhook"
)

// The load balancer that an lbSpec or lbInfo means.
const idKey = "id"

// ValidateLoadBalancer lets every load balancer through that has an id.
func (b *Balancer) ValidateLoadBalancer(_ context.Context, r webhook.ValidateLoadBalancerRequest) (webhook.Verdict, error) {
	if r.LBSpec[idKey] == "" {
		return webhook.Verdict{Msg: "lbSpec lacks id"}, nil
	}
	return webhook.Verdict{Succ: true}, nil
}

// CreateLoadBalancer finds the load balancer of an id.
func (b *Balancer) CreateLoadBalancer(ctx context.Context, r webhook.CreateLoadBalancerRequest) (webhook.CreateLoadBalancerResponse, error) {
	out := webhook.CreateLoadBalancerResponse{LBInfo: webhook.Map{idKey: r.LBSpec[idKey]}}
	answer, err := b.carryOut(ctx, Call{Webhook: webhook.CreateLoadBalancer, RecordID: r.RecordID, Balancer: r.LBSpec[idKey]}, func() {})
	out.Answer = answer
	return out, err
}

// EnsureLoadBalancer takes note.
func (b *Balancer) EnsureLoadBalancer(ctx context.Context, r webhook.LoadBalancerRequest) (webhook.Answer, error) {
	return b.carryOut(ctx, Call{Webhook: webhook.EnsureLoadBalancer, RecordID: r.RecordID, Balancer: r.LBInfo[idKey]}, func() {})
}

// DeleteLoadBalancer notes that nothing of ours may be on it any more.
func (b *Balancer) DeleteLoadBalancer(ctx context.Context, r webhook.LoadBalancerRequest) (webhook.Answer, error) {
	id := r.LBInfo[idKey]
	return b.carryOut(ctx, Call{Webhook: webhook.DeleteLoadBalancer, RecordID: r.RecordID, Balancer: id}, func() {
		if len(b.on[id]) > 0 {
			b.rule("load balancer %s was deleted with %d backends on it", id, len(b.on[id]))
		}
	})
}

// ValidateBackend lets everything through.
func (b *Balancer) ValidateBackend(context.Context, webhook.ValidateBackendRequest) (webhook.Verdict, error) {
	return webhook.Verdict{Succ: true}, nil
}

// GenerateBackendAddr is the pod's address and port.
func (b *Balancer) GenerateBackendAddr(ctx context.Context, r webhook.GenerateBackendAddrRequest) (webhook.GenerateBackendAddrResponse, error) {
	var out webhook.GenerateBackendAddrResponse
	if r.PodBackend == nil {
		return out, fmt.Errorf("no pod in the request")
	}
	var pod struct {
		Status struct {
			PodIP string `json:"podIP"`
		} `json:"status"`
	}
	if err := json.Unmarshal(r.PodBackend.Pod, &pod); err != nil {
		return out, err
	}
	out.BackendAddr = fmt.Sprintf("%s:%d", pod.Status.PodIP, r.PodBackend.Port.Port)
	answer, err := b.carryOut(ctx, Call{Webhook: webhook.GenerateBackendAddr, RecordID: r.RecordID, Balancer: r.LBInfo[idKey], Address: out.BackendAddr}, func() {})
	out.Answer = answer
	return out, err
}

// EnsureBackend puts a server on.
func (b *Balancer) EnsureBackend(ctx context.Context, r webhook.BackendRequest) (webhook.EnsureBackendResponse, error) {
	id, uid := r.LBInfo[idKey], uidOf(r.RecordID)
	b.set(func() {
		if b.ended[uid] {
			b.rule("%s at %s was sent after its deregistration had been confirmed", r.RecordID, r.BackendAddr)
		}
	})
	answer, err := b.carryOut(ctx, Call{Webhook: webhook.EnsureBackend, RecordID: r.RecordID, Balancer: id, Address: r.BackendAddr}, func() {
		put(b.on, id, r.BackendAddr, Entry{Parameters: r.Parameters, RecordID: r.RecordID})
		if b.bound != nil {
			b.bound(r.BackendAddr, time.Now())
		}
	})
	return webhook.EnsureBackendResponse{Answer: answer, InjectedInfo: webhook.Map{"server": "s-" + r.BackendAddr}}, err
}

// DeregisterBackend takes a server off.
func (b *Balancer) DeregisterBackend(ctx context.Context, r webhook.BackendRequest) (webhook.Answer, error) {
	id := r.LBInfo[idKey]
	b.set(func() { b.heard[fmt.Sprint(r.RecordID, " ", r.InjectedInfo)] = true })
	answer, err := b.carryOut(ctx, Call{Webhook: webhook.DeregisterBackend, RecordID: r.RecordID, Balancer: id, Address: r.BackendAddr}, func() {
		if b.foreign[id][r.BackendAddr] {
			b.rule("a foreign server at %s was to be taken off %s", r.BackendAddr, id)
		}
		if _, on := b.on[id][r.BackendAddr]; on && b.live != nil && b.live(r.BackendAddr) {
			b.rule("%s took %s off, which is live", r.RecordID, r.BackendAddr)
		}
		delete(b.on[id], r.BackendAddr)
	})
	return answer, err
}

// uidOf is what stands between the brackets of a recordID.
func uidOf(recordID string) string {
	_, rest, _ := strings.Cut(recordID, "(")
	return strings.TrimSuffix(rest, ")")
}

// carryOut does what a call asks for, as its fault has it.
func (b *Balancer) carryOut(ctx context.Context, c Call, effect func()) (webhook.Answer, error) {
	by := callerOf(ctx, c.RecordID)
	fault, latency, late := b.enter(&c, by)
	defer b.leave(c, by)
	if s, ok := ctx.Value(spoilKey{}).(*spoil); ok {
		s.fault = fault
	}
	if latency > 0 {
		select {
		case <-time.After(latency):
		case <-ctx.Done():
		}
	}
	switch fault {
	case Fail:
		return webhook.Answer{Status: webhook.Fail, Msg: "told to fail"}, nil
	case Broken:
		return webhook.Answer{}, fmt.Errorf("told to break off")
	case Hang:
		b.latecome.Go(func() {
			<-ctx.Done()
			time.Sleep(late)
			b.set(effect)
		})
		<-ctx.Done()
		return webhook.Answer{}, ctx.Err()
	case Running:
		if first := b.first(c); first {
			return webhook.Answer{Status: webhook.Running, Msg: "at it", MinRetryDelay: 1}, nil
		}
	}
	b.set(func() {
		effect()
		if c.Webhook == webhook.DeregisterBackend && fault != Lose {
			b.ended[uidOf(c.RecordID)] = true
		}
	})
	return webhook.Answer{Status: webhook.Succ}, nil
}

func (b *Balancer) first(c Call) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	again := b.begun[c.RecordID]
	b.begun[c.RecordID] = true
	return !again
}

// enter counts a call in, and notes one that comes while another about the same backend is waited for.
func (b *Balancer) enter(c *Call, by *caller) (Fault, time.Duration, time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls[c.Webhook]++
	key := c.place()
	b.numbers[string(c.Webhook)+" "+key]++
	c.Number = b.numbers[string(c.Webhook)+" "+key]
	if c.Webhook == webhook.EnsureBackend || c.Webhook == webhook.DeregisterBackend {
		if other := b.inFlight[key]; other != nil && other.waits() {
			b.rule("%s came while %s was waited for, at %s", c.RecordID, other.recordID, c.Address)
		}
		b.inFlight[key] = by
	}
	if b.fault == nil {
		return None, b.latency, b.late
	}
	return b.fault(*c), b.latency, b.late
}

func (b *Balancer) leave(c Call, by *caller) {
	b.set(func() {
		if b.inFlight[c.place()] == by {
			delete(b.inFlight, c.place())
		}
	})
}

func (c Call) place() string { return c.Balancer + " " + c.Address }
