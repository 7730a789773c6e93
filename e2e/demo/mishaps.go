// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// steady is the measure of the others: nothing happens.
func steady(ctx context.Context, w *world) error { return w.during(ctx, w.a(8*time.Second)) }

// leaderKilled kills the leading process (SIGKILL), waits for another leader, and brings the member back.
func leaderKilled(ctx context.Context, w *world) error {
	old, err := w.leader(ctx)
	if err != nil {
		return err
	}
	w.notef("killing %s, the leader", old.name)
	if err := old.process.Kill(); err != nil {
		return err
	}
	if _, err := w.leader(ctx); err != nil {
		return err
	}
	if err := w.during(ctx, w.a(6*time.Second)); err != nil {
		return err
	}
	return w.membersReturn(ctx, old)
}

// membersReturn starts members again and waits until they announce what the others do.
func (w *world) membersReturn(ctx context.Context, gone ...*controller) error {
	for _, c := range gone {
		w.notef("starting %s", c.name)
		if err := c.process.Start(); err != nil {
			return err
		}
	}
	return w.membersRight(ctx)
}

func (w *world) membersRight(ctx context.Context) error {
	if err := eventually(ctx, "whole group", func() error { return w.whole(ctx) }); err != nil {
		return err
	}
	if err := eventually(ctx, "paths from every member", func() error { return w.announced(ctx) }); err != nil {
		return err
	}
	return w.during(ctx, w.a(2*time.Second))
}

// memberCutOff separates the leader from the other members, but not from the switch, until it must have stepped aside.
func memberCutOff(ctx context.Context, w *world) error {
	cut, err := w.leader(ctx)
	if err != nil {
		return err
	}
	w.notef("cutting off %s, the leader", cut.name)
	if err := cut.cutOff(); err != nil {
		return err
	}
	_, err = w.leader(ctx, cut)
	if err == nil {
		err = w.during(ctx, w.a(10*time.Second))
	}
	w.notef("healing the cut")
	if err := errors.Join(err, cut.heal()); err != nil {
		return err
	}
	return w.membersRight(ctx)
}

// outage is how long all members are away.
const outage = 10 * time.Second

// allMembersStopped kills every member (SIGKILL) for ten seconds: without one of them nothing changes.
func allMembersStopped(ctx context.Context, w *world) error {
	w.notef("killing all members")
	for _, c := range w.members {
		if err := c.process.Kill(); err != nil {
			return err
		}
	}
	if err := w.during(ctx, outage); err != nil {
		return err
	}
	return w.membersReturn(ctx, w.members...)
}

// podMoved moves a pod of each service from n1 to n2 as a rollout does: the new one is ready first, the old one serves
// on while it terminates, and goes when the switch has no more use for its node.
func podMoved(ctx context.Context, w *world) error {
	return w.movePods(ctx, w.machines[0], w.machines[1])
}

// podsReturn moves them back.
func podsReturn(ctx context.Context, w *world) error {
	return w.movePods(ctx, w.machines[1], w.machines[0])
}

// grace is how long at least a pod goes on serving after it was told to end and the switch sends nobody to its node any more.
const grace = 3 * time.Second

func (w *world) movePods(ctx context.Context, from, to *machine) error {
	var leaving []*pod
	for _, s := range services {
		old := from.newestPod(s.name)
		leaving = append(leaving, old)
		w.generation++
		index := len(services) + w.generation
		name := fmt.Sprintf("%s-%d-%d", s.name, to.n, w.generation)
		if err := w.addPod(ctx, to, s.name, name, index); err != nil {
			return err
		}
		w.notef("pod %s is ready on %s", name, to.name)
	}
	if err := w.during(ctx, w.a(4*time.Second)); err != nil {
		return err
	}
	for _, p := range leaving {
		w.notef("pod %s terminates", p.name)
		delete(from.pods, p.name) // counts no more
		if err := w.objects[p.name].Terminate(ctx); err != nil {
			return err
		}
	}
	if err := eventually(ctx, "routes to where the pods are", func() error { return w.routed(ctx) }); err != nil {
		return err
	}
	if err := w.during(ctx, grace); err != nil {
		return err
	}
	for _, p := range leaving {
		if err := w.idle(ctx, p); err != nil {
			return err
		}
		w.notef("pod %s goes", p.name)
		if err := errors.Join(p.ends(), w.objects[p.name].Remove(ctx)); err != nil {
			return err
		}
		delete(w.objects, p.name)
	}
	return w.during(ctx, w.a(2*time.Second))
}

// newestPod is the pod of a service that came last.
func (m *machine) newestPod(service string) *pod {
	var newest *pod
	for _, p := range m.pods {
		if p.service == service && (newest == nil || p.index > newest.index) {
			newest = p
		}
	}
	return newest
}

