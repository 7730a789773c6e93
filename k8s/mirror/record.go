// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/api/lbcf"
	"fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// planRecord gives the next write that brings the BackendRecord of a binding to what the record holds; nil if there is
// none. shown is nil for an object that is not there.
func planRecord(v *fsm.View, k Key, shown *v1beta1.BackendRecord, now time.Time) *Write {
	b, wanted := fsm.Get[*fsm.Binding](v, fsm.TableBindings, k.ID())
	switch {
	case shown == nil && wanted && b.State != fsm.BindingDeregistering:
		return created(v, k, b)
	case shown == nil:
		return nil
	case wanted && isOf(b, shown):
		return planOwn(v, k, b, shown, now)
	case !marked(v, shown) && !ended(v, k, shown):
		return nil // not ours, and not taken over
	case wanted && b.State != fsm.BindingDeregistering && !deleting(shown) && ownedAlike(b, shown):
		return reborn(v, k, b, shown, now)
	case !wanted && !proves(v, shown):
		return nil // of another life of the group: to be taken over
	case !marked(v, shown):
		o := shown.DeepCopy() // nobody shall take it for another controller's while it goes
		_, uid := markOf(shown)
		annotated(o, marks(v, cmp.Or(uid, string(shown.UID))))
		return &Write{Verb: Patch, Key: k, Object: o}
	case !deleting(shown):
		return &Write{Verb: Delete, Key: k, Object: shown}
	case has(shown, lbcf.FinalizerBackendRecord):
		return finalized(k, shown, false)
	}
	return nil
}

// isOf tells whether a BackendRecord shows a binding: it says so, or was taken over.
func isOf(b *fsm.Binding, shown *v1beta1.BackendRecord) bool {
	if _, uid := markOf(shown); uid != "" {
		return uid == b.UID
	}
	return string(shown.UID) == b.UID
}

// marked tells whether a BackendRecord says that it is this group's. Another group's is taken over first.
func marked(v *fsm.View, shown *v1beta1.BackendRecord) bool {
	group, uid := markOf(shown)
	return uid != "" && (group == "" || group == v.Group().ID)
}

// ended tells whether the binding of a BackendRecord that was taken over is over, though nobody came to mark it before.
func ended(v *fsm.View, k Key, shown *v1beta1.BackendRecord) bool {
	if v.TraceOf(fsm.BindingID(k.ID()), fsm.Origin{UID: string(shown.UID), Made: shown.CreationTimestamp.Unix()}) == fsm.TraceTaken {
		return true // whoever has its name by now
	}
	g, ok := fsm.Get[*fsm.Grave](v, fsm.TableGraves, string(fsm.TableBindings)+"/"+k.ID())
	_, uid := markOf(shown)
	return ok && g.UID != "" && g.UID == cmp.Or(uid, string(shown.UID))
}

// proves tells whether the binding that a BackendRecord shows is over if it is not in v: it was there at an earlier
// revision, and no UID is used again. A group that was restored may not know of what its former life made, until it has
// taken over what it found.
func proves(v *fsm.View, shown *v1beta1.BackendRecord) bool {
	var r fsm.Revision
	if _, err := fmt.Sscanf(shown.Annotations[lbcf.AnnotationRevision], "%d.%d", &r.Epoch, &r.Index); err != nil {
		r = fsm.Revision{}
	}
	at := v.Revision()
	if r.Epoch == at.Epoch {
		return r.Index <= at.Index
	}
	return r.Epoch < at.Epoch && v.Group().Quarantine.IsZero()
}

// planOwn is planRecord for an object that shows the binding.
func planOwn(v *fsm.View, k Key, b *fsm.Binding, shown *v1beta1.BackendRecord, now time.Time) *Write {
	leaving := b.State == fsm.BindingDeregistering
	if (leaving || deleting(shown)) && !marked(v, shown) {
		o := shown.DeepCopy() // so that it can be told what became of it when the binding is gone
		annotated(o, marks(v, b.UID))
		return &Write{Verb: Patch, Key: k, Object: o}
	}
	switch {
	case deleting(shown):
		return nil // the planner sees it, and then the driver is asked
	case leaving:
		return &Write{Verb: Delete, Key: k, Object: shown}
	}
	if spec := specOf(v, b, &shown.Spec); !sameSpec(&shown.Spec, spec) || !contains(shown.Labels, labelsOf(b, spec)) {
		return updated(v, k, b, shown)
	}
	next, patient := recordStatus(b, &shown.Status, now)
	if next == nil {
		return nil
	}
	o := shown.DeepCopy()
	o.Status = *next
	return &Write{Verb: UpdateStatus, Key: k, Object: o, Patient: patient}
}

