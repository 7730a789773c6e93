// SPDX-License-Identifier: Apache-2.0

package policystatus

import (
	"net/netip"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
	"fairlead.io/fairlead/k8s/api/balancing/v1beta1"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// failer is what testing.T and rapid.T have in common here.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// book is a record without a group around it: what is proposed is applied at once.
type book struct{ *fsm.State }

func newBook(t failer) *book {
	return &book{fsmtest.New(t, "test")}
}

func (b *book) must(t failer, cs ...fsm.Command) {
	t.Helper()
	fsmtest.Tell(t, b.State, cs...)
}

// node joins with an agent that carries policies out or does not, and has acknowledged all that there is.
func (b *book) node(t failer, id fsm.NodeID, carries bool) {
	t.Helper()
	b.must(t, &fsm.PutNode{ID: id, UID: string(id)}, &fsm.RegisterBoot{Node: id, Boot: "b1"}, &fsm.ReportPolicySupport{Node: id, Boot: "b1", Carries: carries})
	b.acknowledge(t, id)
}

func (b *book) acknowledge(t failer, id fsm.NodeID) {
	t.Helper()
	b.must(t, &fsm.Acknowledge{Marks: []fsm.AppliedMark{{Node: id, Boot: "b1", Upto: b.Read().Revision()}}})
}

const policyID = "BalancingPolicy/db"

// aPolicy is one that captures a place and leads to two pods of a namespace, of which one is ready.
func aPolicy(change ...func(*fsm.Policy)) *fsm.PutPolicy {
	r := fsm.Policy{
		ID: policyID, UID: "u1", Version: 7, Generation: 2, Created: 1, EveryNode: true, Outside: true, Mode: "podEndpoint",
		Captures: []fsm.Capture{{Address: netip.MustParseAddr("169.254.77.1"), Port: fsm.Port{Protocol: fsm.TCP, Number: 80}, Target: 8080}},
		Backends: []fsm.PolicyBackend{
			{Address: netip.MustParseAddr("10.0.0.1"), Node: "n1", Pod: "shop/a", UID: "p1", Ready: true},
			{Address: netip.MustParseAddr("10.0.0.2"), Node: "n2", Pod: "shop/b", UID: "p2"},
			{Address: netip.MustParseAddr("2001:db8::2"), Node: "n2", Pod: "shop/b", UID: "p2"},
			{Address: netip.MustParseAddr("10.0.0.3"), Node: "n2", Pod: "lab/b", UID: "p3"},
		},
	}
	for _, c := range change {
		c(&r)
	}
	return &fsm.PutPolicy{Policy: r}
}

func pends(code, text string) func(*fsm.Policy) {
	return func(r *fsm.Policy) { r.Pending = fsm.Pending{Code: code, Text: text} }
}

func seen(change ...func(*Seen)) *Seen {
	s := &Seen{ID: policyID, UID: "u1", ResourceVersion: "9", Generation: 2}
	for _, c := range change {
		c(s)
	}
	return s
}

// shown is a policy after a write.
func (w *Write) shown(s *Seen) *Seen {
	next := *s
	next.ResourceVersion, next.Status = s.ResourceVersion+"0", w.Status
	return &next
}

func says(t *testing.T, s *v1beta1.PolicyStatus) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, c := range s.Conditions {
		out[c.Type] = string(c.Status) + " " + c.Reason + ": " + c.Message
	}
	return out
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}
