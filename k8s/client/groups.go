// SPDX-License-Identifier: Apache-2.0

package client

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Groups are the groups that a member needs of every cluster, named as in client-go's clientset, each with the kinds
// that it needs.
type Groups struct{ core, discovery, events, authentication *Group }

func (a *API) groups() (*Groups, error) {
	g := &Groups{}
	for _, one := range []struct {
		group   **Group
		version schema.GroupVersion
		kinds   []runtime.Object
	}{
		{&g.core, corev1.SchemeGroupVersion, []runtime.Object{
			&corev1.Service{}, &corev1.ServiceList{}, &corev1.Node{}, &corev1.NodeList{},
			&corev1.Pod{}, &corev1.PodList{}, &corev1.ConfigMap{}, &corev1.ConfigMapList{}, &corev1.Namespace{}, &corev1.Event{}, &corev1.Secret{},
		}},
		{&g.discovery, discoveryv1.SchemeGroupVersion, []runtime.Object{&discoveryv1.EndpointSlice{}, &discoveryv1.EndpointSliceList{}}},
		{&g.events, eventsv1.SchemeGroupVersion, []runtime.Object{&eventsv1.Event{}}},
		{&g.authentication, authenticationv1.SchemeGroupVersion, []runtime.Object{&authenticationv1.TokenReview{}}},
	} {
		var err error
		if *one.group, err = a.Group(one.version, one.kinds...); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// The ways to single kinds.
type (
	Services       = Collection[corev1.Service, corev1.ServiceList, *corev1.Service, *corev1.ServiceList]
	Nodes          = Collection[corev1.Node, corev1.NodeList, *corev1.Node, *corev1.NodeList]
	Pods           = Collection[corev1.Pod, corev1.PodList, *corev1.Pod, *corev1.PodList]
	ConfigMaps     = Collection[corev1.ConfigMap, corev1.ConfigMapList, *corev1.ConfigMap, *corev1.ConfigMapList]
	Secrets        = Resource[corev1.Secret, *corev1.Secret]
	Namespaces     = Collection[corev1.Namespace, corev1.NamespaceList, *corev1.Namespace, *corev1.NamespaceList]
	EndpointSlices = Collection[discoveryv1.EndpointSlice, discoveryv1.EndpointSliceList, *discoveryv1.EndpointSlice, *discoveryv1.EndpointSliceList]
	Events         = Resource[eventsv1.Event, *eventsv1.Event]
	CoreEvents     = Resource[corev1.Event, *corev1.Event]
	TokenReviews   = Resource[authenticationv1.TokenReview, *authenticationv1.TokenReview]
)

// CoreV1 is the core group.
type CoreV1 struct{ group *Group }

// CoreV1 is the core group.
func (g *Groups) CoreV1() CoreV1 { return CoreV1{g.core} }

// Services are those of a namespace, or of all if it is empty.
func (c CoreV1) Services(namespace string) Services {
	return CollectionOf[corev1.Service, corev1.ServiceList](c.group, "services", namespace)
}

// ConfigMaps are those of a namespace, or of all if it is empty.
func (c CoreV1) ConfigMaps(namespace string) ConfigMaps {
	return CollectionOf[corev1.ConfigMap, corev1.ConfigMapList](c.group, "configmaps", namespace)
}

// Pods are those of a namespace, or of all if it is empty.
func (c CoreV1) Pods(namespace string) Pods {
	return CollectionOf[corev1.Pod, corev1.PodList](c.group, "pods", namespace)
}

// Secrets are those of a namespace.
func (c CoreV1) Secrets(namespace string) Secrets {
	return ResourceOf[corev1.Secret](c.group, "secrets", namespace)
}

// Nodes are the cluster's.
func (c CoreV1) Nodes() Nodes {
	return CollectionOf[corev1.Node, corev1.NodeList](c.group, "nodes", "")
}

// Namespaces are the cluster's.
func (c CoreV1) Namespaces() Namespaces {
	return CollectionOf[corev1.Namespace, corev1.NamespaceList](c.group, "namespaces", "")
}

// Events are those of a namespace, in their old form: with a source and a count.
func (c CoreV1) Events(namespace string) CoreEvents {
	return ResourceOf[corev1.Event](c.group, "events", namespace)
}

// DiscoveryV1 is discovery.k8s.io/v1.
type DiscoveryV1 struct{ group *Group }

// DiscoveryV1 is discovery.k8s.io/v1.
func (g *Groups) DiscoveryV1() DiscoveryV1 { return DiscoveryV1{g.discovery} }

// EndpointSlices are those of a namespace, or of all if it is empty.
func (d DiscoveryV1) EndpointSlices(namespace string) EndpointSlices {
	return CollectionOf[discoveryv1.EndpointSlice, discoveryv1.EndpointSliceList](d.group, "endpointslices", namespace)
}

// EventsV1 is events.k8s.io/v1.
type EventsV1 struct{ group *Group }

// EventsV1 is events.k8s.io/v1.
func (g *Groups) EventsV1() EventsV1 { return EventsV1{g.events} }

// Events are those of a namespace.
func (e EventsV1) Events(namespace string) Events {
	return ResourceOf[eventsv1.Event](e.group, "events", namespace)
}

// AuthenticationV1 is authentication.k8s.io/v1.
type AuthenticationV1 struct{ group *Group }

// AuthenticationV1 is authentication.k8s.io/v1.
func (g *Groups) AuthenticationV1() AuthenticationV1 { return AuthenticationV1{g.authentication} }

// TokenReviews answer questions about tokens; they are nowhere kept.
func (a AuthenticationV1) TokenReviews() TokenReviews {
	return ResourceOf[authenticationv1.TokenReview](a.group, "tokenreviews", "")
}
