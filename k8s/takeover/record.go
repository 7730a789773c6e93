// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"fairlead.io/fairlead/k8s/api/lbcf"
	"fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// wish is what the owner of a record wants of it now.
type wish struct {
	target
	parameters map[string]string
	period     time.Duration // of ensuring; 0: once
	name       string        // of the record, by lbcf §2.4.1
	unwanted   string        // why nothing is wanted; empty: it is
	asked      string        // why a driver is asked first; empty: none is
}

// record tells what becomes of a BackendRecord.
func (j *judge) record(r *v1beta1.BackendRecord) Record {
	out := Record{Name: nameOf(r), LoadBalancer: r.Spec.LBName, Driver: r.Spec.LBDriver, Address: r.Status.BackendAddr}
	_, out.Ours = r.Annotations[lbcf.AnnotationRecord]
	owner := metav1.GetControllerOf(r)
	if owner != nil {
		out.Owner = owner.Kind + " " + r.Namespace + "/" + owner.Name
	}
	switch {
	case !slices.Contains(r.Finalizers, lbcf.FinalizerBackendRecord):
		out.Verdict, out.Why = LeftAlone, "it has no finalizer "+lbcf.FinalizerBackendRecord
	case r.DeletionTimestamp != nil:
		out.Verdict, out.Why = gone(r), "it is being deleted"
	default:
		out.Verdict, out.Why = verdict(r, j.wish(r, owner))
	}
	return out
}

// gone is the verdict on a record that nobody wants (lbcf §1.3): only what has an address may be registered.
func gone(r *v1beta1.BackendRecord) Verdict {
	if r.Status.BackendAddr == "" {
		return Released
	}
	return Deregistered
}

// verdict compares a record with what its owner wants now (lbcf §2.4.2).
func verdict(r *v1beta1.BackendRecord, w wish) (Verdict, string) {
	registered := holds(r.Status.Conditions, v1beta1.ConditionRegistered)
	switch {
	case w.unwanted != "":
		return gone(r), w.unwanted
	case w.name != r.Name:
		return gone(r), "its name would be " + w.name + ", which gets a record of its own"
	case w.driver != r.Spec.LBDriver:
		return renewed(r), fmt.Sprintf("its load balancer has driver %s, not %s", w.driver, r.Spec.LBDriver)
	case !maps.Equal(w.info, r.Spec.LBInfo):
		return renewed(r), "its load balancer is another one (lbInfo)"
	case w.asked != "":
		return Asked, w.asked
	case r.Status.BackendAddr == "":
		return Ensured, "it has no address yet"
	case !maps.Equal(w.parameters, r.Spec.Parameters):
		return Ensured, "its parameters changed: " + changes(r.Spec.Parameters, w.parameters)
	case !maps.Equal(w.attributes, r.Spec.LBAttributes):
		return Ensured, "attributes of its load balancer changed: " + changes(r.Spec.LBAttributes, w.attributes)
	case w.period != lbcf.Period(r.Spec.EnsurePolicy):
		return Ensured, "its ensure policy changed"
	case !registered:
		return Ensured, "it is not registered yet"
	}
	if w.period > 0 {
		return Adopted, fmt.Sprintf("ensured every %s as before", w.period)
	}
	return Adopted, ""
}

func renewed(r *v1beta1.BackendRecord) Verdict {
	if r.Status.BackendAddr == "" {
		return Ensured // nothing is registered under what it was
	}
	return Renewed
}

// changes names the keys that differ; values may be long.
func changes(from, to map[string]string) string {
	keys := map[string]bool{}
	for _, m := range []map[string]string{from, to} {
		for key := range m {
			a, had := from[key]
			b, has := to[key]
			if a != b || had != has {
				keys[key] = true
			}
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(keys)), ", ")
}

// wish asks the owner of a record.
func (j *judge) wish(r *v1beta1.BackendRecord, owner *metav1.OwnerReference) wish {
	if owner == nil {
		return wish{unwanted: "it has no owner"}
	}
	key := types.NamespacedName{Namespace: r.Namespace, Name: owner.Name}
	if owner.Kind == "Bind" {
		b := j.binds[key]
		if b == nil || b.UID != owner.UID {
			return wish{unwanted: "its Bind is gone"}
		}
		return j.wishOfBind(r, b)
	}
	g := j.groups[key]
	if g == nil || g.UID != owner.UID {
		return wish{unwanted: "its BackendGroup is gone"}
	}
	return j.wishOfGroup(r, g)
}

