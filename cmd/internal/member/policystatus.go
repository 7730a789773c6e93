// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/informers"
	"fairlead.io/fairlead/k8s/nodenotes"
	"fairlead.io/fairlead/k8s/policystatus"
)

// openRedirects has this member show policies of client-side balancing what became of them, and Nodes their ids, while it leads, where
// the group has policies in its record and this member reads a cluster.
func (m *Member) openRedirects() error {
	if m.kube == nil || !m.config.BalancingPolicies {
		return nil
	}
	shown, err := policystatus.New(policystatus.Config{
		Record: m.state, API: policystatus.Kubernetes{API: m.kube}, Said: m.saidOfPolicies, Clock: wallClock{}, Log: m.log, Ours: m.ours,
		Instance: m.config.Name, Metrics: m.registry,
	})
	if err != nil {
		return err
	}
	notes, err := nodenotes.New(nodenotes.Config{
		Record: m.state, API: nodenotes.Kubernetes{Nodes: m.kube.Client.CoreV1().Nodes()},
		By: []nodenotes.Contributor{nodenotes.IDs(m.state), nodenotes.Proxies(m.state)}, Tables: []fsm.Table{fsm.TableTunnels, fsm.TableGroup},
		Clock: wallClock{}, Log: m.log, Ours: m.ours, Metrics: m.registry,
	})
	if err != nil {
		return err
	}
	m.showing = func(kind world.Kind, id world.ID, o any) {
		shown.Show(kind, id.Name, o)
		notes.Show(kind, id.Name, o)
	}
	m.node.WhileLeader(func(ctx context.Context, _ uint64) { shown.Run(ctx) })
	m.node.WhileLeader(func(ctx context.Context, _ uint64) { notes.Run(ctx) })
	return nil
}

// saidOfPolicies is what the cluster's source and the leader say of policies.
func (m *Member) saidOfPolicies() map[fsm.PolicyID]policystatus.Said {
	out := map[fsm.PolicyID]policystatus.Said{}
	for _, w := range m.work.worlds() {
		if w.Source != informers.Name {
			continue
		}
		for _, p := range w.Problems {
			if p.Object.Kind != world.KindBalancingPolicy && p.Object.Kind != world.KindLocalRedirect {
				continue
			}
			id := fsm.PolicyID(string(p.Object.Kind) + "/" + p.Object.ID.Name)
			said, text := out[id], p.Field+": "+p.Why+"; "+p.Remedy
			switch p.Severity {
			case world.Failed:
				said.Invalid = append(said.Invalid, text)
			case world.Degraded:
				said.Unused = append(said.Unused, text)
			default:
				continue
			}
			out[id] = said
		}
	}
	for _, e := range m.work.Status().Waiting {
		if fsm.Table(e.Kind) == fsm.TablePolicies {
			said := out[fsm.PolicyID(e.Name)]
			said.Code, said.Text = e.Code, e.Text
			out[fsm.PolicyID(e.Name)] = said
		}
	}
	return out
}
