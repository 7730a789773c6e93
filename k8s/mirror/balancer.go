// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/api/lbcf"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// planBalancer gives the next write of a LoadBalancer: its finalizer while it lives, its status, and an end to the
// finalizer once the record is done with it.
func planBalancer(v *fsm.View, k Key, shown *v1beta1.LoadBalancer, now time.Time) *Write {
	id := balancer{Key: k, UID: string(shown.UID)}.id()
	l, known := fsm.Get[*fsm.LoadBalancer](v, fsm.TableBalancers, string(id))
	holds := has(shown, lbcf.FinalizerLoadBalancer)
	switch {
	case deleting(shown):
		if holds && !known && over(v, id, wasCreated(shown.Status.Conditions, shown.Status.LBInfo, shown.Spec.LBDriver)) {
			return finalized(k, shown, false)
		}
		return nil
	case !holds:
		return finalized(k, shown, true) // made while admission was away
	case !known:
		return nil
	}
	next := balancerStatus(l, &shown.Status, now)
	if maps.Equal(next.LBInfo, shown.Status.LBInfo) && sameConditions(next.Conditions, shown.Status.Conditions) {
		return nil
	}
	o := shown.DeepCopy()
	o.Status = *next
	return &Write{
		Verb: UpdateStatus, Key: k, Object: o,
		Patient: maps.Equal(next.LBInfo, shown.Status.LBInfo) && sameStatuses(next.Conditions, shown.Status.Conditions),
	}
}

// over tells whether nothing is left to do about a load balancer that the record does not hold: it was there and went,
// or nobody ever created it. One that somebody created, and that the record does not know, is yet to be taken over.
func over(v *fsm.View, id fsm.BalancerID, created bool) bool {
	_, buried := fsm.Get[*fsm.Grave](v, fsm.TableGraves, string(fsm.TableBalancers)+"/"+string(id))
	return buried || !created && v.Group().Quarantine.IsZero()
}

// wasCreated tells whether a status says enough of a load balancer for it to be taken over.
func wasCreated(shown []v1beta1.Condition, info map[string]string, driver string) bool {
	return is(shown, v1beta1.ConditionCreated, metav1.ConditionTrue) && len(info) > 0 && driver != ""
}

// balancerStatus is the status of a LoadBalancer (lbcf §2.2).
func balancerStatus(l *fsm.LoadBalancer, shown *v1beta1.LoadBalancerStatus, now time.Time) *v1beta1.LoadBalancerStatus {
	c := conditionsOf(shown.Conditions, now)
	switch {
	case l.Identity != "" && !is(c.list, v1beta1.ConditionCreated, metav1.ConditionTrue):
		c.set(v1beta1.ConditionCreated, metav1.ConditionTrue, "", l.Message)
	case l.Identity == "" && l.Failing():
		c.set(v1beta1.ConditionCreated, metav1.ConditionFalse, v1beta1.ReasonOperationFailed, l.Reason)
	}
	switch {
	case l.Identity == "":
	case l.Ensured:
		c.set(v1beta1.ConditionAttributesSynced, metav1.ConditionTrue, "", l.Message)
	case l.Failing():
		c.set(v1beta1.ConditionAttributesSynced, metav1.ConditionFalse, v1beta1.ReasonOperationFailed, l.Reason)
	}
	return &v1beta1.LoadBalancerStatus{LBInfo: mapOf(l.Info), Conditions: c.list}
}
