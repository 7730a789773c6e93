// SPDX-License-Identifier: Apache-2.0

package drivers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/dataplane/driver"
	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// one is a driver as the record has it.
type one struct {
	client  *driver.Client
	settle  time.Duration
	objects Objects
}

var _ interface {
	leader.Driver
	leader.Silencer
} = (*one)(nil)

// webhookOf is the call that carries out an action.
func webhookOf(a fsm.Action) webhook.Name {
	switch a {
	case fsm.ActionAddress:
		return webhook.GenerateBackendAddr
	case fsm.ActionEnsure:
		return webhook.EnsureBackend
	case fsm.ActionDeregister:
		return webhook.DeregisterBackend
	case fsm.ActionEnsureBalancer:
		return webhook.EnsureLoadBalancer
	case fsm.ActionDeleteBalancer:
		return webhook.DeleteLoadBalancer
	default:
		return webhook.CreateLoadBalancer
	}
}

// Terms implements leader.Driver.
func (d *one) Terms(a fsm.Action) leader.Terms {
	return leader.Terms{Timeout: d.client.Timeout(webhookOf(a)), Settle: d.settle, Concurrent: d.client.Concurrent()}
}

// Silence implements leader.Silencer.
func (d *one) Silence() error { return d.client.Silence() }

// Call implements leader.Driver.
func (d *one) Call(ctx context.Context, a fsm.Action, r leader.Request) leader.Answer {
	call := driver.Call{Deadline: r.Deadline, Attempt: r.Attempt, DryRun: r.DryRun}
	switch a {
	case fsm.ActionCreateBalancer:
		got, err := d.client.CreateLoadBalancer(ctx, call, creation(r.Balancer))
		out := answer(got.Answer, err)
		out.Returned = kvs(got.LBInfo)
		return out
	case fsm.ActionEnsureBalancer:
		return answer(d.client.EnsureLoadBalancer(ctx, call, ensuring(r.Balancer)))
	case fsm.ActionDeleteBalancer:
		return answer(d.client.DeleteLoadBalancer(ctx, call, deletion(r.Balancer)))
	case fsm.ActionAddress:
		request, err := d.addressing(r.Balancer, r.Binding)
		if err != nil {
			return notSent(err.Error())
		}
		got, err := d.client.GenerateBackendAddr(ctx, call, request)
		out := answer(got.Answer, err)
		out.Address = got.BackendAddr
		return out
	case fsm.ActionEnsure:
		got, err := d.client.EnsureBackend(ctx, call, backend(webhook.EnsureBackend, r.Balancer, r.Binding))
		out := answer(got.Answer, err)
		out.Returned = kvs(got.InjectedInfo)
		return out
	case fsm.ActionDeregister:
		return answer(d.client.DeregisterBackend(ctx, call, backend(webhook.DeregisterBackend, r.Balancer, r.Binding)))
	}
	return notSent("no call of drivers does " + a.String())
}

// answer is what the end of a call says of the outside (lbcf §4.2).
func answer(a webhook.Answer, err error) leader.Answer {
	out := leader.Answer{
		Result: driver.ResultOf(a.Status, err), Message: a.Msg, RetryAfter: driver.RetryAfter(a, err),
		Refused: err == nil && a.Status == webhook.Fail,
	}
	if err == nil {
		return out
	}
	out.Message = err.Error()
	if e := (*driver.Error)(nil); errors.As(err, &e) {
		switch e.Cause {
		case driver.CauseOpen: // the same words each time: they are in Events
			out.Held, out.Message = true, "not sent: the driver does not answer; it is asked now and then"
		case driver.CauseBusy:
			out.Held, out.Message = true, "not sent: the driver had no place for the call in time"
		}
	}
	return out
}

func attempt(n webhook.Name, uid string) webhook.Attempt {
	return webhook.Attempt{RecordID: webhook.RecordID(n, uid)}
}

// creation is the request of lbcf §3.5.
func creation(l *fsm.LoadBalancer) webhook.CreateLoadBalancerRequest {
	return webhook.CreateLoadBalancerRequest{
		Attempt: attempt(webhook.CreateLoadBalancer, l.UID), LBSpec: mapOf(l.Spec), Attributes: mapOf(l.Attributes),
	}
}

// ensuring is the request of lbcf §3.6.
func ensuring(l *fsm.LoadBalancer) webhook.LoadBalancerRequest {
	return webhook.LoadBalancerRequest{
		Attempt: attempt(webhook.EnsureLoadBalancer, l.UID), LBInfo: mapOf(l.Info), Attributes: mapOf(l.Attributes),
	}
}

