// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// Reasons of conditions of a Bind's load balancers that are not True (lbcf §2.5).
const (
	reasonWebhookError = "WebhookError"
	reasonCreateFailed = "CreateFailed"
	reasonCreating     = "Creating"
	reasonEnsureFailed = "EnsureFailed"
	reasonEnsuring     = "Ensuring"
)

// What the reason of a failed attempt in the record begins with, or has in it, if the driver did not say it.
const (
	unknownPrefix = "outcome unknown: "
	unsentPrefix  = "not sent: "
	invalidWords  = "is none of Succ, Fail, Running"
)

// callFailed tells whether a reason in the record is of a call that failed rather than of a driver that refused.
func callFailed(reason string) bool {
	return strings.HasPrefix(reason, unknownPrefix) || strings.HasPrefix(reason, unsentPrefix)
}

// longestMessage bounds what a driver says in a condition, in bytes.
const longestMessage = 2048

// conditions are those of an object, to be changed.
type conditions struct {
	list []v1beta1.Condition
	now  time.Time
}

func conditionsOf(shown []v1beta1.Condition, now time.Time) *conditions {
	return &conditions{slices.Clone(shown), now}
}

// set has a condition of a kind be as it is given. When it changed last moves only with its status, and no message says
// that there is nothing new to say.
func (c *conditions) set(kind string, status metav1.ConditionStatus, reason, message string) {
	next := v1beta1.Condition{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(c.now.Truncate(time.Second)), Reason: reason, Message: fsm.Text(message, longestMessage)}
	i := slices.IndexFunc(c.list, func(old v1beta1.Condition) bool { return old.Type == kind })
	if i < 0 {
		c.list = append(c.list, next)
		return
	}
	old := &c.list[i]
	if old.Status == status {
		next.LastTransitionTime = old.LastTransitionTime
		if next.Message == "" && old.Reason == reason {
			next.Message = old.Message
		}
	}
	*old = next
}

// is tells whether a condition has a status.
func is(list []v1beta1.Condition, kind string, status metav1.ConditionStatus) bool {
	return slices.ContainsFunc(list, func(c v1beta1.Condition) bool { return c.Type == kind && c.Status == status })
}

func sameConditions(a, b []v1beta1.Condition) bool {
	return slices.EqualFunc(a, b, func(a, b v1beta1.Condition) bool {
		return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message && a.LastTransitionTime.Equal(&b.LastTransitionTime)
	})
}

// sameStatuses is sameConditions without what may wait: messages.
func sameStatuses(a, b []v1beta1.Condition) bool {
	return slices.EqualFunc(a, b, func(a, b v1beta1.Condition) bool {
		return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason
	})
}

// mapOf is nil for nothing, which JSON shows as null, as LBCF writes it.
func mapOf(kvs []fsm.KV) map[string]string {
	if len(kvs) == 0 {
		return nil
	}
	out := make(map[string]string, len(kvs))
	for _, kv := range kvs {
		out[kv.Key] = kv.Value
	}
	return out
}
