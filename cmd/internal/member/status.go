// SPDX-License-Identifier: Apache-2.0

package member

import (
	"cmp"
	"context"

	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/status"
)

// openStatus has this member write the status of Services while it leads, if it reads a cluster.
func (m *Member) openStatus() error {
	if m.kube == nil {
		return nil
	}
	m.shown = status.NewStore()
	p, err := status.New(status.Config{
		Record: m.state, Store: m.shown, Waiting: m.waiting, Problems: m.problemsOfServices, Clock: wallClock{}, Log: m.log, Metrics: m.registry, Instance: m.config.Name,
		API: status.Kubernetes{Services: m.kube.Client.CoreV1(), Events: m.kube.Client.EventsV1()},
		Options: status.Options{
			Class: cmp.Or(m.config.LoadBalancerClass, leader.OurClass), IgnoreUnclassed: m.config.OnlyClass,
			ExternalIPs: m.config.Status.ExternalIPs, Finalizer: m.config.Status.Finalizer,
		},
	})
	if err != nil {
		return err
	}
	m.node.WhileLeader(func(ctx context.Context, _ uint64) { p.Run(ctx) })
	return nil
}

// problemsOfServices are what of each Service the sources cannot use as it is written, and what it has though nobody allows it.
func (m *Member) problemsOfServices() map[fsm.ServiceID][]string {
	out := map[fsm.ServiceID][]string{}
	for _, w := range m.work.worlds() {
		for _, p := range w.Problems {
			if p.Object.Kind == world.KindService && p.Severity != world.Ignored {
				id := fsm.ServiceID(p.Object.ID.String())
				out[id] = append(out[id], p.Field+": "+p.Why+"; "+p.Remedy)
			}
		}
	}
	for _, e := range m.work.Unfit() {
		if fsm.Table(e.Kind) == fsm.TableServices {
			out[fsm.ServiceID(e.Name)] = append(out[fsm.ServiceID(e.Name)], e.Text)
		}
	}
	for _, e := range m.work.Status().Waiting {
		if e.Kind == string(fsm.TableServices) && e.Code == leader.WaitsForPolicy {
			out[fsm.ServiceID(e.Name)] = append(out[fsm.ServiceID(e.Name)], e.Text)
		}
	}
	return out
}

// waiting is the leader's word on Services and their routes that are not as they shall be.
func (m *Member) waiting() []status.Explanation {
	var out []status.Explanation
	for _, e := range m.work.Status().Waiting {
		switch fsm.Table(e.Kind) {
		case fsm.TableServices, fsm.TableRoutes:
			out = append(out, status.Explanation(e))
		}
	}
	return out
}
