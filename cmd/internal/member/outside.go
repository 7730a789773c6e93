// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"fmt"

	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/cmd/internal/member/drivers"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/handover"
	"fairlead.io/fairlead/k8s/informers"
	"fairlead.io/fairlead/k8s/mirror"
	"fairlead.io/fairlead/k8s/objects"
)

// openOutside reads what webhook calls need of the cluster, all the time, and joins it to the leader's work: whether
// LBCF's objects are ours, and what they show.
func (m *Member) openOutside() error {
	m.stored = objects.New()
	if m.kube == nil || m.edges.Unshown {
		return nil
	}
	force := false
	if k := m.config.Sources.Kubernetes; k != nil {
		force = k.LBCF.Force
	}
	cluster, err := handover.In(m.kube)
	if err != nil {
		return fmt.Errorf("look for an LBCF controller: %w", err)
	}
	m.handover, err = handover.New(handover.Options{Look: cluster.Look, Settle: m.settle, Force: force, Logger: m.log, Registerer: m.registry})
	if err != nil {
		return fmt.Errorf("look for an LBCF controller: %w", err)
	}
	m.node.WhileLeader(func(ctx context.Context, _ uint64) { _ = m.handover.Run(ctx) }) // it ends with the term
	return m.openMirror()
}

// operates has the leader's work call the drivers of the record, or those that somebody handed in.
func (m *Member) operates(o *leader.Config) {
	o.Drivers, o.Random = m.edges.Drivers, m.edges.Random
	if m.handover != nil {
		o.OutsideBusy, o.OutsideUnsure = m.busy, m.handover.Unanswered
	}
	if m.edges.Drivers != nil {
		return
	}
	var known drivers.Objects
	if m.kube != nil {
		known = m.stored
	}
	d := drivers.New(m.state, m.drivers, known)
	o.Drivers, o.Judge, o.DryRun, o.Rehearsed = d.Find, d.Judge, m.config.LBCF.DryRun, d.Rehearse
	retries := m.config.LBCF
	o.Timing.RetryLeast, o.Timing.RetryStep = retries.MinRetryDelay, retries.RetryDelayStep
	if retries.MaxRetryDelay > 0 {
		o.Timing.RetryCap = retries.MaxRetryDelay
	}
}

// settle waits until this member has read what an LBCF controller that is gone has registered: a watch that lags behind those of
// the groups would have it registered anew.
func (m *Member) settle(ctx context.Context) error {
	return m.work.cluster.Fresh(ctx, world.KindBackendRecord)
}

// busy tells whether LBCF's objects are somebody else's. A group that has taken them over already goes on with what it has
// when the API server was asked and does not answer: nobody else can act on them without it, and deregistrations must not
// wait for it. Until it was asked, LBCF may have come back.
func (m *Member) busy() (reason string, busy bool) {
	if m.handover.Unanswered() && m.state.Read().Count(fsm.TableBalancers) > 0 {
		return "", false
	}
	return m.handover.Busy()
}

// openMirror has this member show the record of outside load balancers in LBCF's objects while it leads.
func (m *Member) openMirror() error {
	if m.config.LBCF.DryRun {
		return nil
	}
	api, err := mirror.NewKubernetes(m.kube)
	if err != nil {
		return err
	}
	shown, err := mirror.New(mirror.Config{
		Record: m.state, Objects: m.stored, API: api, Clock: wallClock{}, Log: m.log, Metrics: m.registry,
		Ours: m.ours, Expected: m.expected, Waiting: m.waitingOutside, Yield: m.binding, Rate: m.config.LBCF.ClientQPS, Burst: m.config.LBCF.ClientBurst,
	})
	if err != nil {
		return err
	}
	m.node.WhileLeader(func(ctx context.Context, _ uint64) { m.whileOurs(ctx, shown.Run) })
	return nil
}

// whileOurs runs what writes LBCF's objects whenever nobody else does, until ctx ends. What we show is what an LBCF controller
// goes by: a BackendRecord that it let go of must not come back.
func (m *Member) whileOurs(ctx context.Context, run func(context.Context)) {
	for ctx.Err() == nil {
		changed := m.handover.Changed()
		ours, end := context.WithCancel(ctx)
		if _, busy := m.handover.Busy(); !busy {
			go func() {
				defer end()
				select {
				case <-changed:
				case <-ours.Done():
				}
			}()
			run(ours)
		}
		end()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// ours tells whether the API server belongs to the cluster that the record is of, as far as either is known: the address may have come
// to lead elsewhere.
func (m *Member) ours() bool {
	seen, known := fsm.Get[*fsm.SourceView](m.state.Read(), fsm.TableViews, informers.Name)
	return !known || seen.Cluster == "" || seen.Cluster == m.work.cluster.Cluster()
}

// expected is how many backends the newest plan expects for a group.
func (m *Member) expected(owner string) (int32, bool) {
	c, ok := m.work.Outside().Counts[owner]
	return c.Backends, ok
}

// waitingOutside is the leader's word on outside load balancers that are not as they shall be.
func (m *Member) waitingOutside() []mirror.Explanation {
	var out []mirror.Explanation
	for _, e := range m.work.Outside().Waiting {
		out = append(out, mirror.Explanation(e))
	}
	return out
}

// binding tells whether more calls wait than drivers take at once.
func (m *Member) binding() bool { return m.work.Queued() > 0 }
