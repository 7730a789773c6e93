// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// Telling is something to tell in an Event. Reasons and types are LBCF's (lbcf §7).
type Telling struct {
	About   Key
	Warning bool
	Reason  string
	Note    string
}

// What failed or goes on, in the words of reasons: Succ, Failed, Running or Invalid, and then one of these.
const (
	createLoadBalancer = "CreateLoadBalancer"
	ensureLoadBalancer = "EnsureLoadBalancer"
	deleteLoadBalancer = "DeleteLoadBalancer"
	generateAddr       = "GenerateAddr"
	ensureBackend      = "EnsureBackend"
	deregister         = "Deregister"
)

// Reasons that are not made of the words above.
const (
	delayedEnsure     = "DelayedEnsureBackend"
	syncedGroup       = "SuccSyncedBackendGroup"
	deleteAllBackends = "DeleteAllBackends"
	driverNotFound    = "DriverNotFound"
	getBalancerFailed = "GetLoadBalancerFailed"
	judgeFailed       = "WebhookFailed"
)

// Explanation says why an object is not as it shall be: "namespace/name" of a kind, a code for programs and a text for
// people.
type Explanation struct {
	Kind, Name, Code, Text string
}

// Codes of explanations that Events tell.
const (
	codeLoadBalancer = "load-balancer" // one that a BackendGroup names is not there, or not created yet
	codeUnusable     = "unusable"      // it is there, and cannot be had
	codeScope        = "scope"         // it is there for others
	codeDriver       = "driver"        // there is none of the name
	codeJudge        = "judge"         // a driver was asked in vain which pods stay
)

// waitingEvents tells what the leader says of an object, as far as LBCF had a word for it.
func waitingEvents(e Explanation) []Telling {
	t := Telling{About: keyOf(Kind(e.Kind), e.Name), Note: e.Text}
	switch {
	case t.About.Kind == Group && e.Code == codeLoadBalancer:
		t.Reason = getBalancerFailed
	case t.About.Kind == Group && (e.Code == codeUnusable || e.Code == codeScope):
		t.Reason, t.Warning = getBalancerFailed, true
	case t.About.Kind == Group && e.Code == codeDriver || (t.About.Kind == Group || t.About.Kind == Bind) && e.Code == codeJudge:
		t.Reason, t.Warning = judgeFailed, true
	case t.About.Kind == LoadBalancer && e.Code == codeDriver:
		t.Reason, t.Warning = driverNotFound, true
	case t.About.Kind == Bind && e.Code == codeDriver:
		t.Reason, t.Warning = driverNotFound, true
		t.About.Name, _, _ = strings.Cut(t.About.Name, "/") // of a load balancer of it: "namespace/name/entry"
	default:
		return nil
	}
	return []Telling{t}
}

// attempts tells of attempts at something that did not end it.
func attempts(about Key, what string, before, after uint32, was, is string) []Telling {
	t := Telling{About: about, Note: "msg: " + is}
	switch {
	case is == "":
		return nil
	case after > before && strings.Contains(is, invalidWords):
		t.Reason, t.Warning = "Invalid"+what, true
	case after > before:
		t.Reason, t.Warning = "Failed"+what, true
	case is != was:
		t.Reason = "Running" + what
	default:
		return nil
	}
	return []Telling{t}
}

// bindingEvents tells how a binding changed. before is nil for one that came.
func bindingEvents(v *fsm.View, before, after *fsm.Binding) (out []Telling) {
	if before == nil || before.UID != after.UID {
		before = &fsm.Binding{}
	}
	about := recordKey(after.ID)
	if before.Address == "" && after.Address != "" && after.UID != "" {
		out = append(out, Telling{About: about, Reason: "Succ" + generateAddr, Note: "addr: " + after.Address})
	}
	if before.State != fsm.BindingBound && after.State == fsm.BindingBound {
		return append(out, Telling{About: about, Reason: "Succ" + ensureBackend, Note: after.Message})
	}
	if before.State != fsm.BindingEnsuring && after.State == fsm.BindingEnsuring {
		if op, ok := fsm.Get[*fsm.Operation](v, fsm.TableOperations, string(after.Subject())); ok && op.Open && op.Action == fsm.ActionDeregister && op.Binding != after.ID {
			note := fmt.Sprintf("BackendRecord %s is deregistered from the same address first", op.Binding)
			out = append(out, Telling{About: about, Reason: delayedEnsure, Note: note})
		}
	}
	what := ensureBackend
	switch after.State {
	case fsm.BindingPending, fsm.BindingAddressing:
		what = generateAddr
	case fsm.BindingDeregistering:
		what = deregister
	}
	was, n := before.Reason, before.Attempts
	if before.State != after.State {
		was, n = "", 0
	}
	return append(out, attempts(about, what, n, after.Attempts, was, after.Reason)...)
}

// balancerEvents tells how a load balancer changed. On a Bind, whose LoadBalancers LBCF told nothing of, it names
// which.
func balancerEvents(of balancer, before, after *fsm.LoadBalancer) (out []Telling) {
	if before == nil {
		before = &fsm.LoadBalancer{}
	}
	defer func() {
		for i := range out {
			if of.Kind == Bind {
				out[i].Note = strings.TrimSpace("loadBalancer " + of.Entry + ": " + out[i].Note)
			}
		}
	}()
	switch {
	case before.State == fsm.BalancerCreating && after.State == fsm.BalancerReady && (before.ID != "" || after.Created()):
		return []Telling{{About: of.Key, Reason: "Succ" + createLoadBalancer, Note: after.Message}}
	case after.State == fsm.BalancerReady && before.ID != "" && !before.Ensured && after.Ensured:
		return []Telling{{About: of.Key, Reason: "Succ" + ensureLoadBalancer, Note: after.Message}}
	case of.Kind == Bind && before.State != fsm.BalancerDeleting && after.State == fsm.BalancerDeleting:
		out = append(out, Telling{About: of.Key, Reason: deleteAllBackends, Note: "its backends are deregistered first"})
	}
	what := ensureLoadBalancer
	switch after.State {
	case fsm.BalancerCreating:
		what = createLoadBalancer
	case fsm.BalancerDeleting:
		what = deleteLoadBalancer
	}
	was, n := before.Reason, before.Attempts
	if before.State != after.State {
		was, n = "", 0
	}
	return append(out, attempts(of.Key, what, n, after.Attempts, was, after.Reason)...)
}

// groupEvents tells that numbers of a BackendGroup changed. LBCF told it every minute, changed or not.
func groupEvents(k Key, got Object) []Telling {
	g, ok := got.(*v1beta1.BackendGroup)
	if !ok {
		return nil
	}
	note := fmt.Sprintf("%d of %d backends are registered", g.Status.RegisteredBackends, g.Status.Backends)
	return []Telling{{About: k, Reason: syncedGroup, Note: note}}
}
