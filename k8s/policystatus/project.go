// SPDX-License-Identifier: Apache-2.0

package policystatus

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/api/balancing/v1beta1"
)

// Said is what is said of a policy outside of the record.
type Said struct {
	// Invalid are what keeps it from being used at all, Unused what is used without a part, a sentence with the remedy each.
	Invalid, Unused []string
	// Code and Text are the leader's word on why it is not in the record, or not as its object asks; empty for nothing.
	Code, Text string
}

// Write is what the status of a policy shall be. It is for the very object that was looked at.
type Write struct {
	ID                   fsm.PolicyID
	UID, ResourceVersion string
	Status               v1beta1.PolicyStatus
	// Urgent says that people wait to see it: that a condition changed, or the policy itself, rather than how many nodes or backends there are.
	Urgent bool
}

// maxNamespaces bounds the namespaces that are listed with their pods: those with most of them.
const maxNamespaces = 100

// Project says what to write to a policy, at a time that only conditions which change carry; nil if its status is as it shall be.
func Project(v *fsm.View, said Said, seen *Seen, now time.Time) *Write {
	if seen.Going {
		return nil
	}
	want := statusOf(v, said, seen, now)
	have := seen.Status
	have.Conditions = slices.DeleteFunc(slices.Clone(have.Conditions), func(c metav1.Condition) bool { return !owned(c.Type) })
	if sameStatus(&have, want) {
		return nil
	}
	return &Write{seen.ID, seen.UID, seen.ResourceVersion, *want, have.ObservedGeneration != want.ObservedGeneration || urgent(have.Conditions, want.Conditions)}
}

// statusOf is what the status shall be.
func statusOf(v *fsm.View, said Said, seen *Seen, now time.Time) *v1beta1.PolicyStatus {
	row, _ := fsm.Get[*fsm.Policy](v, fsm.TablePolicies, string(seen.ID))
	if row != nil && row.UID != seen.UID {
		row = nil // of an earlier life of the name
	}
	want := &v1beta1.PolicyStatus{ObservedGeneration: seen.Generation}
	f := factsOf(v, row, said, seen)
	if row != nil {
		if len(said.Invalid) == 0 {
			want.ObservedGeneration = row.Generation
		}
		want.Frontends, want.Backends, want.Nodes = int32(len(row.Captures)), f.backends, int32(len(f.programmed))
		want.Pods = podsOf(row)
	}
	for _, next := range []verdict{f.accepted(), f.programmedness(), f.available(), f.conflict()} {
		want.Conditions = append(want.Conditions, next.condition(seen.Status.Conditions, want.ObservedGeneration, now))
	}
	return want
}

func owned(kind string) bool {
	return kind == Accepted || kind == Programmed || kind == BackendsAvailable || kind == Conflict
}

func sameStatus(a, b *v1beta1.PolicyStatus) bool {
	x, y := *a, *b
	x.Conditions, y.Conditions = nil, nil
	if !equality.Semantic.DeepEqual(x, y) || len(a.Conditions) != len(b.Conditions) {
		return false
	}
	for _, c := range b.Conditions {
		old := find(a.Conditions, c.Type)
		if old == nil || old.Status != c.Status || old.Reason != c.Reason || old.Message != c.Message || old.ObservedGeneration != c.ObservedGeneration {
			return false
		}
	}
	return true
}

// urgent tells whether people wait to see a change: that a condition is another, other than by hosts that are on their way.
func urgent(have, want []metav1.Condition) bool {
	return slices.ContainsFunc(want, func(c metav1.Condition) bool {
		old := find(have, c.Type)
		return c.Type != Programmed && (old == nil || old.Status != c.Status || old.Reason != c.Reason)
	})
}

func find(list []metav1.Condition, kind string) *metav1.Condition {
	for i := range list {
		if list[i].Type == kind {
			return &list[i]
		}
	}
	return nil
}

// digest is of what people see of a write: not of when.
func (w *Write) digest() uint64 {
	h := fnv.New64a()
	s := &w.Status
	_, _ = fmt.Fprintf(h, "%d %d %d %d %v", s.ObservedGeneration, s.Frontends, s.Backends, s.Nodes, s.Pods)
	for _, c := range s.Conditions {
		_, _ = fmt.Fprintf(h, "%q%q%q%q", c.Type, c.Status, c.Reason, c.Message)
	}
	return h.Sum64()
}

// podsOf counts the pods behind a policy by namespace (balancing §6): selectors choose among those of all.
func podsOf(r *fsm.Policy) []v1beta1.NamespacePods {
	pods := map[string]bool{}
	for _, b := range r.Backends {
		if b.Pod != "" {
			pods[b.Pod] = pods[b.Pod] || b.Ready
		}
	}
	count := map[string]*v1beta1.NamespacePods{}
	for pod, ready := range pods {
		namespace, _, _ := strings.Cut(pod, "/")
		n := count[namespace]
		if n == nil {
			n = &v1beta1.NamespacePods{Namespace: namespace}
			count[namespace] = n
		}
		n.Selected++
		if ready {
			n.Ready++
		}
	}
	var out []v1beta1.NamespacePods
	for _, n := range count {
		out = append(out, *n)
	}
	slices.SortFunc(out, func(a, b v1beta1.NamespacePods) int {
		return cmp.Or(cmp.Compare(b.Selected, a.Selected), strings.Compare(a.Namespace, b.Namespace))
	})
	out = out[:min(len(out), maxNamespaces)]
	slices.SortFunc(out, func(a, b v1beta1.NamespacePods) int { return strings.Compare(a.Namespace, b.Namespace) })
	return out
}

// facts are what conditions are made of.
type facts struct {
	seen *Seen
	row  *fsm.Policy // nil: the record does not hold it
	said Said
	// able are the nodes whose agents carry policies out, of those on which it is effective, and programmed those of them that have
	// acknowledged it as it is.
	able, programmed []fsm.NodeID
	// backends are how many addresses there are, ready how many of them are of pods that are ready.
	backends, ready int32
}

func factsOf(v *fsm.View, row *fsm.Policy, said Said, seen *Seen) *facts {
	f := &facts{seen: seen, row: row, said: said}
	if row == nil {
		return f
	}
	nodes := map[fsm.NodeID]bool{}
	for _, id := range row.Nodes {
		nodes[id] = true
	}
	for _, n := range fsm.List[*fsm.Node](v, fsm.TableNodes) {
		if !n.Redirects || !row.EveryNode && !nodes[n.ID] {
			continue
		}
		f.able = append(f.able, n.ID)
		if !n.Acknowledged.Before(row.Since) {
			f.programmed = append(f.programmed, n.ID)
		}
	}
	ready, families := map[netip.Addr]bool{}, map[world.Family]bool{}
	for _, c := range row.Captures {
		families[world.FamilyOf(c.Address)] = true
	}
	for _, b := range row.Backends {
		if families[world.FamilyOf(b.Address)] {
			ready[b.Address] = ready[b.Address] || b.Ready
		}
	}
	for _, is := range ready {
		f.backends++
		if is {
			f.ready++
		}
	}
	return f
}
