// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/kube"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

func backendRecordVerbs() []Verb {
	return []Verb{{
		Name: "outside-record", Text: "delete a BackendRecord by hand, which deregisters its backend; with what: strip, its finalizer, too, which does not", Weight: 4,
		Parameters: []parameter.Parameter{
			parameter.Number("which", "of those that there are, in order, from 0", 0, 1000),
			parameter.OneOf("what", "delete without it", "delete", "strip"),
		},
		Draw: func(d dice.Dice, _ Plan, s *Step) {
			s.With.Set("which", d.Below("which", 20))
			if d.Chance("strip", 20) {
				s.With.Set("what", "strip")
			}
		},
		Do: func(c *Cluster, s Step) {
			all := c.kube.List("BackendRecord")
			if len(all) == 0 {
				return
			}
			o := all[s.With.Number("which", 0)%len(all)]
			c.may(c.kube.Delete("user", "BackendRecord", o.GetNamespace(), o.GetName()))
			if s.With["what"] == "strip" {
				_, err := c.kube.Change("user", "BackendRecord", o.GetNamespace(), o.GetName(), func(o kube.Object) { o.SetFinalizers(nil) })
				c.may(err)
			}
		},
	}}
}

// collected is how long the garbage collector takes.
const collected = 300 * time.Millisecond

// collects has the garbage collector look after BackendRecords whose owner went, and after new ones.
func (c *Cluster) collects(x event.Object) {
	switch {
	case x.Kind == "BackendRecord" && x.Verb == "create":
		c.world.After(collected, func() { c.collect(c.kube.Get("BackendRecord", x.Namespace, x.Name)) })
	case (x.Kind == "BackendGroup" || x.Kind == "Bind") && x.Verb == "delete":
		c.world.After(collected, func() {
			for _, o := range c.kube.List("BackendRecord") {
				c.collect(o)
			}
		})
	}
}

// collect deletes an object whose owner is gone.
func (c *Cluster) collect(o kube.Object) {
	if o == nil || o.GetDeletionTimestamp() != nil {
		return
	}
	by := metav1.GetControllerOf(o)
	if by == nil {
		return
	}
	if is := c.kube.Get(by.Kind, o.GetNamespace(), by.Name); is == nil || is.GetUID() != by.UID {
		c.may(c.kube.Delete("garbage-collector", "BackendRecord", o.GetNamespace(), o.GetName()))
	}
}
