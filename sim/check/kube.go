// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/weight"
)

// kube is what the Kubernetes API really holds: what users want.
type kube struct {
	services map[string]*service // by "namespace/name"; those that are gone stay
	names    []string            // of services, in order
	slices   map[string]*slice
	nodes    map[string]*node
	advertising
	// configured is when pools and the like were written last, reconfigured when not for the first time, nodesAt when
	// nodes were, by whatever counts for routes.
	configured, reconfigured, nodesAt time.Duration
	// spans are when a node had a ready endpoint of a service.
	spans map[hop][]span
}

// hop is a service served at a node.
type hop struct{ service, node string }

type span struct{ from, to time.Duration } // to is never while it lasts

// service is what a user asked for.
type service struct {
	object
	LoadBalancer bool
	Typed        bool // is none, and names addresses in spec.externalIPs
	Class        string
	Ports        []portSpec
	Wishes       []byte // everything that decides about addresses, as it stands there
	Foul         bool   // the record cannot take a text of it
	weights      string // what it says that its endpoints weigh
	// changed is when a user wrote something of that last, edited when it was not for the first time; ended is never
	// while it exists.
	changed, edited, ended time.Duration
	// moved is when endpoints changed last.
	moved time.Duration
	// serving are the nodes that serve it.
	serving []string
	// pods are all that ever served it, as "namespace/name".
	pods    map[string]bool
	status  []netip.Addr
	created time.Duration
	number  uint64
}

type slice struct {
	service   string
	endpoints []endpoint
}

type node struct {
	ready bool
	since time.Duration // that it exists, or never
}

func newKube() *kube {
	return &kube{
		services: map[string]*service{}, slices: map[string]*slice{}, nodes: map[string]*node{}, advertising: newAdvertising(),
		configured: never, reconfigured: never, nodesAt: never, spans: map[hop][]span{},
	}
}

// hear takes in an event.
func (k *kube) hear(e event.Stamped) {
	x, ok := e.Event.(event.Object)
	if !ok {
		return
	}
	gone := x.Verb == "delete"
	switch x.Kind {
	case "Service":
		k.hearService(e, x, gone)
	case "EndpointSlice":
		k.hearSlice(e.At, x, gone)
	case "Node":
		k.hearNode(e.At, x, gone)
	case "IPAddressPool", "ConfigMap", "BGPAdvertisement", "BGPPeer":
		k.configured = e.At
		if x.Verb != "create" {
			k.reconfigured = e.At
		}
	}
	k.advertising.hear(e.At, x, gone)
}

// aggregationLength is that of IPv4 which the one BGPAdvertisement asks for; 0: none. It is false if there are several, or if the
// one is not about everything and everybody.
func (k *kube) aggregationLength() (bits int, plain bool) {
	for _, a := range k.advertisements {
		if bits = a.Spec.AggregationLength; bits < 20 || bits == 32 {
			bits = 0 // fewer bits are not done, and more there are not
		}
		plain = len(a.Spec.Pools)+len(a.Spec.PoolLabels)+len(a.Spec.Peers)+len(a.Spec.Nodes)+len(a.Spec.Services) == 0
	}
	return bits, plain && len(k.advertisements) == 1
}

func (k *kube) hearService(e event.Stamped, x event.Object, gone bool) {
	var in serviceJSON
	if json.Unmarshal(x.JSON, &in) != nil {
		return // the model's trouble: without it there is nothing to check by
	}
	id := x.Namespace + "/" + x.Name
	s := k.services[id]
	if s == nil || s.ended != never && !gone {
		next := &service{created: e.At, changed: e.At, edited: never, moved: never, ended: never, pods: map[string]bool{}}
		if s != nil {
			next.pods, next.moved = s.pods, s.moved
			if s.Wishes != nil {
				next.edited = e.At // another one of the same name
			}
		}
		s = next
		k.add(id, s)
	}
	var spec struct {
		Type     string     `json:"type"`
		Class    string     `json:"loadBalancerClass"`
		Ports    []portSpec `json:"ports"`
		Cluster  string     `json:"clusterIP"`
		External []string   `json:"externalIPs"`
	}
	_ = json.Unmarshal(in.Spec, &spec) // of one document with the above
	wishes := slices.Concat(in.Spec, in.Metadata.Annotations)
	ending := in.Metadata.Deletion != nil
	if gone || ending != (s.Metadata.Deletion != nil) || !bytes.Equal(wishes, s.Wishes) {
		s.changed = e.At
		if gone || s.Wishes != nil {
			s.edited = e.At
		}
	}
	s.object, s.Wishes, s.number = in.object, wishes, e.Number
	s.LoadBalancer, s.Class, s.Ports = spec.Type == "LoadBalancer", spec.Class, spec.Ports
	s.Typed = (spec.Type == "ClusterIP" || spec.Type == "NodePort") && spec.Cluster != "None" && len(spec.External) > 0
	var annotations map[string]string
	_ = json.Unmarshal(in.Metadata.Annotations, &annotations) // of the same document, if there are any
	s.weights = annotations[weight.Annotation]
	s.Foul = foul(in.Metadata.Annotations, annotations)
	s.status = nil
	for _, i := range in.Status.LoadBalancer.Ingress {
		if a, err := netip.ParseAddr(i.IP); err == nil {
			s.status = append(s.status, a)
		}
	}
	if gone {
		s.ended = e.At
	}
	k.recount(e.At, id)
}

