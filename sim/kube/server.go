// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/event"
)

// defaultEpoch is the wall clock's beginning, where the world gives none.
var defaultEpoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// podGrace is how long a pod has to end, in seconds.
const podGrace = 30

// Options say what kind of cluster it is.
type Options struct {
	// Epoch is what the server's wall clock shows at the beginning of the world; optional: 2026-01-01.
	Epoch time.Time
	// Definitions are the custom resources that are installed, as "GROUP/VERSION/RESOURCE", for example
	// "metallb.io/v1beta1/ipaddresspools". Install and Uninstall change that.
	Definitions []string
	// NoSlices leaves the controller of EndpointSlices out.
	NoSlices bool
}

// Server is an API server and its etcd.
type Server struct {
	w         *engine.World
	options   Options
	resources []*resource
	encodings map[string]*encoding
	installed map[string]bool
	owners    *owners
	tokens    map[string]authenticationv1.TokenReviewStatus
	// namespaces and services are resources that the model itself knows.
	namespaces, services *resource

	store     *store // of this cluster
	other     *store // of another one; nil until it is seen
	watchers  []*watcher
	faults    []*fault
	slowed    []func() // what faults have made late; some of it may be done
	chronicle []*change
	slices    *slicer
}

// New makes a cluster with the namespaces that every cluster has.
func New(w *engine.World, o Options) *Server {
	if o.Epoch.IsZero() {
		o.Epoch = defaultEpoch
	}
	s := &Server{w: w, options: o, resources: resources(), encodings: encodings(), installed: map[string]bool{}, owners: newOwners(),
		tokens: map[string]authenticationv1.TokenReviewStatus{}}
	s.namespaces, s.services = s.byKind("Namespace"), s.byKind("Service")
	for _, d := range o.Definitions {
		s.Install(d)
	}
	s.store = newStore(w, o.Epoch, "kube", 100+w.Random("kube/version").Uint64N(1000))
	s.store.committed = s.committed
	if !o.NoSlices {
		s.slices = newSlicer(s)
	}
	s.found(s.store)
	return s
}

// found makes the first objects of a cluster: those that every cluster has.
func (s *Server) found(c *store) {
	https, port, single := "https", int32(6443), corev1.IPFamilyPolicySingleStack
	kubernetes := metav1.ObjectMeta{Name: "kubernetes", Namespace: metav1.NamespaceDefault,
		Labels: map[string]string{"component": "apiserver", "provider": "kubernetes"}}
	slice := kubernetes
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: "kubernetes"}
	for _, o := range []Object{
		&networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.96.0.0/16"}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceDefault}},
		&corev1.Service{ObjectMeta: kubernetes, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.1", IPFamilyPolicy: &single,
			Ports: []corev1.ServicePort{{Name: https, Port: 443, TargetPort: intstr.FromInt32(port)}}}},
		&discoveryv1.EndpointSlice{ObjectMeta: slice, AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}}}, Ports: []discoveryv1.EndpointPort{{Name: &https, Port: &port}}},
	} {
		r, err := s.resourceOf(o)
		if err == nil {
			_, f := s.create(c, r, o, writer{by: "kube-apiserver", manager: "kube-apiserver", verb: "create"})
			err = f.err()
		}
		if err != nil {
			panic(fmt.Sprintf("kube: make %s: %v", o.GetName(), err))
		}
	}
	c.founded = c.version
}

func (s *Server) random(what string) *rand.Rand { return s.w.Random("kube/" + what) }

// committed tells everybody of a change.
func (s *Server) committed(c *change) {
	s.chronicle = append(s.chronicle, c)
	o := c.after
	if o == nil {
		o = c.gone
	}
	s.w.Publish(event.Object{Kind: c.resource.kind, Namespace: c.key.namespace, Name: c.key.name, UID: string(o.GetUID()), Version: c.version,
		By: c.by, Verb: c.verb, Fields: account(o), JSON: asJSON(o)})
	s.tell(s.store, c)
	if s.slices != nil {
		s.slices.hear(c)
	}
}

// asJSON is an object as events carry it.
func asJSON(o Object) []byte {
	b, err := json.Marshal(o)
	if err != nil {
		panic(fmt.Sprintf("write %s as JSON: %v", o.GetName(), err)) // what is stored came out of an encoding
	}
	return b
}

// tell shows a change to the watchers of a cluster.
func (s *Server) tell(of *store, c *change) {
	for _, w := range s.watchers {
		if w.store == of {
			w.hear(c)
		}
	}
}

// Install makes the definition of a custom resource present, given as "GROUP/VERSION/RESOURCE".
func (s *Server) Install(definition string) {
	s.known(definition)
	s.installed[definition] = true
}

// Uninstall takes a definition away, with all its objects, and ends the watches of it.
func (s *Server) Uninstall(definition string) {
	r := s.known(definition)
	for _, o := range s.store.list(r) {
		s.store.commit(r, keyOf(o), nil, "customresourcedefinition controller", "delete")
	}
	delete(s.installed, definition)
	s.endWatches(func(w *watcher) bool { return w.resource == r }, (*watcher).end)
}

func (s *Server) known(definition string) *resource {
	for _, r := range s.resources {
		if r.custom && r.GroupVersion.String()+"/"+r.name == definition {
			return r
		}
	}
	panic(fmt.Sprintf("kube: no custom resource %q is modelled", definition))
}

// endWatches ends the watches that f picks.
func (s *Server) endWatches(f func(*watcher) bool, end func(*watcher)) {
	for _, w := range append([]*watcher(nil), s.watchers...) {
		if f(w) {
			end(w)
		}
	}
}

// Grant makes a token known, for the reviews of tokens.
func (s *Server) Grant(token string, status authenticationv1.TokenReviewStatus) {
	s.tokens[token] = status
}
