// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	"fairlead.io/fairlead/k8s/api/lbcf"
	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// Mutate answers a request of a mutating webhook. It denies only what cannot be read, and gives the same patch for the
// same object; a patched object needs no patch.
func Mutate(r Request) Decision {
	creates, updates := r.Operation == admissionv1.Create, r.Operation == admissionv1.Update
	switch {
	case r.Kind == Driver && (creates || updates): // LBCF: creates; drivers from before a webhook was required could not be updated
		return mutate[v1beta1.LoadBalancerDriver](r, fillDriver)
	case r.Kind == LoadBalancer && creates:
		return mutate[v1beta1.LoadBalancer](r, func(n node, lb *v1beta1.LoadBalancer) { finalize(n, lb.Finalizers) })
	case r.Kind == BackendGroup && (creates || updates):
		return mutate[v1beta1.BackendGroup](r, fillGroup)
	case r.Kind == Bind && creates:
		return mutate[v1.Bind](r, func(n node, b *v1.Bind) { finalize(n, b.Finalizers) })
	}
	return Decision{}
}

func mutate[T any, P object[T]](r Request, fill func(node, P)) Decision {
	o, denied := decode[T, P](r, "the object", r.Object)
	if denied != "" {
		return Decision{Denied: denied}
	}
	root := map[string]any{}
	if err := json.Unmarshal(r.Object, &root); err != nil {
		return Decision{Denied: fmt.Sprintf("%s: cannot read the object: %v", r.subject(), err)}
	}
	var d Decision
	fill(node{patch: &d.Patch, fields: root}, o)
	return d
}

// finalize adds the finalizer of load balancers (M1, M2).
func finalize(root node, finalizers []string) {
	if !slices.Contains(finalizers, lbcf.FinalizerLoadBalancer) {
		root.make("metadata").add("finalizers", lbcf.FinalizerLoadBalancer)
	}
}

// fillDriver lists the webhooks that the driver lacks, and gives a timeout to those that have none (M3).
func fillDriver(root node, d *v1beta1.LoadBalancerDriver) {
	spec, ok := root.child("spec")
	if !ok {
		return // validation says what is wrong with it
	}
	spec.each("webhooks", func(w node) {
		if w.get("timeout") == nil {
			w.set("timeout", lbcf.DefaultTimeout.String())
		}
	})
	for _, name := range lbcf.RequiredWebhooks() {
		if named(d.Spec.Webhooks, name) == 0 {
			spec.add("webhooks", map[string]any{"name": name, "timeout": lbcf.DefaultTimeout.String()})
		}
	}
}

func fillGroup(root node, g *v1beta1.BackendGroup) {
	fillLabels(root, g)
	spec, ok := root.child("spec")
	if !ok {
		return
	}
	if len(spec.spellings("lbName")) > 0 { // M5
		spec.drop("lbName")
		if names := lbcf.LoadBalancers(&g.Spec); len(names) > len(g.Spec.LoadBalancers) {
			spec.add("loadBalancers", names[len(names)-1])
		}
	}
	if pods, ok := spec.child("pods"); ok && g.Spec.Pods != nil { // two spellings may say two things
		fillPods(pods, g.Spec.Pods)
	}
	if service, ok := spec.child("service"); ok {
		if port, ok := service.child("port"); ok {
			fillPort(port)
		}
	}
	if g.Spec.DeregisterPolicy == nil { // M8
		spec.set("deregisterPolicy", v1beta1.IfNotReady)
	}
}

// fillLabels labels a group with its LoadBalancers, and with no other (M4).
func fillLabels(root node, g *v1beta1.BackendGroup) {
	want := lbcf.GroupLabels(lbcf.LoadBalancers(&g.Spec))
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if g.Labels[key] != want[key] {
			root.make("metadata").make("labels").put(key, want[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(g.Labels)) {
		if _, wanted := want[key]; !wanted && strings.HasPrefix(key, lbcf.LabelLBNamePrefix) {
			root.make("metadata").make("labels").remove(key)
		}
	}
}

func fillPods(pods node, p *v1beta1.PodBackends) {
	pods.each("ports", fillPort)
	if len(pods.spellings("port")) == 0 {
		return
	}
	pods.drop("port") // M6
	if ports := lbcf.PodPorts(p); len(ports) > len(p.Ports) {
		added := ports[len(ports)-1]
		pods.add("ports", map[string]any{"port": added.Port, "protocol": added.Protocol})
	}
}

// fillPort says a port in the new way (M7).
func fillPort(port node) {
	if text, _ := port.get("protocol").(string); text == "" {
		port.set("protocol", "TCP")
	}
	if old := port.get("portNumber"); old != nil {
		if n, _ := port.get("port").(float64); n == 0 {
			port.set("port", old)
		}
	}
	port.drop("portNumber")
}