func (k *kube) add(id string, s *service) {
	if k.services[id] == nil {
		k.names = append(k.names, id)
		slices.Sort(k.names)
	}
	k.services[id] = s
}

func (k *kube) hearSlice(at time.Duration, x event.Object, gone bool) {
	var in sliceJSON
	if json.Unmarshal(x.JSON, &in) != nil {
		return
	}
	id, owner := x.Namespace+"/"+x.Name, x.Namespace+"/"+in.Metadata.Labels["kubernetes.io/service-name"]
	if gone {
		delete(k.slices, id)
	} else {
		k.slices[id] = &slice{service: owner, endpoints: in.Endpoints}
	}
	s := k.services[owner]
	if s == nil {
		s = &service{created: at, changed: at, edited: never, moved: at, ended: at, pods: map[string]bool{}}
		k.add(owner, s)
	}
	for _, p := range in.Endpoints {
		if p.TargetRef.Name != "" {
			s.pods[p.TargetRef.Namespace+"/"+p.TargetRef.Name] = true
		}
	}
	s.moved = at
	k.recount(at, owner)
}

func (k *kube) hearNode(at time.Duration, x event.Object, gone bool) {
	var in nodeJSON
	if json.Unmarshal(x.JSON, &in) != nil {
		return
	}
	next := &node{ready: !gone && in.Metadata.Deletion == nil, since: at}
	old := k.nodes[x.Name]
	if old != nil && old.since != never {
		next.since = old.since
	}
	if gone {
		next.since = never
	}
	for _, c := range in.Status.Conditions {
		if c.Type == "Ready" && c.Status != "True" || c.Type == "NetworkUnavailable" && c.Status == "True" {
			next.ready = false
		}
	}
	if _, excluded := in.Metadata.Labels["node.kubernetes.io/exclude-from-external-load-balancers"]; excluded {
		next.ready = false
	}
	if old != nil && *old == *next {
		return
	}
	k.nodes[x.Name], k.nodesAt = next, at
	for _, id := range k.names {
		k.recount(at, id)
	}
}

// recount brings what is known of where a service is served up to date.
func (k *kube) recount(at time.Duration, id string) {
	k.services[id].serving = k.find(id)
	now := map[string]bool{}
	for _, n := range k.serving(id) {
		now[n] = true
	}
	for h, spans := range k.spans {
		if h.service == id && spans[len(spans)-1].to == never && !now[h.node] {
			spans[len(spans)-1].to = at
		}
	}
	for n := range now {
		h := hop{id, n}
		if spans := k.spans[h]; len(spans) == 0 || spans[len(spans)-1].to != never {
			k.spans[h] = append(spans, span{at, never})
		}
	}
}

// wanted tells whether a user wants a service to be reached from outside, and by us. Before format 2 of the record only load balancers
// are: see judge.known.
func (k *kube) wanted(id string) bool {
	s := k.services[id]
	if s == nil || s.ended != never || !s.LoadBalancer && !s.Typed || s.Metadata.Deletion != nil || s.Foul {
		return false
	}
	_, foreign := s.Metadata.Labels["service.kubernetes.io/service-proxy-name"]
	return !foreign && (s.Typed || s.Class == "" || strings.Contains(s.Class, "fairlead"))
}

// serving lists the nodes that serve a service. Nobody writes to it.
func (k *kube) serving(id string) []string {
	if s := k.services[id]; s != nil {
		return s.serving
	}
	return nil
}

// find lists the ready nodes with ready endpoints of a service; if none is ready anywhere, those with endpoints that
// serve while they end.
func (k *kube) find(id string) []string {
	if !k.wanted(id) {
		return nil
	}
	var ready, ending []string
	for _, name := range sortedKeys(k.slices) {
		if k.slices[name].service != id {
			continue
		}
		for _, e := range k.slices[name].endpoints {
			switch is := func(b *bool, otherwise bool) bool { return b == nil && otherwise || b != nil && *b }; {
			case is(e.Conditions.Ready, true):
				ready = append(ready, e.NodeName)
			case is(e.Conditions.Serving, false) && is(e.Conditions.Terminating, false):
				ending = append(ending, e.NodeName)
			}
		}
	}
	if len(ready) == 0 {
		ready = ending
	}
	ready = slices.DeleteFunc(ready, func(n string) bool { return k.nodes[n] == nil || !k.nodes[n].ready })
	slices.Sort(ready)
	return slices.Compact(ready)
}

// steady tells whether a node served a service all the time since the group can first have known, for a hop that it
// wanted at some moment: from then on nothing true speaks against the hop.
func (k *kube) steady(h hop, wantedAt, late time.Duration) bool {
	spans := k.spans[h]
	if len(spans) == 0 || spans[len(spans)-1].to != never {
		return false
	}
	last := spans[len(spans)-1]
	if last.from > wantedAt {
		return false
	}
	// Nothing else may be on its way still: an earlier end, seen late.
	return len(spans) == 1 || spans[len(spans)-2].to < wantedAt-late
}

// served tells whether a pod is or ever was one of a service's.
func (k *kube) served(id, pod string) bool { s := k.services[id]; return s != nil && s.pods[pod] }

// knows tells whether any service ever had a pod.
func (k *kube) knows(pod string) bool {
	for _, s := range k.services {
		if s.pods[pod] {
			return true
		}
	}
	return false
}
