// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/api/lbcf"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// BackendRecord converts a BackendRecord. Nobody is expected to mend one, so that it is taken as it is.
func BackendRecord(o *v1beta1.BackendRecord) (world.BackendRecord, []world.Problem) {
	meta, r := open(world.KindBackendRecord, &o.ObjectMeta, true)
	spec := &o.Spec
	b := world.BackendRecord{
		Meta: meta, LoadBalancer: spec.LBName, Driver: spec.LBDriver, DriverID: driverID(spec.LBDriver, meta.Namespace),
		Info: kvs(spec.LBInfo, all), Attributes: kvs(spec.LBAttributes, all), Parameters: kvs(spec.Parameters, all),
		Ensure: written(spec.EnsurePolicy), Finalizer: slices.Contains(o.Finalizers, lbcf.FinalizerBackendRecord),
		Address: o.Status.BackendAddr, Injected: kvs(o.Status.InjectedInfo, all),
		Registered: holds(o.Status.Conditions, v1beta1.ConditionRegistered), Mirror: o.Annotations[lbcf.AnnotationRecord],
	}
	b.OwnerKind, b.Owner, b.OwnerUID = ownerOf(&o.ObjectMeta)
	switch {
	case spec.PodBackend != nil:
		b.Kind, b.Name, b.Port = string(lbcf.Pod), spec.PodBackend.Name, recordedPort(spec.PodBackend.Port)
	case spec.ServiceBackend != nil:
		s := spec.ServiceBackend
		b.Kind, b.Name, b.Port, b.Node = string(lbcf.Service), s.Name, recordedPort(s.Port), s.NodeName
		b.NodePort = portOrNone(s.NodePort)
	case spec.StaticAddr != nil:
		b.Kind, b.Static = string(lbcf.Static), *spec.StaticAddr
	default:
		r.degrade("spec", "delete it, and it is made anew", "it says neither podBackend nor serviceBackend nor staticAddr")
	}
	if b.Owner == "" {
		r.degrade("metadata.ownerReferences", "delete it, and its backend is deregistered", "it belongs to no BackendGroup and no Bind")
	}
	return b, r.problems
}

func recordedPort(p v1beta1.PortSelector) world.BackendPort {
	p = lbcf.EffectivePort(p)
	return world.BackendPort{Port: portOrNone(p.Port), Protocol: p.Protocol}
}

func portOrNone(n int32) uint16 {
	if n < 1 || n > 65535 {
		return 0
	}
	return uint16(n)
}

// ownerOf finds whose record it is: the controller goes first, then any other owner of the two kinds, then what the
// labels say, which are left when the owner was deleted and its objects were to stay.
func ownerOf(o *metav1.ObjectMeta) (kind, name, uid string) {
	if c := metav1.GetControllerOfNoCopy(o); c != nil && owns(c) {
		return c.Kind, c.Name, string(c.UID)
	}
	for i := range o.OwnerReferences {
		if c := &o.OwnerReferences[i]; owns(c) {
			return c.Kind, c.Name, string(c.UID)
		}
	}
	for _, l := range [][2]string{{lbcf.LabelBackendGroup, string(world.KindBackendGroup)}, {lbcf.LabelBind, string(world.KindBind)}} {
		if name := o.Labels[l[0]]; name != "" {
			return l[1], name, ""
		}
	}
	return "", "", ""
}

func owns(c *metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(c.APIVersion)
	return err == nil && gv.Group == lbcf.Group && c.Name != "" && (c.Kind == string(world.KindBackendGroup) || c.Kind == string(world.KindBind))
}
