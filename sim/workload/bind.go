// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/k8s/api/lbcf"
	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
	"fairlead.io/fairlead/sim/stage"
)

// bindName is the Bind that users have or may have.
const bindName = "bound"

func bindVerbs() []Verb {
	return []Verb{{
		Name: "outside-bind", Text: "create, change or delete a Bind", Weight: 6,
		Parameters: []parameter.Parameter{
			parameter.OneOf("what", "put without it: it is created, or asks for this from now on", "put", "delete"),
			parameter.Number("weight", "a parameter of its backends, 10 without it", 0, 1000),
			parameter.Number("idle", "an attribute of its load balancers, 60 without it", 0, 1000),
			parameter.Number("entries", "its load balancers, 1 without it", 1, 2),
		},
		Draw: func(d dice.Dice, _ Plan, s *Step) {
			if d.Chance("delete", 25) {
				s.With.Set("what", "delete")
				return
			}
			s.With.Set("weight", d.Below("weight", 100))
			s.With.Set("entries", d.From("entries", 1, 2))
			if d.Chance("idle", 30) {
				s.With.Set("idle", d.Below("how idle", 100))
			}
		},
		Do: func(c *Cluster, s Step) {
			if s.With["what"] == "delete" {
				c.may(c.kube.Delete("user", "Bind", Namespace, bindName))
				return
			}
			c.putBind(s.With)
		},
	}}
}

// putBind has the Bind ask for what parameters say. Its load balancers are those that LoadBalancers mean as well.
func (c *Cluster) putBind(with parameter.Values) {
	b := &v1.Bind{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1.GroupVersion().String(), Kind: "Bind"},
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: bindName, Finalizers: []string{lbcf.FinalizerLoadBalancer}},
		Spec: v1.BindSpec{
			Parameters: map[string]string{"weight": strconv.Itoa(with.Number("weight", 10))},
			Pods: v1.PodBackends{
				Ports:   []v1.PortSelector{{Port: 8080, Protocol: "TCP"}},
				ByLabel: &v1beta1.SelectPodByLabel{Selector: map[string]string{appLabel: backendApps[1]}},
			},
		},
	}
	all := c.outsideBalancers()
	for i, name := range []string{"own", "other"}[:with.Number("entries", 1)] {
		o := all[len(all)-1-2*i]
		b.Spec.LoadBalancers = append(b.Spec.LoadBalancers, v1.TargetLoadBalancer{
			Name: name, Driver: stage.OutsideObject(o.driver), Spec: map[string]string{"id": o.id},
			Attributes: map[string]string{"idle": strconv.Itoa(with.Number("idle", 60))},
		})
	}
	c.put(b)
}
