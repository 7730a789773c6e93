// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/api/lbcf"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// BackendGroup converts a BackendGroup, with what it says in deprecated ways.
func BackendGroup(o *v1beta1.BackendGroup) (world.BackendGroup, []world.Problem) {
	meta, r := open(world.KindBackendGroup, &o.ObjectMeta, true)
	spec := &o.Spec
	g := world.BackendGroup{
		Meta: meta, LoadBalancers: lbcf.LoadBalancers(spec),
		Balancing: world.Balancing{
			Parameters: kvs(spec.Parameters, all), Ensure: r.ensure(spec.EnsurePolicy),
			Leave: r.leave(spec.DeregisterPolicy, spec.DeregisterWebhook, meta.Namespace),
		},
	}
	if len(g.LoadBalancers) == 0 {
		r.degrade("spec.loadBalancers", "name a LoadBalancer", "empty")
	}
	if used := used(spec); used > 1 {
		r.degrade("spec", "write one of pods, service and static", "%d of pods, service and static are there; %s counts", used, lbcf.TypeOf(spec))
	}
	switch lbcf.TypeOf(spec) {
	case lbcf.Pod:
		g.Pods = r.podsOfGroup(spec.Pods)
	case lbcf.Service:
		g.Service = r.serviceOfGroup(spec.Service)
		r.nodes(o.Annotations, g.Service)
	case lbcf.Static:
		g.IsStatic, g.Static = true, slices.Clone(spec.Static)
	}
	return g, r.problems
}

// used counts the ways in which a group names backends.
func used(spec *v1beta1.BackendGroupSpec) (n int) {
	for _, is := range []bool{spec.Pods != nil, spec.Service != nil, len(spec.Static) > 0} {
		if is {
			n++
		}
	}
	return n
}

func (r *report) podsOfGroup(p *v1beta1.PodBackends) *world.PodSelection {
	s := r.podSelection(p.ByLabel, p.ByName)
	for _, port := range lbcf.PodPorts(p) {
		if n := r.backendPort("spec.pods.ports", port.Port); n != 0 {
			s.Ports = append(s.Ports, world.BackendPort{Port: n, Protocol: port.Protocol})
		}
	}
	return s
}

func (r *report) serviceOfGroup(s *v1beta1.ServiceBackends) *world.ServiceBackends {
	port := lbcf.EffectivePort(s.Port)
	r.labels("spec.service.nodeSelector", "no node", s.NodeSelector)
	return &world.ServiceBackends{
		Name: s.Name, NodeSelector: kvs(s.NodeSelector, all),
		Port: world.BackendPort{Port: r.backendPort("spec.service.port", port.Port), Protocol: port.Protocol},
	}
}

// AnnotationNodes of a BackendGroup leaves out nodes of its Service: "ready", "not-excluded", or both with a comma between.
const AnnotationNodes = "fairlead.io/nodes"

// nodes reads which nodes are left out. A word that is unknown leaves out none: all nodes are what LBCF registers.
func (r *report) nodes(annotations map[string]string, s *world.ServiceBackends) {
	for word := range strings.SplitSeq(annotations[AnnotationNodes], ",") {
		switch word = strings.TrimSpace(word); word {
		case "":
		case "ready":
			s.OnlyReady = true
		case "not-excluded":
			s.NotExcluded = true
		default:
			r.degrade(annotationField(AnnotationNodes), "use ready, not-excluded, or both with a comma between", "%q is unknown; it leaves out no node", word)
		}
	}
}

// backendPort reads a port of a backend. One that is none leaves out its backends, and no more.
func (r *report) backendPort(field string, n int32) uint16 {
	if n < 1 || n > 65535 {
		r.degrade(field, "use a number from 1 to 65535", "%d is no port; it is left out", n)
		return 0
	}
	return uint16(n)
}

// podSelection reads which pods are meant; labels win over names. Labels that no pod can have, or none at all, select
// nothing: every pod of the namespace is never what was meant (lbcf §11.1, no. 5).
func (r *report) podSelection(byLabel *v1beta1.SelectPodByLabel, byName []string) *world.PodSelection {
	switch {
	case byLabel == nil:
		return &world.PodSelection{Names: slices.Clone(byName)}
	case len(byLabel.Selector) == 0:
		r.degrade("spec.pods.byLabel.selector", "give at least one label", "empty; no pod is selected")
		return &world.PodSelection{}
	case !r.labels("spec.pods.byLabel.selector", "no pod", byLabel.Selector):
		return &world.PodSelection{}
	}
	return &world.PodSelection{ByLabel: true, Selector: kvs(byLabel.Selector, all), Except: slices.Clone(byLabel.Except)}
}

// labels tells whether everything in a selector can be a label, and reports what cannot, and that nothing has it.
func (r *report) labels(field, nothing string, selector map[string]string) bool {
	legal := true
	for _, kv := range kvs(selector, all) {
		bad := append(validation.IsQualifiedName(kv.Key), validation.IsValidLabelValue(kv.Value)...)
		if len(bad) > 0 {
			legal = false
			r.degrade(fmt.Sprintf("%s[%s]", field, kv.Key), "write a label that can be set", "%s=%q is no label; %s is selected", kv.Key, kv.Value, nothing)
		}
	}
	return legal
}

// leave reads deregisterPolicy. What LBCF does not know is IfNotReady, and a driver that gives no answer changes nothing.
func (r *report) leave(policy *string, webhook *v1beta1.DeregisterWebhook, namespace string) world.LeavePolicy {
	l := world.LeavePolicy{Policy: lbcf.DeregisterPolicy(policy)}
	if name := value(policy); name != "" && name != l.Policy {
		r.degrade("spec.deregisterPolicy", "use IfNotReady, IfNotRunning or Webhook", "%q is unknown; it is %s", name, l.Policy)
	}
	if l.Policy != world.LeaveWebhook {
		return l
	}
	l.Failing = lbcf.FailurePolicy(webhook)
	if webhook == nil || webhook.DriverName == "" {
		r.degrade("spec.deregisterWebhook.driverName", "name a LoadBalancerDriver", "empty; it is as if it gave no answer")
		return l
	}
	if name := value(webhook.FailurePolicy); name != "" && name != l.Failing {
		r.degrade("spec.deregisterWebhook.failurePolicy", "use DoNothing, IfNotReady or IfNotRunning", "%q is unknown; it is %s", name, l.Failing)
	}
	l.Driver = driverID(webhook.DriverName, namespace)
	return l
}
