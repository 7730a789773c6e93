// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"fairlead.io/fairlead/dataplane/driver/webhook"
)

// serverKey is the field of injectedInfo with the server's name, for those who look at HAProxy's statistics.
const serverKey = "server"

// parseKey reads which server a call is about.
func parseKey(r webhook.BackendRequest) (key, error) {
	backend, err := parseBackend(r.LBInfo)
	if err != nil {
		return key{}, fmt.Errorf("lbInfo: %w", err)
	}
	address, err := parseAddress(r.BackendAddr)
	return key{backend, address}, err
}

// EnsureBackend implements kit.Driver. A server of somebody else with the same address stays, and serves beside ours.
func (d *Driver) EnsureBackend(ctx context.Context, r webhook.BackendRequest) (webhook.EnsureBackendResponse, error) {
	k, err := parseKey(r)
	w, badParameters := parseParameters(r.Parameters)
	if err = errors.Join(err, badParameters); err != nil {
		a, err := answer(&refusal{err})
		return webhook.EnsureBackendResponse{Answer: a}, err
	}
	j := &job{ctx: ctx, key: k, want: &w, dryRun: r.DryRun}
	err = d.do(j)
	if err == nil && !r.DryRun {
		err = d.o.Book.Save()
	}
	a, err := answer(err)
	out := webhook.EnsureBackendResponse{Answer: a}
	if a.Status == webhook.Succ {
		out.Msg, out.InjectedInfo = j.remark, webhook.Map{serverKey: d.o.Mark.name(k.address)}
	}
	return out, err
}

// DeregisterBackend implements kit.Driver. It answers Running while the server has connections, until they are shut.
func (d *Driver) DeregisterBackend(ctx context.Context, r webhook.BackendRequest) (webhook.Answer, error) {
	k, err := parseKey(r)
	if err != nil {
		return webhook.Answer{Status: webhook.Succ, Msg: fmt.Sprintf("it never was registered: %v", err)}, nil
	}
	j := &job{ctx: ctx, key: k, dryRun: r.DryRun}
	err = d.do(j)
	if err == nil && !r.DryRun {
		err = d.o.Book.Save()
	}
	if err != nil || j.running == "" {
		return answer(err)
	}
	return webhook.Answer{Status: webhook.Running, Msg: j.running, MinRetryDelay: 1}, nil
}

// beside says which servers of others have the same address, if any.
func (d *Driver) beside(servers []Server, k key) string {
	var names []string
	for _, s := range servers {
		if s.Address == k.address && s.Name != d.o.Mark.name(k.address) {
			names = append(names, s.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("servers of others have the same address, which gets the requests of all: %s", said(strings.Join(names, ", ")))
}
