// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

// backendGroups are the BackendGroups that users have or may have: two select the pods of one application, so that they
// want the same addresses, one a pod by its name, and one has addresses that are no pods'.
var backendGroups = []string{"front", "shared", "named", "fixed"}

// inheritedGroup is one that another controller has looked after (see rival.go).
const inheritedGroup = "inherited"

func backendGroupVerbs() []Verb {
	known := append(slices.Clone(backendGroups), inheritedGroup)
	return []Verb{{
		Name: "outside-group", Text: "create, change or delete a BackendGroup", Weight: 12,
		Parameters: []parameter.Parameter{
			parameter.OneOf("name", "of it", known...).Must(),
			parameter.OneOf("what", "put without it: it is created, or asks for this from now on", "put", "delete"),
			parameter.Number("weight", "a parameter of its backends, 10 without it", 0, 1000),
			parameter.Number("use", "of how many of its LoadBalancers; of 2 without it if it selects pods by labels, of 1 if not", 1, 3),
			parameter.Number("addresses", "of a group that has its own, 2 without it", 0, 4),
			parameter.OneOf("leave", "deregisterPolicy, IfNotReady without it", v1beta1.IfNotReady, v1beta1.IfNotRunning),
			parameter.OneOf("ports", "8080 without it", "8080", "8080,8443"),
		},
		Draw: func(d dice.Dice, _ Plan, s *Step) {
			s.With.Set("name", dice.Pick(d, "name", known))
			if d.Chance("delete", 25) {
				s.With.Set("what", "delete")
				return
			}
			s.With.Set("weight", d.Below("weight", 100))
			if d.Chance("use", 40) {
				s.With.Set("use", d.From("how many", 1, 3))
			}
			if d.Chance("addresses", 40) {
				s.With.Set("addresses", d.Below("how many addresses", 5))
			}
			if d.Chance("leave", 20) {
				s.With.Set("leave", v1beta1.IfNotRunning)
			}
			if d.Chance("ports", 20) {
				s.With.Set("ports", "8080,8443")
			}
		},
		Do: func(c *Cluster, s Step) {
			if s.With["what"] == "delete" {
				c.may(c.kube.Delete("user", "BackendGroup", Namespace, s.With["name"]))
				return
			}
			c.putBackendGroup(s.With["name"], s.With)
		},
	}}
}

// putBackendGroup has a BackendGroup ask for what parameters say.
func (c *Cluster) putBackendGroup(name string, with parameter.Values) {
	leave := with["leave"]
	if leave == "" {
		leave = v1beta1.IfNotReady
	}
	g := &v1beta1.BackendGroup{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion().String(), Kind: "BackendGroup"},
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name},
		Spec: v1beta1.BackendGroupSpec{
			Parameters: map[string]string{"weight": strconv.Itoa(with.Number("weight", 10))}, DeregisterPolicy: &leave,
		},
	}
	var used []string
	for _, o := range c.outsideBalancers() {
		used = append(used, o.name)
	}
	if name == "shared" {
		slices.Reverse(used)
	}
	use := 1
	if name == "front" || name == "shared" {
		use = 2
	}
	g.Spec.LoadBalancers = used[:min(len(used), with.Number("use", use))]
	pods := &v1beta1.PodBackends{Ports: []v1beta1.PortSelector{{Port: 8080, Protocol: "TCP"}}}
	if with["ports"] == "8080,8443" {
		pods.Ports = append(pods.Ports, v1beta1.PortSelector{Port: 8443, Protocol: "TCP"})
	}
	switch name {
	case "fixed", inheritedGroup:
		g.Spec.Static, pods = staticAddresses(name, with.Number("addresses", 2)), nil
	case "named":
		pods.ByName = []string{backendApps[1] + "-0001", backendApps[1] + "-0002"}
	default:
		pods.ByLabel = &v1beta1.SelectPodByLabel{Selector: map[string]string{appLabel: backendApps[0]}}
	}
	g.Spec.Pods = pods
	c.put(g)
}

// staticAddresses are those of a group that has its own.
func staticAddresses(group string, n int) (out []string) {
	first := 101
	if group == inheritedGroup {
		first = 121
	}
	for i := range n {
		out = append(out, fmt.Sprintf("198.51.100.%d:443", first+i))
	}
	return out
}
