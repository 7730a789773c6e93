// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"fairlead.io/fairlead/k8s/api/lbcf"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
	"fairlead.io/fairlead/sim/stage"
)

// outsideVerbs are what users do to objects of LBCF's kinds. What they make is as admission would let it pass.
func outsideVerbs() []Verb {
	all := slices.Concat(balancerVerbs(), backendGroupVerbs(), bindVerbs(), backendRecordVerbs(), backendVerbs(), rivalVerbs())
	for i := range all {
		all[i].Able = func(p Plan) bool { return len(p.Outside) > 0 }
	}
	return all
}

// beginOutside brings in what there is of outside load balancers from the beginning.
func (c *Cluster) beginOutside() {
	if len(c.o.Outside) == 0 {
		return
	}
	for _, driver := range c.o.Outside {
		_, err := c.kube.Create("user", stage.Custom(&v1beta1.LoadBalancerDriver{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion().String(), Kind: "LoadBalancerDriver"},
			ObjectMeta: metav1.ObjectMeta{Namespace: lbcf.SharedNamespace, Name: stage.OutsideObject(driver)},
			Spec: v1beta1.LoadBalancerDriverSpec{
				DriverType: v1beta1.DriverTypeWebhook, URL: "http://" + start.Driver(driver) + ":" + start.DriverPort,
			},
		}))
		c.may(err)
	}
	for _, o := range c.outsideBalancers() {
		c.createBalancer(o, "60")
	}
	for _, name := range backendGroups {
		c.putBackendGroup(name, parameter.Values{})
	}
	c.putBind(parameter.Values{})
	for _, app := range backendApps {
		c.scale(app, 2)
	}
}

// outsideBalancer is a LoadBalancer: its place, and what it asks its driver for.
type outsideBalancer struct{ namespace, name, driver, id string }

// outsideBalancers are the LoadBalancers that users have or may have. Two of them mean the first balancer of a driver;
// one is for all namespaces.
func (c *Cluster) outsideBalancers() (out []outsideBalancer) {
	for _, driver := range c.o.Outside {
		var number int
		_, _ = fmt.Sscanf(driver, "d%d", &number) // as stages name them
		ids := stage.OutsideBalancers(number - 1)
		out = append(out, outsideBalancer{Namespace, ids[0], driver, ids[0]}, outsideBalancer{Namespace, ids[0] + twin, driver, ids[0]},
			outsideBalancer{lbcf.SharedNamespace, stage.OutsideObject(ids[1]), driver, ids[1]})
	}
	return out
}

// twin ends the name of a LoadBalancer that means what another one means.
const twin = "-too"

func balancerVerbs() []Verb {
	return []Verb{{
		Name: "outside-balancer", Text: "create, change or delete a LoadBalancer", Weight: 8,
		Parameters: []parameter.Parameter{
			parameter.Number("which", "of the LoadBalancers, from 0", 0, 100).Must(),
			parameter.OneOf("what", "change without it", "create", "change", "delete"),
			parameter.Number("idle", "an attribute of it, 60 without it", 0, 1000),
		},
		Draw: func(d dice.Dice, p Plan, s *Step) {
			s.With.Set("which", d.Below("which", 3*len(p.Outside)))
			s.With.Set("what", dice.Pick(d, "what", []string{"change", "create", "create", "delete"}))
			s.With.Set("idle", d.Below("idle", 100))
		},
		Do: func(c *Cluster, s Step) {
			all := c.outsideBalancers()
			o, idle := all[s.With.Number("which", 0)%len(all)], strconv.Itoa(s.With.Number("idle", 60))
			switch s.With["what"] {
			case "create":
				c.createBalancer(o, idle)
			case "delete":
				c.may(c.kube.Delete("user", "LoadBalancer", o.namespace, o.name))
			default:
				c.edit("LoadBalancer", o.namespace, o.name, func(spec map[string]any) { spec["attributes"] = map[string]any{"idle": idle} })
			}
		},
	}}
}

func (c *Cluster) createBalancer(o outsideBalancer, idle string) {
	l := &v1beta1.LoadBalancer{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion().String(), Kind: "LoadBalancer"},
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: o.name, Finalizers: []string{lbcf.FinalizerLoadBalancer}},
		Spec: v1beta1.LoadBalancerSpec{
			LBDriver: stage.OutsideObject(o.driver), LBSpec: map[string]string{"id": o.id}, Attributes: map[string]string{"idle": idle},
		},
	}
	if o.namespace == lbcf.SharedNamespace {
		l.Spec.Scope = []string{"*"}
	}
	_, err := c.kube.Create("user", stage.Custom(l))
	c.may(err)
}

// edit changes the spec of a custom object, if there is one.
func (c *Cluster) edit(kind, namespace, name string, change func(spec map[string]any)) {
	if c.kube.Get(kind, namespace, name) == nil {
		return
	}
	c.configureIn(kind, namespace, name, change)
}

// replaceSpec has a custom object ask for what another one does.
func (c *Cluster) replaceSpec(o *unstructured.Unstructured) {
	c.edit(o.GetKind(), o.GetNamespace(), o.GetName(), func(spec map[string]any) {
		next, _ := o.Object["spec"].(map[string]any)
		clear(spec)
		for k, v := range next {
			spec[k] = v
		}
	})
}

// put creates a custom object, or has the one of its name ask for the same.
func (c *Cluster) put(o any) {
	next := stage.Custom(o).(*unstructured.Unstructured)
	if c.kube.Get(next.GetKind(), next.GetNamespace(), next.GetName()) != nil {
		c.replaceSpec(next)
		return
	}
	_, err := c.kube.Create("user", next)
	c.may(err)
}
