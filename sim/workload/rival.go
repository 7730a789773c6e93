// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"crypto/md5" // LBCF names records so
	"encoding/hex"
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
		Name: "outside-rival", Text: "have an LBCF controller in the cluster for a while, which registers a few backends: its objects are not ours meanwhile", Weight: 2,
		Parameters: []parameter.Parameter{parameter.Duration("for", "10s without it")},
		Draw: func(d dice.Dice, _ Plan, s *Step) {
			s.With.Set("for", d.Time("for", 8*time.Second, 16*time.Second))
		},
		Do: func(c *Cluster, s Step) {
			c.rival(1)
			c.rivals++
			c.world.After(heeded, func() {
				if c.rivals > 0 {
					c.inherit()
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

// inherit has the LBCF controller register the backends of a group, which nobody had before, and say so as it does: its
// BackendRecords bear no mark of ours.
func (c *Cluster) inherit() {
	all := c.outsideBalancers()
	if len(all) == 0 || c.o.Inherit == nil || c.kube.Get("BackendGroup", Namespace, inheritedGroup) != nil {
		return
	}
	at, _ := c.kube.Get("LoadBalancer", Namespace, all[0].name).(*unstructured.Unstructured)
	if at == nil || at.GetDeletionTimestamp() != nil {
		return
	}
	info, created, _ := unstructured.NestedStringMap(at.Object, "status", "lbInfo")
	if !created || len(info) == 0 {
		return
	}
	attributes, _, _ := unstructured.NestedStringMap(at.Object, "spec", "attributes")
	c.putBackendGroup(inheritedGroup, parameter.Values{})
	group := &v1beta1.BackendGroup{ObjectMeta: metav1.ObjectMeta{
		Namespace: Namespace, Name: inheritedGroup, UID: c.kube.Get("BackendGroup", Namespace, inheritedGroup).GetUID(),
	}}
	for _, address := range staticAddresses(inheritedGroup, 2) {
		sum := md5.Sum([]byte(all[0].name + "_" + inheritedGroup + "_" + address)) // as LBCF names them
		r := &v1beta1.BackendRecord{
			TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.GroupVersion().String(), Kind: "BackendRecord"},
			ObjectMeta: metav1.ObjectMeta{
				Namespace: Namespace, Name: hex.EncodeToString(sum[:]), Finalizers: []string{lbcf.FinalizerBackendRecord},
				OwnerReferences: []metav1.OwnerReference{lbcf.GroupOwner(group)},
			},
			Spec: v1beta1.BackendRecordSpec{
				LBName: all[0].name, LBDriver: stage.OutsideObject(all[0].driver), LBInfo: info, LBAttributes: attributes,
				Parameters: map[string]string{"weight": "10"}, StaticAddr: &address,
			},
		}
		r.Labels = lbcf.GroupRecordLabels(inheritedGroup, &r.Spec)
		if c.kube.Get(r.Kind, r.Namespace, r.Name) != nil {
			continue // one of ours is on its way still
		}
		_, err := c.kube.Create(rivalName, stage.Custom(r))
		c.may(err)
		_, err = c.kube.ChangeStatus(rivalName, r.Kind, r.Namespace, r.Name, func(o kube.Object) {
			o.(*unstructured.Unstructured).Object["status"] = map[string]any{
				"backendAddr": address, "injectedInfo": map[string]any{"token": address},
				"conditions": []any{map[string]any{"type": v1beta1.ConditionRegistered, "status": "True", "message": ""}},
			}
		})
		c.may(err)
		c.o.Inherit(all[0].id, address)
	}
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
