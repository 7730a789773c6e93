// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/api/lbcf"
	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// planBind gives the next write of a Bind. entries are the load balancers of the Bind in the record, by name.
func planBind(v *fsm.View, k Key, entries map[string]*fsm.LoadBalancer, shown *v1.Bind, now time.Time) *Write {
	next := bindStatus(v, k, entries, shown, now)
	holds := has(shown, lbcf.FinalizerLoadBalancer)
	switch {
	case deleting(shown) && holds && len(next) == 0:
		return finalized(k, shown, false)
	case !deleting(shown) && !holds:
		return finalized(k, shown, true)
	case slices.EqualFunc(next, shown.Status.LoadBalancerStatuses, sameEntry):
		return nil
	}
	o := shown.DeepCopy()
	o.Status.LoadBalancerStatuses = next
	patient := slices.EqualFunc(next, shown.Status.LoadBalancerStatuses, func(a, b v1.TargetLoadBalancerStatus) bool {
		return sameEntryButConditions(a, b) && sameStatuses(a.Conditions, b.Conditions)
	})
	return &Write{Verb: UpdateStatus, Key: k, Object: o, Patient: patient}
}

// bindStatus is what the status of a Bind says of its load balancers (lbcf §2.5): those in its spec in that
// order, then others that are going or yet to be taken over.
func bindStatus(v *fsm.View, k Key, entries map[string]*fsm.LoadBalancer, shown *v1.Bind, now time.Time) []v1.TargetLoadBalancerStatus {
	said := map[string]v1.TargetLoadBalancerStatus{}
	names := map[string]bool{}
	for _, s := range shown.Status.LoadBalancerStatuses {
		id := balancer{Key: k, UID: string(shown.UID), Entry: s.Name}.id()
		said[s.Name] = s
		if entries[s.Name] == nil && !over(v, id, wasCreated(s.Conditions, s.LBInfo, s.Driver)) {
			names[s.Name] = true
		}
	}
	for name := range entries {
		names[name] = true
	}
	place := func(name string) int {
		i := slices.IndexFunc(shown.Spec.LoadBalancers, func(t v1.TargetLoadBalancer) bool { return t.Name == name })
		if i < 0 {
			return len(shown.Spec.LoadBalancers)
		}
		return i
	}
	order := slices.SortedFunc(maps.Keys(names), func(a, b string) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b))
	})
	var out []v1.TargetLoadBalancerStatus
	for _, name := range order {
		s := said[name]
		if l := entries[name]; l != nil {
			s = entryStatus(l, name, s, now)
		}
		out = append(out, s)
	}
	return out
}

// entryStatus is what the status of a Bind says of one load balancer.
func entryStatus(l *fsm.LoadBalancer, name string, shown v1.TargetLoadBalancerStatus, now time.Time) v1.TargetLoadBalancerStatus {
	next := v1.TargetLoadBalancerStatus{
		Name: name, Driver: driverName(l.Driver), LBInfo: mapOf(l.Info), LastSyncedAttributes: mapOf(l.Synced), RetryAfter: shown.RetryAfter,
	}
	if l.State == fsm.BalancerDeleting {
		at := metav1.NewTime(now.Truncate(time.Second))
		next.DeletionTimestamp = cmp.Or(shown.DeletionTimestamp, &at)
	}
	c := conditionsOf(shown.Conditions, now)
	switch {
	case l.Identity != "":
		if !is(c.list, v1beta1.ConditionCreated, metav1.ConditionTrue) {
			c.set(v1beta1.ConditionCreated, metav1.ConditionTrue, "", l.Message)
		}
	case l.Failing():
		c.set(v1beta1.ConditionCreated, metav1.ConditionFalse, reasonOf(l.Reason, reasonCreateFailed), l.Reason)
	case l.Reason != "":
		c.set(v1beta1.ConditionCreated, metav1.ConditionFalse, reasonCreating, l.Reason)
	}
	switch {
	case l.Identity == "":
	case l.Ensured:
		c.set(v1beta1.ConditionReady, metav1.ConditionTrue, "", l.Message)
	case l.State == fsm.BalancerDeleting:
	case l.Failing():
		c.set(v1beta1.ConditionReady, metav1.ConditionFalse, reasonOf(l.Reason, reasonEnsureFailed), l.Reason)
	case l.Reason != "" && !is(c.list, v1beta1.ConditionReady, metav1.ConditionTrue):
		c.set(v1beta1.ConditionReady, metav1.ConditionFalse, reasonEnsuring, l.Reason)
	}
	next.Conditions = c.list
	return next
}

// reasonOf tells a call that failed from a driver that refused.
func reasonOf(why, refused string) string {
	if callFailed(why) {
		return reasonWebhookError
	}
	return refused
}

func sameEntry(a, b v1.TargetLoadBalancerStatus) bool {
	return sameEntryButConditions(a, b) && sameConditions(a.Conditions, b.Conditions)
}

func sameEntryButConditions(a, b v1.TargetLoadBalancerStatus) bool {
	return a.Name == b.Name && a.Driver == b.Driver && maps.Equal(a.LBInfo, b.LBInfo) &&
		maps.Equal(a.LastSyncedAttributes, b.LastSyncedAttributes) && a.DeletionTimestamp.Equal(b.DeletionTimestamp) && a.RetryAfter.Equal(&b.RetryAfter)
}
