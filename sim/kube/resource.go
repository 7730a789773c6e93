// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"fairlead.io/fairlead/k8s/api"
	balancing "fairlead.io/fairlead/k8s/api/balancing/v1beta1"
	lbcfv1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	lbcfv1beta1 "fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// Object is any Kubernetes object.
type Object interface {
	metav1.Object
	runtime.Object
}

// resource is one kind of objects and where it is found.
type resource struct {
	schema.GroupVersion
	name, kind string
	singular   string
	namespaced bool
	status     bool // has a subresource status
	counted    bool // has a generation
	custom     bool // defined in the cluster
	reviewed   bool // is answered and never kept
	tracked    bool // has managed fields
	applied    bool // has those of who applied something, and of nobody else
	other      bool // who names the kind alone means another resource

	blank func() Object
	// dress gives a shallow copy that says which kind it is, list one list of many.
	dress func(Object) runtime.Object
	list  func(objects []Object, meta metav1.ListMeta) runtime.Object
	// keep copies what a write of a subresource ("" is the object itself) must not change from the object before it.
	keep func(next, before Object, subresource string)
}

func (r *resource) gvk() schema.GroupVersionKind { return r.WithKind(r.kind) }

func (r *resource) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.name}
}

// shallow gives a copy whose metadata and status may be set without a change to o.
func (r *resource) shallow(o Object) Object {
	if r.custom {
		return o.DeepCopyObject().(Object)
	}
	return r.dress(o).(Object)
}

// typed makes the resource of a kind that client-go has types for.
func typed[T, L any, P interface {
	*T
	Object
}, PL interface {
	*L
	runtime.Object
	metav1.ListInterface
}](gv schema.GroupVersion, name, kind string, items func(*L) *[]T) *resource {
	r := &resource{GroupVersion: gv, name: name, kind: kind, singular: strings.ToLower(kind), namespaced: true}
	r.blank = func() Object { return P(new(T)) }
	r.dress = func(o Object) runtime.Object {
		c := *o.(P)
		P(&c).GetObjectKind().SetGroupVersionKind(r.gvk())
		return P(&c)
	}
	r.list = func(objects []Object, meta metav1.ListMeta) runtime.Object {
		l := new(L)
		all := make([]T, len(objects))
		for i, o := range objects {
			all[i] = *o.(P)
		}
		*items(l) = all
		PL(l).SetResourceVersion(meta.ResourceVersion)
		PL(l).SetContinue(meta.Continue)
		PL(l).SetRemainingItemCount(meta.RemainingItemCount)
		PL(l).GetObjectKind().SetGroupVersionKind(gv.WithKind(kind + "List"))
		return PL(l)
	}
	r.keep = func(Object, Object, string) {}
	return r
}

// custom makes the resource of a kind that is defined in the cluster.
func custom(gv schema.GroupVersion, name, kind, singular string) *resource {
	r := &resource{GroupVersion: gv, name: name, kind: kind, singular: singular, namespaced: true, status: true, counted: true, custom: true}
	r.blank = func() Object {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(r.gvk())
		return u
	}
	r.dress = func(o Object) runtime.Object { return o }
	r.list = func(objects []Object, meta metav1.ListMeta) runtime.Object {
		l := &unstructured.UnstructuredList{Items: make([]unstructured.Unstructured, len(objects))}
		l.SetGroupVersionKind(gv.WithKind(kind + "List"))
		l.SetResourceVersion(meta.ResourceVersion)
		l.SetContinue(meta.Continue)
		l.SetRemainingItemCount(meta.RemainingItemCount)
		for i, o := range objects {
			l.Items[i] = *o.(*unstructured.Unstructured)
		}
		return l
	}
	r.keep = func(next, before Object, subresource string) {
		to, from := next.(*unstructured.Unstructured).Object, before.(*unstructured.Unstructured).Object
		for _, field := range []string{"spec", "status"} {
			if (field == "status") == (subresource == "status") {
				continue
			}
			if v, ok := from[field]; ok {
				to[field] = runtime.DeepCopyJSONValue(v)
			} else {
				delete(to, field)
			}
		}
	}
	return r
}

