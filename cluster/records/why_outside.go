// SPDX-License-Identifier: Apache-2.0

package records

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// whyOutside answers about an object of outside load balancers: "backendgroup", "bind", "loadbalancer" or "backend", and its name.
func (s *Service) whyOutside(ctx context.Context, kind, name string, leads bool, doubt string) (*fairleadv1.WhyResponse, error) {
	in, why := leader.OutsideInput{Record: s.o.Record.Read()}, ""
	if leads {
		asking, cancel := context.WithTimeout(ctx, askLoopWithin)
		defer cancel()
		now, unplanned := s.o.Planner.AskedOutside(asking)
		if why = unplanned; why == "" {
			in = now
		}
	}
	w := &outsideRenderer{x: leader.ExplainOutside(in), view: in.Record, unplanned: why}
	found, err := w.find(kind, name)
	if err != nil {
		return nil, doubted(err, "why "+kind+" "+name, doubt)
	}
	if leads {
		asking, cancel := context.WithTimeout(ctx, askLoopWithin)
		defer cancel()
		w.next, w.operated = s.o.Planner.NextCalls(asking, found.subjects())
	}
	d := s.whyHead(in.Record, kind+" "+name, leads, doubt)
	d.Outside = append(d.Outside, w.document(found))
	doc, err := document(d)
	return &fairleadv1.WhyResponse{Document: doc}, err
}

// outsideRenderer joins what the plan makes of objects with what the record has of them, and what the operator is about to do.
type outsideRenderer struct {
	x         *leader.OutsideExplained
	view      *fsm.View
	unplanned string // why nothing is planned; empty: it is, or this member does not lead
	next      map[fsm.Subject]leader.NextCall
	operated  bool // next is known
}

// outsideThing is what was asked about, with what the record has of it.
type outsideThing struct {
	kind      world.Kind
	id        world.ID
	balancers []*fsm.LoadBalancer // it is one of these: an object of its name that went may be among them
	bindings  []*fsm.Binding
}

func (f *outsideThing) subjects() []fsm.Subject {
	var out []fsm.Subject
	for _, l := range f.balancers {
		out = append(out, l.Subject())
	}
	for _, b := range f.bindings {
		out = append(out, b.Subject())
	}
	return out
}

// find finds what is meant. Errors: there is no such thing.
func (w *outsideRenderer) find(kind, name string) (*outsideThing, error) {
	namespace, of, _ := strings.Cut(name, "/")
	f := &outsideThing{id: world.ID{Namespace: namespace, Name: of}}
	kinds := map[string]world.Kind{
		"backendgroup": world.KindBackendGroup, "bind": world.KindBind, "loadbalancer": world.KindLoadBalancer, "backend": world.KindBackendRecord,
	}
	list := map[string]string{"backend": "`fairlead get bindings`", "loadbalancer": "`fairlead get loadbalancers`"}
	f.kind = kinds[kind]
	begins := string(f.kind) + "/" + name + "/"
	for _, l := range fsm.List[*fsm.LoadBalancer](w.view, fsm.TableBalancers) {
		if strings.HasPrefix(string(l.ID), begins) {
			f.balancers = append(f.balancers, l)
		}
	}
	for _, b := range fsm.List[*fsm.Binding](w.view, fsm.TableBindings) {
		ns, _, _ := strings.Cut(string(b.ID), "/")
		ofPod := ns == namespace && (b.Backend.Kind != "Service" && b.Backend.Name == of || b.Address == of)
		on := slices.ContainsFunc(f.balancers, func(l *fsm.LoadBalancer) bool { return l.ID == b.Balancer })
		if strings.HasPrefix(b.Owner, begins) || on || kind == "backend" && (string(b.ID) == name || ofPod) {
			f.bindings = append(f.bindings, b)
		}
	}
	if len(f.balancers)+len(f.bindings) == 0 && !w.x.Shows(f.kind, f.id) {
		if f.kind == "" {
			return nil, notFound("why "+kind+" "+name, "there is no such kind", "want backendgroup, bind, loadbalancer or backend")
		}
		return nil, notFound("why "+kind+" "+name, "neither the record nor a source has it", cmp.Or(list[kind], "see the objects: `kubectl get "+kind+"s -A`")+" lists them")
	}
	return f, nil
}

