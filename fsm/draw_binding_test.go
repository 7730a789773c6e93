// SPDX-License-Identifier: Apache-2.0

package fsm_test

import (
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
)

func drawKVs(t *rapid.T, name string) []fsm.KV {
	return rapid.SampledFrom([][]fsm.KV{nil, {{Key: "w", Value: "1"}}, {{Key: "w", Value: "2"}}}).Draw(t, name)
}

// theirs is the UID of what others looked after.
const theirs = "theirs"

// oldest is when the first object was made that was taken over.
const oldest = 1_790_000_000

// drawOrigin is the object that a binding is taken over from, or none for one that says that it is ours.
func drawOrigin(t *rapid.T) fsm.Origin {
	n := rapid.IntRange(0, 4).Draw(t, "origin")
	if n == 0 {
		return fsm.Origin{}
	}
	return fsm.Origin{UID: "r" + string(rune('0'+n)), Made: oldest + int64(n)}
}

// infos are what balancers may turn out to be: few, in more than one spelling, and one that is another one's Spec.
var infos = [][]fsm.KV{
	nil, {{Key: "id", Value: "lb1"}}, {{Key: "id", Value: "lb2"}, {Key: "port", Value: "80"}}, {{Key: "port", Value: "80"}, {Key: "id", Value: "lb2"}},
}

// specs are what is asked for, by object: two ask for the same.
var specs = map[fsm.BalancerID][]fsm.KV{"o1": infos[1], "o2": infos[1], "o3": {{Key: "pool", Value: "dmz"}}}

func drawEnsure(t *rapid.T) fsm.EnsurePolicy {
	return rapid.SampledFrom([]fsm.EnsurePolicy{{}, {}, {}, {Policy: "Always"}, {Policy: "Always", Period: time.Minute}}).Draw(t, "ensure")
}

func (w *history) drawBalancer(t *rapid.T) fsm.Command {
	id := among(t, "balancer", lbs)
	switch rapid.IntRange(0, 11).Draw(t, "verb") {
	case 0, 1, 2:
		return &fsm.DeleteLoadBalancer{ID: id}
	case 3:
		return &fsm.ForgetLoadBalancer{ID: id}
	case 4:
		return &fsm.DeleteDriver{Name: among(t, "driver", drivers)}
	case 5:
		return &fsm.PutDriver{Driver: fsm.Driver{
			Name: among(t, "driver", drivers), URL: among(t, "url", []string{"http://192.0.2.80", "http://192.0.2.81"}),
			History: fsm.Trail{{What: "the proposer's, to be ignored"}},
		}}
	}
	c := &fsm.PutLoadBalancer{
		ID: id, Driver: drivers[0], Spec: specs[id], Attributes: drawKVs(t, "attributes"), UID: "u-" + string(id),
		Info:   rapid.SampledFrom(append([][]fsm.KV{nil, nil, nil}, infos...)).Draw(t, "info"),
		Ensure: drawEnsure(t), Synced: rapid.Bool().Draw(t, "synced"),
	}
	if rapid.IntRange(0, 9).Draw(t, "another") == 9 {
		c.Driver = among(t, "driver", drivers)
		c.Spec = rapid.SampledFrom(infos).Draw(t, "spec")
	}
	return c
}

func (w *history) drawBinding(t *rapid.T) fsm.Command {
	id := among(t, "binding", bindings)
	switch rapid.IntRange(0, 8).Draw(t, "verb") {
	case 0:
		return w.drawAnswer(t, id)
	case 1, 2:
		return &fsm.RemoveBinding{ID: id, Drain: rapid.Bool().Draw(t, "drain")}
	case 3:
		return &fsm.Drained{ID: id}
	case 4:
		return &fsm.Forget{ID: id}
	case 5:
		return &fsm.AdoptBinding{
			Binding: w.drawPut(t, id), UID: among(t, "uid", []string{theirs}), Returned: drawKVs(t, "returned"),
			Registered: rapid.Bool().Draw(t, "registered"), Leaving: rapid.IntRange(0, 3).Draw(t, "leaving") == 3,
			Origin: drawOrigin(t),
		}
	}
	put := w.drawPut(t, id)
	return &put
}

func (w *history) drawPut(t *rapid.T, id fsm.BindingID) fsm.PutBinding {
	return fsm.PutBinding{
		ID: id, Balancer: among(t, "balancer", lbs), Address: rapid.SampledFrom(backends).Draw(t, "address"),
		Parameters: drawKVs(t, "parameters"), Attributes: drawKVs(t, "attributes"), Ensure: drawEnsure(t),
		Owner:   rapid.SampledFrom([]string{"a", "a", "b"}).Draw(t, "owner"),
		Backend: fsm.Backend{Kind: "Pod", Target: rapid.SampledFrom([]string{"", "", "", "", "192.0.2.7"}).Draw(t, "target")},
	}
}

