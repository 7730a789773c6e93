// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"crypto/md5" // LBCF names records so
	"encoding/hex"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"fairlead.io/fairlead/k8s/api/lbcf"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
	"fairlead.io/fairlead/k8s/handover"
	"fairlead.io/fairlead/sim/kube"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
	"fairlead.io/fairlead/sim/stage"
)

func rivalVerbs() []Verb {
	return []Verb{{
		Name: "outside-rival", Text: "have an LBCF controller in the cluster for a while, which registers a few backends, those that it had before anew: its objects are not ours meanwhile", Weight: 2,
		Parameters: []parameter.Parameter{parameter.Duration("for", "10s without it")},
		Draw: func(d dice.Dice, _ Plan, s *Step) {
			s.With.Set("for", d.Time("for", 8*time.Second, 16*time.Second))
		},
		Do: func(c *Cluster, s Step) {
			c.rival(1)
			c.rivals++
			c.world.After(heeded, func() {
				switch known := c.kube.Get("BackendGroup", Namespace, inheritedGroup) != nil; {
				case c.rivals > 0 && !known:
					c.inherit()
				case known && s.With.Duration("for", 10*time.Second) > heeded+2*pauses:
					c.letGo()
				}
			})
			c.world.After(s.With.Duration("for", 10*time.Second), func() {
				if c.rivals--; c.rivals == 0 {
					c.rival(0)
				}
			})
		},
	}}
}

// heeded is within what time a group knows of an LBCF controller, if nothing is wrong.
const heeded = 9 * time.Second

// pauses is how long an LBCF controller is without a backend that it registers anew.
const pauses = time.Second

// inherit has the LBCF controller register the backends of a group, which nobody had before, and say so as it does: its
// BackendRecords bear no mark of ours.
func (c *Cluster) inherit() {
	if c.inheritable() == nil {
		return
	}
	c.putBackendGroup(inheritedGroup, parameter.Values{})
	for _, address := range staticAddresses(inheritedGroup, 2) {
		if c.kube.Get("BackendRecord", Namespace, inheritedRecord(c.outsideBalancers()[0].name, address)) == nil { // one of ours may be on its way still
			c.register(address)
		}
	}
}

// letGo has the LBCF controller deregister what it finds of that group, whoever registered it, and register it anew a moment
// later, under the same names, as it does with a pod that was not ready for a while. With that goes what has no BackendRecord
// and is wanted.
func (c *Cluster) letGo() {
	group, _ := c.kube.Get("BackendGroup", Namespace, inheritedGroup).(*unstructured.Unstructured)
	if c.inheritable() == nil || group == nil || group.GetDeletionTimestamp() != nil {
		return
	}
	listed, _, _ := unstructured.NestedStringSlice(group.Object, "spec", "static")
	for _, address := range staticAddresses(inheritedGroup, 2) {
		balancer := c.outsideBalancers()[0]
		name := inheritedRecord(balancer.name, address)
		r := c.kube.Get("BackendRecord", Namespace, name)
		if r != nil && r.GetDeletionTimestamp() != nil || !slices.Contains(listed, address) {
			continue
		}
		if r != nil {
			c.may(c.kube.Delete(rivalName, "BackendRecord", Namespace, name))
			_, err := c.kube.Change(rivalName, "BackendRecord", Namespace, name, func(o kube.Object) { o.SetFinalizers(nil) })
			c.may(err)
		}
		c.world.After(pauses, func() {
			switch {
			case c.kube.Get("BackendRecord", Namespace, name) != nil:
			case c.inheritable() != nil && c.kube.Get("BackendGroup", Namespace, inheritedGroup) != nil:
				c.register(address)
			case r != nil: // there is nothing to register it on any more
				c.o.Disinherit(balancer.id, address)
			}
		})
	}
}

// inheritable is the LoadBalancer that the LBCF controller registers backends on, if it is there and created.
func (c *Cluster) inheritable() *unstructured.Unstructured {
	all := c.outsideBalancers()
	if len(all) == 0 || c.o.Inherit == nil {
		return nil
	}
	at, _ := c.kube.Get("LoadBalancer", Namespace, all[0].name).(*unstructured.Unstructured)
	if at == nil || at.GetDeletionTimestamp() != nil {
		return nil
	}
	if info, created, _ := unstructured.NestedStringMap(at.Object, "status", "lbInfo"); !created || len(info) == 0 {
		return nil
	}
	return at
}

// inheritedRecord is how LBCF names the BackendRecord of an address.
func inheritedRecord(balancer, address string) string {
	sum := md5.Sum([]byte(balancer + "_" + inheritedGroup + "_" + address))
	return hex.EncodeToString(sum[:])
}

// register has the LBCF controller register an address, and make its BackendRecord.
func (c *Cluster) register(address string) {
	balancer, at := c.outsideBalancers()[0], c.inheritable()
	info, _, _ := unstructured.NestedStringMap(at.Object, "status", "lbInfo")
	attributes, _, _ := unstructured.NestedStringMap(at.Object, "spec", "attributes")
	asks := c.kube.Get("BackendGroup", Namespace, inheritedGroup).(*unstructured.Unstructured)
	parameters, _, _ := unstructured.NestedStringMap(asks.Object, "spec", "parameters")
	group := &v1beta1.BackendGroup{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: inheritedGroup, UID: asks.GetUID()}}
	r := &v1beta1.BackendRecord{
		TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.GroupVersion().String(), Kind: "BackendRecord"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace, Name: inheritedRecord(balancer.name, address), Finalizers: []string{lbcf.FinalizerBackendRecord},
			OwnerReferences: []metav1.OwnerReference{lbcf.GroupOwner(group)},
		},
		Spec: v1beta1.BackendRecordSpec{
			LBName: balancer.name, LBDriver: stage.OutsideObject(balancer.driver), LBInfo: info, LBAttributes: attributes,
			Parameters: parameters, StaticAddr: &address,
		},
	}
	r.Labels = lbcf.GroupRecordLabels(inheritedGroup, &r.Spec)
	_, err := c.kube.Create(rivalName, stage.Custom(r))
	c.may(err)
	_, err = c.kube.ChangeStatus(rivalName, r.Kind, r.Namespace, r.Name, func(o kube.Object) {
		o.(*unstructured.Unstructured).Object["status"] = map[string]any{
			"backendAddr": address, "injectedInfo": map[string]any{"token": address},
			"conditions": []any{map[string]any{"type": v1beta1.ConditionRegistered, "status": "True", "message": ""}},
		}
	})
	c.may(err)
	c.o.Inherit(balancer.id, address)
}

// rivalName is who writes what an LBCF controller does.
const rivalName = "lbcf-controller"

// rival has the Deployment of LBCF's controller want so many replicas.
func (c *Cluster) rival(replicas int32) {
	if c.kube.Get("Deployment", handover.Namespace, handover.DeploymentName) == nil {
		_, err := c.kube.Create("user", &appsv1.Deployment{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
			ObjectMeta: metav1.ObjectMeta{Namespace: handover.Namespace, Name: handover.DeploymentName},
			Spec:       appsv1.DeploymentSpec{Replicas: &replicas},
		})
		c.may(err)
		return
	}
	_, err := c.kube.Change("user", "Deployment", handover.Namespace, handover.DeploymentName, func(o kube.Object) {
		o.(*appsv1.Deployment).Spec.Replicas = &replicas
	})
	c.may(err)
}
