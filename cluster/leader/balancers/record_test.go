// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
)

// failer is what testing.T, testing.B and rapid.T have in common here.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// record is a state without a group around it: what is proposed is applied at once.
type record struct {
	t     failer
	state *fsm.State
	// kept is the index of all plans since the record was made.
	kept  *Index
	plans int
	calls []string // that drivers got
	// deaf are the webhooks that do not answer, as "action" or "action subject".
	deaf map[string]bool
}

func newRecord(t failer) *record {
	r := &record{t: t, state: fsm.New(), kept: new(Index), deaf: map[string]bool{}}
	r.must(&fsm.InitGroup{Group: "test", Format: fsm.NewestFormat})
	return r
}

func (r *record) apply(proposals []fsm.Proposal) []fsm.Outcome {
	r.t.Helper()
	var out []fsm.Outcome
	for len(proposals) > 0 {
		n := min(fsm.MaxItems, len(proposals))
		out = append(out, fsmtest.Commit(r.t, r.state, proposals[:n]...)...)
		proposals = proposals[n:]
	}
	return out
}

// must applies a command that nobody may refuse.
func (r *record) must(c fsm.Command) fsm.Outcome {
	r.t.Helper()
	out := r.apply([]fsm.Proposal{{Actor: "test", Command: c}})[0]
	if err := out.Err(); err != nil {
		r.t.Fatalf("%T: %v", c, err)
	}
	return out
}

// maxRounds is within how many plans, each made of what the one before left, everything must come to rest.
const maxRounds = 6

// settle plans and applies until nothing is left to do. Every proposal must be accepted: a plan that is refused was
// wrong about the record. It gives one line for each proposal, and the last plan.
func (r *record) settle(in Input) ([]string, Result) {
	r.t.Helper()
	var lines []string
	for round := 1; ; round++ {
		in.Record = r.state.Read()
		in.Now = time.UnixMilli(1)
		out := r.plan(in)
		if len(out.Proposals) == 0 {
			return lines, out
		}
		if round > maxRounds {
			r.t.Fatalf("still planning in round %d: %s", round, spell(out.Proposals[0]))
		}
		for i, o := range r.apply(out.Proposals) {
			line := spell(out.Proposals[i])
			if err := o.Err(); err != nil {
				r.t.Fatalf("round %d: %s: refused: %v\nall: %v", round, line, err, append(lines, line))
			}
			lines = append(lines, line)
		}
	}
}

// plan plans with the index that was kept, and holds it to what comes of one that is built anew.
func (r *record) plan(in Input) Result {
	r.t.Helper()
	out := Plan(in)
	if r.plans++; r.plans%2 == 0 {
		in.BackendGroups, in.Binds, in.BackendRecords, in.Pods = anew(in.BackendGroups), anew(in.Binds), anew(in.BackendRecords), anew(in.Pods)
	}
	kept := r.kept.Plan(in)
	if !reflect.DeepEqual(out, kept) {
		r.t.Fatalf("anew:\n%swith the index that was kept:\n%s", told(out), told(kept))
	}
	return out
}

// anew is a list as a source gives it after a change: the same objects at another place.
func anew[T any](list []*T) []*T {
	all, out := make([]T, len(list)), make([]*T, len(list))
	for i, o := range list {
		all[i] = *o
		out[i] = &all[i]
	}
	return out
}

// told writes a plan down.
func told(out Result) string {
	var b strings.Builder
	for _, p := range out.Proposals {
		fmt.Fprintf(&b, "  %s\n", spell(p))
	}
	fmt.Fprintf(&b, "  waiting %v\n  questions %v\n  counts %v\n", out.Waiting, out.Questions, out.Counts)
	return b.String()
}

// work makes every call that the record asks for once, and tells whether there were any. Drivers answer that it is done.
func (r *record) work() bool {
	before := len(r.calls)
	for _, l := range fsm.List[*fsm.LoadBalancer](r.state.Read(), fsm.TableBalancers) {
		switch {
		case l.State == fsm.BalancerCreating:
			r.call(&fsm.BeginOperation{Action: fsm.ActionCreateBalancer, Balancer: l.ID}, l.Subject(), string(l.ID))
		case l.State == fsm.BalancerReady && !l.Ensured:
			r.call(&fsm.BeginOperation{Action: fsm.ActionEnsureBalancer, Balancer: l.ID}, l.Subject(), string(l.ID))
		case l.State == fsm.BalancerDeleting:
			r.call(&fsm.BeginOperation{Action: fsm.ActionDeleteBalancer, Balancer: l.ID}, l.Subject(), string(l.ID))
		}
	}
	for _, b := range fsm.List[*fsm.Binding](r.state.Read(), fsm.TableBindings) {
		switch b.State {
		case fsm.BindingPending, fsm.BindingAddressing:
			r.address(b)
		case fsm.BindingEnsuring:
			r.call(&fsm.BeginOperation{Action: fsm.ActionEnsure, Binding: b.ID}, b.Subject(), backend(b))
		case fsm.BindingDeregistering:
			r.call(&fsm.BeginOperation{Action: fsm.ActionDeregister, Binding: b.ID}, b.Subject(), backend(b))
		}
	}
	return len(r.calls) > before
}