// drawOperation mostly draws the next sensible step, so that long histories of calls come about.
// stranger is the UID of no binding.
const stranger = "stranger"

// drawAnswer is one to the question for an address, maybe about a binding that there is no more.
func (w *history) drawAnswer(t *rapid.T, id fsm.BindingID) fsm.Command {
	c := &fsm.SetBindingAddress{ID: id, Address: rapid.SampledFrom(backends).Draw(t, "address"), UID: rapid.SampledFrom([]string{"", stranger}).Draw(t, "uid")}
	if c.Address == "" {
		c.Message, c.Failed = among(t, "message", []string{"", "no such pod"}), rapid.Bool().Draw(t, "failed")
	}
	if b, ok := fsm.Get[*fsm.Binding](w.state.Read(), fsm.TableBindings, string(id)); ok && rapid.IntRange(0, 7).Draw(t, "of another") > 0 {
		c.UID = b.UID
	}
	return c
}

func (w *history) drawOperation(t *rapid.T) fsm.Command {
	switch rapid.IntRange(0, 8).Draw(t, "step") {
	case 0, 1, 2, 3:
		return w.drawFinish(t)
	case 4, 5:
		return w.drawOnBalancer(t)
	}
	id := among(t, "binding", bindings)
	sensible := map[string]fsm.Action{
		"pending": fsm.ActionAddress, "addressing": fsm.ActionAddress, "ensuring": fsm.ActionEnsure,
		"bound": fsm.ActionEnsure, "deregistering": fsm.ActionDeregister,
	}[w.model.bindings[id].state]
	return w.drawBegin(t, sensible, id, rapid.SampledFrom(lbs).Draw(t, "balancer"))
}

func (w *history) drawOnBalancer(t *rapid.T) fsm.Command {
	id := rapid.SampledFrom(lbs).Draw(t, "balancer")
	sensible := map[string]fsm.Action{
		"creating": fsm.ActionCreateBalancer, "ready": fsm.ActionEnsureBalancer, "deleting": fsm.ActionDeleteBalancer,
	}[w.model.balancers[id].state]
	if b := w.model.balancers[id]; b.state == "deleting" && w.model.mayBeAnothers(id, b) {
		sensible = rapid.SampledFrom([]fsm.Action{fsm.ActionCreateBalancer, fsm.ActionDeleteBalancer}).Draw(t, "of another's")
	}
	return w.drawBegin(t, sensible, among(t, "binding", bindings), id)
}

func (w *history) drawBegin(t *rapid.T, sensible fsm.Action, binding fsm.BindingID, balancer fsm.BalancerID) fsm.Command {
	return &fsm.BeginOperation{
		Action: rapid.SampledFrom([]fsm.Action{
			sensible, sensible, sensible, sensible, sensible, sensible, sensible, sensible, fsm.ActionAddress, fsm.ActionEnsure,
			fsm.ActionDeregister, fsm.ActionEnsureBalancer, fsm.ActionDeleteBalancer, fsm.ActionCreateBalancer, 0, 9,
		}).Draw(t, "action"),
		Binding: binding, Balancer: balancer, Deadline: among(t, "deadline", []time.Duration{time.Second}),
	}
}

func (w *history) drawFinish(t *rapid.T) fsm.Command {
	subjects := slices.Sorted(maps.Keys(w.model.lines))
	open := slices.DeleteFunc(slices.Clone(subjects), func(s string) bool { return !w.model.lines[s].open })
	if len(open) > 0 && rapid.IntRange(0, 4).Draw(t, "any line") > 0 {
		subjects = open
	}
	subject := "binding x1"
	if len(subjects) > 0 {
		subject = rapid.SampledFrom(subjects).Draw(t, "subject")
	}
	c := &fsm.FinishOperation{
		Subject: fsm.Subject(subject), Attempt: w.near(t, "attempt", w.model.lines[subject].attempt),
		Result: rapid.SampledFrom([]fsm.Result{
			fsm.ResultSucceeded, fsm.ResultSucceeded, fsm.ResultSucceeded, fsm.ResultSucceeded, fsm.ResultSucceeded,
			fsm.ResultFailed, fsm.ResultFailed, fsm.ResultRunning, fsm.ResultUnknown, fsm.ResultUnknown, 0, 5,
		}).Draw(t, "result"),
		Message: rapid.SampledFrom([]string{"", "timed out"}).Draw(t, "message"),
		Address: rapid.SampledFrom(backends).Draw(t, "address"), Returned: drawKVs(t, "returned"),
		Settled: rapid.Bool().Draw(t, "settled"), Refused: rapid.Bool().Draw(t, "refused"),
	}
	if w.model.lines[subject].action == fsm.ActionCreateBalancer {
		c.Returned = rapid.SampledFrom(infos).Draw(t, "info")
	}
	return c
}