// resources lists everything that the server can know, in order of their paths.
func resources() []*resource {
	services := typed(corev1.SchemeGroupVersion, "services", "Service", func(l *corev1.ServiceList) *[]corev1.Service { return &l.Items })
	services.status, services.tracked = true, true
	services.keep = func(next, before Object, subresource string) {
		to, from := next.(*corev1.Service), before.(*corev1.Service).DeepCopy()
		if subresource == "status" {
			to.Spec = from.Spec
		} else {
			to.Status = from.Status
		}
	}
	nodes := typed(corev1.SchemeGroupVersion, "nodes", "Node", func(l *corev1.NodeList) *[]corev1.Node { return &l.Items })
	nodes.status, nodes.namespaced, nodes.applied = true, false, true
	nodes.keep = func(next, before Object, subresource string) {
		to, from := next.(*corev1.Node), before.(*corev1.Node).DeepCopy()
		if subresource == "status" {
			to.Spec = from.Spec
		} else {
			to.Status = from.Status
		}
	}
	pods := typed(corev1.SchemeGroupVersion, "pods", "Pod", func(l *corev1.PodList) *[]corev1.Pod { return &l.Items })
	pods.status = true
	pods.keep = func(next, before Object, subresource string) {
		to, from := next.(*corev1.Pod), before.(*corev1.Pod).DeepCopy()
		if subresource == "status" {
			to.Spec = from.Spec
		} else {
			to.Status = from.Status
		}
	}
	deployments := typed(appsv1.SchemeGroupVersion, "deployments", "Deployment", func(l *appsv1.DeploymentList) *[]appsv1.Deployment { return &l.Items })
	deployments.status, deployments.counted = true, true
	deployments.keep = func(next, before Object, subresource string) {
		to, from := next.(*appsv1.Deployment), before.(*appsv1.Deployment).DeepCopy()
		if subresource == "status" {
			to.Spec = from.Spec
		} else {
			to.Status = from.Status
		}
	}
	namespaces := typed(corev1.SchemeGroupVersion, "namespaces", "Namespace", func(l *corev1.NamespaceList) *[]corev1.Namespace { return &l.Items })
	namespaces.namespaced = false
	slicesOf := typed(discoveryv1.SchemeGroupVersion, "endpointslices", "EndpointSlice",
		func(l *discoveryv1.EndpointSliceList) *[]discoveryv1.EndpointSlice { return &l.Items })
	slicesOf.counted = true
	reviews := &resource{GroupVersion: authenticationv1.SchemeGroupVersion, name: "tokenreviews", kind: "TokenReview", singular: "tokenreview", reviewed: true,
		blank: func() Object { return &authenticationv1.TokenReview{} },
		dress: func(o Object) runtime.Object {
			c := *o.(*authenticationv1.TokenReview)
			c.SetGroupVersionKind(authenticationv1.SchemeGroupVersion.WithKind("TokenReview"))
			return &c
		}}
	prefixes := typed(networkingv1.SchemeGroupVersion, "servicecidrs", "ServiceCIDR",
		func(l *networkingv1.ServiceCIDRList) *[]networkingv1.ServiceCIDR { return &l.Items })
	prefixes.namespaced, prefixes.status = false, true
	prefixes.keep = func(next, before Object, subresource string) {
		to, from := next.(*networkingv1.ServiceCIDR), before.(*networkingv1.ServiceCIDR).DeepCopy()
		if subresource == "status" {
			to.Spec = from.Spec
		} else {
			to.Status = from.Status
		}
	}
	told := typed(corev1.SchemeGroupVersion, "events", "Event", func(l *corev1.EventList) *[]corev1.Event { return &l.Items })
	told.other = true
	all := []*resource{
		services, nodes, pods, deployments, namespaces, slicesOf, reviews, prefixes,
		typed(corev1.SchemeGroupVersion, "configmaps", "ConfigMap", func(l *corev1.ConfigMapList) *[]corev1.ConfigMap { return &l.Items }),
		told,
		typed(eventsv1.SchemeGroupVersion, "events", "Event", func(l *eventsv1.EventList) *[]eventsv1.Event { return &l.Items }),
	}
	ours, _ := schema.ParseGroupVersion(api.GroupVersion)
	policies := custom(ours, "addresspolicies", "AddressPolicy", "addresspolicy")
	policies.namespaced = false
	all = append(all, policies)
	for _, gv := range []string{api.GroupVersion, api.MetalLBV1Beta1} {
		v, _ := schema.ParseGroupVersion(gv) // constants
		all = append(all, custom(v, "ipaddresspools", "IPAddressPool", "ipaddresspool"),
			custom(v, "bgpadvertisements", "BGPAdvertisement", "bgpadvertisement"), custom(v, "communities", "Community", "community"),
			custom(v, "l2advertisements", "L2Advertisement", "l2advertisement"), custom(v, "bfdprofiles", "BFDProfile", "bfdprofile"))
	}
	for _, gv := range []string{api.GroupVersion, api.MetalLBV1Beta2} {
		v, _ := schema.ParseGroupVersion(gv)
		all = append(all, custom(v, "bgppeers", "BGPPeer", "bgppeer"))
	}
	old := lbcfv1beta1.GroupVersion()
	all = append(all, custom(old, "loadbalancerdrivers", "LoadBalancerDriver", "loadbalancerdriver"),
		custom(old, "loadbalancers", "LoadBalancer", "loadbalancer"), custom(old, "backendgroups", "BackendGroup", "backendgroup"),
		custom(old, "backendrecords", "BackendRecord", "backendrecord"), custom(lbcfv1.GroupVersion(), "binds", "Bind", "bind"))
	clientSide := balancing.GroupVersion()
	for _, r := range []*resource{
		custom(clientSide, "balancingpolicies", "BalancingPolicy", "balancingpolicy"),
		custom(clientSide, "localredirectpolicies", "LocalRedirectPolicy", "localredirectpolicy"),
	} {
		r.namespaced = false
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *resource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.name, b.name))
	})
	return all
}