// reborn gives an object to another life of the same backend. What it shows of the former one goes first: an object that says
// that it is of a binding, and that its backend is registered, without that any driver was asked, is another controller's work.
func reborn(v *fsm.View, k Key, b *fsm.Binding, shown *v1beta1.BackendRecord, now time.Time) *Write {
	next, _ := recordStatus(b, &v1beta1.BackendRecordStatus{}, now)
	if next == nil {
		next = &v1beta1.BackendRecordStatus{}
	}
	if sameShown(next, &shown.Status) && sameStatuses(next.Conditions, shown.Status.Conditions) {
		return updated(v, k, b, shown)
	}
	o := shown.DeepCopy()
	o.Status = *next
	return &Write{Verb: UpdateStatus, Key: k, Object: o}
}

func marks(v *fsm.View, uid string) map[string]string {
	return map[string]string{lbcf.AnnotationRecord: string(v.Group().ID) + "/" + uid, lbcf.AnnotationRevision: v.Revision().String()}
}

func created(v *fsm.View, k Key, b *fsm.Binding) *Write {
	spec := specOf(v, b, &v1beta1.BackendRecordSpec{})
	o := &v1beta1.BackendRecord{Spec: *spec}
	o.Namespace, o.Name, o.Labels = k.Namespace, k.Name, labelsOf(b, spec)
	o.Annotations, o.Finalizers = marks(v, b.UID), []string{lbcf.FinalizerBackendRecord}
	if by, ok := ownerOf(b.Owner); ok {
		o.OwnerReferences = []metav1.OwnerReference{by.reference()}
	}
	return &Write{Verb: Create, Key: k, Object: o}
}

func updated(v *fsm.View, k Key, b *fsm.Binding, shown *v1beta1.BackendRecord) *Write {
	o := shown.DeepCopy()
	o.Spec = *specOf(v, b, &shown.Spec)
	labels := maps.Clone(o.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, labelsOf(b, &o.Spec))
	o.Labels = labels
	annotated(o, marks(v, b.UID))
	return &Write{Verb: Update, Key: k, Object: o}
}

// reference makes an owner the controller of a BackendRecord (lbcf §2.4).
func (o owner) reference() metav1.OwnerReference {
	meta := metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: types.UID(o.UID)}
	if o.Kind == Bind {
		return lbcf.BindOwner(&v1.Bind{ObjectMeta: meta})
	}
	return lbcf.GroupOwner(&v1beta1.BackendGroup{ObjectMeta: meta})
}

// ownedAlike tells whether the object has the binding's owner: an object of another goes with that.
func ownedAlike(b *fsm.Binding, shown *v1beta1.BackendRecord) bool {
	by, ok := ownerOf(b.Owner)
	ref := metav1.GetControllerOf(shown)
	return ok && ref != nil && string(ref.UID) == by.UID
}

// labelsOf are the labels of the two vocabularies. What nobody owns keeps what it has.
func labelsOf(b *fsm.Binding, spec *v1beta1.BackendRecordSpec) map[string]string {
	switch by, _ := ownerOf(b.Owner); by.Kind {
	case Bind:
		return lbcf.BindRecordLabels(by.Name, spec)
	case Group:
		return lbcf.GroupRecordLabels(by.Name, spec)
	}
	return nil
}

