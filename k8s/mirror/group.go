// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// planGroup gives the write of the status of a BackendGroup: how many BackendRecords there should be, and how many are
// registered. Where the former is not known it stays as it is shown.
func planGroup(k Key, shown *v1beta1.BackendGroup, expected int32, known bool, registered int32) *Write {
	next := v1beta1.BackendGroupStatus{Backends: shown.Status.Backends, RegisteredBackends: registered}
	if known {
		next.Backends = expected
	}
	if deleting(shown) || next == shown.Status {
		return nil
	}
	o := shown.DeepCopy()
	o.Status = next
	return &Write{Verb: UpdateStatus, Key: k, Object: o}
}

// conditionReachable is a condition of LoadBalancerDrivers that LBCF has not.
const conditionReachable = "Reachable"

// Reach is what is known of the way to a driver. Its zero value is that nothing is known.
type Reach struct {
	Known     bool
	Reachable bool
	Message   string
}

// planDriver gives the write of the status of a LoadBalancerDriver: accepted, once it is in the record.
func planDriver(v *fsm.View, k Key, shown *v1beta1.LoadBalancerDriver, reach Reach, now time.Time) *Write {
	d, known := fsm.Get[*fsm.Driver](v, fsm.TableDrivers, k.ID())
	if !known || deleting(shown) || d.UID != "" && d.UID != string(shown.UID) {
		return nil
	}
	c := conditionsOf(shown.Status.Conditions, now)
	c.set(v1beta1.ConditionAccepted, metav1.ConditionTrue, "", "")
	if reach.Known {
		status, reason := metav1.ConditionFalse, v1beta1.ReasonOperationFailed
		if reach.Reachable {
			status, reason = metav1.ConditionTrue, ""
		}
		c.set(conditionReachable, status, reason, reach.Message)
	}
	if sameConditions(c.list, shown.Status.Conditions) {
		return nil
	}
	o := shown.DeepCopy()
	o.Status.Conditions = c.list
	return &Write{Verb: UpdateStatus, Key: k, Object: o, Patient: is(shown.Status.Conditions, v1beta1.ConditionAccepted, metav1.ConditionTrue)}
}