func (j *judge) wishOfGroup(r *v1beta1.BackendRecord, g *v1beta1.BackendGroup) wish {
	if g.DeletionTimestamp != nil {
		return wish{unwanted: "its BackendGroup is being deleted"}
	}
	to, why := j.targetOfGroup(g, r.Spec.LBName)
	w := wish{target: to, parameters: g.Spec.Parameters, period: lbcf.Period(g.Spec.EnsurePolicy), unwanted: why}
	if why != "" {
		return w
	}
	switch b := &r.Spec; {
	case b.PodBackend != nil && g.Spec.Pods != nil:
		pod, found := j.in.Pods[types.NamespacedName{Namespace: r.Namespace, Name: b.PodBackend.Name}]
		port := lbcf.EffectivePort(b.PodBackend.Port)
		if !slices.Contains(lbcf.PodPorts(g.Spec.Pods), port) {
			w.unwanted = "its group does not list the port any more"
			return w
		}
		w.name = j.names.Pod(b.LBName, g.Name, string(pod.UID), portOf(port))
		w.unwanted, w.asked = standing(b.PodBackend.Name, pod, found, g.Spec.Pods.ByLabel, g.Spec.Pods.ByName, lbcf.DeregisterPolicy(g.Spec.DeregisterPolicy))
	case b.ServiceBackend != nil && g.Spec.Service != nil:
		s := b.ServiceBackend
		w.name = j.names.Service(b.LBName, g.Name, g.Spec.Service.Name, portOf(lbcf.EffectivePort(g.Spec.Service.Port)), s.NodeName)
	case b.StaticAddr != nil:
		w.name = j.names.Static(b.LBName, g.Name, *b.StaticAddr)
		if !slices.Contains(g.Spec.Static, *b.StaticAddr) {
			w.unwanted = "its group does not list the address any more"
		}
	default:
		w.unwanted = "its group has backends of another kind"
	}
	return w
}

func (j *judge) wishOfBind(r *v1beta1.BackendRecord, b *v1.Bind) wish {
	if b.DeletionTimestamp != nil {
		return wish{unwanted: "its Bind is being deleted"}
	}
	to, why := targetOfBind(b, r.Spec.LBName)
	w := wish{target: to, parameters: b.Spec.Parameters, period: lbcf.Period(lbcf.RecordPolicy(b.Spec.EnsurePolicy)), unwanted: why}
	backend := r.Spec.PodBackend
	if backend == nil && why == "" {
		w.unwanted = "it has no pod"
	}
	if w.unwanted != "" {
		return w
	}
	port := v1.PortSelector{Port: backend.Port.Port, Protocol: backend.Port.Protocol} // protocol as it is written
	if !slices.Contains(b.Spec.Pods.Ports, port) {
		w.unwanted = "its Bind does not list the port any more"
		return w
	}
	pod, found := j.in.Pods[types.NamespacedName{Namespace: r.Namespace, Name: backend.Name}]
	w.name = j.names.Bind(b.Name, r.Spec.LBName, backend.Name, pod.IP, portOf(backend.Port))
	if apart := j.names.Apart(w.name, string(b.UID)); apart == r.Name {
		w.name = apart
	}
	w.unwanted, w.asked = standing(backend.Name, pod, found, b.Spec.Pods.ByLabel, b.Spec.Pods.ByName, lbcf.DeregisterPolicy(b.Spec.DeregisterPolicy))
	return w
}

// standing tells why a pod's backends are not wanted, or why a driver is asked about them (lbcf §5.2).
func standing(name string, pod Pod, found bool, label *v1beta1.SelectPodByLabel, names []string, policy string) (unwanted, asked string) {
	switch {
	case !found:
		return "its pod is gone", ""
	case pod.Deleting:
		return "its pod is being deleted", ""
	case !selected(name, pod.Labels, label, names):
		return "its pod is not selected any more", ""
	case pod.available():
		return "", ""
	case policy == v1beta1.Webhook:
		return "", "its pod is not ready: judgePodDeregister decides"
	case policy == v1beta1.IfNotRunning && pod.kept():
		return "", ""
	}
	return "its pod is not ready", ""
}

func selected(name string, labels map[string]string, label *v1beta1.SelectPodByLabel, names []string) bool {
	if label == nil {
		return slices.Contains(names, name)
	}
	for key, value := range label.Selector {
		if have, ok := labels[key]; !ok || have != value {
			return false
		}
	}
	return len(label.Selector) > 0 && !slices.Contains(label.Except, name)
}