// call makes one call, unless the record has it wait.
func (r *record) call(c *fsm.BeginOperation, s fsm.Subject, about string) {
	c.Deadline = time.Second
	if r.deaf[c.Action.String()] {
		return
	}
	out := r.apply([]fsm.Proposal{{Actor: "test", Command: c}})[0]
	// The other one that means a balancer may have bindings: nothing is deleted then, and to ensure it settles both all the same.
	if out.Reject == fsm.RejectLiveHolder || out.Reject == fsm.RejectInUse && c.Action == fsm.ActionDeleteBalancer {
		r.callHolder(c, s)
		return
	}
	if out.Err() != nil {
		return
	}
	r.calls = append(r.calls, c.Action.String()+" "+about)
	r.must(&fsm.FinishOperation{Subject: s, Attempt: out.Revision, Result: fsm.ResultSucceeded, Settled: true})
}

// address asks for the address of a backend.
func (r *record) address(b *fsm.Binding) {
	if r.deaf[fsm.ActionAddress.String()] {
		return
	}
	r.calls = append(r.calls, fsm.ActionAddress.String()+" "+backend(b))
	r.must(&fsm.SetBindingAddress{
		ID: b.ID, UID: b.UID, Address: fmt.Sprintf("%s%s:%d", b.Backend.Target, b.Backend.Node, b.Backend.Port+b.Backend.NodePort),
	})
}

// callHolder has what still wants a thing ensured, where something else wants to be rid of it: that settles both.
func (r *record) callHolder(c *fsm.BeginOperation, s fsm.Subject) {
	if c.Action == fsm.ActionDeleteBalancer {
		for _, l := range r.state.Read().BalancersOn(s) {
			if l.State == fsm.BalancerReady {
				r.call(&fsm.BeginOperation{Action: fsm.ActionEnsureBalancer, Balancer: l.ID}, s, string(l.ID))
				return
			}
		}
		return
	}
	for _, b := range r.state.Read().OnSubject(s) {
		if b.State == fsm.BindingBound {
			r.call(&fsm.BeginOperation{Action: fsm.ActionEnsure, Binding: b.ID}, s, backend(b))
			return
		}
	}
}

// backend writes a binding in a few words.
func backend(b *fsm.Binding) string {
	what := b.Backend.Name
	if b.Backend.Node != "" {
		what += "@" + b.Backend.Node
	}
	if b.Backend.Kind == kindStatic {
		return b.Address + " on " + short(string(b.Balancer))
	}
	return fmt.Sprintf("%s:%d on %s", what, b.Backend.Port, short(string(b.Balancer)))
}

// short leaves out UIDs and identities.
func short(id string) string {
	at := placeOf(id)
	switch {
	case at.kind == orphanKind:
		return "orphaned " + at.id.String()
	case at.kind == "":
		return id
	case at.entry != "":
		return fmt.Sprintf("%s/%s", at.id, at.entry)
	}
	return at.id.String()
}

// spell writes a proposal in a few words.
func spell(p fsm.Proposal) string {
	name := strings.TrimPrefix(fmt.Sprintf("%T", p.Command), "*fsm.")
	tail := " (" + p.Reason + ")"
	switch c := p.Command.(type) {
	case *fsm.PutDriver:
		out := name + " " + c.Driver.Name
		if c.Driver.Draining {
			out += " draining"
		}
		return out + tail
	case *fsm.DeleteDriver:
		return name + " " + c.Name + tail
	case *fsm.PutLoadBalancer:
		return fmt.Sprintf("%s %s driver=%s spec=%s attributes=%s info=%s synced=%t%s", name, short(string(c.ID)), c.Driver, words(c.Spec), words(c.Attributes), words(c.Info), c.Synced, tail)
	case *fsm.DeleteLoadBalancer:
		return name + " " + short(string(c.ID)) + tail
	case *fsm.ForgetLoadBalancer:
		return name + " " + short(string(c.ID)) + tail
	case *fsm.PutBinding:
		return name + " " + put(c) + tail
	case *fsm.AdoptBinding:
		return fmt.Sprintf("%s %s uid=%s registered=%t leaving=%t%s", name, put(&c.Binding), c.UID, c.Registered, c.Leaving, tail)
	case *fsm.RemoveBinding:
		return name + " " + string(c.ID) + tail
	case *fsm.Forget:
		return name + " " + string(c.ID) + tail
	}
	return name + tail
}

func put(c *fsm.PutBinding) string {
	return fmt.Sprintf("%s: %s for %s parameters=%s attributes=%s", c.ID,
		backend(&fsm.Binding{Backend: c.Backend, Balancer: c.Balancer, Address: c.Address}), short(c.Owner), words(c.Parameters), words(c.Attributes))
}

func words(list []fsm.KV) string {
	var out []string
	for _, kv := range list {
		out = append(out, kv.Key+"="+kv.Value)
	}
	return strings.Join(out, "&")
}