// deletion is the request of lbcf §3.7. An entry of a Bind is deleted with what its driver confirmed last.
func deletion(l *fsm.LoadBalancer) webhook.LoadBalancerRequest {
	r := webhook.LoadBalancerRequest{
		Attempt: attempt(webhook.DeleteLoadBalancer, l.UID), LBInfo: mapOf(l.Info), Attributes: mapOf(l.Attributes),
	}
	if strings.HasPrefix(string(l.ID), string(world.KindBind)+"/") {
		r.Attributes = mapOf(l.Synced)
	}
	if l.Identity == "" {
		r.LBSpec = mapOf(l.Spec)
	}
	return r
}

// backend is the request of lbcf §3.10 and §3.11.
func backend(n webhook.Name, l *fsm.LoadBalancer, b *fsm.Binding) webhook.BackendRequest {
	return webhook.BackendRequest{
		Attempt: attempt(n, b.UID), LBInfo: mapOf(l.Info), BackendAddr: b.Address, Parameters: mapOf(b.Parameters),
		InjectedInfo: mapOf(b.Returned),
	}
}

// addressing is the request of lbcf §3.9. Its error says which object is missing.
func (d *one) addressing(l *fsm.LoadBalancer, b *fsm.Binding) (webhook.GenerateBackendAddrRequest, error) {
	out := webhook.GenerateBackendAddrRequest{
		Attempt: attempt(webhook.GenerateBackendAddr, b.UID),
		LBInfo:  mapOf(l.Info), LBAttributes: mapOf(b.Attributes), Parameters: mapOf(b.Parameters),
	}
	namespace, _, _ := strings.Cut(string(b.ID), "/")
	if d.objects == (noObjects{}) && b.Backend.Kind != string(webhook.Static) {
		return out, fmt.Errorf("no API server is read, and only what one has of a %s can be told; list addresses in spec.static of the BackendGroup, or have members read one", b.Backend.Kind)
	}
	var err error
	switch at, port := b.Backend, webhook.PortOf(int32(b.Backend.Port), b.Backend.Protocol); at.Kind {
	case string(webhook.Pod):
		out.PodBackend, err = d.pod(namespace, at, port)
	case string(webhook.Service):
		out.ServiceBackend, err = d.service(namespace, at, port)
	default:
		err = fmt.Errorf("a backend of kind %q has an address of its own", at.Kind)
	}
	return out, err
}

func (d *one) pod(namespace string, at fsm.Backend, port webhook.Port) (*webhook.PodBackend, error) {
	pod, ok := d.objects.Pod(namespace, at.Name, at.UID)
	if !ok {
		return nil, fmt.Errorf("pod %s/%s does not exist any more, or is another one of that name", namespace, at.Name)
	}
	if why := d.objects.Unavailable(namespace, at.Name); why != "" { // it was available when it was planned for (lbcf §5.1, §5.2, INV-12)
		return nil, fmt.Errorf("pod %s/%s %s", namespace, at.Name, why)
	}
	return &webhook.PodBackend{Pod: pod, Port: port}, nil
}

func (d *one) service(namespace string, at fsm.Backend, port webhook.Port) (*webhook.ServiceBackend, error) {
	service, ok := d.objects.Service(namespace, at.Name)
	if !ok {
		return nil, fmt.Errorf("Service %s/%s does not exist", namespace, at.Name)
	}
	raw, ok := d.objects.NodeAddresses(at.Node)
	if !ok {
		return nil, fmt.Errorf("Node %s does not exist", at.Node)
	}
	var addresses []webhook.NodeAddress
	if err := json.Unmarshal(raw, &addresses); err != nil {
		return nil, fmt.Errorf("addresses of Node %s: %w", at.Node, err)
	}
	return &webhook.ServiceBackend{Service: service, Port: port, NodeName: at.Node, NodeAddresses: addresses}, nil
}

// mapOf is what the record says as the protocol does; none is null on the wire.
func mapOf(from []fsm.KV) webhook.Map {
	if len(from) == 0 {
		return nil
	}
	out := make(webhook.Map, len(from))
	for _, kv := range from {
		out[kv.Key] = kv.Value
	}
	return out
}

// kvs is what the protocol says as the record does, in order.
func kvs(from webhook.Map) []fsm.KV {
	out := make([]fsm.KV, 0, len(from))
	for _, k := range slices.Sorted(maps.Keys(from)) {
		out = append(out, fsm.KV{Key: k, Value: from[k]})
	}
	return out
}