// specOf is the spec of the BackendRecord of a binding (lbcf §2.4). A load balancer that no object means any
// more keeps the name that is shown.
func specOf(v *fsm.View, b *fsm.Binding, shown *v1beta1.BackendRecordSpec) *v1beta1.BackendRecordSpec {
	spec := &v1beta1.BackendRecordSpec{LBName: shown.LBName, LBAttributes: mapOf(b.Attributes), Parameters: mapOf(b.Parameters)}
	if l, ok := fsm.Get[*fsm.LoadBalancer](v, fsm.TableBalancers, string(b.Balancer)); ok {
		spec.LBInfo, spec.LBDriver = mapOf(l.Info), driverName(l.Driver)
	}
	if of, ok := balancerOf(b.Balancer); ok {
		spec.LBName = of.lbName()
	}
	port := v1beta1.PortSelector{Port: int32(b.Backend.Port), Protocol: b.Backend.Protocol}
	switch lbcf.BackendType(b.Backend.Kind) {
	case lbcf.Pod:
		spec.PodBackend = &v1beta1.PodBackendRecord{Name: b.Backend.Name, Port: port}
	case lbcf.Service:
		spec.ServiceBackend = &v1beta1.ServiceBackendRecord{Name: b.Backend.Name, Port: port, NodePort: int32(b.Backend.NodePort), NodeName: b.Backend.Node}
	case lbcf.Static:
		spec.StaticAddr = &b.Address
	}
	if b.Ensure != (fsm.EnsurePolicy{}) {
		spec.EnsurePolicy = &v1beta1.EnsurePolicy{Policy: b.Ensure.Policy}
		if b.Ensure.Period > 0 {
			spec.EnsurePolicy.MinPeriod = &metav1.Duration{Duration: b.Ensure.Period}
		}
	}
	return spec
}

// sameSpec compares what is meant, so that what LBCF wrote in an older way stays as it is.
func sameSpec(a, b *v1beta1.BackendRecordSpec) bool {
	return a.LBName == b.LBName && a.LBDriver == b.LBDriver && maps.Equal(a.LBInfo, b.LBInfo) &&
		maps.Equal(a.LBAttributes, b.LBAttributes) && maps.Equal(a.Parameters, b.Parameters) &&
		samePod(a.PodBackend, b.PodBackend) && sameService(a.ServiceBackend, b.ServiceBackend) &&
		deref(a.StaticAddr) == deref(b.StaticAddr) && samePolicy(a.EnsurePolicy, b.EnsurePolicy)
}

func samePod(a, b *v1beta1.PodBackendRecord) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Name == b.Name && lbcf.EffectivePort(a.Port) == lbcf.EffectivePort(b.Port)
}

func sameService(a, b *v1beta1.ServiceBackendRecord) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Name == b.Name && a.NodePort == b.NodePort && a.NodeName == b.NodeName && lbcf.EffectivePort(a.Port) == lbcf.EffectivePort(b.Port)
}

func samePolicy(a, b *v1beta1.EnsurePolicy) bool {
	meant := func(p *v1beta1.EnsurePolicy) (out fsm.EnsurePolicy) {
		if p != nil {
			out.Policy = p.Policy
			if p.MinPeriod != nil {
				out.Period = p.MinPeriod.Duration
			}
		}
		return out
	}
	return meant(a) == meant(b)
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// contains tells whether m has all that part has.
func contains(m, part map[string]string) bool {
	for k, v := range part {
		if got, ok := m[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// recordStatus is the status of the BackendRecord of a binding, nil if the one that is shown says so already. It is
// urgent if people wait for it: the backend is registered.
func recordStatus(b *fsm.Binding, shown *v1beta1.BackendRecordStatus, now time.Time) (next *v1beta1.BackendRecordStatus, patient bool) {
	c := conditionsOf(shown.Conditions, now)
	switch {
	case b.Registered:
		c.set(v1beta1.ConditionRegistered, metav1.ConditionTrue, "", b.Message)
	case b.Attempts > 0:
		c.set(v1beta1.ConditionRegistered, metav1.ConditionFalse, v1beta1.ReasonOperationFailed, b.Reason)
	}
	next = &v1beta1.BackendRecordStatus{BackendAddr: b.Address, InjectedInfo: mapOf(b.Returned), Conditions: c.list}
	alike := sameShown(next, shown)
	if alike && sameConditions(next.Conditions, shown.Conditions) {
		return nil, false
	}
	return next, !b.Registered || alike && sameStatuses(next.Conditions, shown.Conditions)
}

// sameShown compares what drivers said.
func sameShown(a, b *v1beta1.BackendRecordStatus) bool {
	return a.BackendAddr == b.BackendAddr && maps.Equal(a.InjectedInfo, b.InjectedInfo)
}