// nodeDrained drains a node, kills the leader and asks again: who leads makes no difference.
func nodeDrained(ctx context.Context, w *world) error {
	drained := w.machines[1]
	if err := w.drain(ctx, drained, true); err != nil {
		return err
	}
	if err := eventually(ctx, "routes without the drained node", func() error { return w.routed(ctx) }); err != nil {
		return err
	}
	if err := leaderKilled(ctx, w); err != nil {
		return err
	}
	return w.drain(ctx, drained, true)
}

// nodeUndrained ends the drain.
func nodeUndrained(ctx context.Context, w *world) error {
	if err := w.drain(ctx, w.machines[1], false); err != nil {
		return err
	}
	return eventually(ctx, "routes to all nodes", func() error { return w.routed(ctx) })
}

// drain has new flows go past a node, and waits until the switch knows; or ends that.
func (w *world) drain(ctx context.Context, m *machine, yes bool) error {
	var answer struct{ Done, Undone bool }
	how := []string{"--undo"}
	if m.drained = yes; yes {
		how = []string{"--wait", "--timeout", patience.String(), "--quiet-within", "20s"} // a busy machine counts connections rarely
	}
	w.notef("drain %s %v", m.name, how)
	if err := w.askWithin(ctx, patience+time.Minute, &answer, append([]string{"drain", "node", m.name}, how...)...); err != nil {
		return err
	}
	if answer.Done != yes || answer.Undone == yes {
		return fmt.Errorf("drain %s %v: the answer is %+v", m.name, how, answer)
	}
	return nil
}

// nodeKilled cuts a node's power.
func nodeKilled(ctx context.Context, w *world) error {
	w.notef("cutting the power of n2")
	if err := w.machines[1].dies(); err != nil {
		return err
	}
	if err := eventually(ctx, "routes without the dead node", func() error { return w.routed(ctx) }); err != nil {
		return err
	}
	return w.during(ctx, w.a(6*time.Second))
}

// machinesReturn boots the nodes that died, starts members that died, and waits until everything is used again.
func machinesReturn(ctx context.Context, w *world) error {
	for _, m := range w.machines {
		if m.alive {
			continue
		}
		w.notef("%s boots", m.name)
		if err := m.boots(w); err != nil {
			return err
		}
	}
	var gone []*controller
	for _, c := range w.members {
		if !c.process.Running() {
			gone = append(gone, c)
		}
	}
	if err := w.membersReturn(ctx, gone...); err != nil {
		return err
	}
	return eventually(ctx, "routes to all nodes", func() error { return w.routed(ctx) })
}

// agentRestarted kills an agent (SIGKILL) for longer than the group takes to notice, and starts it again.
func agentRestarted(ctx context.Context, w *world) error {
	agent := w.machines[2].agent
	w.notef("killing the agent of n3")
	if err := agent.Kill(); err != nil {
		return err
	}
	if err := w.during(ctx, w.a(6*time.Second)); err != nil {
		return err
	}
	w.notef("starting it again")
	if err := agent.Start(); err != nil {
		return err
	}
	return w.during(ctx, w.a(6*time.Second))
}

// apiStopped takes the API server away for a minute, in which a node and a member that does not lead die.
func apiStopped(ctx context.Context, w *world) error {
	leader, err := w.leader(ctx)
	if err != nil {
		return err
	}
	follower := w.members[slices.IndexFunc(w.members, func(c *controller) bool { return c != leader })]
	begin := time.Now()
	w.notef("killing the API server")
	w.kube.Kill()
	if err := w.during(ctx, w.a(15*time.Second)); err != nil {
		return err
	}
	w.notef("cutting the power of n2")
	if err := w.machines[1].dies(); err != nil {
		return err
	}
	if err := eventually(ctx, "routes without the dead node", func() error { return w.routed(ctx) }); err != nil {
		return err
	}
	if err := w.during(ctx, w.a(10*time.Second)); err != nil {
		return err
	}
	w.notef("killing %s, a follower", follower.name)
	if err := follower.process.Kill(); err != nil {
		return err
	}
	if err := w.during(ctx, w.a(time.Minute)-time.Since(begin)); err != nil {
		return err
	}
	w.notef("starting the API server")
	if err := w.kube.Start(ctx); err != nil {
		return err
	}
	return w.during(ctx, w.a(6*time.Second))
}

// switchRestarted kills BIRD (SIGKILL) for two seconds: the switch goes on forwarding, and learns everything anew.
func switchRestarted(ctx context.Context, w *world) error {
	w.notef("killing BIRD")
	if err := w.border.bird.Kill(); err != nil {
		return err
	}
	if err := w.during(ctx, 2*time.Second); err != nil {
		return err
	}
	w.notef("starting BIRD")
	if err := w.border.starts(ctx); err != nil {
		return err
	}
	if err := eventually(ctx, "paths from every member", func() error { return w.announced(ctx) }); err != nil {
		return err
	}
	return w.during(ctx, w.a(4*time.Second))
}
