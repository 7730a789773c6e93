// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"context"
	"errors"
	"fmt"

	"fairlead.io/fairlead/dataplane/driver/webhook"
)

// errAttributes says that a load balancer has none.
var errAttributes = errors.New("attributes: there are none; how a backend balances is HAProxy's configuration, which its runtime API cannot change")

// ValidateLoadBalancer implements kit.Driver. When a user writes a LoadBalancer, HAProxy has to have the backend; later it
// may be away for a while.
func (d *Driver) ValidateLoadBalancer(ctx context.Context, r webhook.ValidateLoadBalancerRequest) (webhook.Verdict, error) {
	backend, err := parseBackend(r.LBSpec)
	if err != nil {
		return verdict(fmt.Errorf("lbSpec: %w", err))
	}
	if len(r.Attributes) > 0 {
		return verdict(errAttributes)
	}
	if r.Operation == webhook.Update {
		return verdict(nil)
	}
	_, err = d.servers(ctx, backend)
	return verdict(err)
}

// CreateLoadBalancer implements kit.Driver. The backend's name is its identity.
func (d *Driver) CreateLoadBalancer(ctx context.Context, r webhook.CreateLoadBalancerRequest) (webhook.CreateLoadBalancerResponse, error) {
	a, err := answer(d.existing(ctx, "lbSpec", r.LBSpec, r.Attributes))
	out := webhook.CreateLoadBalancerResponse{Answer: a}
	if a.Status == webhook.Succ {
		out.LBInfo = webhook.Map{backendKey: r.LBSpec[backendKey]}
	}
	return out, err
}

// EnsureLoadBalancer implements kit.Driver: the backend is there.
func (d *Driver) EnsureLoadBalancer(ctx context.Context, r webhook.LoadBalancerRequest) (webhook.Answer, error) {
	return answer(d.existing(ctx, "lbInfo", r.LBInfo, r.Attributes))
}

// existing refuses what names no backend that HAProxy has. It changes nothing.
func (d *Driver) existing(ctx context.Context, field string, m, attributes webhook.Map) error {
	backend, err := parseBackend(m)
	switch {
	case err != nil:
		return &refusal{fmt.Errorf("%s: %w", field, err)}
	case len(attributes) > 0:
		return &refusal{errAttributes}
	}
	if _, err := d.servers(ctx, backend); err != nil {
		return &refusal{err}
	}
	return nil
}

// DeleteLoadBalancer implements kit.Driver. The backend stays, being part of HAProxy's configuration, and so does what is on
// it: each server of ours goes by its own deregistration, which may come before or after.
func (d *Driver) DeleteLoadBalancer(context.Context, webhook.LoadBalancerRequest) (webhook.Answer, error) {
	return answer(nil)
}

// ValidateBackend implements kit.Driver.
func (d *Driver) ValidateBackend(_ context.Context, r webhook.ValidateBackendRequest) (webhook.Verdict, error) {
	if _, err := parseParameters(r.Parameters); err != nil {
		return verdict(fmt.Errorf("parameters: %w", err))
	}
	return verdict(nil)
}