func (w *outsideRenderer) document(f *outsideThing) records.WhyOutside {
	d := records.WhyOutside{
		Kind: string(f.kind), Name: f.id.String(), Reasons: []records.Reason{}, Unregistered: []records.WhyAbsent{},
		Backends: each(f.bindings, w.backend),
	}
	if w.unplanned != "" {
		d.Reasons = append(d.Reasons, reasonOf(leader.WaitsForHandover, w.unplanned))
	}
	for _, r := range w.x.Waiting(f.kind, f.id) {
		d.Reasons = append(d.Reasons, reasonOf(r.Code, r.Text))
	}
	if f.kind == world.KindLoadBalancer && len(f.balancers) > 0 {
		l := f.balancers[len(f.balancers)-1]
		d.Driver, d.State, d.Call = l.Driver, l.State.String(), w.call(l.Subject(), l.Attempts, cmp.Or(l.Reason, l.Message), "")
	}
	if f.kind == world.KindBackendRecord && len(d.Backends) == 1 {
		d.Driver, d.State = d.Backends[0].Driver, d.Backends[0].State
	}
	pods, why := w.x.Absent(f.kind, f.id, f.bindings)
	for i, pod := range pods {
		d.Unregistered = append(d.Unregistered, records.WhyAbsent{Pod: pod.String(), Reason: reasonOf(why[i].Code, why[i].Text)})
	}
	d.History = w.history(f)
	d.Summary = outsideSummary(&d)
	return d
}

func (w *outsideRenderer) backend(b *fsm.Binding) records.WhyBackend {
	d := records.WhyBackend{
		Name: string(b.ID), Target: leader.TargetOf(b), LoadBalancer: leader.ThingName(string(b.Balancer)), Owner: leader.ThingName(b.Owner),
		Address: b.Address, State: b.State.String(), Registered: b.Registered,
	}
	if l, known := fsm.Get[*fsm.LoadBalancer](w.view, fsm.TableBalancers, string(b.Balancer)); known {
		d.Driver = l.Driver
	}
	d.Call = w.call(b.Subject(), b.Attempts, cmp.Or(b.Reason, b.Message), pendingAction(b))
	return d
}

// pendingAction is the call that the state of a binding asks for; empty for none.
func pendingAction(b *fsm.Binding) string {
	switch b.State {
	case fsm.BindingPending, fsm.BindingAddressing:
		return fsm.ActionAddress.String()
	case fsm.BindingEnsuring:
		return fsm.ActionEnsure.String()
	case fsm.BindingDeregistering:
		return fsm.ActionDeregister.String()
	}
	return ""
}

// call is the next call on a line. Asked is what is known to be asked for where the leader does not say.
func (w *outsideRenderer) call(s fsm.Subject, attempts uint32, last, asked string) *records.WhyCall {
	d := &records.WhyCall{Action: asked, Progress: records.CallUnknown, Attempts: attempts, Last: last}
	op, called := fsm.Get[*fsm.Operation](w.view, fsm.TableOperations, string(s))
	d.Unsettled = called && !op.Unsettled.IsZero()
	next, due := w.next[s]
	switch {
	case due && next.UnderWay:
		d.Progress = records.CallUnderWay
	case due && next.Queued:
		d.Progress = records.CallQueued
	case due:
		d.Progress, d.DueInMs = records.CallDue, milliseconds(next.In)
	case called && op.Open:
		d.Action, d.Progress = op.Action.String(), records.CallUnderWay
	case w.operated || asked == "":
		return nil
	}
	if due && next.Action != 0 {
		d.Action = next.Action.String()
	}
	if called && d.Action == op.Action.String() && (d.Progress == records.CallDue && next.In > 0 || d.Progress == records.CallUnknown) {
		d.NotBefore = notBefore(op)
	}
	return d
}

func (w *outsideRenderer) history(f *outsideThing) []records.WhyTransition {
	out := []records.WhyTransition{}
	add := func(of string, trail fsm.Trail) {
		for _, t := range trail {
			out = append(out, records.WhyTransition{
				Revision: revision(t.Revision), Term: t.By().Term, Time: stamp(t.AtUnixMilli), Of: of, Actor: t.By().Actor, Reason: t.By().Reason, Change: t.What,
			})
		}
	}
	for _, l := range f.balancers {
		add(leader.ThingName(string(l.ID)), l.History)
	}
	for _, b := range f.bindings {
		add(leader.TargetOf(b)+" on "+leader.ThingName(string(b.Balancer)), b.History)
	}
	slices.SortStableFunc(out, func(a, b records.WhyTransition) int {
		return cmp.Or(cmp.Compare(a.Revision.Epoch, b.Revision.Epoch), cmp.Compare(a.Revision.Index, b.Revision.Index))
	})
	return out
}

// outsideSummary says in a sentence how an object is.
func outsideSummary(d *records.WhyOutside) string {
	bound, failing := 0, ""
	for i := range d.Backends {
		b := &d.Backends[i]
		if b.State == fsm.BindingBound.String() && b.Registered {
			bound++
		}
		if failing == "" && b.Call != nil && b.Call.Attempts > 0 {
			failing = fmt.Sprintf("; %s fails: %s", b.Target, b.Call.Last)
		}
	}
	text := fmt.Sprintf("%d of %d backends are registered", bound, len(d.Backends))
	switch {
	case d.Kind == string(world.KindLoadBalancer) && d.State == "":
		text = "the record has nothing of it yet"
	case d.Kind == string(world.KindLoadBalancer):
		text = d.State + ", " + text
	}
	if n := len(d.Unregistered); n > 0 {
		text += fmt.Sprintf("; %d pods cannot be", n)
	}
	return text + failing
}
